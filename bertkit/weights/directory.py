"""Hugging Face directories: config.json and weights, in and out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bertkit.errors import BertkitError, about
from bertkit.family import dialect, family_of
from bertkit.family.contract import ALONE, Family
from bertkit.parts.heads import Head
from bertkit.parts.init import draw
from bertkit.parts.network import Network, NetworkModule
from bertkit.weights import int8
from bertkit.weights import tensors as files
from bertkit.weights.bundle import INDEX
from bertkit.weights.int8 import Quantization
from bertkit.weights.tensors import Tensors, read_json

CONFIG = "config.json"
SHARD_BYTES = 5 * 10**9
_NOT_KEPT = {
    *("id2label", "label2id", "num_labels", "problem_type", "classifier_dropout"),  # of a head that may be gone
    *("auto_map", "quantization_config", "torch_dtype"),  # of code and numbers that are not in what we write
}


@dataclass(frozen=True)
class Report:
    """What loading did with each head: taken from the file, left in it, or made new."""

    taken: tuple[str, ...]
    left: tuple[str, ...]
    new: tuple[str, ...]

    def __str__(self) -> str:
        parts = {"took": ("encoder", *self.taken), "left": self.left, "made new": self.new}
        return "; ".join(f"{verb} {', '.join(names) or 'none'}" for verb, names in parts.items())


@dataclass(frozen=True)
class Source:
    """Settings and tensors that make a network, whoever wrote them."""

    settings: Path
    """the file that `config` is from"""
    config: dict[str, Any]
    """as config.json would say it"""
    tensors: Tensors
    spell: Callable[[str], str] = str
    """a tensor's name -> Hugging Face's name for it"""

    @property
    def directory(self) -> Path:
        return self.settings.parent


def read(directory: Path, heads: Mapping[str, Head] | None = None) -> tuple[NetworkModule, dict[str, Any], Report]:
    """The network of a directory, its config.json, and what was done with its heads.

    Without `heads` all that the file has are taken. With them the network has these: from the file where it has one of
    the same name and kind, else made new.
    """
    config = read_json(directory / CONFIG)
    if "model_type" not in config and any(directory.glob(f"*{INDEX}")):
        raise BertkitError(
            f"{directory / CONFIG} names no model_type. Beside a TensorFlow checkpoint lie Google's settings, called "
            "bert_config.json: rename it, or copy bert_config.json and vocab.txt of the model that was trained further"
        )
    with about(directory / CONFIG):
        family_of(config.get("model_type"))
    return load(Source(directory / CONFIG, config, Tensors.open(directory)), heads)


def load(source: Source, heads: Mapping[str, Head] | None = None) -> tuple[NetworkModule, dict[str, Any], Report]:
    """As `read`, from any source."""
    config, tensors = source.config, source.tensors
    with about(source.settings):
        family = family_of(config.get("model_type"))
    canonical = _canonical(source, family, heads is None or "mlm" in heads)
    with about(source.settings):
        _check_layers(family, config, canonical)
        whole = Network(family.read_encoder(config), family.dialect.read_heads(config, frozenset(canonical)))
        wanted = dict(whole.heads if heads is None else family.heads(whole.encoder, heads))
    fitting = {name: wanted[name].filled_by(stored) for name, stored in whole.heads.items() if name in wanted}
    taken = {name: head for name, head in fitting.items() if head}
    sources, strangers = _sources(source, family, whole, canonical)

    with torch.device("meta"):
        network = Network(whole.encoder, wanted | taken).build()
    new = tuple(name for name in wanted if name not in taken)
    for head in new:
        _make(network.heads[head], whole.encoder.spread)
    for name, parts in sources.items():
        if not name.startswith("heads.") or name.split(".")[1] in taken:
            _fill(network, name, [tensors.read(part) for part in parts])
    left = (*(name for name in whole.heads if name not in taken), *strangers)
    if heads is not None:  # who chooses heads will learn, and what was learned is not rounded by itself
        config = {key: value for key, value in config.items() if key != int8.CONFIG}
    return network.eval(), config, Report(tuple(taken), left, new)


def _canonical(source: Source, family: Family, tied: bool) -> dict[str, str]:
    """The file's own names by their canonical ones, each tensor once; `tied` asks whether copies are what they should.

    Of two biases the one of the head itself counts, as in transformers: old files have another one that nothing reads.
    """
    found: dict[str, str] = {}
    kind = dialect.architecture_of(source.config)
    tensors = source.tensors
    for name in tensors.names:
        spelled = family.dialect.canonical(source.spell(name), kind)
        if spelled in found:
            raise BertkitError(
                f"{source.directory}: {found[spelled]} and {name} are both {spelled}: only one can be right"
            )
        if spelled:
            found[spelled] = name
    for copy, original in family.dialect.tied.items():
        if copy not in found:
            continue
        twin = found.pop(copy)
        if original in found and (copy.endswith(".bias") or not tied):
            continue
        if not torch.equal(tensors.read(twin), tensors.read(found.setdefault(original, twin))):
            raise BertkitError(
                f"{tensors.where(twin)}: {twin} is not {found[original]}, but the output of BERT is its token table: "
                f"an untied head is not read. {ALONE}"
            )
    return found


def _sources(
    source: Source, family: Family, whole: Network, canonical: Mapping[str, str]
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Which tensors of the file fill each parameter of ours, shapes checked; and whose heads nobody here knows.

    All heads of the file take part, whichever are wanted, so that every name is accounted for.
    """
    with torch.device("meta"):
        shapes = {name: tuple(parameter.shape) for name, parameter in whole.build().named_parameters()}
    plan = family.dialect.names(whole).plan(shapes, canonical, str(source.directory))
    strange = [name for name in plan.left if family.dialect.owns(name)]
    if strange:
        raise BertkitError(f"{source.directory}: no part of {family.model_type} is called {', '.join(strange[:3])}")
    sources = {name: tuple(canonical[part] for part in parts) for name, parts in plan.sources.items()}
    for name, parts in sources.items():
        _check_shape(source, parts, shapes[name])
    return sources, sorted({name.split(".")[0] for name in plan.left})


