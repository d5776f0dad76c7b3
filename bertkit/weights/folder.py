"""What the small files of a model's directory say, without torch: where its encoder lies, its tokenizer, its limit."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tokenizers import normalizers

from bertkit.errors import BertkitError
from bertkit.text import Tokenizer, files
from bertkit.text import directory as tokenizers

MODULES, LENGTHS = "modules.json", "sentence_bert_config.json"


def home(directory: Path) -> Path:
    """Where the encoder and its tokenizer lie: the directory itself, or the folder that old files give them."""
    if not (directory / MODULES).is_file():
        return directory
    kind, folder = read_modules(directory / MODULES)[0]
    return directory / folder if kind == "Transformer" else directory


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer beside an encoder; `do_lower_case` puts lower-casing before whatever else it does."""
    opened = tokenizers.read(folder)
    tokenizer = Tokenizer(opened)
    config = files.read_object(folder / LENGTHS)
    if not config.get("do_lower_case") or tokenizer.lowercase:
        return tokenizer
    first = [normalizers.Lowercase(), *([opened.rust.normalizer] if opened.rust.normalizer else [])]
    opened.rust.normalizer = normalizers.Sequence(first)
    opened.rules = None  # no longer one of Google's ways
    return Tokenizer(opened)


def limit_of(directory: Path, home: Path, tokenizer: Tokenizer) -> int:
    """How many tokens a model takes, by its files alone; `home` is the folder of its encoder, often the same.

    The smallest of what the tokenizer promises, the position table, and what sentence-transformers was told.
    """
    said = {home / "config.json": "max_position_embeddings", home / "bert_config.json": "max_position_embeddings"}
    if (directory / MODULES).is_file():
        said[home / LENGTHS] = "max_seq_length"
    values = [files.read_object(path).get(key) for path, key in said.items()]
    return min([tokenizer.limit, *(value for value in values if type(value) is int and value >= 3)])


def read_modules(path: Path) -> list[tuple[str, str]]:
    """The last word of each module's class, and its folder."""
    try:
        found = [(_kind(module["type"]), module["path"]) for module in json.loads(path.read_bytes())]
        if not all(re.fullmatch(r"[\w .+/-]*", folder) for _, folder in found):
            raise ValueError("a path has characters that no folder needs")
        if not found:
            raise ValueError("it is empty")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BertkitError(f"{path} is not a list of modules with type and path ({error!r})") from None
    for _, folder in found:
        if not (path.parent / folder).resolve().is_relative_to(path.parent.resolve()):
            raise BertkitError(f"{path} names a module outside its directory: {folder}")
    return found


def _kind(name: str) -> str:
    """`Pooling` for both spellings of sentence-transformers' own; the whole name for somebody else's code."""
    return name.rsplit(".", 1)[-1] if name.startswith("sentence_transformers.") else name
