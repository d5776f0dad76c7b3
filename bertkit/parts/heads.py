"""Heads: what a task adds to an encoder.

A head reads every token's hidden state, the first one, or the pooled vector of its sequence (`reads`); the network
hands it over. In BERT each is one matrix, but for the masked language model, whose output is tied to the token table.

Letters: B rows · W width · E width of the embedding table · V vocabulary · C labels · `...` as in batch.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertkit.errors import BertkitError
from bertkit.parts.encoder import EncoderModule
from bertkit.parts.feed import ACTIVATIONS
from bertkit.parts.init import Linear
from bertkit.spec import Positive, Rate, Spec

Reads = Literal["tokens", "first", "pooled"]


class HeadModule(nn.Module):
    """x -> logits."""

    reads: ClassVar[Reads]


@dataclass(frozen=True)
class Head(Spec):
    """The base of all heads."""

    def build(self, encoder: EncoderModule) -> HeadModule:
        raise NotImplementedError


@dataclass(frozen=True)
class Pooler(Head):
    """tanh of a matrix on the first token: the vector that next-sentence prediction trains and classifiers read."""

    def build(self, encoder: EncoderModule) -> HeadModule:
        return PoolerModule(encoder.spec.width)


class PoolerModule(HeadModule):
    reads = "first"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:  # [B, W] -> [B, W]
        return torch.tanh(self.dense(x))


@dataclass(frozen=True)
class Mlm(Head):
    """The masked language model: a transform to the table's width, then the token table itself as the output matrix."""

    activation: str = "gelu"
    epsilon: Positive = 1e-12

    def build(self, encoder: EncoderModule) -> HeadModule:
        return MlmModule(self, encoder)


class MlmModule(HeadModule):
    reads = "tokens"

    def __init__(self, spec: Mlm, encoder: EncoderModule) -> None:
        super().__init__()
        table = encoder.embed.tokens.weight
        self.transform = Linear(encoder.spec.width, table.shape[1])
        self.bend = ACTIVATIONS[spec.activation]
        self.norm = nn.LayerNorm(table.shape[1], eps=spec.epsilon)
        self.bias = nn.Parameter(torch.zeros(len(table)))
        self.tie(encoder)

    def tie(self, encoder: EncoderModule) -> None:
        """Use the encoder's table as it is now; tokens that are new to it start with bias 0."""
        self.table = encoder.embed.tokens.weight  # the same parameter, not a copy
        if len(self.bias) < len(self.table):
            self.bias = nn.Parameter(F.pad(self.bias.data, (0, len(self.table) - len(self.bias))))

    def forward(self, x: Tensor) -> Tensor:  # [..., W] -> [..., V]
        return F.linear(self.norm(self.bend(self.transform(x))), self.table, self.bias)


@dataclass(frozen=True)
class NextSentence(Head):
    """Does B follow A? Label 0 says it does, as in Google's data."""

    def build(self, encoder: EncoderModule) -> HeadModule:
        return PooledModule(encoder.spec.width, 2, dropout=0.0)


@dataclass(frozen=True)
class Classify(Head):
    """One of several labels for a sequence or a pair."""

    labels: tuple[str, ...]
    dropout: Rate = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_labels(self.labels, type(self).__name__)

    def build(self, encoder: EncoderModule) -> HeadModule:
        return PooledModule(encoder.spec.width, len(self.labels), self.dropout)


@dataclass(frozen=True)
class Regress(Head):
    """One number for a sequence or a pair."""

    dropout: Rate = 0.1

    def build(self, encoder: EncoderModule) -> HeadModule:
        return PooledModule(encoder.spec.width, 1, self.dropout)


@dataclass(frozen=True)
class Choice(Head):
    """A score for each choice of a multiple-choice question; each choice is a sequence of its own."""

    dropout: Rate = 0.1

    def build(self, encoder: EncoderModule) -> HeadModule:
        return PooledModule(encoder.spec.width, 1, self.dropout)


class PooledModule(HeadModule):
    """One matrix on the pooled vector: [B, W] -> [B, C]."""

    reads: ClassVar[Reads] = "pooled"

    def __init__(self, width: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.dense = Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.dense(self.dropout(x))
        return out


@dataclass(frozen=True)
class Tag(Head):
    """One of several labels for every token."""

    labels: tuple[str, ...]
    dropout: Rate = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_labels(self.labels, type(self).__name__)

    def build(self, encoder: EncoderModule) -> HeadModule:
        return TokenModule(encoder.spec.width, len(self.labels), self.dropout)


@dataclass(frozen=True)
class Span(Head):
    """For every token, how well an answer starts (0) and ends (1) there."""

    def build(self, encoder: EncoderModule) -> HeadModule:
        return TokenModule(encoder.spec.width, 2, dropout=0.0)


class TokenModule(PooledModule):
    """The same matrix on every token: [..., W] -> [..., C]."""

    reads: ClassVar[Reads] = "tokens"


def _check_labels(labels: tuple[str, ...], where: str) -> None:
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if not labels or twice:
        raise BertkitError(
            f"{where} needs labels, each once. " + (f"Twice: {', '.join(twice)}" if twice else "Given: none")
        )
