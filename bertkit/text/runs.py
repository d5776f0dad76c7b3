"""Runs: many stretches of the bytes of a text, looked at eight bytes at a time, all of them at once.

Letters: B bytes of a text · C runs in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bertkit.text.ranges import ranges

Array = np.ndarray[Any, np.dtype[Any]]

WORD, LONG = 8, 256
"""bytes that are looked at together; a run of more bytes than LONG is looked at alone"""

_MASKS = np.array([2 ** (8 * size) - 1 for size in range(WORD + 1)], np.uint64)
"""what is kept of a word of which so many bytes belong to a run"""


class Runs(NamedTuple):
    """Stretches of a text.

    >>> runs = Runs.of(np.frombuffer(b"a cat sat" + bytes(WORD), np.uint8), np.array([0, 2, 6]), np.array([1, 3, 3]))
    >>> runs.texts(), runs.take(np.array([2])).texts()
    (['a', 'cat', 'sat'], ['sat'])
    """

    data: Array
    """[B] uint8, with WORD bytes or more behind the last run"""
    starts: Array
    """[C]"""
    sizes: Array
    """[C]"""
    heads: Array
    """[C] the first eight bytes of each as a number, those that it does not have are 0"""

    @classmethod
    def of(cls, data: Array, starts: Array, sizes: Array) -> Runs:
        """Those that start at these bytes and have so many."""
        return cls(data, starts, sizes, _windows(data)[starts] & _MASKS[np.minimum(sizes, WORD)])

    def take(self, which: Array) -> Runs:
        """Some of them."""
        return Runs(self.data, self.starts[which], self.sizes[which], self.heads[which])

    def content(self) -> Array:
        """Their bytes in a row."""
        return self.data[ranges(self.starts, self.sizes)]

    def texts(self) -> list[str]:
        """Each as text."""
        raw, bounds = self.data.tobytes(), zip(self.starts.tolist(), (self.starts + self.sizes).tolist(), strict=True)
        return [raw[start:stop].decode("utf-8", "surrogatepass") for start, stop in bounds]

    def tails(self) -> Iterator[tuple[Array, Array]]:
        """Which runs have a second eight bytes, and these; then the third, as far as LONG."""
        windows, which = _windows(self.data), np.arange(len(self.starts))
        for first in range(WORD, LONG, WORD):
            which = which[self.sizes[which] > first]
            if not len(which):
                return
            yield which, windows[self.starts[which] + first] & _MASKS[np.minimum(self.sizes[which] - first, WORD)]

    def long(self) -> Iterator[tuple[int, Array]]:
        """Which runs have more bytes than LONG, and all of these."""
        for which in np.flatnonzero(self.sizes > LONG).tolist():
            yield which, self.data[self.starts[which] :][: self.sizes[which]]

    def differ(self, others: Runs) -> Array:
        """Whether each is another one than that of the others, [C]."""
        differ: Array = (self.heads != others.heads) | (self.sizes != others.sizes)
        longer = np.flatnonzero((self.sizes > WORD) & ~differ)
        ours, theirs = self.take(longer), others.take(longer)
        for (which, mine), (_, yours) in zip(ours.tails(), theirs.tails(), strict=True):
            differ[longer[which]] |= mine != yours
        for (one, mine), (_, yours) in zip(ours.long(), theirs.long(), strict=True):
            differ[longer[one]] |= not np.array_equal(mine, yours)
        return differ


def _windows(data: Array) -> Array:
    """The eight bytes from each byte on as a number, [B - 7]; it is a view."""
    return np.ndarray((len(data) - WORD + 1,), "<u8", data, 0, (1,))
