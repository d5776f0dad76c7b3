"""Unigram as sentencepiece learns it and as ALBERT and XLM-R use it, from the parts of the Rust `tokenizers` library.

A text is cleaned by the table that the model was learned with, cut at white space, and `▁` stands for the space before
each word. Of all ways to spell a word the likeliest is taken.

    ALBERT   folds case, drops accents and writes ``quotes'' as " first; ids are the rows of spiece.model
    XLM-R    fairseq's ids: <s> <pad> </s> <unk>, the pieces from the third on, <mask>
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bertkit.errors import BertkitError
from bertkit.text import files, spiece, vocabulary
from bertkit.text.pieces import SPACE
from bertkit.text.wordpiece import Specials

_FIRST = 3
"""rows of a sentencepiece model that fairseq numbers by itself: <unk> <s> </s>"""


class Inventory(NamedTuple):
    """Pieces with their scores in the order of ids, the table that cleans characters, and symbols that stay whole."""

    pieces: list[tuple[str, float]]
    characters: bytes
    symbols: tuple[AddedToken, ...] = ()

    def names(self) -> list[str]:
        """The pieces alone."""
        return [text for text, _ in self.pieces]


@dataclass(frozen=True)
class Albert:
    """How ALBERT cleans a text before it is cut."""

    lowercase: bool = True
    keep_accents: bool = False
    prefix_space: bool = True
    tokenizer_class: ClassVar[str] = "AlbertTokenizer"
    file: ClassVar[str] = "spiece.model"
    specials: ClassVar[Specials] = Specials("<pad>", "<unk>")
    unknown: ClassVar[int] = 1

    @classmethod
    def of(cls, config: Mapping[str, Any], source: Path) -> Albert:
        """What tokenizer_config.json says."""
        flags = (("do_lower_case", True), ("keep_accents", False), ("add_prefix_space", True))
        return cls(*(files.read_flag(config, key, default, source) for key, default in flags))

    def settings(self) -> dict[str, Any]:
        """The same in the words of tokenizer_config.json."""
        keys = ("do_lower_case", "keep_accents", "add_prefix_space")
        return dict(zip(keys, (self.lowercase, self.keep_accents, self.prefix_space), strict=True))

    def numbered(self, found: Inventory, specials: Specials) -> Inventory:
        """The pieces as this family numbers them."""
        return found

    def normalizer(self, characters: bytes) -> Any:
        """What cleans a text."""
        steps: list[Any] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
        if not self.keep_accents:
            steps += [normalizers.NFKD(), normalizers.StripAccents()]
        if self.lowercase:
            steps.append(normalizers.Lowercase())
        if characters:
            steps.append(normalizers.Precompiled(characters))
        return normalizers.Sequence(steps)

    def template(self, specials: Specials) -> tuple[list[str], list[str]]:
        """One text and a pair, in the words of `TemplateProcessing`."""
        cls, sep = specials.cls, specials.sep
        return [f"{cls}:0", "$A:0", f"{sep}:0"], [f"{cls}:0", "$A:0", f"{sep}:0", "$B:1", f"{sep}:1"]


@dataclass(frozen=True)
class XlmRoberta:
    """How XLM-R reads a text: nothing is cleaned but by the model's own table."""

    prefix_space: bool = True
    tokenizer_class: ClassVar[str] = "XLMRobertaTokenizer"
    file: ClassVar[str] = "sentencepiece.bpe.model"
    specials: ClassVar[Specials] = Specials("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    unknown: ClassVar[int] = 3

    @classmethod
    def of(cls, config: Mapping[str, Any], source: Path) -> XlmRoberta:
        """What tokenizer_config.json says."""
        return cls(files.read_flag(config, "add_prefix_space", True, source))

    def settings(self) -> dict[str, Any]:
        """The same in the words of tokenizer_config.json."""
        return {"add_prefix_space": self.prefix_space}

    def numbered(self, found: Inventory, specials: Specials) -> Inventory:
        """The pieces as this family numbers them."""
        first = [(name, 0.0) for name in (specials.cls, specials.pad, specials.sep, specials.unk)]
        return found._replace(pieces=[*first, *found.pieces[_FIRST:], (specials.mask, 0.0)])

    def normalizer(self, characters: bytes) -> Any:
        """What cleans a text."""
        return normalizers.Precompiled(characters) if characters else None

    def template(self, specials: Specials) -> tuple[list[str], list[str]]:
        """One text and a pair, in the words of `TemplateProcessing`."""
        cls, sep = specials.cls, specials.sep
        return [cls, "$A", sep], [cls, "$A", sep, sep, "$B", sep]


Rules = Albert | XlmRoberta


def build(found: Inventory, rules: Rules, specials: Specials, added: Sequence[AddedToken]) -> Tokenizer:
    """The Rust tokenizer for pieces that are numbered already."""
    rust = Tokenizer(models.Unigram(found.pieces, unk_id=found.names().index(specials.unk), byte_fallback=False))
    normalizer = rules.normalizer(found.characters)
    if normalizer is not None:
        rust.normalizer = normalizer
    scheme = "always" if rules.prefix_space else "never"
    rust.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme)]
    )
    rust.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    rust.add_tokens(list(added))
    single, pair = rules.template(specials)
    around = [(name, rust.token_to_id(name)) for name in dict.fromkeys((specials.cls, specials.sep))]
    rust.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=around)
    return rust


