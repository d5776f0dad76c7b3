"""What the small files of a model's directory say: where its encoder lies, its tokenizer, its limit.

For a BERT all of it comes without torch.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tokenizers import normalizers

from bertkit.errors import BertkitError
from bertkit.text import Tokenizer, files
from bertkit.text import directory as tokenizers

MODULES, LENGTHS = "modules.json", "sentence_bert_config.json"
_LENGTHS = (
    LENGTHS,
    *(
        f"sentence_{kind}_config.json"
        for kind in ("roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
    ),
)
"""names under which sentence-transformers looks for its settings of the encoder, in its order"""
SETTINGS = "config_sentence_transformers.json"


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
    _, config = read_lengths(folder)
    if not config.get("do_lower_case") or tokenizer.lowercase:
        return tokenizer
    first = [normalizers.Lowercase(), *([opened.rust.normalizer] if opened.rust.normalizer else [])]
    opened.rust.normalizer = normalizers.Sequence(first)
    opened.rules = None  # no longer one of Google's ways
    return Tokenizer(opened)


def limit_of(directory: Path, home: Path, tokenizer: Tokenizer) -> int:
    """How many tokens a model takes, by its files alone; `home` is the folder of its encoder, often the same.

    What sentence-transformers was told, else what the tokenizer promises; never more than the position table has.
    """
    settings = files.read_object(home / "config.json") or files.read_object(home / "bert_config.json")
    told = read_lengths(home)[1].get("max_seq_length") if (directory / MODULES).is_file() else None
    bounds = (_size(told) or tokenizer.limit, _longest(settings) if settings else None)
    return min((bound for bound in bounds if bound), default=tokenizers.DEFAULT_LIMIT)


def _longest(settings: dict[str, Any]) -> int | None:
    """The longest input by a config.json: rows of its table, which for families beside BERT their own file knows."""
    rows, kind = _size(settings.get("max_position_embeddings", tokenizers.DEFAULT_LIMIT)), settings.get("model_type")
    if kind in (None, "bert"):
        return rows
    from bertkit.family import families  # torch comes with it

    return families()[kind].read_encoder(settings).longest if kind in families() else rows


def _size(value: object) -> int | None:
    return value if type(value) is int and value >= 3 else None


def read_lengths(folder: Path) -> tuple[Path, dict[str, Any]]:
    """What sentence-transformers says of the encoder in a folder, and in which file: the first that says anything."""
    for name in _LENGTHS:
        if config := files.read_object(folder / name):
            return folder / name, config
    return folder / LENGTHS, {}


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


def default_prompt(directory: Path) -> str:
    """What sentence-transformers would write before each text, by its settings alone; mostly nothing."""
    if not (directory / MODULES).is_file():
        return ""
    said = files.read_object(directory / SETTINGS)
    prompts = said.get("prompts")
    found = prompts.get(said.get("default_prompt_name")) if isinstance(prompts, dict) else None
    return found if isinstance(found, str) else ""
