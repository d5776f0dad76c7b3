"""Google's directories: bert_config.json, vocab.txt and a TensorFlow checkpoint, in and out.

Names follow from Hugging Face's by rule: slashes for dots, `layer_3` for `layer.3`, gamma and beta for a norm's weight
and bias, nothing after a table's name, and matrices turned over (`kernel` is [in, out]). Heads have names of their own.

`hidden_act: gelu` is read as the tanh approximation, which Google's code computes by that name. Its first files, of
2018, say the same word, and their namesakes at Hugging Face compute the exact form; no file says which one it was
trained with. Who wants the exact form writes `gelu_python` into bert_config.json. So do we when we write it, for Google
has no word for it: transformers knows that one, and Google's code stops at it instead of computing other numbers.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bertkit.errors import BertkitError, about
from bertkit.family import family_of
from bertkit.family.contract import Family
from bertkit.parts.heads import Head
from bertkit.parts.network import NetworkModule
from bertkit.weights import bundle, directory
from bertkit.weights.bundle import Bundle
from bertkit.weights.directory import Report, Source
from bertkit.weights.tensors import File, Tensors, read_json

log = logging.getLogger("bertkit")

CONFIG, CHECKPOINT = "bert_config.json", "bert_model.ckpt"
LATEST = "checkpoint"
"""the text file in which TensorFlow notes the newest of several checkpoints"""

_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
_KEYS = (
    *("vocab_size", "hidden_size", "embedding_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "max_position_embeddings", "type_vocab_size"),
    *("initializer_range", "id2label", "label2id", "problem_type", "classifier_dropout"),
)
_EPSILON = 1e-12  # of every norm in Google's code
_ACTIVATIONS = {"gelu": "gelu_new"}
"""Google's word -> Hugging Face's, where they differ"""
_WRITTEN = {"gelu_new": "gelu", "gelu": "gelu_python"}

_HEADS = {
    "cls.predictions.bias": "cls/predictions/output_bias",
    "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
    "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
    "classifier.weight": "output_weights",
    "classifier.bias": "output_bias",
    "qa_outputs.weight": "cls/squad/output_weights",
    "qa_outputs.bias": "cls/squad/output_bias",
}
"""Hugging Face's names -> Google's, where no rule leads from one to the other; none is turned over"""
_HEADS_BACK = {theirs: ours for ours, theirs in _HEADS.items()}


def here(path: Path) -> bool:
    """Whether a directory is Google's. One that also has Hugging Face's config.json is read as theirs."""
    return not (path / directory.CONFIG).exists() and ((path / CONFIG).is_file() or bool(_prefixes(path)))


def read(path: Path, heads: Mapping[str, Head] | None = None) -> tuple[NetworkModule, dict[str, Any], Report]:
    """As `directory.read`; the config comes in Hugging Face's words. Optimizer slots and counters are left, by name."""
    prefix = find(path)
    if not (path / CONFIG).exists():
        raise BertkitError(
            f"{path} has the checkpoint {prefix.name}, but no {CONFIG}, which training does not write: copy {CONFIG} "
            "and vocab.txt of the model that it was trained from"
        )
    file = _Checkpoint(Bundle(prefix))
    tensors = Tensors(dict.fromkeys(file.shapes, file))
    names = frozenset(file.shapes)
    if _OBJECTS in names:
        raise BertkitError(
            f"{file.path} is a checkpoint of Keras objects (TensorFlow 2), not of BERT's variables by name"
        )
    said = read_json(path / CONFIG)
    config = _from_google(said, file.shapes)
    with about(path / CONFIG):
        _bert(config)
    if said.get("hidden_act", "gelu") == "gelu":
        log.info(
            "%s: hidden_act 'gelu' is read as the tanh approximation. Google's first files, of 2018, are computed with "
            "the exact form by their namesakes at Hugging Face: for equal numbers write 'gelu_python'",
            CONFIG,
        )
    return directory.load(Source(path / CONFIG, config, tensors, lambda name: _spell(name, names)), heads)


