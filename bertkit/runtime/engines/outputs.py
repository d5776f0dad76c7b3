"""What may follow the hidden states of a graph: heads, pools, Dense modules, and scaling to length 1.

Letters: B rows · L longest · W width · E width of the tables · V vocabulary · C labels · `...` [B, L] or [B].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import cast

from torch import nn

from bertkit.errors import BertkitError, look_up
from bertkit.parts import heads
from bertkit.parts import pool as pools
from bertkit.parts.dense import DenseModule
from bertkit.runtime.engines.bends import BENDS
from bertkit.runtime.engines.engine import weights
from bertkit.runtime.engines.graph import LOWEST, Graph

SHORTEST = 1e-12
"""vectors are taken to be at least as long, as in torch"""


class Outputs:
    """Adds to a graph; each method returns the name of what it made, for `tell` or for the next one."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, graph.nodes
        self._pooled = ""

    def tell(self, name: str, value: str, *axes: str | int) -> None:
        """Make a value an output of the graph, by this name."""
        self.nodes.output(name, value, axes)

    # heads ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    def head(self, name: str) -> str:
        """What the network's head of this name says: [B, C] of sequences, [B, L, C] of tokens."""
        spec = look_up("head of this model", name, self.graph.spec.heads)
        write = look_up("head that a graph can have", type(spec).__name__, HEADS)
        with self.nodes.part(name):
            return write(self, f"heads.{name}", spec, self._read(spec))

    def _read(self, spec: heads.Head) -> str:
        """What the head reads."""
        if spec.reads == "tokens":
            return self.graph.hidden  # [B, L, W]
        return self.first(self.graph.hidden) if spec.reads == "first" else self.pooled()  # [B, W]

    def pooled(self) -> str:
        """The first token through the pooler, [B, W]; written once, whoever reads it."""
        self._pooled = self._pooled or self.head("pooler")
        return self._pooled

    def _matrix(self, stem: str, spec: heads.Head, x: str) -> str:
        return self.graph.linear(x, f"{stem}.dense")  # [..., C]

    def _pooler(self, stem: str, spec: heads.Pooler, x: str) -> str:
        return self.graph.bend(self.graph.linear(x, f"{stem}.dense"), cast("str", spec.activation))  # [B, W]

    def _detect(self, stem: str, spec: heads.Detect, x: str) -> str:
        bent = self.graph.bend(self.graph.linear(x, f"{stem}.dense"), cast("str", spec.activation))  # [B, L, W]
        return self.nodes.add("Squeeze", self.graph.linear(bent, f"{stem}.out"), self.nodes.integers(-1))  # [B, L]

    def _mlm(self, stem: str, spec: heads.Mlm, x: str) -> str:
        graph, table = self.graph, "encoder.embed.tokens.weight"
        narrow = graph.bend(graph.linear(x, f"{stem}.transform"), cast("str", spec.activation))  # [B, L, E]
        narrow = graph.norm(narrow, f"{stem}.norm", cast("float", spec.epsilon))
        weight, bias = graph.weights[table], graph.weights[f"{stem}.bias"]
        return graph.product.tied(self.nodes, narrow, f"{stem}.decoder", table, weight, bias)  # [B, L, V]

    # pools ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    def pool(self, module: pools.PoolModule) -> str:
        """The vector of each sequence, [B, W], or wider where pools stand side by side."""
        write = look_up("pool that a graph can have", type(module.spec).__name__, POOLS)
        with self.nodes.part("pool"):
            return write(self, module, [self._state(layer) for layer in module.spec.layers])

    def _state(self, layer: int) -> str:
        """The output of a layer, counted as pools count: 0 is that of the embeddings, -1 the last."""
        count = len(self.graph.states)
        if not -count <= layer < count:
            raise BertkitError(f"the pool reads layer {layer}, but this model has 0 (its embeddings) to {count - 1}")
        return self.graph.states[layer]

    def first(self, x: str) -> str:
        """The first token of each row, [B, L, W] -> [B, W]."""
        return self.nodes.add("Gather", x, self.nodes.integer(0), axis=1)

    def mean(self, x: str) -> str:
        """Over the tokens of each row, [B, L, W] -> [B, W]."""
        return self._weighted(x, self._tokens)

    def _weighted(self, x: str, counts: str) -> str:
        """The mean, where each token counts so often [B, L, 1]."""
        return self.nodes.add("Div", self._sum(self.nodes.add("Mul", x, counts)), self._sum(counts))

    def _sum(self, x: str) -> str:
        return self.nodes.add("ReduceSum", x, self.nodes.integers(1), keepdims=0)

    @cached_property
    def _tokens(self) -> str:
        """1.0 for tokens, 0.0 for padding, [B, L, 1]."""
        return self.nodes.add("Unsqueeze", self.nodes.add("Cast", self.graph.mask, to=1), self.nodes.integers(2))

    def _cls(self, module: pools.PoolModule, states: list[str]) -> str:
        return self.first(states[0])

    def _mean(self, module: pools.PoolModule, states: list[str]) -> str:
        return self.mean(states[0])

    def _max(self, module: pools.PoolModule, states: list[str]) -> str:
        tokens = self.nodes.add("Cast", self._tokens, to=9)  # to bool
        seen = self.nodes.add("Where", tokens, states[0], self.nodes.number(LOWEST))
        return self.nodes.add("ReduceMax", seen, self.nodes.integers(1), keepdims=0)

    def _sqrt_mean(self, module: pools.PoolModule, states: list[str]) -> str:
        return self.nodes.add("Mul", self.mean(states[0]), self.nodes.add("Sqrt", self._sum(self._tokens)))

    def _weighted_mean(self, module: pools.PoolModule, states: list[str]) -> str:
        counted = self.nodes.add("CumSum", self._tokens, self.nodes.integer(1))  # 1, 2, …, and on under padding
        return self._weighted(states[0], self.nodes.add("Mul", counted, self._tokens))

    def _last_token(self, module: pools.PoolModule, states: list[str]) -> str:
        lengths = self.nodes.add("ReduceSum", self.graph.mask, self.nodes.integers(1))  # [B, 1]
        last = self.nodes.add("Sub", lengths, self.nodes.integers(1))
        return self.nodes.add("GatherND", states[0], last, batch_dims=1)

    def _first_last(self, module: pools.PoolModule, states: list[str]) -> str:
        return self.mean(self.nodes.add("Mul", self.nodes.add("Add", *states), self.nodes.number(0.5)))

    def _last_layers(self, module: pools.LastLayersModule, states: list[str]) -> str:
        shares = module.weights.detach().softmax(0).tolist()
        parts = [self.nodes.add("Mul", x, self.nodes.number(share)) for x, share in zip(states, shares, strict=True)]
        return self.mean(self.nodes.add("Sum", *parts))

    def _pooled_first(self, module: pools.PoolModule, states: list[str]) -> str:
        return self.pooled()

    def _concat(self, module: pools.ConcatModule, states: list[str]) -> str:
        return self.nodes.add("Concat", *(self.pool(cast("pools.PoolModule", part)) for part in module.pools), axis=-1)

    # finished vectors ────────────────────────────────────────────────────────────────────────────────────────────────

    def dense(self, x: str, name: str, module: DenseModule) -> str:
        """A Dense module by this name, [B, before] -> [B, after]."""
        bent = BENDS[module.spec.activation](self.nodes, self._linear(x, f"{name}.linear", module.linear))
        if not module.spec.residual:
            return bent
        around = x if module.spec.before == module.spec.after else self._linear(x, f"{name}.residual", module.residual)
        return self.nodes.add("Add", bent, around)

    def _linear(self, x: str, name: str, module: nn.Module) -> str:
        values = weights(module)
        return self.graph.product.linear(self.nodes, x, name, values["weight"], values.get("bias"))

    def scaled(self, x: str) -> str:
        """Vectors of length 1, [B, W] -> [B, W]."""
        lengths = self.nodes.add("ReduceL2", x, self.nodes.integers(-1))  # [B, 1]
        return self.nodes.add("Div", x, self.nodes.add("Max", lengths, self.nodes.number(SHORTEST)))


HEADS: dict[str, Callable[..., str]] = {
    **{
        kind.__name__: Outputs._matrix
        for kind in (
            *(heads.Classify, heads.MultiLabel, heads.Regress, heads.Choice, heads.NextSentence),
            *(heads.Tag, heads.Chain, heads.Span),
        )
    },
    heads.Pooler.__name__: Outputs._pooler,
    heads.Mlm.__name__: Outputs._mlm,
    heads.Detect.__name__: Outputs._detect,
}
"""by the head's class; a chain's are its emissions"""

POOLS: dict[str, Callable[..., str]] = {
    pools.Cls.__name__: Outputs._cls,
    pools.Mean.__name__: Outputs._mean,
    pools.Max.__name__: Outputs._max,
    pools.SqrtMean.__name__: Outputs._sqrt_mean,
    pools.WeightedMean.__name__: Outputs._weighted_mean,
    pools.LastToken.__name__: Outputs._last_token,
    pools.FirstLast.__name__: Outputs._first_last,
    pools.LastLayers.__name__: Outputs._last_layers,
    pools.Pooled.__name__: Outputs._pooled_first,
    pools.Concat.__name__: Outputs._concat,
}
"""by the pool's class"""
