"""What an exported graph says in the end: the vectors of a sentence encoder, or the logits of one head.

It is told twice, as nodes of a graph and as torch operators on hidden states, so that one can be checked by the other.

Letters: B rows · L longest · W width · C labels · `...` [B, L] padded or [T] packed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from bertkit.batch import Layout
from bertkit.errors import BertkitError, look_up
from bertkit.model import Model
from bertkit.parts.heads import Choice, Detect, Head, Labelled, Mlm, NextSentence, Pooler, Span
from bertkit.runtime.engines.graph import Graph
from bertkit.runtime.engines.outputs import Outputs

SENTENCE = "sentence"
"""in place of a head's name: vectors"""
LOGITS, STARTS, ENDS = "logits", "start_logits", "end_logits"
VECTORS, TOKENS = "sentence_embedding", "token_embeddings"


class Output(NamedTuple):
    """A value that a graph tells; axes are B, L, or a size."""

    name: str
    axes: tuple[str | int, ...]

    @property
    def of_tokens(self) -> bool:
        """Whether it has a value for each token."""
        return "L" in self.axes

    @property
    def width(self) -> int:
        """How many numbers it has for each row or token."""
        return next((axis for axis in self.axes[::-1] if isinstance(axis, int)), 1)


class Ending(ABC):
    """What follows the hidden states of a model."""

    name: str
    """of the head, or `sentence`"""
    kind: str
    """of the head, by its class"""
    labels: tuple[str, ...] = ()
    """of the last axis, where it has names"""

    def __init__(self, model: Model) -> None:
        self.model = model

    @property
    @abstractmethod
    def outputs(self) -> tuple[Output, ...]:
        """What is told, in order; the first is what it is all about."""

    @property
    def layers(self) -> tuple[int, ...]:
        """Which hidden states it reads: 0 is the embeddings', the last has the number of layers."""
        return (self.last,)

    @property
    def last(self) -> int:
        """The number of the last hidden states."""
        return len(self.model.network.spec.encoder.order)

    @abstractmethod
    def said(self, states: Mapping[int, Tensor], layout: Layout) -> dict[str, Tensor]:
        """The outputs by name, in torch, from hidden states [..., W] of `layers`."""

    @abstractmethod
    def write(self, graph: Graph) -> None:
        """The outputs, as nodes."""


class Vectors(Ending):
    """One vector for each text, finished as the model's files say, and one for each token."""

    name = kind = SENTENCE

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.pooling = model.pool.build(model.network).to(model.device)
        self._read = tuple(map(self._layer, model.pool.layers))

    @property
    def outputs(self) -> tuple[Output, ...]:
        tokens = Output(TOKENS, ("B", "L", self.model.network.spec.encoder.width))
        return Output(VECTORS, ("B", self.model.width)), tokens

    @property
    def layers(self) -> tuple[int, ...]:
        return (*self._read, self.last)

    def _layer(self, layer: int) -> int:
        count = self.last + 1
        if not -count <= layer < count:
            raise BertkitError(f"its pool reads layer {layer}, but this model has 0 (its embeddings) to {self.last}")
        return layer % count

    def said(self, states: Mapping[int, Tensor], layout: Layout) -> dict[str, Tensor]:
        x = self.pooling.reduce([states[layer] for layer in self._read], layout)
        x = self.model.dense(x)  # [B, W]
        x = F.normalize(x) if self.model.normalize else x
        return {VECTORS: x[:, : self.model.shorten], TOKENS: states[self.last]}

    def write(self, graph: Graph) -> None:
        outputs, nodes = Outputs(graph), graph.nodes
        x = outputs.pool(self.pooling)
        for number, module in enumerate(self.model.sentence.dense):
            x = outputs.dense(x, f"dense.{number}", module)
        x = outputs.scaled(x) if self.model.normalize else x
        if self.model.shorten is not None:
            x = nodes.add("Slice", x, nodes.integers(0), nodes.integers(self.model.shorten), nodes.integers(1))
        for output, value in zip(self.outputs, (x, graph.hidden), strict=True):
            outputs.tell(output.name, value, *output.axes)


class Logits(Ending):
    """What a head says."""

    def __init__(self, model: Model, name: str) -> None:
        super().__init__(model)
        self.name = name
        self.head: Head = look_up("head of this model", name, _told(model))
        self.kind = type(self.head).__name__
        self.labels = self.head.labels if isinstance(self.head, Labelled) else ()

    @property
    def outputs(self) -> tuple[Output, ...]:
        match self.head:
            case Detect():
                return (Output(LOGITS, ("B", "L")),)
            case Mlm():
                count = self.model.network.spec.encoder.embed.vocabulary
            case NextSentence():
                count = 2
            case Choice():
                count = 1
            case _:
                count = len(self.labels)
        return (Output(LOGITS, ("B", "L", count) if self.head.reads == "tokens" else ("B", count)),)

    def said(self, states: Mapping[int, Tensor], layout: Layout) -> dict[str, Tensor]:
        return {LOGITS: self.model.network.logits(self.name, states[self.last], layout)}

    def write(self, graph: Graph) -> None:
        outputs = Outputs(graph)
        outputs.tell(LOGITS, outputs.head(self.name), *self.outputs[0].axes)


class Spans(Logits):
    """Where answers start, and where they end."""

    @property
    def outputs(self) -> tuple[Output, ...]:
        return Output(STARTS, ("B", "L")), Output(ENDS, ("B", "L"))

    def said(self, states: Mapping[int, Tensor], layout: Layout) -> dict[str, Tensor]:
        starts, ends = super().said(states, layout)[LOGITS].unbind(-1)  # each [...]
        return {STARTS: starts, ENDS: ends}

    def write(self, graph: Graph) -> None:
        outputs, nodes = Outputs(graph), graph.nodes
        both = outputs.head(self.name)  # [B, L, 2]
        for place, output in enumerate(self.outputs):
            one = nodes.add("Gather", both, nodes.integer(place), axis=2)
            outputs.tell(output.name, one, *output.axes)


def ending_of(model: Model, head: str | None = None) -> Ending:
    """The head of this name, or `sentence`; without a name what the model is for.

    A model whose files say how vectors are made is for vectors; another is for its head, where it has one.
    """
    heads = _told(model)
    if head is None:
        head = SENTENCE if model.sentence != model.plain or not heads else next(iter(heads))
        if head != SENTENCE and len(heads) > 1:
            raise BertkitError(
                f"this model has several heads, {', '.join(heads)}: choose one with head= (--head), or {SENTENCE!r} "
                "for vectors"
            )
    if head == SENTENCE:
        return Vectors(model)
    kind = Spans if isinstance(heads.get(head), Span) else Logits
    return kind(model, head)


def _told(model: Model) -> dict[str, Head]:
    """The heads that say something; the pooler serves others."""
    return {name: head for name, head in model.network.spec.heads.items() if not isinstance(head, Pooler)}


def inputs_of(model: Model) -> tuple[str, ...]:
    """What a graph is given, each [B, L] of whole numbers; segments only where there are some to tell apart."""
    several = model.network.spec.encoder.embed.segments > 1
    return ("input_ids", "attention_mask", *["token_type_ids"] * several)


def modules_of(ending: Ending) -> nn.ModuleDict:
    """All that holds its weights."""
    parts: dict[str, nn.Module] = {"network": ending.model.network, "dense": ending.model.dense}
    return nn.ModuleDict(parts | ({"pooling": ending.pooling} if isinstance(ending, Vectors) else {}))
