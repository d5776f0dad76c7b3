"""From windows back to the input: one value per token of a field, and spans, where windows overlap.

A token that several windows hold is judged by the one in which it has the most context: the larger of its smaller
distances to the window's two ends, longer windows first where these are equal, as Google's run_squad.py decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertkit.text.truncate import Window

Values = np.ndarray[Any, np.dtype[Any]]

LONGEST_ANSWER = 30
"""tokens, as in Google's run_squad.py"""


def owners(windows: Sequence[Window], field: int, length: int) -> Values:
    """For each token of a field the window that judges it, [length]; -1 where no window holds it.

    >>> from bertkit.text.truncate import Chunk
    >>> owners(Chunk(stride=4).windows([12], room=8), 0, 12)
    array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    """
    best = np.full(length, -np.inf)
    owner = np.full(length, -1)
    for index, window in enumerate(windows):
        size = sum(stop - start for start, stop in window[field])
        for start, stop in window[field]:
            places = np.arange(stop - start)
            score = np.minimum(places, places[::-1]) + 0.01 * size
            better = score > best[start:stop]
            best[start:stop][better] = score[better]
            owner[start:stop][better] = index
    return owner


def tokens(rows: Sequence[Values], windows: Sequence[Window], field: int, length: int) -> Values:
    """Values per token of the whole field [length, ...] from those per window [tokens of the window, ...].

    Zero where no window holds the token.
    """
    owner = owners(windows, field, length)
    out = np.zeros((length, *rows[0].shape[1:]), dtype=rows[0].dtype)
    for index, (window, values) in enumerate(zip(windows, rows, strict=True)):
        places = _places(window, field)
        mine = owner[places] == index
        out[places[mine]] = values[mine]
    return out


@dataclass(frozen=True)
class Found:
    """A span of a field, by its first and last token, and the sum of its two scores."""

    first: int
    last: int
    score: float


def spans(
    firsts: Sequence[Values],
    lasts: Sequence[Values],
    windows: Sequence[Window],
    field: int,
    length: int,
    top: int = 20,
    longest: int = LONGEST_ANSWER,
) -> list[Found]:
    """The `top` best spans of a field, from scores per window for the first token and for the last, best first.

    A span lies in one window, the one that judges its first token, and has at most `longest` tokens.
    """
    owner = owners(windows, field, length)
    found: list[Found] = []
    for index, (window, first, last) in enumerate(zip(windows, firsts, lasts, strict=True)):
        places = _places(window, field)
        scores = first[:, None] + last[None, :]  # [tokens, tokens]
        width = places[None, :] - places[:, None] + 1  # in the field: a cut out middle makes a span longer
        allowed = (width >= 1) & (width <= longest) & (owner[places] == index)[:, None]
        scores = np.where(allowed, scores, -np.inf)
        for flat in np.argsort(-scores, axis=None, kind="stable")[:top]:
            start, stop = divmod(int(flat), len(places))
            if np.isfinite(scores[start, stop]):
                found.append(Found(int(places[start]), int(places[stop]), float(scores[start, stop])))
    return sorted(found, key=lambda span: -span.score)[:top]


def _places(window: Window, field: int) -> Values:
    """Where in the field the tokens of a window lie."""
    return np.concatenate([np.arange(start, stop) for start, stop in window[field]])
