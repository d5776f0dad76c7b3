"""Lanes: every text once, equal shares, results in order, and the machine left as it was."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from itertools import islice, pairwise
from time import sleep

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bertkit
from bertkit.batch import Batch, collate
from bertkit.runtime.lanes import Lanes
from bertkit.runtime.stream import example
from bertkit.text import Tokenizer


@given(st.lists(st.integers(2, 30), max_size=60), st.integers(1, 4), st.integers(1, 50))
def test_groups_hold_everything_once(lengths: list[int], count: int, tokens: int) -> None:
    made = list(Lanes(count, tokens).groups(lengths))
    assert sorted(index for group in made for index in group) == list(range(len(lengths)))
    flat = [lengths[i] for group in made for i in group]
    assert flat == sorted(flat, reverse=True), "neighbours in length"
    for group in made:
        size = sum(lengths[i] for i in group)
        assert size - lengths[group[-1]] < tokens, "larger than asked for by a part of its last text, if at all"
    if lengths and sum(lengths) <= tokens:
        assert len(made) == 1


@given(st.lists(st.integers(1, 256), max_size=120), st.integers(1, 4), st.sampled_from([64, 512]), st.integers(0, 40))
def test_groups_hold_no_more_padding_than_they_may(lengths: list[int], count: int, tokens: int, most: int) -> None:
    made = [[lengths[index] for index in group] for group in Lanes(count, tokens, most).groups(lengths)]
    assert [length for group in made for length in group] == sorted(lengths, reverse=True)
    for group in made:
        assert sum(group[0] - length for length in group) <= most
    for group, after in pairwise(made):
        padded = sum(group[0] - length for length in (*group, after[0]))
        assert padded > most or sum(group) >= tokens / 4, "it ends for one of two reasons"


@given(
    st.lists(st.integers(6, 256), min_size=20, max_size=300),
    st.integers(1, 4),
    st.sampled_from([512, 1024]),
    st.lists(st.integers(0, 1024), min_size=4, max_size=4),
)
def test_lanes_end_together_whenever_they_began(lengths: list[int], count: int, tokens: int, begun: list[int]) -> None:
    ends = begun[:count]
    made = list(Lanes(count, tokens).groups(lengths))
    for group in made:
        ends[ends.index(min(ends))] += sum(lengths[index] for index in group)  # the lane that is free first takes it
    if len(made) > 1 and max(begun[:count]) < max(ends):
        assert max(ends) - min(ends) <= tokens / 4 + max(lengths), "a quarter of a group, and what a text is too long"
    assert len(made) <= sum(lengths) / tokens + 4 * count, "few more than groups of full size"


def numbers(count: int) -> Iterator[Batch]:
    for number in range(count):
        yield collate([example([number])])


def number_of(batch: Batch) -> int:
    return int(batch.tokens["ids"].sum())


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("batches", [0, 1, 2, 3, 40])
def test_results_come_in_order(count: int, batches: int) -> None:
    assert list(Lanes(count).map(number_of, numbers(batches))) == list(range(batches))


def test_lanes_work_side_by_side_on_one_core_each_and_change_nothing_for_others() -> None:
    here = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        meeting = threading.Barrier(3)

        def work(batch: Batch) -> int:
            meeting.wait(timeout=60)  # passed only if three batches are at work
            return torch.get_num_threads()

        results = Lanes(3).map(work, numbers(6))
        assert next(results) == 1
        outside: list[int] = []
        new = threading.Thread(target=lambda: outside.append(torch.get_num_threads()))
        new.start()
        new.join()
        assert outside == [2], "a thread of the user's that starts meanwhile"
        assert list(results) == [1] * 5
        assert torch.get_num_threads() == 2
        assert list(Lanes(3).map(lambda batch: torch.get_num_threads(), numbers(1))) == [2], "one batch has all cores"
    finally:
        torch.set_num_threads(here)


def test_lanes_that_cannot_start_end_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = threading.Thread.start, []

    def few(thread: threading.Thread) -> None:
        started.append(thread)
        if len(started) > 2:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", few)
    with pytest.raises(RuntimeError, match="can't start"):
        list(Lanes(4).map(number_of, numbers(9)))
    assert not any(thread.is_alive() for thread in started)


def test_few_batches_are_read_ahead_and_none_after_the_caller_stops() -> None:
    taken = []

    def endless() -> Iterator[Batch]:
        for number in range(10**9):
            taken.append(number)
            yield collate([example([number])])

    results = Lanes(2).map(number_of, endless())
    assert list(islice(results, 3)) == [0, 1, 2]
    results.close()
    assert len(taken) <= 3 + 2 * 2 + 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lane")]


def test_an_error_reaches_the_caller_and_ends_the_lanes() -> None:
    def fail(batch: Batch) -> int:
        if number_of(batch) == 4:
            raise ValueError("the fifth")
        return number_of(batch)

    results = Lanes(2).map(fail, numbers(50))
    assert list(islice(results, 4)) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="the fifth"):
        next(results)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lane")]


def test_whoever_interrupts_twice_finds_no_lane_at_work() -> None:
    begun, ended = [], []

    def slow(batch: Batch) -> None:
        begun.append(batch)
        sleep(0.5)
        ended.append(batch)

    here = threading.get_ident()
    presses = [threading.Timer(after, signal.pthread_kill, (here, signal.SIGINT)) for after in (0.1, 0.2, 0.3)]
    for press in presses:
        press.start()
    with pytest.raises(KeyboardInterrupt):
        list(Lanes(2).map(slow, numbers(9)))
    assert len(ended) == len(begun) == 2
    assert not any(press.is_alive() for press in presses)


def test_vectors_are_the_same_on_any_number_of_lanes(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    model = bertkit.create("bert-tiny", tokenizer, seed=0)
    texts = [" ".join(["cat", "dog", "mat"][: 1 + n % 3] * (1 + n % 40)) for n in range(300)]
    expected = model.embed(texts)
    for lanes in (Lanes(1, 2048), Lanes(1, 512), Lanes(2, 64), Lanes(4, 512)):
        monkeypatch.setattr(Lanes, "on", lambda device, lanes=lanes: lanes)
        assert np.abs(model.embed(texts) - expected).max() <= 1e-6
