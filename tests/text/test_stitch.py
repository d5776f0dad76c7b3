"""What windows say is put together as Google's run_squad.py does it, written out here."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bertkit.text import stitch
from bertkit.text.truncate import Chunk, KeepEnds, KeepHead, Window

chunked = st.builds(
    lambda length, room, stride: (length, Chunk(stride).windows([length], room)),
    st.integers(1, 60),
    st.integers(1, 25),
    st.one_of(st.none(), st.integers(1, 30)),
)


def max_context(windows: list[Window], token: int) -> int:
    """The window in which a token has the most context, token by token."""
    best, best_score = -1, None
    for index, ((pieces,)) in enumerate(windows):
        ((start, stop),) = pieces
        if not start <= token < stop:
            continue
        left, right = token - start, stop - 1 - token
        score = min(left, right) + 0.01 * (stop - start)
        if best_score is None or score > best_score:
            best, best_score = index, score
    return best


@given(chunked)
def test_every_token_is_judged_where_it_has_most_context(case: tuple[int, list[Window]]) -> None:
    length, windows = case
    assert stitch.owners(windows, 0, length).tolist() == [max_context(windows, token) for token in range(length)]


@given(chunked)
def test_values_return_to_their_tokens(case: tuple[int, list[Window]]) -> None:
    length, windows = case
    # each value says which window and which token it came from
    rows = [np.array([(index, token) for token in range(*window[0][0])]) for index, window in enumerate(windows)]
    stitched = stitch.tokens(rows, windows, 0, length)
    assert stitched.tolist() == [[max_context(windows, token), token] for token in range(length)]


def test_tokens_that_were_cut_have_no_value() -> None:
    for policy, kept in ((KeepHead(), [0, 1, 2]), (KeepEnds(head=0.3), [0, 5, 6])):
        windows = policy.windows([7], 3)
        stitched = stitch.tokens([np.array([5.0, 6.0, 7.0])], windows, 0, 7)
        owner = stitch.owners(windows, 0, 7)
        assert [token for token in range(7) if owner[token] == 0] == kept
        assert stitched[kept].tolist() == [5.0, 6.0, 7.0]
        assert stitched.sum() == 18.0


@given(chunked, st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_spans_are_googles(case: tuple[int, list[Window]], longest: int, seed: int) -> None:
    length, windows = case
    dice = np.random.default_rng(seed)
    sizes = [window[0][0][1] - window[0][0][0] for window in windows]
    firsts, lasts = ([dice.normal(size=size) for size in sizes] for _ in range(2))
    wanted = []
    for index, window in enumerate(windows):
        begin, size = window[0][0][0], sizes[index]
        for first in range(size):
            for last in range(size):
                if last < first or last - first + 1 > longest or max_context(windows, begin + first) != index:
                    continue
                wanted.append((float(firsts[index][first] + lasts[index][last]), begin + first, begin + last))
    wanted.sort(key=lambda span: -span[0])
    found = stitch.spans(firsts, lasts, windows, 0, length, top=5, longest=longest)
    assert [(span.score, span.first, span.last) for span in found] == wanted[:5]


def test_no_tokens_no_spans() -> None:
    windows = Chunk().windows([4, 0], 10)
    assert stitch.spans([np.empty(0)], [np.empty(0)], windows, 1, 0) == []
    assert stitch.tokens([np.empty((0, 3))], windows, 1, 0).shape == (0, 3)
