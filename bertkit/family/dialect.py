"""A dialect: how Hugging Face's files speak of a family. BERT's is the first; the others say what they call otherwise.

Names have one canonical spelling in a family. Files may differ from it: old versions, lost prefixes, classes that call
the same matrix by another name (`respelled`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bertkit.errors import BertkitError, look_up
from bertkit.names import Names
from bertkit.parts.heads import Chain, Choice, Classify, Head, Labelled, Mlm, MultiLabel, Regress, Tag
from bertkit.parts.network import Network

Config = Mapping[str, Any]
"""A foreign config.json."""
Rows = Mapping[str, str | tuple[str, ...]]
"""our names -> theirs"""

CLASSIFIERS = ("classify", "regress", "choice", "tag")
"""heads that share one place in a file: the class that `architectures` names says which one it is"""

PROBLEMS: dict[str, type[Classify] | type[MultiLabel] | type[Regress]] = {
    "single_label_classification": Classify,
    "multi_label_classification": MultiLabel,
    "regression": Regress,
}
"""`problem_type` of a sequence classifier; where it is silent, one label means regression"""

CHAIN = {"first": "crf.start", "last": "crf.end", "transitions.weight": "crf.transitions"}
"""what a chain has beside a tagger's matrix, which transformers leaves unread; where the first is, all must be"""

_MATRIX = ("weight", "bias")


@dataclass(frozen=True)
class Filed:
    """A head in a file: what its matrices are called, and what the config says of it."""

    names: Mapping[str, str]
    """our part -> theirs: a matrix with its bias, or a bias alone where the name ends so"""
    read: Callable[[Config], Head]

    def rows(self, head: str) -> dict[str, str]:
        """Our names of all its parameters -> theirs."""
        found = {}
        for ours, theirs in self.names.items():
            if theirs.endswith(".bias"):
                found[f"heads.{head}.{ours}"] = theirs
            else:
                found |= {f"heads.{head}.{ours}.{kind}": f"{theirs}.{kind}" for kind in _MATRIX}
        return found


@dataclass(frozen=True)
class Dialect:
    """The words of one family."""

    prefix: str
    """before every name of the encoder, such as `bert.`"""
    classes: Mapping[str, tuple[str, ...]]
    """Hugging Face's classes and the heads each has; a network is written as the first whose heads it has. The last
    one is the encoder alone, which writes itself without the prefix"""
    encoder: Rows
    heads: Mapping[str, Filed]
    """without those that share a place"""
    classifier: str = "classifier"
    """the matrix of those that do"""
    tied: Mapping[str, str] = field(default_factory=dict)
    """names that some files give to a tensor once more"""
    respelled: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """class -> canonical beginnings of names -> what it calls them"""
    classifier_dropout: str = "classifier_dropout"
    """the config's key for the dropout before that matrix"""
    idle: str = r"embeddings\.(position_ids|token_type_ids)"
    """names, after the prefix, of tensors that some versions save and that carry nothing"""

    def names(self, network: Network) -> Names:
        """The table for an encoder and the heads that a network has."""
        rows = dict(self.encoder)
        for name, head in network.heads.items():
            rows |= self._rows(name, head)
        return Names(rows)

    def canonical(self, name: str, kind: str = "") -> str:
        """One spelling of what a file of class `kind` holds: no `module.`, always the prefix, no `gamma` and `beta`.

        Empty for what carries nothing; without the prefix for what that class leaves unread.
        """
        name = name.removeprefix("module.")
        name = self.prefix + name if self._bare.match(name) else name
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        table = self.respelled.get(kind, {})
        for ours, theirs in sorted(table.items(), key=lambda pair: -len(pair[1])):
            if name.startswith(f"{theirs}."):
                return ours + name.removeprefix(theirs)
        if any(name.startswith(f"{ours}.") for ours in table):
            return name.removeprefix(self.prefix)
        return "" if self.owns(name) and re.fullmatch(self.idle, name.removeprefix(self.prefix)) else name

    def spell(self, network: Network, name: str) -> str:
        """A canonical name as the class of this network writes it."""
        written = self.architecture(network)
        for ours, theirs in self.respelled.get(written, {}).items():
            if name.startswith(f"{ours}."):
                return theirs + name.removeprefix(ours)
        return name.removeprefix(self.prefix) if written == self.alone else name

    def owns(self, name: str) -> bool:
        """Whether a canonical name is the encoder's."""
        return name.startswith(self.prefix)

    @property
    def alone(self) -> str:
        """The class of the encoder alone."""
        return list(self.classes)[-1]

    def architecture(self, network: Network) -> str:
        """The class that has this network's heads."""
        there = {"classify" if name == "regress" else name for name in network.heads}
        return next((name for name, heads in self.classes.items() if there.issuperset(heads)), self.alone)

    def read_heads(self, config: Config, names: frozenset[str]) -> dict[str, Head]:
        """The heads whose canonical names a file holds."""
        heads = {}
        for name, filed in self.heads.items():
            first = next(iter(filed.rows(name).values()))
            if first in names:
                heads[name] = filed.read(config)
        return heads | (self._read_classifier(config, names) if f"{self.classifier}.weight" in names else {})

    def require_places(self, network: Network) -> None:
        """Refuse several heads of which a file can hold one."""
        rivals = [name for name in network.heads if name in CLASSIFIERS]
        if len(rivals) > 1:
            raise BertkitError(f"Hugging Face's files have one place for {' and '.join(rivals)}: keep one of them")

    def write_heads(self, network: Network) -> dict[str, Any]:
        """What config.json says of them."""
        config: dict[str, Any] = {}
        for head in network.heads.values():
            if isinstance(head, (Classify, MultiLabel, Regress)):
                config["problem_type"] = next(name for name, kind in PROBLEMS.items() if kind is type(head))
            if isinstance(head, Labelled):
                config["id2label"] = {str(index): label for index, label in enumerate(head.labels)}
                config["label2id"] = {label: index for index, label in enumerate(head.labels)}
            if isinstance(head, (Labelled, Choice)):
                config[self.classifier_dropout] = head.dropout
        return config

    def pooler_dropout(self, config: Config) -> float:
        """Before the matrix that a classifier has where BERT has the pooler; none in other classes."""
        return self.dropout(config) if architecture_of(config).endswith("ForSequenceClassification") else 0.0

    def dropout(self, config: Config) -> float:
        """Before the classifier's matrix."""
        said = config.get(self.classifier_dropout)
        found: float = config.get("hidden_dropout_prob", 0.1) if said is None else said
        return found

    def _rows(self, name: str, head: Head) -> dict[str, str]:
        if name not in CLASSIFIERS:
            return look_up("head", name, self.heads).rows(name)
        chain = CHAIN if isinstance(head, Chain) else {}
        shared = Filed({"dense": self.classifier}, lambda config: head).rows(name)
        return shared | {f"heads.{name}.{ours}": theirs for ours, theirs in chain.items()}

    def _read_classifier(self, config: Config, names: frozenset[str]) -> dict[str, Head]:
        heads = self.classes.get(architecture_of(config), ())
        dropout = self.dropout(config)
        if "choice" in heads:
            return {"choice": Choice(dropout)}
        if "tag" in heads:
            tagger = Chain if CHAIN["first"] in names else Tag
            return {"tag": tagger(read_labels(config), dropout)}
        if "classify" not in heads:
            return {}  # somebody's own head that happens to be called so: left, and said
        labels, problem = read_labels(config), config.get("problem_type")
        silent = Regress if len(labels) == 1 else Classify
        kind = silent if problem is None else look_up("problem_type", problem, PROBLEMS)
        return {"regress" if kind is Regress else "classify": kind(labels, dropout)}

    @cached_property
    def _bare(self) -> re.Pattern[str]:
        """The beginnings of encoder names that have lost the prefix."""
        rows = [name for theirs in self.encoder.values() for name in ((theirs,) if isinstance(theirs, str) else theirs)]
        rows += [name for filed in self.heads.values() for name in filed.names.values() if self.owns(name)]
        first = sorted({name.removeprefix(self.prefix).split(".")[0] for name in rows})
        return re.compile(rf"({'|'.join(first)})\.")


