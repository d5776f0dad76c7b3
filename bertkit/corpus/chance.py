"""Chance without a state: random numbers that are a function of their names.

A number is splitmix64 of a key and a place in the key's stream. Nothing is remembered between calls, so that the same
example is drawn in any process, in any order and after any restart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)


def key(*names: int | Array) -> Array:
    """The key that these names have together, uint64 [1]; [N] where one of them is an array.

    >>> int(key(1, 2)[0]) == int(key(1, np.array([1, 2]))[1]) != int(key(2, 1)[0])
    True
    """
    state = np.zeros(1, np.uint64)
    for name in names:
        word = name.astype(np.uint64) if isinstance(name, np.ndarray) else np.array([int(name) % 2**64], np.uint64)
        state = _mixed(state + _mixed(word + _STEP))
    return state


def number(keys: Array, place: int | Array) -> Array:
    """The number at a place of each key's stream, uint64.

    >>> number(np.zeros(1, np.uint64), np.arange(2))   # splitmix64 from the seed 0
    array([16294208416658607535,  7960286522194355700], dtype=uint64)
    """
    places = np.array([place], np.uint64) if isinstance(place, int) else place.astype(np.uint64)
    places *= _STEP
    places += _STEP
    return _mixed(keys + places)


def fraction(bits: Array) -> Array:
    """Numbers as fractions, from 0 to below 1.

    >>> fraction(np.array([0, 2**63, 2**64 - 1], np.uint64)).round(9)
    array([0. , 0.5, 1. ])
    """
    return (bits >> np.uint64(11)) * 2.0**-53


def below(bits: Array, count: int | Array) -> Array:
    """Numbers as whole numbers from 0 to below `count`, which is at most 2**32.

    >>> below(np.array([0, 2**63, 2**64 - 1], np.uint64), 6)
    array([0, 3, 5])
    """
    counts = np.array([count], np.uint64) if isinstance(count, int) else count.astype(np.uint64)
    return (((bits >> _HALF) * counts) >> _HALF).astype(np.int64)


def _mixed(state: Array) -> Array:
    """splitmix64's finisher, in place: a bijection in which every bit depends on every other."""
    state ^= state >> np.uint64(30)
    state *= _FIRST
    state ^= state >> np.uint64(27)
    state *= _SECOND
    state ^= state >> np.uint64(31)
    return state
