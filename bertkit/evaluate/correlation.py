"""How well found numbers follow true ones: Pearson's and Spearman's correlations (STS-B)."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from bertkit.errors import BertkitError

Array = np.ndarray[Any, np.dtype[Any]]


class Paired:
    """Pairs of numbers as they come, 16 bytes each: ranks need them all.

    >>> pairs = Paired()
    >>> for true, found in ((1, 2.0), (2, 2.5), (3, 9.0)):
    ...     pairs.add(true, found)
    >>> round(pairs.pearson(), 4), pairs.spearman()
    (0.8963, 1.0)
    """

    def __init__(self) -> None:
        self._true, self._found = array("d"), array("d")

    def add(self, true: float, found: float) -> None:
        """One pair."""
        self._true.append(true)
        self._found.append(found)

    def pearson(self) -> float:
        """Of all so far."""
        return pearson(np.asarray(self._true), np.asarray(self._found))

    def spearman(self) -> float:
        """Of all so far."""
        return spearman(np.asarray(self._true), np.asarray(self._found))


def pearson(true: Array, found: Array) -> float:
    """The correlation of two rows of numbers; NaN where one of them never changes."""
    if len(true) < 2:
        raise BertkitError(f"a correlation needs two rows or more; here {'is one' if len(true) else 'are none'}")
    left, right = (x.astype(np.float64) - x.mean(dtype=np.float64) for x in (true, found))
    spread = np.sqrt((left @ left) * (right @ right))
    return float(left @ right / spread) if spread else float("nan")


def spearman(true: Array, found: Array) -> float:
    """The correlation of their ranks; equal numbers share the mean of theirs."""
    return pearson(ranks(true), ranks(found))


def ranks(values: Array) -> Array:
    """From 1 on.

    >>> ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    out: Array = (last - (counts - 1) / 2)[places]
    return out
