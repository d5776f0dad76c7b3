"""Splits: which rows of one file are learned from, and which are kept to look at.

Rows of one stratum, such as a label, are spread evenly over the folds; rows of one group, such as the questions about
one article, stay together. Which fold a row is in follows from the seed and the rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bertkit.corpus.chance import key, number

Array = np.ndarray[Any, np.dtype[Any]]


def folds(strata: Sequence[str], groups: Sequence[str], count: int, seed: int) -> Array:
    """The fold of each row, [N], from 0 to below `count`.

    >>> folds(["a", "a", "a", "b", "b", "b"], [""] * 6, 3, seed=0).tolist()
    [2, 0, 1, 1, 2, 0]
    """
    place, units = _dealt(strata, groups, seed)
    fold: Array = (place % count)[units]
    return fold


def held_out(strata: Sequence[str], groups: Sequence[str], share: float, seed: int) -> Array:
    """Which rows are in a share that is kept to look at, [N]; at least one is.

    >>> held_out(["a", "a", "a", "b", "b", "b"], [""] * 6, 0.3, seed=0).tolist()
    [False, True, False, False, False, True]
    """
    place, units = _dealt(strata, groups, seed)
    before, after = (np.ceil(np.round(at * share, 9)) for at in (place, place + 1))  # of those before, and with it
    held: Array = (after > before)[units]
    return held


def _dealt(strata: Sequence[str], groups: Sequence[str], seed: int) -> tuple[Array, Array]:
    """The place of each unit in a line that is dealt out, [U], and the unit of each row, [N].

    Units of one stratum stand together in it, in an order of chance, so that every so manyth of them is even over
    strata, and over all.
    """
    units = _numbers(group or f"\\0{row}" for row, group in enumerate(groups))  # [N], a row alone is a unit
    firsts = np.unique(units, return_index=True)[1]  # [U], the first row of each unit
    kinds = _numbers(strata)[firsts]  # [U]
    chance = number(key(seed), firsts)
    place = np.empty(len(firsts), np.int64)
    place[np.lexsort((chance, kinds))] = np.arange(len(firsts))
    return place, units


def _numbers(names: Iterable[str]) -> Array:
    """Names as numbers, in the order in which they come."""
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], np.int64)
