"""Ranges: many runs of whole numbers in one array, to take runs of many places out of an array at once."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def ranges(first: Array, lengths: Array) -> Array:
    """The numbers from each first one on, so many of each, in a row: [N], [N] -> [sum of lengths].

    >>> ranges(np.array([5, 20]), np.array([3, 2]))
    array([ 5,  6,  7, 20, 21])
    """
    ends = np.cumsum(lengths, dtype=lengths.dtype)
    return np.repeat(first - ends + lengths, lengths) + np.arange(ends[-1] if len(ends) else 0, dtype=lengths.dtype)
