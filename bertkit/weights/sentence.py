"""What sentence-transformers' files beside a model say: its pooling, if vectors are normalised, the longest text.

What they can say and bertkit does not do yet (a default prompt, shortened vectors, further modules) is refused by name:
vectors that are silently different would be worse than none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError, look_up
from bertkit.parts.pool import Cls, Max, Mean, Pool
from bertkit.weights.tensors import read_json

MODULES, POOLING = "modules.json", "1_Pooling"
LENGTHS, SETTINGS = "sentence_bert_config.json", "config_sentence_transformers.json"
_MODES: dict[str, Pool] = {"cls": Cls(), "mean": Mean(), "max": Max()}
_SEQUENCES = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
_REFUSED = ("default_prompt_name", "truncate_dim")
_ALONE = f"To use the encoder alone, copy the directory without {MODULES}"


@dataclass(frozen=True)
class Sentence:
    """The way a model's vectors are meant to be made; `settings` (prompts and the like) are kept as they are."""

    pool: Pool
    normalize: bool
    limit: int | None
    settings: Mapping[str, Any] = field(default_factory=dict)


def read(directory: Path) -> Sentence | None:
    """None where the directory is not one of sentence-transformers'."""
    path = directory / MODULES
    if not path.is_file():
        return None
    kinds = _read_modules(path)
    if list(kinds) not in _SEQUENCES:
        raise BertkitError(f"{path} wants {', '.join(kinds)}; known: Transformer, Pooling[, Normalize]. {_ALONE}")
    pooling = directory / kinds["Pooling"]
    if not pooling.resolve().is_relative_to(directory.resolve()):
        raise BertkitError(f"{path} names a module outside its directory: {pooling}")
    settings = read_json(directory / SETTINGS) if (directory / SETTINGS).is_file() else {}
    asked = [f"{key} {settings[key]!r}" for key in _REFUSED if settings.get(key) is not None]
    if asked:
        raise BertkitError(f"{directory / SETTINGS} wants {', '.join(asked)}, which is not done here. {_ALONE}")
    return Sentence(
        _read_pool(pooling / "config.json"), "Normalize" in kinds, _read_limit(directory / LENGTHS), settings
    )


def _read_modules(path: Path) -> dict[str, str]:
    """The last word of each module's class, and its folder."""
    try:
        modules = [(module["type"].rsplit(".", 1)[-1], module["path"]) for module in json.loads(path.read_bytes())]
        if not all(re.fullmatch(r"[\w .+/-]*", folder) for _, folder in modules):
            raise ValueError("a path has characters that no folder needs")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BertkitError(f"{path} is not a list of modules with type and path ({error!r})") from None
    return dict(modules)


def _read_pool(path: Path) -> Pool:
    """Old files say it with several booleans, new ones with a name."""
    config = read_json(path)
    mode = config.get("pooling_mode")
    if mode is None:
        on = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
        mode = "+".join(key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token") for key in on)
    try:
        return look_up("pooling", mode, _MODES)
    except BertkitError as error:
        raise BertkitError(f"{path}: {error}. {_ALONE}") from None


def _read_limit(path: Path) -> int | None:
    config = read_json(path) if path.is_file() else {}
    if config.get("do_lower_case"):
        raise BertkitError(f"{path}: do_lower_case is not done here; a tokenizer lower-cases by itself. {_ALONE}")
    limit = config.get("max_seq_length")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 3):
        raise BertkitError(f"{path}: max_seq_length is {limit!r}, it must be a whole number above 2")
    return limit


def write(sentence: Sentence, width: int, directory: Path) -> None:
    """The same files, so that sentence-transformers makes the same vectors."""
    mode = next((name for name, pool in _MODES.items() if pool == sentence.pool), None)
    if mode is None:
        raise BertkitError(f"sentence-transformers has no word for {sentence.pool}; known: {', '.join(_MODES)}")
    names = _SEQUENCES[sentence.normalize]
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{name}"}
        for index, (name, path) in enumerate(zip(names, ("", POOLING, "2_Normalize"), strict=False))
    ]
    flags = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
    pooling = {f"pooling_mode_{flag}": name == mode for name, flag in flags.items()}
    (directory / POOLING).mkdir()
    _write_json(directory / MODULES, modules)
    _write_json(directory / POOLING / "config.json", {"word_embedding_dimension": width, **pooling})
    _write_json(directory / LENGTHS, {"max_seq_length": sentence.limit, "do_lower_case": False})
    if sentence.settings:
        _write_json(directory / SETTINGS, sentence.settings)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
