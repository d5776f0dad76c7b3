"""A network as an ONNX graph, written part by part from its spec and its weights; nothing is traced.

Inputs are `input_ids`, `token_type_ids` (where there are segments to tell apart) and `attention_mask`, each [B, L].
What follows the hidden states is in `outputs.py`.

Letters: B rows · L longest, Q and K when it counts queries and keys · W width · E width of the tables · N heads ·
H head width.
"""

from __future__ import annotations

import math

import numpy as np

from bertkit.batch import Array, Batch, Example, Padded
from bertkit.parts.encoder import Encoder
from bertkit.parts.network import NetworkModule
from bertkit.parts.positions import Learned, Unnumbered
from bertkit.runtime.engines.bends import BENDS
from bertkit.runtime.engines.engine import weights
from bertkit.runtime.engines.nodes import Nodes
from bertkit.runtime.engines.places import PLACES, Places
from bertkit.runtime.engines.products import Product

HIDDEN = "last_hidden_state"
LOWEST = float(np.finfo(np.float32).min)


def refusal(encoder: Encoder) -> str:
    """Why an encoder cannot be written as a graph; empty where it can."""
    if type(encoder.place) not in PLACES or not isinstance(encoder.embed.positions, Learned | Unnumbered):
        return "it does not know its positions"
    return ""


def arrays(batch: Batch, encoder: Encoder) -> dict[str, Array]:
    """A padded batch as the inputs of a graph, sharing memory where it can."""
    ids, layout = batch.tokens["ids"].numpy(), batch.layout
    assert isinstance(layout, Padded), "graphs read rectangles"
    mask = np.ones_like(ids) if layout.mask is None else layout.mask.long().numpy()
    given = {"input_ids": ids, "attention_mask": mask}
    return given | ({"token_type_ids": batch.tokens["segments"].numpy()} if encoder.embed.segments > 1 else {})


def row(example: Example, encoder: Encoder) -> dict[str, Array]:
    """One example as the inputs of a graph."""
    ids = example.tokens["ids"][None]  # [1, L]
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    return given | ({"token_type_ids": example.tokens["segments"][None]} if encoder.embed.segments > 1 else {})


