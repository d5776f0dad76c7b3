"""Heads: what a task adds to an encoder.

A head reads every token's hidden state, the first one, or the pooled vector of its sequence (`reads`); the network
hands it over. In BERT each is one matrix, but for the masked language model, whose output is tied to the token table.

Letters: B rows · W width · E width of the embedding table · V vocabulary · C labels · `...` as in batch.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertkit.errors import BertkitError, look_up
from bertkit.parts.dense import ACTIVATIONS as BENDS
from bertkit.parts.encoder import Encoder, EncoderModule
from bertkit.parts.feed import ACTIVATIONS
from bertkit.parts.init import Embedding, Linear
from bertkit.spec import Positive, Rate, Spec


@dataclass(frozen=True)
class Head(Spec):
    """The base of all heads."""

    reads: ClassVar[Literal["tokens", "first", "pooled"]]

    def on(self, encoder: Encoder) -> Self:
        """The head with what it leaves open (None) as it is on this encoder."""
        return self

    def like(self, other: Head) -> Self:
        """The head with what it leaves open as another of its kind has it."""
        if type(other) is not type(self):
            return self
        return replace(self, **{name: getattr(other, name) for name, value in vars(self).items() if value is None})

    def build(self, encoder: EncoderModule) -> nn.Module:
        raise NotImplementedError

    def filled_by(self, stored: Head) -> Head | None:
        """This head, with what belongs to stored weights taken from them; None where they cannot fill it."""
        fits = type(stored) is type(self) and getattr(stored, "labels", ()) == getattr(self, "labels", ())
        return self if fits else None


@dataclass(frozen=True)
class Pooler(Head):
    """A bent matrix on the first token: the vector that next-sentence prediction trains and classifiers read."""

    reads = "first"

    activation: str | None = None
    """what bends; tanh unless the family has another"""
    dropout: Rate | None = None
    """on the first token; none unless the family has it"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.activation is not None:
            look_up("activation", self.activation, BENDS)

    def on(self, encoder: Encoder) -> Pooler:
        return self.like(Pooler("tanh", 0.0))

    def build(self, encoder: EncoderModule) -> nn.Module:
        return PoolerModule(self, encoder.spec.width)

    def filled_by(self, stored: Head) -> Head | None:
        # how it bends was learned with its weights
        return replace(self, activation=stored.activation) if isinstance(stored, Pooler) else None


class PoolerModule(nn.Module):
    """[B, W] -> [B, W]."""

    def __init__(self, spec: Pooler, width: int) -> None:
        super().__init__()
        assert spec.activation is not None, "a network leaves nothing open"
        assert spec.dropout is not None
        self.dropout = nn.Dropout(spec.dropout)
        self.dense = Linear(width, width)
        self.bend = BENDS[spec.activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.bend(self.dense(self.dropout(x)))


@dataclass(frozen=True)
class Mlm(Head):
    """The masked language model: a transform to the table's width, then the token table itself as the output matrix."""

    reads = "tokens"

    activation: str | None = None
    """what bends, and what its norm adds: as in the encoder unless said"""
    epsilon: Positive | None = None

    def on(self, encoder: Encoder) -> Mlm:
        return self.like(Mlm(encoder.feeds[-1].activation, encoder.embed.epsilon))

    def build(self, encoder: EncoderModule) -> nn.Module:
        return MlmModule(self, encoder)

    def filled_by(self, stored: Head) -> Head | None:
        return stored if isinstance(stored, Mlm) else None  # how it bends and norms was learned with its weights


class MlmModule(nn.Module):
    """[..., W] -> [..., V]."""

    def __init__(self, spec: Mlm, encoder: EncoderModule) -> None:
        super().__init__()
        assert spec.activation is not None, "a network leaves nothing open"
        assert spec.epsilon is not None
        vocabulary, narrow = encoder.embed.tokens.weight.shape
        self.transform = Linear(encoder.spec.width, narrow)
        self.bend = ACTIVATIONS[spec.activation]
        self.norm = nn.LayerNorm(narrow, eps=spec.epsilon)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        # in a tuple, so that torch does not count the encoder's table as this head's too: it is looked up when needed,
        # and nothing can untie it
        self._embed = (encoder.embed,)

    @property
    def table(self) -> Tensor:
        """The encoder's token table [V, E]."""
        return self._embed[0].tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.norm(self.bend(self.transform(x))), self.table, self.bias)

    def grow(self) -> None:
        """A bias of 0 for every token that is new to the table."""
        grown = F.pad(self.bias.data, (0, len(self.table) - len(self.bias)))
        self.bias = nn.Parameter(grown, requires_grad=self.bias.requires_grad)


