"""Pools: one vector per sequence from the hidden states of its tokens.

Layers are counted as hidden states are: 0 is the output of the embeddings, 1 the first layer, -1 the last. A pool keeps
the states it names and no other, so that memory holds no layer that nobody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from bertkit.batch import Array, Batch, Layout, Padded
from bertkit.errors import BertkitError, look_up
from bertkit.parts.network import NetworkModule
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

    def width(self, encoder: int) -> int:
        """How wide its vectors are on an encoder of this width."""
        return encoder

    def join(self, chunks: Tensor, tokens: Tensor) -> Tensor:
        """One vector [W] from those of a text's chunks [C, W], of which each has so many tokens [C]: their mean, by
        tokens. Where the pool is a mean over tokens, this is the mean over all that were read."""
        return (chunks * (tokens / tokens.sum())[:, None]).sum(0).to(chunks.dtype)

    def build(self, network: NetworkModule) -> PoolModule:
        return PoolModule(self, network)


@dataclass(frozen=True)
class OneLayer(Pool):
    """What pools of a single layer share."""

    layer: int = -1

    @property
    def layers(self) -> tuple[int, ...]:
        return (self.layer,)

    def of_one(self, states: Array) -> Array:
        """The states [L, W] of a single sequence -> [W]."""
        vector: Array = self.reduce([torch.from_numpy(states)[None]], Padded.of([len(states)])[0])[0].numpy()
        return vector


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

    def of_one(self, states: Array) -> Array:
        mean: Array = states.mean(0)  # torch takes four times as long for so little
        return mean


@dataclass(frozen=True)
class Max(OneLayer):
    """The maximum over all tokens, dimension by dimension."""

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        return layout.max(states[0])

    def join(self, chunks: Tensor, tokens: Tensor) -> Tensor:
        return chunks.amax(0)


@dataclass(frozen=True)
class SqrtMean(OneLayer):
    """The sum over all tokens, divided by the square root of their number."""

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        mean = layout.mean(states[0])  # [B, W]
        return mean * _lengths(layout, mean.device)[:, None].sqrt().to(mean.dtype)

    def join(self, chunks: Tensor, tokens: Tensor) -> Tensor:
        return ((chunks * tokens.sqrt()[:, None]).sum(0) / tokens.sum().sqrt()).to(chunks.dtype)


@dataclass(frozen=True)
class WeightedMean(OneLayer):
    """The mean over all tokens, where the first counts once, the second twice, and so on."""

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        weights = _places(layout, states[0].device) + 1  # [..., 1]
        return (layout.mean(states[0] * weights) / layout.mean(weights)).to(states[0].dtype)


@dataclass(frozen=True)
class LastToken(OneLayer):
    """The last token, [SEP]."""

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        x = layout.to_padded(states[0])  # [B, L, W]
        last = (_lengths(layout, x.device) - 1)[:, None, None]  # [B, 1, 1]
        return x.gather(1, last.expand(-1, 1, x.shape[-1]))[:, 0]


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

    def build(self, network: NetworkModule) -> PoolModule:
        return LastLayersModule(self, network)


@dataclass(frozen=True)
class Pooled(Pool):
    """The first token through the network's pooler head, tanh and all: what next-sentence prediction trains, and how
    SimBERT makes its vectors."""

    @property
    def layers(self) -> tuple[int, ...]:
        return (-1,)

    def build(self, network: NetworkModule) -> PoolModule:
        if "pooler" not in network.heads:
            there = ", ".join(network.heads) or "none"
            raise BertkitError(f"this model has no pooler, which the pool 'pooler' reads. Its heads: {there}")
        return PooledModule(self, network)


@dataclass(frozen=True)
class Concat(Pool):
    """What several pools make, one beside the other."""

    pools: tuple[Pool, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.pools:
            raise BertkitError("Concat needs pools to put side by side. Given: none")

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(layer for pool in self.pools for layer in pool.layers)

    def width(self, encoder: int) -> int:
        return sum(pool.width(encoder) for pool in self.pools)

    def join(self, chunks: Tensor, tokens: Tensor) -> Tensor:
        encoder = chunks.shape[1] // self.width(1)
        parts = torch.split(chunks, [pool.width(encoder) for pool in self.pools], 1)
        return torch.cat([pool.join(part, tokens) for pool, part in zip(self.pools, parts, strict=True)])

    def build(self, network: NetworkModule) -> PoolModule:
        return ConcatModule(self, network)


@dataclass(frozen=True)
class AfterPrompt(Pool):
    """Another pool that does not see the first `tokens` of each text: [CLS] and a prompt; [SEP] is always seen."""

    pool: Pool
    tokens: Count

    @property
    def layers(self) -> tuple[int, ...]:
        return self.pool.layers

    def width(self, encoder: int) -> int:
        return self.pool.width(encoder)

    def join(self, chunks: Tensor, tokens: Tensor) -> Tensor:
        return self.pool.join(chunks, (tokens - self.tokens).clamp(min=1))

    def build(self, network: NetworkModule) -> PoolModule:
        return AfterPromptModule(self, network)


class PoolModule(nn.Module):
    """Runs a network's encoder over a batch and reduces the layers its pool reads."""

    def __init__(self, spec: Pool, network: NetworkModule) -> None:
        super().__init__()
        self.spec = spec
        self._network = (network,)  # in a tuple, so that torch does not count its weights as the pool's

    def forward(self, batch: Batch) -> Tensor:
        """[B, W], in the batch's own row order."""
        encoder = self._network[0].encoder
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

    def __init__(self, spec: LastLayers, network: NetworkModule) -> None:
        super().__init__(spec, network)
        self.weights = nn.Parameter(torch.zeros(spec.count))  # softmax of zeros: equal shares

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        shares = self.weights.softmax(0)  # [K]
        return layout.mean(torch.stack([share * x for share, x in zip(shares, states, strict=True)]).sum(0))


