"""sentence-transformers' files beside a model, in and out: how its vectors are made.

`modules.json` is a row of modules: Transformer, Pooling, any number of Dense, Normalize. What it can say and bertkit
does not do (other modules, another order, other classes of models) is refused by name: vectors that are silently
different would be worse than none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from bertkit.errors import BertkitError, about, look_up
from bertkit.parts.dense import Dense, DenseModule
from bertkit.parts.pool import Cls, Concat, LastToken, Max, Mean, Pool, SqrtMean, WeightedMean, name_of
from bertkit.weights import tensors as files
from bertkit.weights.folder import LENGTHS, MODULES, SETTINGS, read_lengths, read_modules
from bertkit.weights.tensors import Tensors, read_json

_MODES: dict[str, Pool] = {
    "cls": Cls(),
    "max": Max(),
    "mean": Mean(),
    "mean_sqrt_len_tokens": SqrtMean(),
    "weightedmean": WeightedMean(),
    "lasttoken": LastToken(),
}
"""sentence-transformers' words, in the order in which its old files put vectors side by side"""
_FLAGS = {mode: f"pooling_mode_{mode}{'_tokens' * (mode in ('max', 'mean', 'weightedmean'))}" for mode in _MODES} | {
    "cls": "pooling_mode_cls_token"
}
"""how old files say each, with true or false"""
_BENDS = {
    "Identity": "identity",
    "Tanh": "tanh",
    "Sigmoid": "sigmoid",
    "ReLU": "relu",
    "GELU": "gelu",
    "SiLU": "silu",
    "ELU": "elu",
    "LeakyReLU": "leaky_relu",
    "Mish": "mish",
    "Softplus": "softplus",
}
"""torch's classes, made without arguments -> our names"""
_VECTOR = "sentence_embedding"
_OTHERWISE = (
    *("processing_kwargs", "tokenizer_args", "processor_kwargs", "config_args", "config_kwargs"),
    *("query_length", "document_length"),
)
"""settings of the Transformer module that change what it reads"""
_OURS = ("prompts", "default_prompt_name", "truncate_dim")
"""what has a place of its own here; the other settings are kept as they are"""
_ALONE = f"To use the encoder alone, copy the directory without {MODULES}"


@dataclass(frozen=True)
class Sentence:
    """The way a model's vectors are meant to be made; `settings` are what else the files say, kept as it is."""

    pool: Pool
    normalize: bool
    limit: int | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    """name -> what is written before each text"""
    default_prompt: str | None = None
    include_prompt: bool = True
    """whether the pool sees the prompt"""
    dense: tuple[DenseModule, ...] = ()
    """run on pooled vectors, before they are normalised"""
    shorten: int | None = None
    """how many values of each vector are kept, after all else"""


def read(directory: Path) -> Sentence | None:
    """None where the directory is not one of sentence-transformers'."""
    path = directory / MODULES
    if not path.is_file():
        return None
    modules = read_modules(path)
    kinds = [kind for kind, _ in modules]
    if not re.fullmatch("Transformer Pooling( Dense)*( Normalize)?", " ".join(kinds)):
        known = "Transformer, Pooling, any number of Dense, Normalize or none, in this order"
        raise BertkitError(f"{path} wants {', '.join(kinds) or 'nothing'}; known: {known}. {_ALONE}")
    folders = [directory / folder for _, folder in modules]
    settings = read_json(directory / SETTINGS) if (directory / SETTINGS).is_file() else {}
    pool, include_prompt = _read_pool(folders[1] / "config.json")
    if kinds[-1] == "Normalize":
        _require_vectors(folders[-1] / "config.json")
    with about(directory / SETTINGS):
        prompts = _read_settings(settings)
    return Sentence(
        pool,
        kinds[-1] == "Normalize",
        _read_limit(folders[0]),
        {key: value for key, value in settings.items() if key not in _OURS},
        prompts,
        settings.get("default_prompt_name"),
        include_prompt,
        tuple(_read_dense(folder) for kind, folder in zip(kinds, folders, strict=True) if kind == "Dense"),
        settings.get("truncate_dim"),
    )