class Graph:
    """The nodes of a network's encoder: `states` are the names of the embeddings' output and each step's."""

    def __init__(self, network: NetworkModule, product: Product) -> None:
        self.nodes, self.product = Nodes(), product
        self.spec, self.weights = network.spec, weights(network)
        self.ids = self.nodes.input("input_ids", np.int64, "BL")
        if self.spec.encoder.embed.segments > 1:
            self.segments = self.nodes.input("token_type_ids", np.int64, "BL")
        self.mask = self.nodes.input("attention_mask", np.int64, "BL")
        self.length = self.nodes.add("Shape", self.ids, start=1)  # [1], L
        self.states = self._encoder(self.spec.encoder)

    @property
    def hidden(self) -> str:
        """[B, L, W]."""
        return self.states[-1]

    def tell_hidden(self) -> Graph:
        """The graph with the hidden states as its output."""
        self.nodes.output(HIDDEN, self.hidden, ("B", "L", self.spec.encoder.width))
        return self

    # the encoder ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _encoder(self, spec: Encoder) -> list[str]:
        with self.nodes.part("embed"):
            states = [self.embed()]
            padding = self._padding()
            place = PLACES[type(spec.place)](spec, self.nodes, self.length)
        for step, (attention, feed) in enumerate(spec.order):
            with self.nodes.part(f"step.{step}"):
                seen = self.attention(states[-1], attention, padding, place)
                states.append(self.feed(seen, feed))
        return states

    def embed(self) -> str:
        """[B, L] -> [B, L, W]."""
        spec, stem = self.spec.encoder.embed, "encoder.embed"
        x = self.nodes.add("Gather", self.weight(f"{stem}.tokens.weight"), self.ids)  # [B, L, E]
        kinds = self.weight(f"{stem}.segments.weight")
        if spec.segments > 1:
            kinds = self.nodes.add("Gather", kinds, self.segments)
        x = self.nodes.add("Add", x, kinds)
        x = self.positions(x)
        x = self.norm(x, f"{stem}.norm", spec.epsilon)
        return x if spec.width == self.spec.encoder.width else self.linear(x, f"{stem}.widen")

    def positions(self, x: str) -> str:
        """The vectors of tokens with those of their places, [B, L, E] -> [B, L, E]."""
        spec, nodes = self.spec.encoder.embed.positions, self.nodes
        if not isinstance(spec, Learned):
            return x
        first = nodes.integers(spec.first)
        rows = (first, nodes.add("Add", self.length, first))
        return nodes.add("Add", x, nodes.add("Slice", self.weight("encoder.embed.positions.weight"), *rows))  # + [L, E]

    def _padding(self) -> str:
        """What is added to the logits: 0 for tokens, next to -∞ for padding, [B, 1, 1, L]."""
        tokens = self.nodes.add("Cast", self.mask, to=9)  # to bool
        added = self.nodes.add("Where", tokens, self.nodes.number(0.0), self.nodes.number(LOWEST))  # [B, L]
        return self.nodes.add("Unsqueeze", added, self.nodes.integers(1, 2))

    def attention(self, x: str, number: int, padding: str, place: Places) -> str:
        """One block, [B, L, W] -> [B, L, W]."""
        spec, stem, add = self.spec.encoder.attentions[number], f"encoder.attentions.{number}", self.nodes.add
        heads = self.nodes.integers(0, 0, spec.heads, spec.head)
        fused = self.linear(x, f"{stem}.qkv")  # [B, L, 3·N·H]
        q, k, v = (add("Reshape", part, heads) for part in self._thirds(fused, spec.heads * spec.head))  # [B, L, N, H]
        q = add("Transpose", q, perm=[0, 2, 1, 3])  # [B, N, Q, H]
        q = add("Mul", q, self.nodes.number(1 / math.sqrt(spec.head)))
        k = add("Transpose", k, perm=[0, 2, 3, 1])  # [B, N, H, K]
        v = add("Transpose", v, perm=[0, 2, 1, 3])  # [B, N, K, H]
        scores = add("Add", place.score(q, add("MatMul", q, k)), padding)  # [B, N, Q, K]
        looks = add("Softmax", scores, axis=-1)
        mixed = add("Transpose", place.mix(looks, add("MatMul", looks, v)), perm=[0, 2, 1, 3])  # [B, Q, N, H]
        mixed = add("Reshape", mixed, self.nodes.integers(0, 0, spec.heads * spec.head))  # [B, L, N·H]
        return self.norm(add("Add", x, self.linear(mixed, f"{stem}.out")), f"{stem}.norm", spec.epsilon)

    def _thirds(self, fused: str, inner: int) -> list[str]:
        return self.nodes.add_several(3, "Split", fused, self.nodes.integers(inner, inner, inner), axis=-1)

    def feed(self, x: str, number: int) -> str:
        """One block, [B, L, W] -> [B, L, W]."""
        spec, stem = self.spec.encoder.feeds[number], f"encoder.feeds.{number}"
        wide = self.bend(self.linear(x, f"{stem}.up"), spec.activation)
        out = self.nodes.add("Add", x, self.linear(wide, f"{stem}.down"))
        return self.norm(out, f"{stem}.norm", spec.epsilon)

    # what all parts are made of ──────────────────────────────────────────────────────────────────────────────────────

    def weight(self, name: str) -> str:
        """A weight as the network has it."""
        return self.nodes.constant(name, lambda: self.weights[name])

    def linear(self, x: str, name: str) -> str:
        """[..., I] -> [..., O] by the network's matrix of this name."""
        return self.product.linear(self.nodes, x, name, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, x: str, name: str, epsilon: float) -> str:
        """Each vector normalised, [..., W] -> [..., W]."""
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.nodes.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)

    def bend(self, x: str, activation: str) -> str:
        """Value by value."""
        return BENDS[activation](self.nodes, x)
