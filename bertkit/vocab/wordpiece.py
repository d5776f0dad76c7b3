"""WordPiece: the vocabularies of BERT, with ## before tokens that go on within a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import ClassVar

from tokenizers import models

from bertkit.text import Specials, Tokenizer, added
from bertkit.text.chunks import CHINESE, spaced, tamed
from bertkit.text.wordpiece import CONTINUES, LONGEST_WORD, Rules, build
from bertkit.vocab import merges
from bertkit.vocab.alphabet import characters, choose
from bertkit.vocab.kind import LONGEST_CHUNK, Options, Word, first, require_room

LONG = 200
"""characters of a chunk that is cut at punctuation right away, for addresses and the like never come again"""

_WIDE = re.compile(rf"[{CHINESE}]|[^\s{CHINESE}]+")  # quicker where every other character is a chunk
_PARTS = re.compile(r"[!-/:-@\[-`{-~]|[^!-/:-@\[-`{-~]+")


class WordPiece:
    """Words as BERT sees them: cleaned, lower-cased if asked, cut at punctuation, Chinese characters one by one."""

    name: ClassVar[str] = "wordpiece"
    longest: ClassVar[int] = LONGEST_WORD

    def __init__(self, options: Options) -> None:
        self._options = options
        self._fixed = first(Specials().names(), options)
        for token in options.special:
            added.special(token, "--special")
        five = {name: number for number, name in enumerate(Specials().names())}
        rust = build(five, Rules(lowercase=not options.cased), Specials(), ())
        self._normalizer, self._pre_tokenizer = rust.normalizer, rust.pre_tokenizer

    def chunks(self, text: str) -> list[str]:
        is_wide = 2 * len(text.encode("utf-8", "surrogatepass")) > 3 * len(text)
        found = _WIDE.findall(tamed(text)) if is_wide else spaced(text).split()
        if max(map(len, found), default=0) <= LONG:
            return found
        return [
            part[:LONGEST_CHUNK]
            for chunk in found
            for part in (_PARTS.findall(chunk) if len(chunk) > LONG else (chunk,))
        ]

    def words(self, chunks: Sequence[str]) -> list[str]:
        text = self._normalizer.normalize_str(" ".join(chunks))
        return [word for word, _ in self._pre_tokenizer.pre_tokenize_str(text)]

    def learn(self, words: list[Word]) -> WordPieceVocabulary:
        options = self._options
        kept = choose(characters(words), options.min_count, options.alphabet)
        words = [(word, count) for word, count in words if kept.issuperset(word)]  # the others are [UNK] as a whole
        inner = set(chain.from_iterable(word[1:] for word, _ in words))
        letters = [*sorted(kept), *(CONTINUES + letter for letter in sorted(inner))]
        tokens = list(dict.fromkeys([*self._fixed, *letters]))
        require_room(len(self._fixed), len(tokens) - len(self._fixed), options.size)
        spelled, counts = _spelled(words, {token: number for number, token in enumerate(tokens)})
        found = merges.learn(spelled, counts, tokens, options.size, options.min_count, _joined)
        facts = {"special": len(self._fixed) - options.unused, "unused": options.unused}
        facts |= {"characters": len(tokens) - len(self._fixed), "learned": len(found.tokens) - len(tokens)}
        return WordPieceVocabulary(found.tokens, facts, options)


class WordPieceVocabulary:
    """Google's vocab.txt, and tokenizer.json beside it."""

    unknown = Specials().unk

    def __init__(self, tokens: list[str], facts: dict[str, int], options: Options) -> None:
        self.tokens, self.facts, self._options = tokens, facts, options
        ids = {token: number for number, token in enumerate(tokens)}
        self._model = models.WordPiece(
            ids, unk_token=self.unknown, max_input_chars_per_word=LONGEST_WORD, continuing_subword_prefix=CONTINUES
        )

    def spell(self, word: str) -> list[str]:
        return [token.value for token in self._model.tokenize(word)]

    def readable(self, word: str) -> str:
        return word

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of this vocabulary."""
        made = Tokenizer.from_vocabulary(self.tokens, lowercase=not self._options.cased)
        made.add_special_tokens(list(self._options.special))
        return made

    def write(self, directory: Path) -> None:
        self.tokenizer().save_files(directory)


def _joined(left: str, right: str) -> str:
    return left + right.removeprefix(CONTINUES)


def _spelled(words: Sequence[Word], ids: dict[str, int]) -> tuple[list[str], list[int]]:
    """Words letter by letter: characters whose numbers are ids."""
    heads = {ord(token): chr(number) for token, number in ids.items() if len(token) == 1}
    tails = {ord(token[2:]): chr(number) for token, number in ids.items() if len(token) == 3 and token[:2] == CONTINUES}
    spelled = [word[0].translate(heads) + word[1:].translate(tails) for word, _ in words]
    return spelled, [count for _, count in words]
