"""What sentence-transformers' files beside a model say: its pooling, if vectors are normalised, the longest text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError
from bertkit.parts.pool import Cls, Max, Mean, Pool
from bertkit.weights.tensors import read_json

MODULES = "modules.json"
_MODES: dict[str, Pool] = {"cls": Cls(), "mean": Mean(), "max": Max()}


@dataclass(frozen=True)
class Sentence:
    """The way a model's vectors are meant to be made."""

    pool: Pool
    normalize: bool
    limit: int | None


def read(directory: Path) -> Sentence | None:
    """None where the directory is not one of sentence-transformers'."""
    path = directory / MODULES
    if not path.is_file():
        return None
    try:
        modules = json.loads(path.read_bytes())
        kinds = {str(module["type"]).rsplit(".", 1)[-1]: directory / module["path"] for module in modules}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BertkitError(f"{path} is not a list of modules with type and path ({error!r})") from None
    strange = sorted(kinds.keys() - {"Transformer", "Pooling", "Normalize"})
    if strange or "Pooling" not in kinds:
        raise BertkitError(
            f"{path} wants {', '.join(strange) or 'no Pooling'}: vectors can be made from Transformer, Pooling and "
            f"Normalize only. To use the encoder alone, copy the directory without {MODULES}"
        )
    if not kinds["Pooling"].resolve().is_relative_to(directory.resolve()):
        raise BertkitError(f"{path} names a module outside its directory: {kinds['Pooling']}")
    pool = _read_pool(kinds["Pooling"] / "config.json")
    return Sentence(pool, "Normalize" in kinds, _read_limit(directory / "sentence_bert_config.json"))


def _read_pool(path: Path) -> Pool:
    """Old files say it with six booleans, new ones with a name."""
    config = read_json(path)
    mode = config.get("pooling_mode")
    if mode is None:
        on = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
        mode = "+".join(key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token") for key in on)
    if mode not in _MODES:
        raise BertkitError(f"{path} pools by {mode!r}; known: {', '.join(_MODES)}")
    return _MODES[mode]


def _read_limit(path: Path) -> int | None:
    limit = read_json(path).get("max_seq_length") if path.is_file() else None
    if limit is not None and not (isinstance(limit, int) and limit > 2):
        raise BertkitError(f"{path}: max_seq_length is {limit!r}, it must be a whole number above 2")
    return limit


def write(sentence: Sentence, width: int, directory: Path) -> None:
    """The same files, so that sentence-transformers makes the same vectors."""
    names = ["Transformer", "Pooling"] + ["Normalize"] * sentence.normalize
    paths = ["", "1_Pooling", "2_Normalize"]
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{name}"}
        for index, (name, path) in enumerate(zip(names, paths, strict=False))
    ]
    mode = next((name for name, pool in _MODES.items() if pool == sentence.pool), None)
    assert mode is not None, f"sentence-transformers has no word for {sentence.pool}"
    pooling: dict[str, Any] = {"word_embedding_dimension": width} | {
        f"pooling_mode_{name}": name.startswith(mode) and "sqrt" not in name
        for name in ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    }
    (directory / "1_Pooling").mkdir()
    _write_json(directory / MODULES, modules)
    _write_json(directory / "1_Pooling" / "config.json", pooling)
    _write_json(directory / "sentence_bert_config.json", {"max_seq_length": sentence.limit, "do_lower_case": False})


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
