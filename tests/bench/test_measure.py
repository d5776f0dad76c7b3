"""Rounds alternate, ratios are paired, and what gives other values gets no time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import measure, peer
from bench.measure import Amount, AtMost, Bar, Case, Row, Speed, Weighing, compare, ratios, weigh
from bench.peer import AbsentError, Peer
from bench.pipe import Array

NUMBERS = np.arange(1.0, 13.0).reshape(3, 4)


class Counter:
    """In this process: it answers, writes down that it had a turn, and tells the times it was given."""

    def __init__(self, name: str, turns: list[str], times: list[float], factor: float = 1.0) -> None:
        self.versions: dict[str, str] = {}
        self.answered = 0.0
        self._name, self._turns, self._times, self._factor = name, turns, iter(times), factor

    def open(self, job: str, arguments: dict[str, Any], array: Array | None = None) -> Array:
        assert array is not None
        return np.cumsum(array, axis=-1) * self._factor

    def seconds(self, calls: int) -> float:
        self._turns.append(self._name)
        try:
            return next(self._times)
        except StopIteration:
            raise AbsentError("it ran out of time") from None

    def close(self) -> None:
        self._turns.append(f"{self._name} ends")


def case(*peers: str, **more: Any) -> Case:
    return Case("sums", "running", {}, peers, flops=24.0, array=NUMBERS, **more)


def test_the_order_is_reversed_every_round_and_the_warm_up_does_not_count() -> None:
    turns: list[str] = []
    ours = Counter("bertkit", turns, [9.0, 1.0, 2.0, 1.0, 1.0])
    theirs = Counter("slow", turns, [9.0, 2.0, 4.0, 4.0, 1.0])
    (row,) = compare(case("slow", items=2), {"bertkit": ours, "slow": theirs}, rounds=4, pause=0)
    assert turns == ["bertkit", "slow", *["slow", "bertkit", "bertkit", "slow"] * 2]
    assert row.ratio == 2.0  # of 2, 2, 4 and 1: pairs of the same round
    assert row.spread == pytest.approx((1.3, 3.4))
    assert (row.seconds, row.peer_seconds, row.flops) == (0.5, 1.5, 12.0)  # for one of two items
    assert row.rounds == 4
    assert row.cosine == pytest.approx(1)


def test_a_peer_that_is_far_behind_has_one_turn() -> None:
    turns: list[str] = []
    contestants = {
        "bertkit": Counter("bertkit", turns, [6.0, 6.0, 3.0, 6.0]),
        "far": Counter("far", turns, [30.0] * 4),
        "near": Counter("near", turns, [12.0] * 4),
    }
    far, near = compare(case("far", "near", warm=0), contestants, rounds=4, pause=0)
    assert (turns.count("far"), turns.count("near")) == (1, 4)
    assert (far.ratio, far.rounds, near.ratio, near.rounds) == (5.0, 1, 2.0, 4)


def test_a_peer_whose_answer_was_far_behind_has_none() -> None:
    turns: list[str] = []
    contestants = {name: Counter(name, turns, [6.0] * 5) for name in ("bertkit", "far", "near")}
    for name, seconds in (("bertkit", 7.0), ("far", 30.0), ("near", 27.0)):
        contestants[name].answered = seconds
    far, near = compare(case("far", "near", warm=0), contestants, rounds=4, pause=0)
    assert (turns.count("far"), turns.count("near")) == (0, 4)
    assert (far.ratio, far.rounds, near.ratio) == (5.0, 1, 1.0)
    (far,) = compare(case("far", warm=1), contestants | {"bertkit": Counter("bertkit", turns, [6.0] * 5)}, 4, pause=0)
    assert (turns.count("far"), far.ratio) == (5, 1.0)  # where answers do not count as turns


def test_rounded_vectors_are_compared_with_the_truth() -> None:
    turns: list[str] = []
    contestants = {name: Counter(name, turns, [1.0] * 3, factor) for name, factor in (("bertkit", 1.0), ("peer", -1.0))}
    truth = np.cumsum(NUMBERS, axis=-1)
    asked = case("peer", truth=lambda: truth, bars={"peer": Bar(0.5)})
    (row,) = compare(asked, contestants, rounds=2, pause=0)
    assert (row.own_cosine, row.cosine, row.reached) == (pytest.approx(1), pytest.approx(-1), True)
    turned = replace(asked, truth=lambda: truth[:, ::-1].copy())
    assert not compare(turned, contestants | {"bertkit": Counter("bertkit", turns, [1.0] * 3)}, 2, pause=0)[0].reached


def test_rounds_may_have_new_processes() -> None:
    turns: list[str] = []
    ours = Counter("bertkit", turns, [9.0, 1.0, 9.0, 1.0])
    theirs = Counter("slow", turns, [9.0, 2.0, 9.0, 4.0])
    late = Counter("late", turns, [9.0, 2.0])
    contestants = {"bertkit": ours, "slow": theirs, "late": late}
    row, lost = compare(case("slow", "late", anew=True), contestants, rounds=2, pause=0)
    assert turns == [
        *("bertkit", "slow", "late"),  # warms up
        *("late", "slow", "bertkit"),
        *("bertkit ends", "bertkit", "slow ends", "slow", "late ends", "late"),  # and warms up
        *("bertkit", "slow"),
    ]
    assert row.ratio == 3.0  # of 2 and 4
    assert (lost.ratio, lost.reason) == (None, "it ran out of time")


def test_a_slow_machine_for_some_rounds_changes_no_ratio() -> None:
    noise = np.random.default_rng(0).uniform(1, 5, 20)
    ratio, spread = ratios(noise, 1.5 * noise)
    assert (ratio, *spread) == pytest.approx((1.5, 1.5, 1.5))


@pytest.mark.parametrize("factor", [1.001, -1.0, float("nan")])
def test_other_values_get_no_time(factor: float) -> None:
    turns: list[str] = []
    ours = Counter("bertkit", turns, [1.0] * 3)
    contestants = {"bertkit": ours, "wrong": Counter("wrong", turns, [0.1] * 3, factor)}
    (row,) = compare(case("wrong"), contestants, rounds=2, pause=0)
    assert (row.ratio, row.spread) == (None, None)
    assert row.reason.startswith("it gives other values: up to ")
    assert set(turns) == {"bertkit"}


def test_when_bertkit_fails_every_row_says_so() -> None:
    turns: list[str] = []
    contestants = {"bertkit": Counter("bertkit", turns, [1.0]), "fine": Counter("fine", turns, [1.0] * 9)}
    (row,) = compare(case("fine"), contestants, rounds=2, pause=0)
    assert (row.ratio, row.reason) == (None, "bertkit: it ran out of time")


def test_shapes_that_differ_are_other_values() -> None:
    assert not measure.agrees(np.zeros((2, 3)), np.zeros((3, 2)))
    assert measure.agrees(np.zeros((2, 3), np.float32), np.full((2, 3), 0.9e-4))


def test_whole_numbers_are_equal_or_other_values() -> None:
    ids = np.array([[101, 30_000], [7, 102]], np.uint16)
    assert measure.agrees(ids, ids.astype(np.int64))
    assert not measure.agrees(ids, ids + 1)
    assert not measure.agrees(ids, ids.ravel())
    assert measure.cosine(ids, ids) is None
    assert measure.difference(ids, ids.astype(np.int64)) == 0


def test_ids_that_differ_are_reported_with_their_place() -> None:
    class Ids(Counter):
        def open(self, job: str, arguments: dict[str, Any], array: Array | None = None) -> Array:
            return np.array([5, 6, int(7 * self._factor), 8])

    turns: list[str] = []
    contestants = {"bertkit": Ids("bertkit", turns, [1.0] * 3), "wrong": Ids("wrong", turns, [1.0] * 3, 2.0)}
    (row,) = compare(case("wrong", amount=Amount(4, "tokens")), contestants, rounds=2, pause=0)
    assert isinstance(row, Row)
    assert (row.ratio, row.reason) == (None, "it gives other values: 1 of 4, first 14 instead of 7 at 2")
    assert set(turns) == {"bertkit"}


def test_our_own_speed_is_a_row_whatever_becomes_of_the_peer() -> None:
    turns: list[str] = []
    ours, late = Counter("bertkit", turns, [9.0, 1.0, 2.0, 4.0, 2.0]), Counter("late", turns, [9.0])
    asked = case("late", amount=Amount(8, "tokens"), alone=True, bars={"bertkit": Bar(4.5), "late": Bar(2)})
    row, speed = compare(asked, {"bertkit": ours, "late": late}, rounds=4, pause=0)
    assert isinstance(row, Row)
    assert (row.ratio, row.reason) == (None, "it ran out of time")
    assert isinstance(speed, Speed)
    assert (speed.speed, speed.unit, speed.rounds) == (4.0, "tokens", 4)  # of 8, 4, 2 and 4 in a second
    assert speed.spread == pytest.approx((2.6, 6.8))
    assert speed.reached is False


def test_a_speed_that_was_not_measured_says_why() -> None:
    ours = Counter("bertkit", [], [1.0])
    _, speed = compare(
        case("fine", amount=Amount(8, "tokens"), alone=True),
        {"bertkit": ours, "fine": Counter("fine", [], [1.0] * 9)},
        rounds=2,
        pause=0,
    )
    assert isinstance(speed, Speed)
    assert (speed.speed, speed.reached, speed.reason) == (None, None, "it ran out of time")


def test_bars() -> None:
    assert (str(Bar(1.3)), str(Bar(1.0, within_spread=True))) == ("≥ 1.3", "≥ 1 within spread")
    assert Bar(1.3).reached(1.3, (1.0, 1.5))
    assert not Bar(1.3).reached(1.29, (1.0, 1.5))
    assert not Bar(1.0, within_spread=True).reached(0.9, (0.8, 0.99))
    assert str(AtMost(0.5)) == "≤ 0.5"
    assert AtMost(0.5).reached(0.5, (0.4, 0.6))
    assert not AtMost(0.5).reached(0.51, (0.4, 0.6))


class Hoarder(Counter):
    """It tells the bytes that it was given: before, and at most."""

    def open(self, job: str, arguments: dict[str, Any], array: Array | None = None) -> Array:
        assert arguments == {"calls": 8}
        return np.array([100, 100 + self.seconds(1)])


def weighing(*peers: str, **more: Any) -> Weighing:
    return Weighing("memory", "hoarding_memory", {}, peers, calls=8, **more)


def test_memory_is_what_a_new_process_took_beyond_its_libraries() -> None:
    turns: list[str] = []
    ours, theirs = Hoarder("bertkit", turns, [10, 20, 30]), Hoarder("large", turns, [40, 40, 100])
    asked = weighing("large", bars={"large": AtMost(0.4)})
    (row,) = weigh(asked, {"bertkit": ours, "large": theirs}, rounds=3)
    assert row.ratio == pytest.approx(0.3)  # of 0.25, 0.5 and 0.3
    assert row.spread == pytest.approx((0.26, 0.46))
    assert (row.grown, row.peer_grown, row.whole, row.peer_whole, row.rounds) == (20, 40, 120, 140, 3)
    assert row.reached is True
    assert turns == ["bertkit ends", "bertkit", "bertkit ends", "large ends", "large", "large ends"] * 3


def test_memory_that_was_not_measured_says_why() -> None:
    contestants = {"bertkit": Hoarder("bertkit", [], [1, 1]), "late": Hoarder("late", [], [1])}
    (row,) = weigh(weighing("late"), contestants, rounds=2)
    assert (row.ratio, row.reached, row.reason) == (None, None, "it ran out of time")


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Peer]]:
    monkeypatch.setattr(peer, "HOME", tmp_path)
    command = [sys.executable, "-m", "tests.bench.sums"]
    with ExitStack() as stack:
        yield {name: stack.enter_context(closing(Peer(name, 1, command))) for name in ("bertkit", "peer")}


def test_real_processes_play_rounds(processes: dict[str, Peer]) -> None:
    asked = Case("sums", "running", {"seconds": 0.005}, ("peer",), 24.0, NUMBERS, bars={"peer": Bar(0.1)})
    (row,) = compare(asked, processes, rounds=4, pause=0)
    assert row.ratio == pytest.approx(1, rel=0.5)
    assert row.spread is not None
    assert row.spread[0] <= row.ratio <= row.spread[1]
    assert row.reached is True
    assert row.seconds is not None
    assert row.seconds >= 0.005


def test_a_process_that_ends_in_the_middle_is_a_row_with_its_reason(processes: dict[str, Peer]) -> None:
    (row,) = compare(Case("sums", "ending_later", {}, ("peer",), 24.0, NUMBERS), processes, rounds=2, pause=0)
    assert (row.ratio, row.reason) == (None, "its process ended: adder: out of digits")
    (row,) = compare(case("peer"), processes, rounds=2, pause=0)
    assert row.ratio is not None  # the next case starts them anew


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc, to see the memory of a process")
def test_the_memory_of_real_processes(processes: dict[str, Peer]) -> None:
    asked = Weighing("memory", "hoarding_memory", {"megabytes": 64}, ("peer",), calls=3)
    (row,) = weigh(asked, processes, rounds=1)
    assert row.ratio == pytest.approx(1, rel=0.1)
    assert 60e6 < row.grown < 80e6  # once, however often it is called
    assert row.whole > row.grown + 10e6  # Python and NumPy
