"""Every policy keeps its limits, counts exactly, and does what its reference does."""

from __future__ import annotations

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.errors import BertkitError
from bertkit.spec import from_json, to_json
from bertkit.text.prompt import Prompted
from bertkit.text.truncate import (
    POLICIES,
    Budgets,
    Chunk,
    Cut,
    KeepEnds,
    KeepHead,
    KeepTail,
    LongestFirst,
    Policy,
    Refuse,
    Window,
    lost,
    named,
)

lengths_of_fields = st.lists(st.integers(0, 60), min_size=1, max_size=4)
rooms = st.integers(1, 80)
cutting = st.sampled_from([KeepHead(), KeepTail(), KeepEnds(), KeepEnds(head=0.0), KeepEnds(head=0.99)])
strides = st.one_of(st.none(), st.integers(1, 90))


def read(window: Window, place: int) -> list[int]:
    """The places in a field that a window holds."""
    return [token for start, stop in window[place] for token in range(start, stop)]


def check(policy: Policy, lengths: list[int], room: int) -> list[Window]:
    """True of every policy: windows within the room, places that exist, in order, none twice, exact counts."""
    windows = policy.windows(lengths, room)
    assert windows
    seen = [set[int]() for _ in lengths]
    for window in windows:
        assert len(window) == len(lengths)
        places = [read(window, place) for place in range(len(lengths))]
        assert sum(map(len, places)) <= room
        for length, tokens, found in zip(lengths, places, seen, strict=True):
            assert tokens == sorted(set(tokens))
            assert not tokens or 0 <= tokens[0] <= tokens[-1] < length
            found.update(tokens)
    gone = sum(length - len(found) for length, found in zip(lengths, seen, strict=True))
    assert lost(lengths, windows) == gone
    cut = Cut(room)
    cut.count(7, lengths, windows)
    assert (cut.texts, cut.tokens) == (int(gone > 0), gone)
    assert (cut.chunked, cut.chunks) == ((1, len(windows)) if len(windows) > 1 else (0, 0))
    assert cut.latest == ({7: (gone, len(windows))} if gone or len(windows) > 1 else {})
    return windows


def pop_one_at_a_time(lengths: list[int], room: int) -> list[int]:
    """Google's loop: while it is too long, one token from the longer, from the second where they are equal."""
    kept = list(lengths)
    while sum(kept) > room:
        longest = max(kept)
        kept[max(place for place, length in enumerate(kept) if length == longest)] -= 1
    return kept


@given(lengths_of_fields, rooms)
def test_longest_first_is_googles_loop(lengths: list[int], room: int) -> None:
    assert LongestFirst().among(lengths, room) == pop_one_at_a_time(lengths, room)


@given(cutting, lengths_of_fields, rooms)
def test_what_is_kept_fills_the_room_from_the_longest_first(policy: Policy, lengths: list[int], room: int) -> None:
    (window,) = check(policy, lengths, room)
    assert [len(read(window, place)) for place in range(len(lengths))] == pop_one_at_a_time(lengths, room)
    assert lost(lengths, [window]) == max(sum(lengths) - room, 0)


@given(st.integers(1, 200), st.integers(1, 200))
def test_head_tail_and_both_ends(length: int, room: int) -> None:
    kept = min(length, room)
    every = list(range(length))
    assert read(KeepHead().windows([length], room)[0], 0) == every[:kept]
    assert read(KeepTail().windows([length], room)[0], 0) == every[length - kept :]
    both = read(KeepEnds().windows([length], room)[0], 0)
    head = -(-kept // 4)
    assert both == (every if length <= room else every[:head] + every[length - (kept - head) :])


def test_the_ends_of_the_paper() -> None:
    assert KeepEnds().windows([1000], 510) == [(((0, 128), (618, 1000)),)]


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 250)), min_size=1, max_size=4), st.integers(1, 520))
def test_budgets_bind_each_field_and_then_the_whole(fields: list[tuple[int, int]], room: int) -> None:
    lengths, budgets = [length for length, _ in fields], tuple(budget for _, budget in fields)
    for policy in (KeepHead(Budgets(budgets)), KeepTail(Budgets(budgets))):
        (window,) = check(policy, lengths, room)
        kept = [len(read(window, place)) for place in range(len(lengths))]
        assert kept == pop_one_at_a_time([min(pair) for pair in fields], room)


def test_title_body_answer() -> None:
    quest = KeepHead(Budgets((50, 200, 200)))
    assert quest.windows([12, 900, 150], 508) == [(((0, 12),), ((0, 200),), ((0, 150),))]
    assert quest.windows([80, 900, 900], 508) == [(((0, 50),), ((0, 200),), ((0, 200),))]
    assert quest.windows([80, 900, 900], 252) == [(((0, 50),), ((0, 101),), ((0, 101),))]
    with pytest.raises(BertkitError, match=r"3 budgets \(50, 200, 200\) for an input of 2 fields: give one for each"):
        quest.windows([12, 900], 508)


