"""Counts: exact, whatever fits into memory."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from bertkit.vocab.counts import RUNS, Counts


def strings(count: int) -> list[str]:
    """Words by something like Zipf's law, with characters that readers of lines take for ends of lines."""
    rng = random.Random(0)
    letters = ["a", "b", "é", "猫", "\r", "\x85", "\u2028", " ", "\x1c", "\ud800"]
    return ["".join(rng.choices(letters, k=min(int(rng.paretovariate(0.8)), 9))) for _ in range(count)]


@pytest.mark.parametrize("memory", [10**9, 200_000, 20_000])
def test_counts_do_not_depend_on_memory(memory: int) -> None:
    given = strings(20_000)
    expected = Counter(given)
    for string in given[:500]:
        expected[string] += 2**62
    with Counts(memory) as counts:
        for start in range(0, len(given), 100):
            counts.add(given[start : start + 100])
        counts.add(given[:500], 2**62)
        assert counts.total == expected.total() > 2**64
        assert bool(counts.spilled) == (memory < 10**9)
        assert list(counts) == sorted(expected.items())
        assert list(counts) == sorted(expected.items()), "they can be read again"
        counts.add(["zz"])
        assert dict(counts) == expected | {"zz": 1}


def test_many_runs_are_merged_on_the_way() -> None:
    with Counts(memory=0) as counts:
        for number in range(3 * RUNS):
            counts.add([f"{number % 7}", "x"])
            assert counts.spilled <= RUNS
        folder = counts._folder
        assert len(list(folder.iterdir())) == counts.spilled
        assert dict(counts) == {"x": 3 * RUNS} | Counter(str(number % 7) for number in range(3 * RUNS))
    assert not folder.exists()
