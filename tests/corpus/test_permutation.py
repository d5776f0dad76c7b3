"""Keyed chance: splitmix64 as published, even draws, and permutations that are permutations."""

from __future__ import annotations

import numpy as np
import pytest

from bertkit.corpus.chance import below, fraction, key, number
from bertkit.corpus.permutation import permuted

MASK = 2**64 - 1


def splitmix64(state: int) -> int:
    """The published generator in plain integers: the number after a state."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return state ^ (state >> 31)


def test_streams_are_splitmix64() -> None:
    for seed in (0, 1, 2**63 + 12345, MASK):
        expected = [splitmix64((seed + place * 0x9E3779B97F4A7C15) & MASK) for place in range(50)]
        assert number(np.array([seed], np.uint64), np.arange(50)).tolist() == expected


def test_keys_tell_names_and_their_order_apart() -> None:
    names = [(0,), (0, 0), (1,), (1, 0), (0, 1), (-1,), (2**64 - 2,), (1, 2, 3), (3, 2, 1)]
    found = [int(key(*name)[0]) for name in names]
    assert len(set(found)) == len(names)
    assert key(5, np.arange(3)).tolist() == [int(key(5, place)[0]) for place in range(3)]
    assert key(np.int64(7)).tolist() == key(7).tolist()


def test_draws_are_even() -> None:
    bits = number(key(11), np.arange(60_000))
    assert abs(fraction(bits).mean() - 0.5) < 4 * (1 / 12 / 60_000) ** 0.5
    counts = np.bincount(below(bits, 6), minlength=6)
    assert counts.sum() == 60_000
    assert np.all(abs(counts - 10_000) < 4 * (60_000 * 5 / 36) ** 0.5)


@pytest.mark.parametrize("count", [*range(1, 70), 127, 128, 129, 1000, 4097, 65_537])
def test_every_place_is_hit_once(count: int) -> None:
    for seed in range(3):
        found = permuted(np.arange(count), count, key(seed))
        assert np.array_equal(np.sort(found), np.arange(count))
        some = np.random.default_rng(seed).integers(0, count, 20)
        assert np.array_equal(permuted(some, count, key(seed)), found[some])


def test_ranges_of_any_size() -> None:
    count = 3 * 10**12
    places = np.arange(0, count, count // 1000)
    found = permuted(places, count, key(1))
    assert found.min() >= 0
    assert found.max() < count
    assert len(np.unique(found)) == len(places)
    assert abs(found.mean() / count - 0.5) < 4 * (1 / 12 / len(places)) ** 0.5


def test_keys_give_orders_that_have_nothing_in_common() -> None:
    one, two = (permuted(np.arange(5000), 5000, key(seed)) for seed in (1, 2))
    assert (one == two).sum() < 12, "about one in 5,000 falls together"
    assert abs(np.corrcoef(one, two)[0, 1]) < 4 / 5000**0.5
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < 4 / 5000**0.5


@pytest.mark.parametrize("count", [3, 10])
def test_any_place_goes_anywhere(count: int) -> None:
    seeds = 400
    found = np.array([permuted(np.arange(count), count, key(seed)) for seed in range(seeds)])  # [seeds, count]
    times = np.stack([np.bincount(found[:, place], minlength=count) for place in range(count)])
    assert np.all(abs(times - seeds / count) < 5 * (seeds / count) ** 0.5)