class PooledModule(PoolModule):
    """Asks the network for its head."""

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        return self._network[0].logits("pooler", states[0], layout)


class ConcatModule(PoolModule):
    """Hands each pool the states it reads."""

    def __init__(self, spec: Concat, network: NetworkModule) -> None:
        super().__init__(spec, network)
        self.pools = nn.ModuleList(pool.build(network) for pool in spec.pools)

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        left, pools = iter(states), cast("list[PoolModule]", list(self.pools))
        return torch.cat([pool.reduce([next(left) for _ in pool.spec.layers], layout) for pool in pools], -1)


class AfterPromptModule(PoolModule):
    """Moves each row to the left by its prompt. Prompts that are not pooled are rare: the padding may cost."""

    def __init__(self, spec: AfterPrompt, network: NetworkModule) -> None:
        super().__init__(spec, network)
        self.tokens, self.pool = spec.tokens, spec.pool.build(network)

    def reduce(self, states: Sequence[Tensor], layout: Layout) -> Tensor:
        lengths = _lengths(layout, states[0].device)  # [B]
        starts = (lengths - 1).clamp(max=self.tokens)  # [B]: a text that melts into its prompt keeps [SEP]
        longest = int((lengths - starts).max())
        at = starts[:, None] + torch.arange(longest, device=starts.device)  # [B, longest]
        mask = at < lengths[:, None]
        at = at.clamp(max=layout.longest - 1)
        moved = [layout.to_padded(x).take_along_dim(at[..., None], 1) for x in states]  # each [B, longest, W]
        return self.pool.reduce(moved, Padded(layout.rows, longest, None if bool(mask.all()) else mask))


def _places(layout: Layout, device: torch.device) -> Tensor:
    """The place of each token in its own sequence, as numbers to count with: [..., 1]."""
    return layout.positions(device).expand(layout.shape)[..., None].float()


def _lengths(layout: Layout, device: torch.device) -> Tensor:
    """How many tokens each row has: [B]."""
    return layout.max(_places(layout, device))[:, 0].long() + 1


POOLS: dict[str, Pool] = {
    "cls": Cls(),
    "mean": Mean(),
    "max": Max(),
    "pooler": Pooled(),
    "sqrt-mean": SqrtMean(),
    "weighted-mean": WeightedMean(),
    "last-token": LastToken(),
    "first-last": FirstLast(),
    "last-4": LastLayers(4),
}
"""Short names, for the command line and for `embed(pool=…)`."""


def named(pool: str | Pool) -> Pool:
    """The pool itself, or the one behind a short name; `cls+mean` puts two side by side.

    >>> named("cls+mean")
    Concat(pools=(Cls(layer=-1), Mean(layer=-1)))
    """
    if isinstance(pool, str) and "+" in pool:
        return Concat(tuple(named(part) for part in pool.split("+")))
    return pool if isinstance(pool, Pool) else look_up("pool", pool, POOLS)


def name_of(pool: Pool) -> str:
    """The short name by which `named` finds a pool; how it is written in Python where it has none.

    >>> name_of(named("cls+max")), name_of(Mean(layer=3))
    ('cls+max', 'Mean(layer=3)')
    """
    if isinstance(pool, Concat):
        return "+".join(map(name_of, pool.pools))
    return next((name for name, known in POOLS.items() if known == pool), str(pool))