def _read_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """The prompts, once all that changes vectors is known to be usable."""
    kind = settings.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        raise BertkitError(f"model_type is {kind!r}; vectors are made of a SentenceTransformer only. {_ALONE}")
    prompts = settings.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise BertkitError("prompts must be a table from name to text")
    default = settings.get("default_prompt_name")
    if default is not None:
        look_up("default_prompt_name", default, prompts)
    shorten = settings.get("truncate_dim")
    if shorten is not None and (isinstance(shorten, bool) or not isinstance(shorten, int) or shorten < 1):
        raise BertkitError(f"truncate_dim is {shorten!r}, it must be a whole number above 0")
    return prompts


def _read_pool(path: Path) -> tuple[Pool, bool]:
    """The pool, and whether it sees prompts. Old files say it with several booleans, new ones with names."""
    config = read_json(path)
    modes = config.get("pooling_mode")
    if modes is None:
        known = {flag: mode for mode, flag in _FLAGS.items()}
        on = [key for key in config if key.startswith("pooling_mode_") and config[key]]
        modes = sorted((known.get(key, key) for key in on), key=[*_MODES, *on].index) or ["mean"]
    include = config.get("include_prompt", True)
    try:
        pools = [look_up("pooling", mode, _MODES) for mode in (modes if isinstance(modes, list) else [modes])]
        pool = pools[0] if len(pools) == 1 else Concat(tuple(pools))
        if not isinstance(include, bool):
            raise BertkitError(f"include_prompt is {include!r}; write true or false")
        if not include and WeightedMean() in pools:
            raise BertkitError("weightedmean without its prompt (include_prompt false) is not done here")
    except BertkitError as error:
        raise BertkitError(f"{path}: {error}. {_ALONE}") from None
    return pool, include


def _read_dense(folder: Path) -> DenseModule:
    path = folder / "config.json"
    config = read_json(path)
    _require_vectors(path)
    with about(path):
        lacking = [key for key in ("in_features", "out_features") if key not in config]
        if lacking:
            raise BertkitError(f"{lacking[0]} is missing: a Dense has in_features and out_features")
        kind = config.get("activation_function", "torch.nn.modules.activation.Tanh")
        if not isinstance(kind, str) or not kind.startswith("torch.nn."):
            raise BertkitError(f"activation_function is {kind!r}: known are torch.nn's {', '.join(_BENDS)}")
        spec = Dense(
            config["in_features"],
            config["out_features"],
            config.get("bias", True),
            look_up("activation_function", kind.rsplit(".", 1)[-1], _BENDS),
            config.get("use_residual", False),
        )
    tensors = Tensors.open(folder)
    with torch.device("meta"):
        module = spec.build()
    wanted = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    there = {name: tensors.shape(name) for name in tensors.names}
    if there != wanted:
        raise BertkitError(f"{folder} holds {_shapes(there)}, but its config.json wants {_shapes(wanted)}")
    module.load_state_dict({name: tensors.read(name) for name in wanted}, assign=True)
    return module.eval()


def _shapes(tensors: Mapping[str, tuple[int, ...]]) -> str:
    shown = [f"{name} {list(shape)}" for name, shape in list(tensors.items())[:4]]
    return ", ".join(shown) + (f" and {len(tensors) - 4} more" if len(tensors) > 4 else "")


def _require_vectors(path: Path) -> None:
    """Refuse a module that works on tokens, or keeps its result apart."""
    config = read_json(path) if path.is_file() else {}
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, _VECTOR):
            raise BertkitError(f"{path}: {key} is {config[key]!r}, known is {_VECTOR} only. {_ALONE}")


def _read_limit(folder: Path) -> int | None:
    path, config = read_lengths(folder)
    otherwise = [key for key in _OTHERWISE if config.get(key)]
    task = config.get("transformer_task", "feature-extraction")
    if otherwise or task != "feature-extraction":
        asked = ", ".join(otherwise) or f"transformer_task {task!r}"
        raise BertkitError(f"{path} wants {asked}, which is not done here. {_ALONE}")
    limit = config.get("max_seq_length")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 3):
        raise BertkitError(f"{path}: max_seq_length is {limit!r}, it must be a whole number above 2")
    return limit


