"""A numbering: runs of bytes to numbers 0, 1, … in the order in which they came, for all runs of a text at once.

Everything is an array. A run is found by a 64-bit hash of its bytes, in a hash table that is one array of numbers, and
then compared with the bytes that the numbering keeps of it. So what is found is exact, and a run costs some forty
bytes where a dictionary takes hundreds.

Letters: C runs in a text · N runs in the numbering · Q their bytes in a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from bertkit.text.column import Column
from bertkit.text.ranges import ranges
from bertkit.text.runs import WORD, Runs

Array = np.ndarray[Any, np.dtype[Any]]

SLOTS = 3
"""of the hash table for each run that there is room for, or up to twice as many"""


class Numbering:
    """There is room for so many runs of so many bytes, and for more where it must be.

    >>> runs = Runs.of(np.frombuffer(b"a cat a" + bytes(WORD), np.uint8), np.array([0, 2, 6]), np.array([1, 3, 1]))
    >>> Numbering(most=100, most_bytes=1000).numbers(runs, lambda new: print("new:", new.texts()))
    new: ['a', 'cat']
    array([0, 1, 0], dtype=int32)
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        # nobody can make text of one hash without this number, and what is found does not depend on it
        self._factor = np.random.default_rng().integers(2**63, 2**64, dtype=np.uint64) | np.uint64(1)
        self._bytes = Column(np.uint8, most_bytes)
        self._places, self._sizes, self._heads = Column(np.int32, most), Column(np.int32, most), Column("<u8", most)
        """all runs in a row, [Q]; the place of each, how many bytes it has, and the first eight, [N]"""
        self._hashes = Column(np.uint64, most)
        """[N]"""
        self._slots = np.full(2 ** (SLOTS * most).bit_length(), -1, np.int32)
        """numbers, each at its hash or at the next slot that was free; -1 where there is none"""

    def __len__(self) -> int:
        """How many runs it has, N."""
        return len(self._hashes)

    @property
    def size(self) -> int:
        """How many bytes they have, Q."""
        return len(self._bytes)

    @property
    def sizes(self) -> Array:
        """How many bytes each has, [N]."""
        return self._sizes[:]

    def numbers(self, runs: Runs, learn: Callable[[Runs], None]) -> Array:
        """The number of each run, [C]. New ones are numbered, and `learn` is told of them in the order of numbers."""
        hashes = self._hashed(runs)
        found = self._looked_up(hashes)
        while True:
            missing = np.flatnonzero(found < 0)
            if len(missing):
                new = missing[np.sort(np.unique(hashes[missing], return_index=True)[1])]
                learn(runs.take(new))
                self._add(runs.take(new), hashes[new])
                found[missing] = self._looked_up(hashes[missing])
            known = Runs(self._bytes.all(), self._places.take(found), self._sizes.take(found), self._heads.take(found))
            others = np.flatnonzero(runs.differ(known))
            if not len(others):
                return found
            hashes[others] = self._mixed(hashes[others] + np.uint64(1))  # another run has this hash: on to the next
            found[others] = self._looked_up(hashes[others])

    def keep(self, kept: Array) -> None:
        """Forget all runs but these numbers, which are in order; the first of them becomes 0, and so on."""
        content, sizes, hashes = ranges(self._places[kept], self._sizes[kept]), self._sizes[kept], self._hashes[kept]
        self._bytes.replace(self._bytes[content])
        self._places.replace(np.cumsum(sizes) - sizes)
        self._sizes.replace(sizes)
        self._heads.replace(self._heads[kept])
        self._hashes.replace(hashes[:0])
        self._slots[:] = -1
        self._insert(hashes)

    def _hashed(self, runs: Runs) -> Array:
        """A number for each run, eight bytes of all of them at a time, [C]."""
        hashes = self._mixed(runs.sizes.astype(np.uint64) * self._factor ^ runs.heads)
        for which, words in runs.tails():
            hashes[which] = self._mixed(hashes[which] ^ words)
        for one, content in runs.long():
            hashes[one] = int.from_bytes(hashlib.blake2b(content.tobytes(), digest_size=WORD).digest(), "little")
        return hashes * self._factor  # the slot is in its upper bits

    def _mixed(self, hashes: Array) -> Array:
        product = hashes * self._factor
        mixed: Array = product ^ (product >> np.uint64(32))
        return mixed

    def _slot(self, hashes: Array) -> Array:
        return (hashes >> np.uint64(65 - len(self._slots).bit_length())).astype(np.int64)

    def _looked_up(self, hashes: Array) -> Array:
        """The number with each hash, -1 where there is none, [C]."""
        slots = self._slot(hashes)
        found = self._slots.take(slots)
        others = np.flatnonzero(found >= 0)
        while len(others := others[self._hashes.take(found[others]) != hashes[others]]):
            slots[others] = (slots[others] + 1) % len(self._slots)
            found[others] = self._slots[slots[others]]
            others = others[found[others] >= 0]
        return found

    def _add(self, runs: Runs, hashes: Array) -> None:
        self._places.extend(len(self._bytes) + np.cumsum(runs.sizes) - runs.sizes)
        self._bytes.extend(runs.content())
        self._sizes.extend(runs.sizes)
        self._heads.extend(runs.heads)
        self._insert(hashes)

    def _insert(self, hashes: Array) -> None:
        """Give the next numbers to these hashes; where half of the slots are taken, there will be more."""
        if 2 * (len(self) + len(hashes)) > len(self._slots):
            hashes = np.append(self._hashes[:], hashes)
            self._hashes.replace(hashes[:0])
            self._slots = np.full(2 ** (SLOTS * len(hashes)).bit_length(), -1, np.int32)
        numbers, slots = len(self) + np.arange(len(hashes), dtype=np.int32), self._slot(hashes)
        self._hashes.extend(hashes)
        while len(numbers):
            free = np.flatnonzero(self._slots[slots] < 0)
            self._slots[slots[free]] = numbers[free]  # one of those that want the same slot has it
            others = np.flatnonzero(self._slots[slots] != numbers)
            numbers, slots = numbers[others], (slots[others] + 1) % len(self._slots)
