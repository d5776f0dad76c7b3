"""Unigram: the vocabularies of ALBERT and XLNet, learned by Google's sentencepiece from words and their counts."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bertkit.errors import BertkitError
from bertkit.text import added, files, spiece
from bertkit.vocab.alphabet import characters, choose
from bertkit.vocab.kind import LONGEST_CHUNK, Options, Word, first, require_room

PAD, UNKNOWN, START, END, MASK = SPECIALS = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
SPACE = "▁"
LIMIT = 512


class Unigram:
    """Words are what stands between white space; sentencepiece itself cleans them by NFKC, and folds case."""

    name: ClassVar[str] = "unigram"
    longest: ClassVar[int] = LONGEST_CHUNK

    def __init__(self, options: Options) -> None:
        _sentencepiece()
        self._options = options
        self._fixed = first(SPECIALS, options)
        for token in options.special:
            added.special(token, "--special")

    def chunks(self, text: str) -> list[str]:
        found = text.split()
        if max(map(len, found), default=0) <= LONGEST_CHUNK:
            return found
        return [chunk[at : at + LONGEST_CHUNK] for chunk in found for at in range(0, len(chunk), LONGEST_CHUNK)]

    def words(self, chunks: Sequence[str]) -> list[str]:
        return list(chunks)

    def learn(self, words: list[Word]) -> UnigramVocabulary:
        options = self._options
        counts = characters(words)
        kept = choose(counts, options.min_count, options.alphabet)
        coverage = sum(counts[letter] for letter in kept) / max(counts.total(), 1)
        with tempfile.TemporaryDirectory(prefix="bertkit-unigram-") as folder:
            table = Path(folder, "words.tsv")
            with table.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
                file.writelines(f"{word}\t{count}\n" for word, count in words)
            model = self._train(table, coverage)
        found = UnigramVocabulary(model, options)
        found.facts["special"], found.facts["unused"] = len(self._fixed) - options.unused, options.unused
        found.facts["learned"] = len(found.tokens) - len(self._fixed)
        return found

    def _train(self, table: Path, coverage: float) -> bytes:
        written = io.BytesIO()
        try:
            _sentencepiece().SentencePieceTrainer.train(
                input=str(table),
                input_format="tsv",
                model_writer=written,
                model_type="unigram",
                vocab_size=self._options.size,
                character_coverage=coverage,
                normalization_rule_name="nmt_nfkc" if self._options.cased else "nmt_nfkc_cf",
                pad_id=0,
                unk_id=1,
                bos_id=-1,
                eos_id=-1,
                pad_piece=PAD,
                unk_piece=UNKNOWN,
                control_symbols=[START, END, MASK],
                user_defined_symbols=self._fixed[len(SPECIALS) :],
                max_sentence_length=4 * LONGEST_CHUNK + 1,
                hard_vocab_limit=False,
                num_threads=1,  # sums of several threads are rounded differently each time
                minloglevel=2,
            )
        except RuntimeError as error:
            told = re.search(r"(\d+) vs (\d+)", str(error))
            if told:
                require_room(len(self._fixed), int(told[2]), self._options.size)
            raise BertkitError(f"sentencepiece refuses: {error}") from error
        return spiece.without_paths(written.getvalue())


class UnigramVocabulary:
    """spiece.model, and tokenizer.json beside it."""

    unknown = UNKNOWN

    def __init__(self, model: bytes, options: Options) -> None:
        self._model, self._options = model, options
        self._parsed = spiece.parse(model, "the learned model")
        self.tokens = [piece.text for piece in self._parsed.pieces]
        self.facts: dict[str, int] = {}
        self._processor = _sentencepiece().SentencePieceProcessor(model_proto=model)

    def spell(self, word: str) -> list[str]:
        return [self.tokens[number] for number in self._processor.encode(word)]

    def readable(self, word: str) -> str:
        return word

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of this vocabulary, as `tokenizers` has it."""
        rust = Tokenizer(models.Unigram([(piece.text, piece.score) for piece in self._parsed.pieces], unk_id=1))
        spaces = [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
        rust.normalizer = normalizers.Sequence([normalizers.Precompiled(self._parsed.characters), *spaces])
        rust.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
        rust.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
        special = (*SPECIALS, *self._options.special)
        rust.add_special_tokens([AddedToken(token, lstrip=token == MASK, normalized=False) for token in special])
        rust.post_processor = processors.TemplateProcessing(
            single=f"{START}:0 $A:0 {END}:0",
            pair=f"{START}:0 $A:0 {END}:0 $B:1 {END}:1",
            special_tokens=[(token, self.tokens.index(token)) for token in (START, END)],
        )
        return rust

    def write(self, directory: Path) -> None:
        (directory / "spiece.model").write_bytes(self._model)
        (directory / "tokenizer.json").write_text(self.tokenizer().to_str(), encoding="utf-8", newline="\n")
        names = {"bos_token": START, "eos_token": END, "sep_token": END, "cls_token": START}
        names |= {"unk_token": UNKNOWN, "pad_token": PAD, "mask_token": MASK}
        extra = list(self._options.special)
        config = {
            # the generic class makes transformers take everything from tokenizer.json
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": LIMIT,
            **names,
            **({"additional_special_tokens": extra} if extra else {}),
        }
        files.write_object(directory / "tokenizer_config.json", config)


def _sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError:
        raise BertkitError(
            "to learn a unigram vocabulary: pip install 'bertkit[corpus]', or take --kind wordpiece"
        ) from None
    return sentencepiece