def write(network: NetworkModule, config: Mapping[str, Any], directory: Path, shard_bytes: int = SHARD_BYTES) -> None:
    """config.json and safetensors, as Hugging Face's classes write and read them."""
    write_config(network, config, directory)
    family = family_of(config.get("model_type", "bert"))
    files.write(foreign(network, family, Quantization.of(config)), directory, shard_bytes)


def write_config(network: NetworkModule, config: Mapping[str, Any], directory: Path) -> None:
    """config.json alone."""
    family = family_of(config.get("model_type", "bert"))
    quantization = Quantization.of(config)
    kept = {key: value for key, value in config.items() if key not in _NOT_KEPT}
    if quantization:
        kept[int8.CONFIG] = quantization.told()
    dtype = str(network.encoder.embed.tokens.weight.dtype).removeprefix("torch.")
    written = {**kept, **family.config(network.spec), "dtype": dtype}
    text = json.dumps(written, indent=2, sort_keys=True, ensure_ascii=False)
    (directory / CONFIG).write_text(text + "\n", encoding="utf-8")


def foreign(network: NetworkModule, family: Family, quantization: Quantization | None = None) -> dict[str, Tensor]:
    """Our parameters under foreign names; matrices that we keep as one are taken apart, and quantised if asked."""
    names = family.dialect.names(network.spec)
    out: dict[str, Tensor] = {}
    for name, parameter in network.named_parameters():
        theirs = [family.dialect.spell(network.spec, part) for part in names.foreign(name)]
        for their, part in zip(theirs, parameter.detach().cpu().chunk(len(theirs)), strict=True):
            if quantization and quantization.takes(name, parameter):
                out[their], out[their + int8.SCALE] = int8.quantized(part, not int8.is_table(name))
            else:
                out[their] = part
    return out


def _check_layers(family: Family, config: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Compare layer counts first: the message is the plainest, and no config can ask for a million layers."""
    ours = (name for name in names if family.dialect.owns(name))
    numbers = {int(match[1]) for name in ours if (match := re.search(family.numbered, name))}
    said, there = family.layers(config), len(numbers)
    if said != there:
        raise BertkitError(
            f"it says {said} layers, but the weights beside it have {there}: they are not of the same model"
        )


def _check_shape(source: Source, parts: tuple[str, ...], wanted: tuple[int, ...]) -> None:
    tensors = source.tensors
    share = (wanted[0] // len(parts), *wanted[1:])
    for part in parts:
        if tensors.shape(part) != share:
            raise BertkitError(
                f"{tensors.where(part)}: {part} is {list(tensors.shape(part))}, but {source.settings} makes it "
                f"{list(share)}: config and weights are not of the same model"
            )


def _make(head: nn.Module, spread: float) -> None:
    """Give a head that was only described its first weights."""
    for name, parameter in head.named_parameters(recurse=True):
        if parameter.is_meta:
            _fill(head, name, [torch.zeros(parameter.shape)])
    draw(head, spread)


def _fill(module: nn.Module, name: str, parts: list[Tensor]) -> None:
    owner, _, leaf = name.rpartition(".")
    setattr(module.get_submodule(owner), leaf, nn.Parameter(torch.cat(parts) if len(parts) > 1 else parts[0]))
