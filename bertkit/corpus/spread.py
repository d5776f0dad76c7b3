"""Spreads: how a count such as the words of a document is distributed, in memory that does not grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

CELLS = 1 << 16
PERCENTILES = (5, 25, 50, 75, 95, 99)


@dataclass(frozen=True)
class Distribution:
    """A spread at its end; a percentile is what so many per cent do not exceed."""

    count: int
    mean: float
    shortest: int
    longest: int
    percentiles: dict[int, int]
    edges: list[int]
    """of bins of equal width"""
    counts: list[int]
    """how many lie in each bin: from its edge up to the next one, without it"""
    beyond: int
    """how many are as long as the last edge, or longer"""


class Spread:
    """Counts values in cells of a width; those of 65,536 cells and more share one.

    >>> spread = Spread()
    >>> spread.add(np.array([1, 2, 2, 9]))
    >>> found = spread.distribution(bins=4)
    >>> found.percentiles[50], found.mean, found.edges, found.counts
    (2, 3.5, [0, 4, 8, 12], [3, 0, 1])
    """

    def __init__(self, width: int = 1) -> None:
        self._width = width
        self._cells = np.zeros(CELLS + 1, np.int64)
        self._total, self._shortest, self._longest = 0, None, 0

    _shortest: int | None

    def add(self, values: Array) -> None:
        """Take values into account, [N]."""
        if not len(values):
            return
        self._total += int(values.sum(dtype=np.int64))
        low = int(values.min())
        self._shortest = low if self._shortest is None else min(self._shortest, low)
        self._longest = max(self._longest, int(values.max()))
        self._cells += np.bincount(np.minimum(values // self._width, CELLS), minlength=CELLS + 1)

    def distribution(self, bins: int = 60) -> Distribution:
        """What was counted, in at most so many bins that reach to the 99th percentile."""
        count = int(self._cells.sum())
        below = np.cumsum(self._cells)
        shares = np.array(PERCENTILES) / 100
        cells = np.searchsorted(below, np.maximum(np.ceil(shares * count - 1e-9), 1))
        reached = [self._value(int(cell)) for cell in cells]
        step = _step(max(int(cells[-1]), 1), bins)
        most = -(-(int(cells[-1]) + 1) // step)
        full = np.zeros(most * step, np.int64)
        kept = self._cells[: min(most * step, CELLS)]
        full[: len(kept)] = kept
        counts = full.reshape(most, step).sum(axis=1)
        return Distribution(
            count=count,
            mean=self._total / max(count, 1),
            shortest=self._shortest or 0,
            longest=self._longest,
            percentiles=dict(zip(PERCENTILES, reached, strict=True)),
            edges=[place * step * self._width for place in range(most + 1)],
            counts=counts.tolist(),
            beyond=count - int(counts.sum()),
        )

    def share_below(self, limit: int) -> float:
        """The share of values below a limit, which is one of cells."""
        return float(self._cells[: limit // self._width].sum() / max(self._cells.sum(), 1))

    def _value(self, cell: int) -> int:
        """The largest value that a cell may hold."""
        return self._longest if cell >= CELLS else min((cell + 1) * self._width - 1, self._longest)


def _step(cells: int, bins: int) -> int:
    """The smallest of 1, 2, 4, 8, 10, 20, 40, 80, 100, … of which so many bins reach as far as the cells."""
    power = 1
    while True:
        for factor in (1, 2, 4, 8):
            if factor * power * bins > cells:
                return factor * power
        power *= 10
