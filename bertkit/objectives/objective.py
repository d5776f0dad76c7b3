"""An objective: what a network learns from examples. Pre-training and fine-tuning are objectives of one loop.

It answers four questions: how examples are changed (`corrupt`, NumPy, in workers), which heads the network needs
(`heads`), how many answers a batch asks for (`counts`, before any forward pass), and how wrong the network is (`loss`,
a sum over these answers). A sum divided by its own count over a whole step is a true mean, however the step was cut
into smaller batches and shared among processes.

Objectives add up: `Sop() + MaskedLm()` runs the encoder once. Those that move tokens come first. One that needs more
than one network says so by a `learner` of its own, and stands alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from bertkit.batch import Batch
from bertkit.corpus.flat import Flat
from bertkit.errors import BertkitError
from bertkit.objectives.learner import Learner
from bertkit.objectives.mask import Vocabulary
from bertkit.parts.heads import Head
from bertkit.parts.network import NetworkModule
from bertkit.spec import Spec


class Asked(NamedTuple):
    """What came of one question over a batch; both are sums, []."""

    loss: Tensor
    right: Tensor
    """how many answers were right"""


@dataclass(frozen=True)
class Objective(Spec):
    """The base of all objectives."""

    def __add__(self, other: Objective) -> Sum:
        return Sum((*self.terms, *other.terms))

    @property
    def terms(self) -> tuple[Objective, ...]:
        """The objectives that it is the sum of."""
        return (self,)

    @property
    def lexicons(self) -> tuple[str, ...]:
        """The lexicons whose phrases it must know."""
        return ()

    @property
    def weights(self) -> Mapping[str, float]:
        """What a question's mean loss counts in the sum of all; 1 where nothing is said."""
        return {}

    def weighed(self, losses: Mapping[str, float]) -> float:
        """The sum of mean losses by question."""
        return sum(self.weights.get(name, 1.0) * loss for name, loss in losses.items())

    def learner(self, network: NetworkModule) -> Learner:
        """The network and all else that learns with it."""
        return Learner(network, self)

    @property
    def heads(self) -> dict[str, Head]:
        """The heads that it needs, by name; objectives share those of the same name. What they leave open an encoder or
        its family fills in."""
        raise NotImplementedError

    def corrupt(self, flat: Flat, vocabulary: Vocabulary) -> Flat:
        """The examples as the model shall see them, with what is asked about them."""
        return flat

    def counts(self, batch: Batch) -> dict[str, int]:
        """How many answers each question wants."""
        raise NotImplementedError

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        """What came of each question, from hidden states [..., W]."""
        raise NotImplementedError


@dataclass(frozen=True)
class SelfSupervised(Objective):
    """Those that find their answers in the text itself: what pre-training learns."""


@dataclass(frozen=True)
class Sum(SelfSupervised):
    """Several objectives on the same hidden states, each counted for itself."""

    parts: tuple[Objective, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [type(part).__name__ for part in self.parts]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise BertkitError(
                f"{twice[0]} is in {' + '.join(names)} more than once: an objective is asked once. Take one away"
            )
        alone = [type(part).__name__ for part in self.parts if type(part).learner is not Objective.learner]
        if alone:
            raise BertkitError(f"{alone[0]} has networks of its own and cannot be part of a sum: let it stand alone")

    @property
    def terms(self) -> tuple[Objective, ...]:
        return self.parts

    @property
    def lexicons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.lexicons))

    @property
    def heads(self) -> dict[str, Head]:
        return {name: head for part in self.parts for name, head in part.heads.items()}

    def corrupt(self, flat: Flat, vocabulary: Vocabulary) -> Flat:
        for part in self.parts:
            flat = part.corrupt(flat, vocabulary)
        return flat

    def counts(self, batch: Batch) -> dict[str, int]:
        return {name: count for part in self.parts for name, count in part.counts(batch).items()}

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        return {name: asked for part in self.parts for name, asked in part.loss(network, hidden, batch).items()}
