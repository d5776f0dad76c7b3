"""Numberings: equal runs have one number and others another, whatever hashes do."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.text.numbering import Numbering
from bertkit.text.runs import WORD, Runs

NAMES = st.lists(st.binary(min_size=1, max_size=20), max_size=40)


def runs(names: list[bytes]) -> Runs:
    sizes = np.array([len(name) for name in names], np.int64)
    return Runs.of(np.frombuffer(b"".join(names) + bytes(WORD), np.uint8), np.cumsum(sizes) - sizes, sizes)


class Known:
    """A numbering, and a dictionary beside it that says what is right."""

    def __init__(self, most: int = 100) -> None:
        self.made, self.right = Numbering(most, 10 * most), dict[bytes, int]()

    def same(self, names: list[bytes]) -> None:
        told: list[bytes] = []
        found = self.made.numbers(runs(names), lambda new: told.extend(_names(new)))
        for name in told:
            assert name not in self.right
            self.right[name] = len(self.right)
        assert found.tolist() == [self.right[name] for name in names]
        assert len(self.made) == len(self.right)
        assert self.made.size == sum(map(len, self.right))
        assert self.made.sizes.tolist() == list(map(len, self.right))

    def keep(self, kept: list[int]) -> None:
        self.made.keep(np.array(kept, np.int64))
        names = list(self.right)
        self.right = {names[number]: i for i, number in enumerate(kept)}


def _names(new: Runs) -> list[bytes]:
    ends = zip(new.starts, new.starts + new.sizes, strict=True)
    return [new.data[start:stop].tobytes() for start, stop in ends]


@given(st.lists(NAMES, max_size=5))
def test_numbers_are_those_of_a_dictionary(texts: list[list[bytes]]) -> None:
    known = Known()
    for names in texts:
        known.same(names)


@given(st.lists(NAMES, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_what_is_kept_is_numbered_anew(texts: list[list[bytes]], draw: random.Random) -> None:
    known = Known()
    for names in texts:
        known.same(names)
        known.keep(sorted(draw.sample(range(len(known.right)), len(known.right) // 2)))
        known.same(names)


def one_hash(hashes: np.ndarray) -> np.ndarray:
    return hashes * np.uint64(0)


def few_hashes(hashes: np.ndarray) -> np.ndarray:
    return hashes >> np.uint64(60)


@pytest.mark.parametrize(
    "worse",
    [lambda hashes: hashes * np.uint64(0), lambda hashes: hashes >> np.uint64(60)],
    ids=["one hash", "16 hashes"],
)
def test_runs_that_share_a_hash_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, worse: Callable[[np.ndarray], np.ndarray]
) -> None:
    right = Numbering._hashed
    monkeypatch.setattr(Numbering, "_hashed", lambda self, given: worse(right(self, given)))
    known, draw = Known(), random.Random(5)
    names = [bytes(draw.choices(b"abc", k=draw.randint(1, 20))) for _ in range(60)]
    for _ in range(20):
        known.same(draw.choices(names, k=30))


def test_more_runs_than_there_is_room_for() -> None:
    known, names = Known(most=10), [b"%d" % number for number in range(1023)]
    for first in range(0, len(names), 100):
        known.same(names[: first + 100])
    known.keep(list(range(0, 1000, 3)))
    known.same(names)


def test_long_runs_are_told_apart() -> None:
    known = Known()
    for size in (7, 8, 9, 16, 255, 256, 257, 264, 265, 5000):
        known.same([b"a" * size, b"a" * (size - 1) + b"b", b"b" + b"a" * (size - 1), b"a" * (size + 1)])
        known.same([b"a" * size, b"a" * (size // 2) + b"\0" * (size - size // 2), b"a" * (size // 2)])
