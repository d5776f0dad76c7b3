"""Windows: a stream of any length, as lists that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

FIRST, MOST = 256, 4096
CHARACTERS = 4_000_000

Item = TypeVar("Item")


def windows(items: Iterable[Item], characters: Callable[[Item], int], first: int = FIRST) -> Iterator[list[Item]]:
    """Lists of items, bounded in number and in characters; small at first, so that the first results come soon.

    >>> [len(window) for window in windows(["a"] * 9000, len)]
    [256, 512, 1024, 2048, 4096, 1064]
    """
    window: list[Item] = []
    held, most = 0, min(first, MOST)
    for item in items:
        window.append(item)
        held += characters(item)
        if len(window) == most or held >= CHARACTERS:
            yield window
            window, held, most = [], 0, min(2 * most, MOST)
    if window:
        yield window
