"""Truncation: which tokens of an input that is too long are kept. The one implementation, used everywhere.

An input has one field (a text) or several (question and passage; title, body, answer). A policy answers from the
fields' lengths alone, so that the same answer cuts ids, offsets and labels, and can be counted before anything is run:
`windows(lengths, room)` gives the windows a model reads, each at most `room` tokens, specials not counted.

>>> KeepHead().windows([700], room=510)
[(((0, 510),),)]
>>> KeepEnds().windows([700], room=510)  # the first 128 and the last 382 tokens, as Sun et al. 2019 found best
[(((0, 128), (318, 700)),)]
>>> KeepHead().windows([9, 4], room=10)  # one token at a time from the longer field
[(((0, 6),), ((0, 4),))]
>>> Chunk(stride=4).windows([12], room=6)
[(((0, 6),),), (((4, 10),),), (((8, 12),),)]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bertkit.errors import BertkitError, look_up
from bertkit.spec import Count, Rate, Spec

Pieces = tuple[tuple[int, int], ...]
"""what is kept of one field: slices [start, stop) in order, apart from each other"""
Window = tuple[Pieces, ...]
"""what one pass of the model reads: the pieces of each field"""


# How several fields share the room ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Share(Spec):
    """The base of all rules by which fields share the room."""

    def among(self, lengths: Sequence[int], room: int) -> list[int]:
        """How many tokens each field keeps: no more than it has, no more than `room` in all."""
        raise NotImplementedError


@dataclass(frozen=True)
class LongestFirst(Share):
    """One token at a time from the longest field, the later one where they are equal, as Google's scripts do.

    >>> LongestFirst().among([9, 9, 2], room=15)
    [7, 6, 2]
    """

    def among(self, lengths: Sequence[int], room: int) -> list[int]:
        if sum(lengths) <= room:
            return list(lengths)
        # What the popping ends in: every field is cut to one level, and the first of the cut ones keep one token more.
        level, waiting, left = 0, sorted(lengths), room
        while left // len(waiting) >= waiting[0] - level:
            left -= (waiting[0] - level) * len(waiting)
            level = waiting.pop(0)
        level += left // len(waiting)
        extra = left % len(waiting)
        kept = []
        for length in lengths:
            more = length > level and extra > 0
            extra -= more
            kept.append(min(length, level) + more)
        return kept


@dataclass(frozen=True)
class Budgets(Share):
    """At most so many tokens of each field (title 50, body 200, answer 200), then the longest first.

    >>> Budgets((50, 200, 200)).among([12, 900, 150], room=509)
    [12, 200, 150]
    """

    budgets: tuple[Count, ...]

    def among(self, lengths: Sequence[int], room: int) -> list[int]:
        if len(lengths) != len(self.budgets):
            raise BertkitError(
                f"there are {len(self.budgets)} budgets ({', '.join(map(str, self.budgets))}) for an input of "
                f"{len(lengths)} fields: give one for each"
            )
        return LongestFirst().among([min(pair) for pair in zip(lengths, self.budgets, strict=True)], room)


# What is kept ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Policy(Spec):
    """The base of all policies."""

    def windows(self, lengths: Sequence[int], room: int) -> list[Window]:
        """The windows a model reads of fields so long; together they hold all that is kept."""
        raise NotImplementedError


@dataclass(frozen=True)
class Refuse(Policy):
    """No input is cut: one that is too long is an error."""

    def windows(self, lengths: Sequence[int], room: int) -> list[Window]:
        if sum(lengths) > room:
            names = [name for name in POLICIES if name != "error" and (len(lengths) > 1 or name != "longest-first")]
            raise BertkitError(
                f"it has {sum(lengths):,} tokens, and there is room for {room}: shorten it, or choose what happens to "
                f"long texts with truncate= (--truncate): {', '.join(names)}"
            )
        return [tuple(((0, length),) for length in lengths)]


@dataclass(frozen=True)
class Keep(Policy):
    """The base of policies that keep one window and lose the rest."""

    share: Share = field(default_factory=LongestFirst)

    def windows(self, lengths: Sequence[int], room: int) -> list[Window]:
        shares = self.share.among(lengths, room)
        return [tuple(self.pieces(length, kept) for length, kept in zip(lengths, shares, strict=True))]

    def pieces(self, length: int, kept: int) -> Pieces:
        """Which `kept` tokens of a field stay."""
        raise NotImplementedError


@dataclass(frozen=True)
class KeepHead(Keep):
    """The beginning of each field."""

    def pieces(self, length: int, kept: int) -> Pieces:
        return ((0, kept),)


@dataclass(frozen=True)
class KeepTail(Keep):
    """The end of each field."""

    def pieces(self, length: int, kept: int) -> Pieces:
        return ((length - kept, length),)


@dataclass(frozen=True)
class KeepEnds(Keep):
    """The beginning and the end of each field; `head` is the beginning's part of what is kept.

    A quarter is what Sun et al. 2019 (https://arxiv.org/abs/1905.05583) found best: 128 tokens of 510.
    """

    head: Rate = 0.25

    def pieces(self, length: int, kept: int) -> Pieces:
        if kept == length:
            return ((0, length),)
        head = math.ceil(kept * self.head)
        return ((0, head), (length - (kept - head), length))


@dataclass(frozen=True)
class Chunk(Policy):
    """Nothing is lost: one field is read in chunks, and the others go whole into each.

    `stride` is how far apart chunks begin (Google's doc_stride; what Hugging Face calls stride is the overlap); None
    means side by side. Where the other fields take more than half of the room, they keep their beginnings within it.
    """

    stride: int | None = None
    field: int = -1
    """which field is read in chunks; the last, as a passage is after its question"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stride is not None and (self.stride is True or self.stride < 1):
            raise BertkitError(f"Chunk.stride is {self.stride}: it must be at least 1, or None for chunks side by side")

    def windows(self, lengths: Sequence[int], room: int) -> list[Window]:
        if not -len(lengths) <= self.field < len(lengths):
            raise BertkitError(f"Chunk.field is {self.field}, but the input has {len(lengths)} fields")
        at = self.field % len(lengths)
        others = [0 if place == at else length for place, length in enumerate(lengths)]
        if sum(lengths) > room:
            others = LongestFirst().among(others, max(room // 2, room - lengths[at]))
        pieces: list[Pieces] = [((0, length),) for length in others]
        return [
            (*pieces[:at], ((start, stop),), *pieces[at + 1 :])
            for start, stop in self._chunks(lengths[at], room - sum(others))
        ]

    def _chunks(self, length: int, room: int) -> list[tuple[int, int]]:
        step = max(room if self.stride is None else min(self.stride, room), 1)  # beyond the room, tokens would be lost
        starts = range(0, max(length - room + step, 1), step)
        return [(start, min(start + room, length)) for start in starts]


POLICIES: dict[str, Policy] = {
    "error": Refuse(),
    "head": KeepHead(),
    "tail": KeepTail(),
    "head+tail": KeepEnds(),
    "longest-first": KeepHead(),
    "chunk": Chunk(),
}
"""Short names, for the command line and for `truncate=…`; every policy that cuts takes from the longest field first."""


def named(policy: str | Policy) -> Policy:
    """The policy itself, or the one behind a short name."""
    return policy if isinstance(policy, Policy) else look_up("truncate", policy, POLICIES)


# What was cut ────────────────────────────────────────────────────────────────────────────────────────────────────────


def lost(lengths: Sequence[int], windows: Sequence[Window]) -> int:
    """How many tokens are in none of the windows.

    >>> lost([700], KeepEnds().windows([700], room=510)), lost([12], Chunk(4).windows([12], room=6))
    (190, 0)
    """
    return sum(length - _covered([window[place] for window in windows]) for place, length in enumerate(lengths))


def _covered(kept: Sequence[Pieces]) -> int:
    """How many tokens of one field are in at least one of the pieces."""
    slices = sorted(piece for pieces in kept for piece in pieces)
    reached = [0]
    for _, stop in slices:
        reached.append(max(reached[-1], stop))
    return sum(
        max(now - max(start, before), 0) for (start, _), (before, now) in zip(slices, pairwise(reached), strict=True)
    )


@dataclass
class Cut:
    """What a policy did so far to inputs that are too long."""

    limit: int = 0
    """how many tokens a window may have, special ones included; set by who does the cutting, and only for `among`"""
    texts: int = 0
    """how many inputs lost tokens"""
    tokens: int = 0
    """how many tokens they lost"""
    chunked: int = 0
    """how many inputs were read in more than one window"""
    chunks: int = 0
    """in how many windows"""
    latest: dict[int, tuple[int, int]] = field(default_factory=dict)
    """of the texts that the last step finished: number of the text -> tokens lost, windows"""

    def count(self, index: int, lengths: Sequence[int], windows: Sequence[Window]) -> None:
        """Take an input into the counts."""
        gone = lost(lengths, windows)
        self.texts += gone > 0
        self.tokens += gone
        self.chunked += len(windows) > 1
        self.chunks += len(windows) if len(windows) > 1 else 0
        if gone or len(windows) > 1:
            self.latest[index] = gone, len(windows)

    def add(self, other: Cut) -> None:
        """Take over what another counted after this one."""
        self.limit, self.latest = other.limit, other.latest
        self.texts += other.texts
        self.tokens += other.tokens
        self.chunked += other.chunked
        self.chunks += other.chunks

    def among(self, count: int) -> str:
        """One line for a reader; empty where nothing was too long.

        >>> Cut(256, texts=1, tokens=146).among(7)
        '1 of 7 texts cut to 256 tokens (146 tokens lost)'
        >>> Cut(256, chunked=2, chunks=6).among(7)
        '2 of 7 texts read in 6 chunks of at most 256 tokens'
        """
        said = []
        if self.texts:
            said.append(f"{self.texts:,} {{}}cut to {self.limit} tokens ({self.tokens:,} tokens lost)")
        if self.chunked:
            said.append(f"{self.chunked:,} {{}}read in {self.chunks:,} chunks of at most {self.limit} tokens")
        of = f"of {count:,} {'text' if count == 1 else 'texts'} "
        return ", ".join(part.format("" if number else of) for number, part in enumerate(said))