@dataclass(frozen=True)
class Detect(Head):
    """Of every token, how likely it is that another stood there (ELECTRA): [..., W] -> [...]."""

    reads = "tokens"

    activation: str | None = None
    """what bends: as in the encoder unless said"""

    def on(self, encoder: Encoder) -> Detect:
        return self.like(Detect(encoder.feeds[-1].activation))

    def build(self, encoder: EncoderModule) -> nn.Module:
        return DetectModule(self, encoder.spec.width)

    def filled_by(self, stored: Head) -> Head | None:
        return stored if isinstance(stored, Detect) else None  # how it bends was learned with its weights


class DetectModule(nn.Module):
    """One number from a bent matrix: [..., W] -> [...]."""

    def __init__(self, spec: Detect, width: int) -> None:
        super().__init__()
        assert spec.activation is not None, "a network leaves nothing open"
        self.dense = Linear(width, width)
        self.bend = ACTIVATIONS[spec.activation]
        self.out = Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.bend(self.dense(x))).squeeze(-1)
        return out


@dataclass(frozen=True)
class NextSentence(Head):
    """Does B follow A? Label 0 says it does, as in Google's data."""

    reads = "pooled"

    dropout: Rate = 0.0

    def build(self, encoder: EncoderModule) -> nn.Module:
        return MatrixModule(encoder.spec.width, 2, self.dropout)


@dataclass(frozen=True)
class Span(Head):
    """For every token, how well an answer starts (0) and ends (1) there."""

    reads = "tokens"

    def build(self, encoder: EncoderModule) -> nn.Module:
        return MatrixModule(encoder.spec.width, 2, dropout=0.0)


@dataclass(frozen=True)
class Choice(Head):
    """A score for each choice of a multiple-choice question; each choice is a sequence of its own."""

    reads = "pooled"

    dropout: Rate = 0.1

    def build(self, encoder: EncoderModule) -> nn.Module:
        return MatrixModule(encoder.spec.width, 1, self.dropout)


@dataclass(frozen=True)
class Labelled(Head):
    """What heads with named outputs share."""

    labels: tuple[str, ...]
    dropout: Rate = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        twice = sorted({label for label in self.labels if self.labels.count(label) > 1})
        if not self.labels or twice:
            given = f"Twice: {', '.join(twice)}" if twice else "Given: none"
            raise BertkitError(f"{type(self).__name__} needs labels, each once. {given}")

    def build(self, encoder: EncoderModule) -> nn.Module:
        return MatrixModule(encoder.spec.width, len(self.labels), self.dropout)


@dataclass(frozen=True)
class Classify(Labelled):
    """One of several labels for a sequence or a pair."""

    reads = "pooled"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.labels) == 1:
            raise BertkitError("Classify chooses among two labels or more; for one, yes or no, take MultiLabel")


@dataclass(frozen=True)
class MultiLabel(Labelled):
    """Any number of labels for a sequence or a pair."""

    reads = "pooled"


@dataclass(frozen=True)
class Regress(Labelled):
    """A number, or several, for a sequence or a pair."""

    reads = "pooled"

    labels: tuple[str, ...] = ("LABEL_0",)


@dataclass(frozen=True)
class Tag(Labelled):
    """One of several labels for every token."""

    reads = "tokens"


@dataclass(frozen=True)
class Chain(Tag):
    """One of several labels for every token, and how well labels follow each other: a linear-chain CRF on a tagger.

    Its logits are a tagger's, the emissions; `bertkit.parts.chain` makes paths of them.
    """

    def build(self, encoder: EncoderModule) -> nn.Module:
        return ChainModule(encoder.spec.width, len(self.labels), self.dropout)


class MatrixModule(nn.Module):
    """Dropout and one matrix: [B, W] -> [B, C] on sequences, [..., W] -> [..., C] on tokens."""

    def __init__(self, width: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.dense = Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.dense(self.dropout(x))
        return out


class ChainModule(MatrixModule):
    """[..., W] -> [..., C] as a tagger, and `links` between the labels.

    Links begin as all else does: the table drawn from the encoder's spread, the ends as biases at 0. Beside emissions
    they are next to nothing, so that learning begins with a plain tagger, and every link has a gradient of its own.
    """

    def __init__(self, width: int, outputs: int, dropout: float) -> None:
        super().__init__(width, outputs, dropout)
        self.transitions = Embedding(outputs, outputs)
        self.first = nn.Parameter(torch.zeros(outputs))
        self.last = nn.Parameter(torch.zeros(outputs))

    @property
    def links(self) -> tuple[Tensor, Tensor, Tensor]:
        """From each label (a row) to the next [C, C], into the first one [C], and out of the last one [C]."""
        return self.transitions.weight, self.first, self.last