def doc_spans(length: int, room: int, stride: int) -> list[tuple[int, int]]:
    """How Google's run_squad cuts a passage: a new span every `stride` tokens until one reaches the end."""
    spans = []
    start = 0
    while True:
        size = min(length - start, room)
        spans.append((start, start + size))
        if start + size == length:
            return spans
        start += min(size, stride)


@given(st.integers(0, 300), rooms, strides)
def test_chunks_are_googles_spans_and_lose_nothing(length: int, room: int, stride: int | None) -> None:
    windows = check(Chunk(stride), [length], room)
    assert lost([length], windows) == 0
    assert [window[0][0] for window in windows] == doc_spans(length, room, room if stride is None else stride)


@given(lengths_of_fields, st.integers(2, 80), strides, st.integers(0, 3))
def test_chunking_one_field_keeps_the_others_in_every_window(
    lengths: list[int], room: int, stride: int | None, which: int
) -> None:
    at = which % len(lengths)
    windows = check(Chunk(stride, at), lengths, room)
    covered = {token for window in windows for token in read(window, at)}
    assert covered == set(range(lengths[at])), "nothing of the field that is chunked is lost"
    others = [length for place, length in enumerate(lengths) if place != at]
    if sum(others) <= room // 2:
        assert lost(lengths, windows) == 0
    for place in range(len(lengths)):
        if place != at:
            assert len({window[place] for window in windows}) == 1
            assert windows[0][place][0][0] == 0


@given(lengths_of_fields, rooms)
def test_what_fits_is_left_alone(lengths: list[int], room: int) -> None:
    for policy in POLICIES.values():
        if sum(lengths) <= room:
            assert check(policy, lengths, room) == [tuple(((0, length),) for length in lengths)]
            assert lost(lengths, policy.windows(lengths, room)) == 0


def test_refusing_says_what_can_be_done() -> None:
    assert Refuse().windows([4, 6], 10) == [(((0, 4),), ((0, 6),))]
    with pytest.raises(BertkitError, match=r"head, tail, head\+tail, longest-first, chunk$"):
        Refuse().windows([500, 500], 510)
    with pytest.raises(BertkitError, match=r"head, tail, head\+tail, chunk$"):
        Refuse().windows([1011], 510)
    with pytest.raises(BertkitError, match=r"has 1,011 tokens, and there is room for 510: .*: head, tail, head\+tail"):
        Refuse().windows([1011], 510)


def test_names() -> None:
    assert list(POLICIES) == ["error", "head", "tail", "head+tail", "longest-first", "chunk"]
    assert named("chunk") == Chunk()
    assert named(Chunk(64)) == Chunk(64)
    with pytest.raises(BertkitError, match="unknown truncate 'hed': did you mean 'head'"):
        named("hed")
    with pytest.raises(BertkitError, match=r"Chunk\.stride is 0: it must be at least 1"):
        Chunk(0)
    with pytest.raises(BertkitError, match=r"Chunk\.stride is True: it must be a whole number"):
        Chunk(True)
    with pytest.raises(BertkitError, match=r"Chunk\.field is 2, but the input has 2 fields"):
        Chunk(field=2).windows([5, 5], 4)


def test_policies_are_specs() -> None:
    for policy in (*POLICIES.values(), KeepHead(Budgets((50, 200))), Chunk(128, 1)):
        assert from_json(to_json(policy)) == policy


def test_cut_adds_up() -> None:
    cut = Cut(12)
    for index, length in enumerate((5, 30, 11)):
        cut.count(index, [length], KeepHead().windows([length], 10))
    cut.count(3, [25], Chunk().windows([25], 10))
    assert (cut.texts, cut.tokens, cut.chunked, cut.chunks) == (2, 21, 1, 3)
    assert collections.Counter(cut.latest) == {1: (20, 1), 2: (1, 1), 3: (0, 3)}
    assert cut.among(4) == ("2 of 4 texts cut to 12 tokens (21 tokens lost), 1 read in 3 chunks of at most 12 tokens")
    assert Cut(12).among(4) == ""


def test_counts_are_added() -> None:
    cut, more = Cut(12, texts=1, tokens=5, latest={0: (5, 1)}), Cut(9, 2, 7, 1, 3, {4: (0, 3)})
    cut.add(more)
    assert cut == Cut(9, 3, 12, 1, 3, {4: (0, 3)})


@given(
    st.integers(0, 40), st.integers(0, 60), st.integers(3, 50), st.sampled_from(["head", "tail", "head+tail", "chunk"])
)
def test_a_prompt_stays_whole_in_every_window(prompt: int, text: int, room: int, name: str) -> None:
    policy, length = Prompted(named(name), prompt), prompt + text
    if prompt >= room and length > room and name != "head":
        with pytest.raises(BertkitError, match=f"the prompt has {prompt} tokens, and there is room for {room} in all"):
            policy.windows([length], room)
        return
    windows = check(policy, [length], room)
    for window in windows:
        assert read(window, 0)[:prompt] == list(range(min(prompt, room)))
    if prompt < room:
        assert lost([length], windows) == (0 if name == "chunk" else max(length - room, 0))
