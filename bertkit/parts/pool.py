"""Pools: one vector per sequence from the hidden states of its tokens.

Layers are counted as hidden states are: 0 is the output of the embeddings, 1 the first layer, -1 the last. A pool keeps
the states it names and no other, so that memory holds no layer that nobody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bertkit.batch import Batch, Layout
from bertkit.errors import BertkitError, look_up
from bertkit.parts.encoder import EncoderModule
from bertkit.spec import Count, Spec


@dataclass(frozen=True)
class Pool(Spec):
    """The base of all pools: which layers it reads, and how it reduces them."""

    @property
    def layers(self) -> tuple[int, ...]:
        raise NotImplementedError

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        """The states [..., W] of `layers`, in that order -> [B, W]."""
        raise NotImplementedError

    def build(self) -> PoolModule:
        return PoolModule(self)


@dataclass(frozen=True)
class OneLayer(Pool):
    """What pools of a single layer share."""

    layer: int = -1

    @property
    def layers(self) -> tuple[int, ...]:
        return (self.layer,)


@dataclass(frozen=True)
class Cls(OneLayer):
    """The first token, [CLS]."""

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        return layout.first(states[0])


@dataclass(frozen=True)
class Mean(OneLayer):
    """The mean over all tokens, [CLS] and [SEP] included, as sentence-transformers counts them."""

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        return layout.mean(states[0])


@dataclass(frozen=True)
class Max(OneLayer):
    """The maximum over all tokens, dimension by dimension."""

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        return layout.max(states[0])


@dataclass(frozen=True)
class FirstLast(Pool):
    """The mean over tokens of the average of the first Transformer layer and the last ("first-last-avg").

    `first=0` takes the output of the embeddings in place of the first layer, as some papers do.
    """

    first: int = 1

    @property
    def layers(self) -> tuple[int, ...]:
        return self.first, -1

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        return layout.mean((states[0] + states[1]) / 2)


@dataclass(frozen=True)
class LastLayers(Pool):
    """The mean over tokens of a learned weighted sum of the last `count` layers; equal shares until trained."""

    count: Count = 4

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(range(-self.count, 0))

    def build(self) -> PoolModule:
        return LastLayersModule(self)


class PoolModule(nn.Module):
    """Runs an encoder over a batch and reduces the layers its pool reads."""

    def __init__(self, spec: Pool) -> None:
        super().__init__()
        self.spec = spec

    def forward(self, encoder: EncoderModule, batch: Batch) -> Tensor:
        """[B, W], in the batch's own row order."""
        count, layers = len(encoder.spec.order) + 1, self.spec.layers
        if not all(-count <= layer < count for layer in layers):
            raise BertkitError(
                f"{self.spec} reads layers {', '.join(map(str, layers))}, "
                f"but this model has 0 (its embeddings) to {count - 1}: choose a layer in that range"
            )
        wanted = {layer % count for layer in layers}
        states = {index: x for index, x in enumerate(encoder.steps(batch)) if index in wanted}
        return self.reduce([states[layer % count] for layer in layers], batch.layout)

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        return self.spec.reduce(states, layout)


class LastLayersModule(PoolModule):
    """A pool with something to learn: the share of each layer."""

    def __init__(self, spec: LastLayers) -> None:
        super().__init__(spec)
        self.weights = nn.Parameter(torch.zeros(spec.count))  # softmax of zeros: equal shares

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        shares = self.weights.softmax(0)  # [K]
        return layout.mean(torch.stack([share * x for share, x in zip(shares, states, strict=True)]).sum(0))


POOLS: dict[str, Pool] = {
    "cls": Cls(),
    "mean": Mean(),
    "max": Max(),
    "first-last": FirstLast(),
    "last-4": LastLayers(4),
}
"""Short names, for the command line and for `embed(pool=…)`."""


def named(pool: str | Pool) -> Pool:
    """The pool itself, or the one behind a short name."""
    return pool if isinstance(pool, Pool) else look_up("pool", pool, POOLS)
