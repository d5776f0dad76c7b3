"""A keyed permutation: the order of examples in an epoch, one at a time, without a list of them.

A number is a row and a column of a table that is about square, and each in turn is moved by an amount that depends on
the other: a Feistel network, which permutes whatever the amounts are. The table has at most a row more than needed; a
number that falls there goes through again until it is back (Black and Rogaway 2002, "Ciphers with arbitrary finite
domains").
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from bertkit.corpus.chance import Array, number

ROUNDS = 6


def permuted(places: Array, count: int, key: Array) -> Array:
    """Where the permutation of range(count) that belongs to a key puts each place, [N].

    >>> from bertkit.corpus.chance import key
    >>> found = permuted(np.arange(10), 10, key(3))
    >>> sorted(found.tolist()) == list(range(10))
    True
    >>> permuted(np.array([7]), 10, key(3)).tolist() == found[7:8].tolist()
    True
    """
    keys = number(key, np.arange(ROUNDS))
    found = _network(places.astype(np.uint64), count, keys)
    while len(outside := np.flatnonzero(found >= count)):
        found[outside] = _network(found[outside], count, keys)
    return found.astype(np.int64)


def _network(numbers: Array, count: int, keys: Array) -> Array:
    width = isqrt(max(count - 1, 0)) + 1
    rows, columns = np.uint64(-(-count // width)), np.uint64(width)
    row: Array = numbers // columns
    column: Array = numbers % columns
    for turn in range(0, ROUNDS, 2):
        row = (row + number(keys[turn : turn + 1], column) % rows) % rows
        column = (column + number(keys[turn + 1 : turn + 2], row) % columns) % columns
    return row * columns + column
