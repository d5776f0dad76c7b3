"""Byte-level BPE as RoBERTa has it, put together from the parts of the Rust `tokenizers` library.

A text is cut by GPT-2's pattern, each word with the space before it, and its bytes are written as 256 letters (`Ġ` is
the space). Then the pair of pieces that was learned first is joined, again and again. No text is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from bertkit.errors import BertkitError
from bertkit.text import files, vocabulary
from bertkit.text.wordpiece import Specials

VOCABULARY, MERGES = "vocab.json", "merges.txt"
SPECIALS = Specials("<pad>", "<unk>", "<s>", "</s>", "<mask>")
_VERSION = "#version"

Merges = list[tuple[str, str]]


@dataclass(frozen=True)
class Roberta:
    """`prefix_space` reads the first word of a text as one inside it; `trim_offsets` leaves spaces out of offsets."""

    prefix_space: bool = False
    trim_offsets: bool = True
    tokenizer_class: ClassVar[str] = "RobertaTokenizer"

    @classmethod
    def of(cls, config: Mapping[str, Any], source: Path) -> Roberta:
        """What tokenizer_config.json says."""
        return cls(
            files.read_flag(config, "add_prefix_space", False, source),
            files.read_flag(config, "trim_offsets", True, source),
        )

    def settings(self) -> dict[str, Any]:
        """The same in the words of tokenizer_config.json."""
        return {"add_prefix_space": self.prefix_space, "trim_offsets": self.trim_offsets}


def build(
    ids: Mapping[str, int], merges: Merges, rules: Roberta, specials: Specials, added: Sequence[AddedToken]
) -> Tokenizer:
    """The Rust tokenizer for a vocabulary; `added` are matched in the raw text and never split."""
    model = models.BPE(dict(ids), merges, continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False)
    rust = Tokenizer(model)
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=rules.prefix_space)
    rust.decoder = decoders.ByteLevel()
    rust.add_tokens(list(added))
    sep, cls = ((name, rust.token_to_id(name) or 0) for name in (specials.sep, specials.cls))
    rust.post_processor = processors.RobertaProcessing(sep, cls, rules.trim_offsets, rules.prefix_space)
    return rust


def read_files(directory: Path) -> tuple[dict[str, int], Merges]:
    """The vocabulary and the merges of vocab.json and merges.txt."""
    source, learned = directory / VOCABULARY, directory / MERGES
    ids = vocabulary.from_ids(files.read_object(source), str(source))
    lines = [line for line in files.read_lines(learned) if not line.startswith(_VERSION)]
    return ids, [_pair(line.split(" "), learned) for line in lines]


def merges_of(model: Mapping[str, Any], source: Path) -> Merges:
    """The merges of a tokenizer.json, in its old spelling or its new one."""
    given = model.get("merges")
    if not isinstance(given, list):
        raise BertkitError(f"{source} has no list of merges: it was damaged; copy or download it again")
    return [_pair(merge.split(" ") if isinstance(merge, str) else merge, source) for merge in given]


def write_files(model: Mapping[str, Any], directory: Path) -> None:
    """vocab.json and merges.txt from the model of a tokenizer.json; none where a piece has a space in it."""
    pairs = merges_of(model, directory)
    if any(" " in piece for pair in pairs for piece in pair):
        return
    files.write_object(directory / VOCABULARY, model["vocab"])
    text = "".join(f"{left} {right}\n" for left, right in pairs)
    (directory / MERGES).write_text(f"{_VERSION}: 0.2\n{text}", encoding="utf-8", newline="\n")


def _pair(given: object, source: Path) -> tuple[str, str]:
    if not (isinstance(given, list) and len(given) == 2 and all(isinstance(part, str) and part for part in given)):
        raise BertkitError(f"{source}: {given!a} is no merge of two pieces; copy or download it again")
    return given[0], given[1]