def write(network: NetworkModule, config: Mapping[str, Any], path: Path) -> None:
    """bert_config.json and bert_model.ckpt.*, as Google's code names and shapes them, in float32.

    What only our reader will heed is logged.
    """
    family = _bert(config)
    said = _to_google(family.config(network.spec))
    (path / CONFIG).write_text(json.dumps(said, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    tensors = {to_google(family.dialect.canonical(name)): x for name, x in directory.foreign(network, family).items()}
    bundle.write(_Variables(tensors), path / CHECKPOINT)
    for note in _notes(said):
        log.warning("%s: %s", CONFIG, note)


def _bert(config: Mapping[str, Any]) -> Family:
    """BERT, or a refusal: the variables of other families have other names."""
    kind = config.get("model_type", "bert")
    if kind != "bert":
        raise BertkitError(f"model_type is {kind!r}, but Google's checkpoints are read and written for bert only")
    return family_of(kind)


def find(path: Path) -> Path:
    """The checkpoint's prefix: the only one there is, or the one that the file `checkpoint` names."""
    names = _prefixes(path)
    latest = _latest(path / LATEST)
    if latest in names:
        return path / latest
    if len(names) == 1:
        if latest:
            log.warning("%s: its file %s names %s, which is not there; %s is read", path, LATEST, latest, names[0])
        return path / names[0]
    if not names:
        raise BertkitError(f"{path} has {CONFIG}, but no weights ({CHECKPOINT}{bundle.INDEX} and its data)")
    raise BertkitError(
        f"{path} has several checkpoints ({', '.join(names[:6])}): write which one to take into its file {LATEST}, "
        f'as model_checkpoint_path: "{names[-1]}"'
    )


def _prefixes(path: Path) -> list[str]:
    """The checkpoints of a directory; an index without its data is one only where there is nothing better."""
    indexes = path.glob(f"[!.]*{bundle.INDEX}")  # what begins with a dot is a file system's own
    names = sorted(file.name.removesuffix(bundle.INDEX) for file in indexes)
    files = [file.name for file in path.glob("*.data-*")]
    whole = [name for name in names if any(file.startswith(f"{name}.data-") for file in files)]
    return whole or (names if (path / CONFIG).is_file() else [])


def _latest(path: Path) -> str:
    """The checkpoint that a file names, or nothing."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            match = re.search(r'^model_checkpoint_path:\s*"([^"\n]*)"', file.read(1 << 16), re.MULTILINE)
    except OSError:
        return ""
    return re.split(r"[/\\]", match[1])[-1] if match else ""  # often an absolute path of another machine


class _Checkpoint(File):
    """A bundle whose matrices are turned as Hugging Face and torch keep them."""

    def __init__(self, variables: Bundle) -> None:
        self.path = variables.path
        self._bundle = variables
        self.shapes = {
            name: variables.shape(name)[::-1] if _turned(name) else variables.shape(name) for name in variables.names
        }

    def read(self, name: str) -> Tensor:
        array = self._bundle.read(name)
        return torch.from_numpy(np.ascontiguousarray(array.T) if _turned(name) else array)


class _Variables(Mapping[str, npt.NDArray[Any]]):
    """Tensors by Google's names, each turned when it is looked up, so that no second model is in memory."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = self._tensors[name].float().numpy()
        return array.T if _turned(name) else array

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def to_google(name: str) -> str:
    """Google's name for Hugging Face's.

    >>> to_google("bert.encoder.layer.3.output.LayerNorm.weight")
    'bert/encoder/layer_3/output/LayerNorm/gamma'
    >>> to_google("bert.pooler.dense.weight")
    'bert/pooler/dense/kernel'
    """
    if name in _HEADS:
        return _HEADS[name]
    name = re.sub(r"LayerNorm\.weight$", "LayerNorm.gamma", re.sub(r"LayerNorm\.bias$", "LayerNorm.beta", name))
    name = re.sub(r"\.weight$", ".kernel", name.removesuffix(".weight") if "_embeddings." in name else name)
    return re.sub(r"\.layer\.(\d+)\.", r".layer_\1.", name).replace(".", "/")


def from_google(name: str) -> str:
    """Hugging Face's name for Google's.

    >>> from_google("bert/embeddings/word_embeddings")
    'bert.embeddings.word_embeddings.weight'
    """
    if name in _HEADS_BACK:
        return _HEADS_BACK[name]
    name = re.sub(r"/layer_(\d+)/", r"/layer/\1/", name).replace("/", ".")
    name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name))
    return re.sub(r"\.kernel$|(?<=_embeddings)$", ".weight", name)


def _spell(name: str, names: frozenset[str]) -> str:
    """A variable below another variable is an optimizer's: it is called after its kind, so that kinds are reported."""
    owner, _, kind = name.rpartition("/")
    return f"{kind}.{from_google(owner)}" if owner in names else from_google(name)


def _turned(name: str) -> bool:
    return name.endswith("/kernel")


def _from_google(config: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """config.json for a bert_config.json; a fine-tuned classifier's labels are counted where nobody named them."""
    said = config.get("hidden_act", "gelu")
    act = _ACTIVATIONS.get(said, said) if isinstance(said, str) else said
    head: dict[str, Any] = {}
    if "output_weights" in shapes:
        labels = shapes["output_weights"][:1] or (1,)
        head = {"architectures": ["BertForSequenceClassification"], "num_labels": labels[0]}
    return {"model_type": "bert", **head, **config, "hidden_act": act}


def _to_google(config: dict[str, Any]) -> dict[str, Any]:
    said = {key: config[key] for key in _KEYS if key in config}
    said["hidden_act"] = _WRITTEN.get(config["hidden_act"], config["hidden_act"])
    if config["layer_norm_eps"] != _EPSILON:
        said["layer_norm_eps"] = config["layer_norm_eps"]
    if "classifier_dropout" in config:
        said["architectures"] = config["architectures"]
    return said


def _notes(said: Mapping[str, Any]) -> Iterable[str]:
    if said["hidden_act"] == _WRITTEN["gelu"]:
        yield (
            f"hidden_act is {said['hidden_act']!r}, for Google's gelu is the tanh approximation and this model's is "
            "exact. Google's code stops at it; with 'gelu' in its place it runs, with numbers about 0.001 off"
        )
    if "layer_norm_eps" in said:
        yield f"layer_norm_eps is {said['layer_norm_eps']}, but Google's code always takes {_EPSILON}"
