"""Examples in a row: all tokens of a batch in one array each, so that work on them is work on arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bertkit.corpus.chance import Array


@dataclass(frozen=True)
class Flat:
    """B examples with T tokens together. What a model sees, what is asked of it, and what objectives need to know."""

    ids: Array
    """[T] uint16 or uint32, as in the shards"""
    segments: Array
    """[T] uint8: 0 in the first segment, 1 in the second"""
    words: Array
    """[T] bool: whether a word starts here; a special token is a word"""
    starts: Array
    """[B + 1] the first token of each example, then T"""
    keys: Array
    """[B] uint64: where each example's own chance begins"""
    labels: Mapping[str, Array] = field(default_factory=dict)
    """[B] for each question about whole examples"""
    marks: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    """for each question about tokens: which ones [M], ascending, and the true values [M]"""
    units: Mapping[str, Array] = field(default_factory=dict)
    """[T] bool, for each lexicon that was asked for: whether a word or one of its phrases starts here"""

    def __len__(self) -> int:
        """How many examples there are."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> Array:
        """Tokens of each example, [B]."""
        return np.diff(self.starts)

    @property
    def rows(self) -> Array:
        """The example of each token, [T]."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def example(self, row: int) -> dict[str, Any]:
        """One example alone: its `tokens`, `marks` and `labels`, positions counted from its first token."""
        start, stop = self.starts[row], self.starts[row + 1]
        marks = {}
        for name, (at, values) in self.marks.items():
            first, last = np.searchsorted(at, (start, stop))
            marks[name] = (at[first:last] - start, values[first:last])
        return {
            "tokens": {"ids": self.ids[start:stop], "segments": self.segments[start:stop]},
            "marks": marks,
            "labels": {name: values[row] for name, values in self.labels.items()},
        }
