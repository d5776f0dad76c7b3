"""Byte-level BPE: the vocabularies of GPT-2 and RoBERTa, which spell any text from 256 bytes.

A word has the space before it, so that a chunk here is what stands between two spaces. The first chunk of a line has no
space before it, and says so by a mark that no line contains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from bertkit.text import added, files
from bertkit.vocab import merges
from bertkit.vocab.kind import LONGEST_CHUNK, Options, Word, first, require_room

START, PAD, END, UNKNOWN, MASK = SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
LIMIT = 512
LONG = 64
"""characters of a chunk that is cut where Chinese sentence marks follow a letter"""

_BARE = "\r"  # no space stands before this chunk
_LINE_END = "Ċ"  # how a line break looks as a byte
_WHITE, _BLACK = r"[^\S\x1c-\x1f\n]", r"[\S\x1c-\x1f]"  # what Rust takes for white space and not, within a line
_AWKWARD = re.compile(rf"{_WHITE} (?=\s|\Z)")  # spaces that do not each begin a word
_CHUNK = re.compile(rf" ?{_BLACK}+|{_WHITE}+(?!{_BLACK})|{_WHITE}")
_MARK = re.compile(r"(?<=[^\W_])(?=[，。！？；：、])")


class ByteLevel:
    """Words by GPT-2's pattern, as bytes; case is kept, whatever the options say."""

    name: ClassVar[str] = "bpe"
    longest: ClassVar[int] = LONGEST_CHUNK

    def __init__(self, options: Options) -> None:
        self._options = options
        self._fixed = first(SPECIALS, options)
        for token in options.special:
            added.special(token, "--special")
        self._pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)

    def chunks(self, text: str) -> list[str]:
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        if _AWKWARD.search(text):
            found = [chunk[1:] if chunk[0] == " " else _BARE + chunk for chunk in _CHUNK.findall(text)]
        else:
            found = f"{_BARE}{text}".replace("\n", f" {_BARE}").split(" ")
        if max(map(len, found), default=0) <= LONG:
            return found
        return [part for chunk in found for part in (_cut(chunk) if len(chunk) > LONG else (chunk,))]

    def words(self, chunks: Sequence[str]) -> list[str]:
        after: list[str] = []  # chunks after a space
        bare: list[str] = []
        odd: list[str] = []  # chunks with white space of their own
        for chunk in chunks:
            is_bare = chunk.startswith(_BARE)
            text = chunk[is_bare:]
            if text.split() != [text]:
                odd.append(text if is_bare else f" {text}")
            elif not is_bare:
                after.append(chunk)
            else:
                bare.append(text)
        found = self._bytes(f" {' '.join(after)}") if after else []
        found += [word for word in self._bytes("\n".join(bare)) if word != _LINE_END]
        return found + [word for text in odd for word in self._bytes(text)]

    def _bytes(self, text: str) -> list[str]:
        return [word for word, _ in self._pre_tokenizer.pre_tokenize_str(text)]

    def learn(self, words: list[Word]) -> ByteLevelVocabulary:
        options = self._options
        tokens = list(dict.fromkeys([*self._fixed, *sorted(pre_tokenizers.ByteLevel.alphabet())]))
        require_room(len(self._fixed), len(tokens) - len(self._fixed), options.size)
        table = {ord(token): chr(number) for number, token in enumerate(tokens) if len(token) == 1}
        spelled = [word.translate(table) for word, _ in words]
        counts = [count for _, count in words]
        found = merges.learn(spelled, counts, tokens, options.size, options.min_count)
        facts = {"special": len(self._fixed) - options.unused, "unused": options.unused}
        facts |= {"characters": len(tokens) - len(self._fixed), "learned": len(found.tokens) - len(tokens)}
        return ByteLevelVocabulary(found, facts, options)


class ByteLevelVocabulary:
    """RoBERTa's vocab.json and merges.txt, and tokenizer.json beside them."""

    unknown = UNKNOWN

    def __init__(self, found: merges.Merges, facts: dict[str, int], options: Options) -> None:
        self.tokens, self.facts = found.tokens, facts
        self._pairs, self._options = found.pairs, options
        self._ids = {token: number for number, token in enumerate(found.tokens)}
        self._model = models.BPE(self._ids, found.pairs)
        self._decoder = decoders.ByteLevel()

    def spell(self, word: str) -> list[str]:
        return [token.value for token in self._model.tokenize(word)]

    def readable(self, word: str) -> str:
        return self._decoder.decode([word]).strip()

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of this vocabulary, as `tokenizers` has it."""
        rust = Tokenizer(models.BPE(self._ids, self._pairs))
        rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        rust.decoder = decoders.ByteLevel()
        rust.add_special_tokens(list(self._special()))
        rust.post_processor = processors.RobertaProcessing(
            (END, self._ids[END]), (START, self._ids[START]), True, False
        )
        return rust

    def write(self, directory: Path) -> None:
        text = json.dumps(self._ids, ensure_ascii=False)
        (directory / "vocab.json").write_text(text, encoding="utf-8", newline="\n")
        lines = "".join(f"{left} {right}\n" for left, right in self._pairs)
        (directory / "merges.txt").write_text(f"#version: 0.2\n{lines}", encoding="utf-8", newline="\n")
        (directory / "tokenizer.json").write_text(self.tokenizer().to_str(), encoding="utf-8", newline="\n")
        files.write_object(directory / "tokenizer_config.json", self._config())

    def _special(self) -> Iterator[AddedToken]:
        for token in SPECIALS:  # a space before <mask> belongs to the word that it hides
            yield AddedToken(token, lstrip=token == MASK, normalized=False, special=True)
        for token in self._options.special:
            yield AddedToken(token, normalized=False, special=True)

    def _config(self) -> dict[str, Any]:
        keys = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")
        flags = {token.content: {key: getattr(token, key) for key in keys} for token in self._special()}
        names = {"bos_token": START, "eos_token": END, "sep_token": END, "cls_token": START}
        names |= {"unk_token": UNKNOWN, "pad_token": PAD, "mask_token": MASK}
        extra = list(self._options.special)
        return {
            "tokenizer_class": "RobertaTokenizer",
            "model_max_length": LIMIT,
            "add_prefix_space": False,
            **names,
            **({"additional_special_tokens": extra} if extra else {}),
            "added_tokens_decoder": {str(self._ids[token]): values for token, values in flags.items()},
        }


def _cut(chunk: str) -> Iterator[str]:
    """A long chunk in parts: GPT-2's pattern always cuts between a letter and a mark."""
    for place, part in enumerate(_MARK.split(chunk)):
        yield part[:LONGEST_CHUNK] if place == 0 else f"{_BARE}{part[:LONGEST_CHUNK]}"