def from_text(text: str) -> Tokenizer:
    """The tokenizer of any kind that a tokenizer.json describes, its scores as they are written there.

    The Rust side reads some of them wrong in the last place, and would write another file than it read.
    """
    rust, model = Tokenizer.from_str(text), json.loads(text)["model"]
    if isinstance(rust.model, models.Unigram):
        pieces = [(piece, score) for piece, score in model["vocab"]]
        rust.model = models.Unigram(pieces, model.get("unk_id"), model.get("byte_fallback") or False)
    return rust


def read_file(path: Path, rules: Rules, specials: Specials) -> Inventory:
    """The pieces of a sentencepiece model, numbered as the family does."""
    found = spiece.parse(files.read_bytes(path), str(path))
    if found.model_type != spiece.UNIGRAM:
        raise BertkitError(
            f"{path} was learned by another way than Unigram (sentencepiece's model type {found.model_type}), which "
            f"{rules.tokenizer_class} does not read; save the tokenizer as tokenizer.json with transformers"
        )
    if found.characters:
        _require_sound(found.characters, path)
    symbols = tuple(
        AddedToken(piece.text, normalized=False, special=piece.sort == spiece.CONTROL)
        for piece in found.pieces
        if piece.sort in (spiece.CONTROL, spiece.USER) and piece.text.strip()
    )
    pieces = [(piece.text, piece.score) for piece in found.pieces]
    return distinct(rules.numbered(Inventory(pieces, found.characters, symbols), specials))


def read_model(model: Mapping[str, Any], normalizer: object, source: Path) -> Inventory:
    """The pieces of a tokenizer.json and its table of characters, if it has one."""
    given = model.get("vocab")
    if not isinstance(given, list) or not given or not all(_is_piece(entry) for entry in given):
        raise BertkitError(f"{source} has no list of pieces with scores: it was damaged; copy or download it again")
    return distinct(Inventory([(text, float(score)) for text, score in given], next(tables(normalizer, source), b"")))


def distinct(found: Inventory) -> Inventory:
    """The same with a name of its own for each row: of equal pieces only the last can be reached."""
    last = {text: row for row, text in enumerate(found.names())}
    pieces = [
        (text, score) if last[text] == row else (vocabulary.empty(row), score)
        for row, (text, score) in enumerate(found.pieces)
    ]
    return found._replace(pieces=pieces)


def _is_piece(entry: object) -> bool:
    if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str)):
        return False
    text, score = entry
    number = isinstance(score, int | float) and not isinstance(score, bool) and abs(score) < 1e30
    return number and vocabulary.is_unicode(text)


def tables(normalizer: object, source: Path) -> Iterator[bytes]:
    """The tables of characters in the normaliser of a tokenizer.json, none of them damaged."""
    if not isinstance(normalizer, dict):
        return
    steps = normalizer.get("normalizers")
    for step in steps if isinstance(steps, list) else ():
        yield from tables(step, source)
    if normalizer.get("type") == "Precompiled":
        try:
            found = base64.b64decode(normalizer["precompiled_charsmap"])
        except (KeyError, TypeError, ValueError):
            found = b""
        _require_sound(found, source)
        yield found


def _require_sound(table: bytes, source: Path | str) -> None:
    from bertkit.text.characters import require_sound  # needs NumPy, which most tokenizers do without

    require_sound(table, str(source))
