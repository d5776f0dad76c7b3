"""A tokenizer with what its files say about it, and the files that it is kept in."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import BPE, WordPiece

from bertkit.text import bytelevel, files, unigram
from bertkit.text.bytelevel import Roberta
from bertkit.text.unigram import Albert, XlmRoberta
from bertkit.text.wordpiece import Rules, Specials

AnyRules = Rules | Roberta | Albert | XlmRoberta

RULES: dict[str, type[AnyRules]] = {kind.tokenizer_class: kind for kind in (Rules, Roberta, Albert, XlmRoberta)}
"""the rules of each class of transformers that bertkit knows by heart"""

GENERIC = "PreTrainedTokenizerFast"
"""the class that makes transformers take everything from tokenizer.json"""


@dataclass
class Opened:
    """A working tokenizer with what its files say about it. `rules` is None when it cleans text in a way of its own."""

    rust: Tokenizer
    rules: AnyRules | None
    specials: Specials
    limit: int | None = None
    """tokens per input; None where nobody said"""
    settings: dict[str, Any] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    """files that are kept as they were, by name: the model of sentencepiece"""

    def write(self, directory: Path) -> None:
        """Write its files into an existing directory; transformers' AutoTokenizer gives the same ids from them."""
        text = self.rust.to_str()
        if isinstance(self.rust.model, WordPiece):
            lines = "".join(f"{token}\n" for token in listing(self.rust))
            (directory / "vocab.txt").write_text(lines, encoding="utf-8", newline="\n")
        elif isinstance(self.rust.model, BPE):
            bytelevel.write_files(json.loads(text)["model"], directory)
        for name, content in self.files.items():
            (directory / name).write_bytes(content)
        (directory / "tokenizer.json").write_text(text, encoding="utf-8", newline="\n")
        files.write_object(directory / "tokenizer_config.json", self._config())
        files.write_object(directory / "special_tokens_map.json", self._special_map())

    def _config(self) -> dict[str, Any]:
        return {
            **self.settings,
            "tokenizer_class": GENERIC if self.rules is None else self.rules.tokenizer_class,
            **({} if self.limit is None else {"model_max_length": self.limit}),
            **({} if self.rules is None else self.rules.settings()),
            **self._special_map(),
            "added_tokens_decoder": {str(i): _flags(t) for i, t in self.rust.get_added_tokens_decoder().items()},
        }

    def _special_map(self) -> dict[str, Any]:
        names = {f"{part}_token": getattr(self.specials, part) for part in Specials.__dataclass_fields__}
        added = self.rust.get_added_tokens_decoder().values()
        other = [token.content for token in added if token.special and token.content not in names.values()]
        return {**names, **({"additional_special_tokens": other} if other else {})}


def listing(rust: Tokenizer) -> list[str]:
    """Every token in id order, added ones included."""
    ids = rust.get_vocab(with_added_tokens=True)
    return sorted(ids, key=ids.__getitem__)


def sentencepiece_files(directory: Path) -> dict[str, bytes]:
    """The models of sentencepiece in a directory, by name."""
    names = (rules.file for rules in (unigram.Albert, unigram.XlmRoberta))
    return {name: files.read_bytes(directory / name) for name in names if (directory / name).is_file()}


def _flags(token: Any) -> dict[str, Any]:
    keys = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")
    return {key: getattr(token, key) for key in keys}