def write(sentence: Sentence, width: int, directory: Path) -> None:
    """The same files for an encoder so wide, so that sentence-transformers makes the same vectors."""
    pooling = {**words_for(sentence.pool), "include_prompt": sentence.include_prompt}
    kinds = ["Transformer", "Pooling", *["Dense"] * len(sentence.dense), *["Normalize"] * sentence.normalize]
    folders = ["", *(f"{index}_{kind}" for index, kind in enumerate(kinds) if index)]
    for place, module in zip(folders[2:], sentence.dense, strict=False):
        _write_dense(module, directory / place)
    (directory / folders[1]).mkdir()
    _write_json(directory / folders[1] / "config.json", {"word_embedding_dimension": width, **pooling})
    # the old names, which old versions know and new ones translate
    types = [f"sentence_transformers.models.{kind}" for kind in kinds]
    modules = [
        {"idx": index, "name": str(index), "path": folder, "type": kind}
        for index, (folder, kind) in enumerate(zip(folders, types, strict=True))
    ]
    _write_json(directory / MODULES, modules)
    _write_json(directory / LENGTHS, {"max_seq_length": sentence.limit, "do_lower_case": False})
    settings = dict(sentence.settings)
    if sentence.prompts or sentence.default_prompt is not None:
        settings |= {"prompts": dict(sentence.prompts), "default_prompt_name": sentence.default_prompt}
    if sentence.shorten is not None:
        settings["truncate_dim"] = sentence.shorten
    if settings:
        _write_json(directory / SETTINGS, settings)


def unsaid(way: Sentence, plain: Sentence) -> str:
    """What of a way has to stay unwritten because these files have no word for its pool; empty where they have one."""
    try:
        words_for(way.pool)
    except BertkitError:
        name = name_of(way.pool)
        pool = str(way.pool) if "(" in name else repr(name)
        lost = {
            "prompts": bool(way.prompts),
            f"the limit of {way.limit} tokens": way.limit != plain.limit,
            f"shortening to {way.shorten} values": way.shorten is not None,
        }
        others = ", ".join(words for words, there in lost.items() if there)
        return (
            f"the pool {pool} was not written, for sentence-transformers has no word for it; after loading, write "
            f"embed(texts, pool={pool}{', normalize=True' if way.normalize else ''})"
            f"{f'. Not written either: {others}' if others else ''}"
        )
    return ""


def words_for(pool: Pool) -> dict[str, Any]:
    """What the files say of a pool: booleans where these can, for old versions too; they have no order of their own."""
    pools = pool.pools if isinstance(pool, Concat) else (pool,)
    names = {pool: name for name, pool in _MODES.items()}
    strange = [part for part in pools if part not in names]
    if strange:
        known = ", ".join(map(name_of, _MODES.values()))
        raise BertkitError(
            f"sentence-transformers has no word for the pool {name_of(strange[0])}. Take one that it knows ({known}), "
            "or several with a plus between"
        )
    modes = [names[part] for part in pools]
    if modes != [mode for mode in _MODES if mode in modes]:
        return {"pooling_mode": modes}
    return {flag: mode in modes for mode, flag in _FLAGS.items()}


def _write_dense(module: DenseModule, folder: Path) -> None:
    spec = module.spec
    names = {ours: theirs for theirs, ours in _BENDS.items()}
    bend = look_up("activation that sentence-transformers has a word for", spec.activation, names)
    home = "linear" if bend == "Identity" else "activation"
    config: dict[str, Any] = {
        "in_features": spec.before,
        "out_features": spec.after,
        "bias": spec.bias,
        "activation_function": f"torch.nn.modules.{home}.{bend}",
        **({"use_residual": True} if spec.residual else {}),
    }
    folder.mkdir()
    _write_json(folder / "config.json", config)
    files.write({name: x.detach().cpu() for name, x in module.named_parameters()}, folder, shard_bytes=2**62)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