def classes(name: str, more: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The classes that every family has under its own name, with `more` before the encoder alone.

    >>> list(classes("Bert", {"MaskedLM": ("mlm",)}))[-2:]
    ['BertForMaskedLM', 'BertModel']
    """
    tasks = {
        "SequenceClassification": ("pooler", "classify"),
        "MultipleChoice": ("pooler", "choice"),
        "TokenClassification": ("tag",),
        "QuestionAnswering": ("span",),
        **more,
    }
    return {**{f"{name}For{task}": heads for task, heads in tasks.items()}, f"{name}Model": ("pooler",)}


def renamed(rows: Rows, old: str, new: str) -> dict[str, str | tuple[str, ...]]:
    """The same rows with another prefix.

    >>> renamed({"ours": ("bert.a", "bert.b")}, "bert.", "roberta.")
    {'ours': ('roberta.a', 'roberta.b')}
    """

    def name(theirs: str) -> str:
        return new + theirs.removeprefix(old) if theirs.startswith(old) else theirs

    return {
        ours: name(theirs) if isinstance(theirs, str) else tuple(map(name, theirs)) for ours, theirs in rows.items()
    }


def architecture_of(config: Config) -> str:
    """The class that a config names; empty where it names none."""
    said = config.get("architectures")
    return str(said[0]) if isinstance(said, list) and said else ""


def read_labels(config: Config) -> tuple[str, ...]:
    """The label names in the order of their ids."""
    table = config.get("id2label")
    if table is None:
        return tuple(f"LABEL_{index}" for index in range(need(config, "num_labels") if "num_labels" in config else 2))
    if not isinstance(table, dict) or {str(key) for key in table} != {str(index) for index in range(len(table))}:
        raise BertkitError("id2label must name every id from 0 on, each once")
    return tuple(str(table[key]) for key in sorted(table, key=int))


def need(config: Config, key: str) -> int:
    """A size that a config must state."""
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**24:
        given = f"is {value!r}" if key in config else "is missing"
        raise BertkitError(f"{key} {given}: it must be a whole number from 1 to {2**24 - 1}")
    return value


def require_tied(config: Config, way_out: str) -> None:
    """Refuse a masked language model whose output is not the token table."""
    if config.get("tie_word_embeddings", True) is not True:
        raise BertkitError(
            f"tie_word_embeddings is {config['tie_word_embeddings']!r}: a masked language model's output is read "
            f"as the token table only. {way_out}"
        )


def mlm(network: Network) -> Mlm | None:
    """The masked language head of a network, if it has one."""
    head = network.heads.get("mlm")
    return head if isinstance(head, Mlm) else None
