"""Charts of characters, for a terminal: no colour, no control codes, plain ASCII where nothing else can be shown."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

EIGHTHS = " ▏▎▍▌▋▊▉█"
LEAST = 8
"""cells of the longest bar, however narrow the terminal"""


def is_plain() -> bool:
    """Whether standard output can show ASCII only."""
    try:
        f"{EIGHTHS}│←".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False


def bars(
    labels: Sequence[str], counts: Sequence[int], width: int, marks: Mapping[int, str], plain: bool = False
) -> str:
    """A row for each count: label, bar, number, share. `marks` are words behind rows, by their place.

    >>> print(bars(["1-8", "9-16"], [30, 10], 40, {1: "limit 16"}, plain=True))
     1-8 |########## 30   75.0%
    9-16 |###        10   25.0%  <- limit 16
    """
    total, most = sum(counts) or 1, max(counts, default=0) or 1
    names, numbers = max(map(len, labels)), max(len(f"{count:,}") for count in counts)
    arrow, wall = ("<- ", "|") if plain else ("← ", "│")
    behind = max((len(arrow) + len(mark) + 2 for mark in marks.values()), default=0)
    cells = max(width - names - 2 - numbers - 1 - 8 - behind, LEAST)
    rows = []
    for place, (label, count) in enumerate(zip(labels, counts, strict=True)):
        drawn = _bar(count / most * cells, cells, plain, count > 0)
        row = f"{label:>{names}} {wall}{drawn} {count:>{numbers},}  {count / total:>6.1%}"
        rows.append(f"{row}  {arrow}{marks[place]}" if place in marks else row)
    return "\n".join(rows)


def _bar(length: float, cells: int, plain: bool, some: bool) -> str:
    """A bar of a length in cells, filled up with spaces; what is not nothing can be seen."""
    if plain:
        full, rest = round(length), ""
        full = max(full, int(some))
    else:
        eighths = max(round(length * 8), int(some))
        full, rest = eighths // 8, EIGHTHS[eighths % 8].strip()
    return (("#" if plain else EIGHTHS[-1]) * full + rest).ljust(cells)
