"""What positions do to attention, as nodes of a graph: one class for each Placing of the encoders.

Letters: B rows · N heads · L longest, Q and K when it counts queries and keys · H head width.
"""

from __future__ import annotations

import torch

from bertkit.family.nezha import FunctionalRelative, vectors
from bertkit.parts.encoder import Encoder
from bertkit.parts.place import Placing, Unplaced
from bertkit.runtime.engines.nodes import Nodes


class Places:
    """Nothing: positions are in the embeddings."""

    def __init__(self, encoder: Encoder, nodes: Nodes, length: str) -> None:
        self.nodes, self.length = nodes, length  # the name of L, [1]

    def score(self, q: str, scores: str) -> str:
        """The logits [B, N, Q, K] and what positions add, for scaled queries [B, N, Q, H]."""
        return scores

    def mix(self, looks: str, mixed: str) -> str:
        """The mixed values [B, N, Q, H] and what positions add, for probabilities [B, N, Q, K]."""
        return mixed


class Distances(Places):
    """A vector for each distance from a query to a key (NEZHA), multiplied once for each and told by key after.

    The turns are those of `nezha.turned_in` and `nezha.turned_out`.
    """

    def __init__(self, encoder: Encoder, nodes: Nodes, length: str) -> None:
        super().__init__(encoder, nodes, length)
        assert isinstance(encoder.place, FunctionalRelative), "PLACES says so"
        self._by_distance = self._vectors(encoder.place)  # [2L + 1, H]
        self._turned = nodes.add("Transpose", self._by_distance, perm=[1, 0])  # [H, 2L + 1]
        area = nodes.add("Mul", nodes.add("Mul", length, length), nodes.integers(2))
        self._end = nodes.add("Add", length, area)  # [1], L + 2L²
        self._rows = nodes.add("Concat", nodes.integers(0, 0), length, nodes.integers(-1), axis=0)  # [B, N, Q, any]
        self._before = nodes.add("Concat", length, nodes.integers(0), axis=0)
        self._after = nodes.add("Concat", nodes.integers(0), length, axis=0)

    def _vectors(self, spec: FunctionalRelative) -> str:
        """Those of the distances from -L to L."""
        nodes, near = self.nodes, torch.arange(-spec.clip, spec.clip + 1)
        table = nodes.constant("encoder.place.vectors", lambda: vectors(near, spec).numpy())  # [2·clip + 1, H]
        longest, one, clip = nodes.add("Squeeze", self.length), nodes.integer(1), nodes.integer(spec.clip)
        distances = nodes.add("Range", nodes.add("Neg", longest), nodes.add("Add", longest, one), one)
        rows = nodes.add("Add", nodes.add("Clip", distances, nodes.integer(-spec.clip), clip), clip)
        return nodes.add("Gather", table, rows)

    def score(self, q: str, scores: str) -> str:
        nodes, last, begin = self.nodes, self.nodes.integers(-1), self.nodes.integers(0)
        told = nodes.add("MatMul", q, self._turned)  # [B, N, Q, 2Q + 1]
        flat = nodes.add("Reshape", told, nodes.integers(0, 0, -1))
        flat = nodes.add("Slice", flat, self.length, self._end, last)  # [B, N, Q · 2Q]
        turned = nodes.add("Reshape", flat, self._rows)  # [B, N, Q, 2Q]
        return nodes.add("Add", scores, nodes.add("Slice", turned, begin, self.length, last))  # [B, N, Q, K]

    def mix(self, looks: str, mixed: str) -> str:
        nodes, last = self.nodes, self.nodes.integers(-1)
        wide = nodes.add("Pad", looks, self._after, "", last)  # [B, N, Q, 2Q]
        flat = nodes.add("Reshape", wide, nodes.integers(0, 0, -1))
        flat = nodes.add("Pad", flat, self._before, "", last)
        turned = nodes.add("Reshape", flat, self._rows)  # [B, N, Q, 2Q + 1]
        return nodes.add("Add", mixed, nodes.add("MatMul", turned, self._by_distance))


PLACES: dict[type[Placing], type[Places]] = {Unplaced: Places, FunctionalRelative: Distances}
