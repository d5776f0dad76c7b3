"""What is masked: parts of the text, taken in an order by chance while they fit into the room for them.

    Pieces       any tokens (BERT, https://arxiv.org/abs/1810.04805)
    WholeWords   all tokens of some words (Google's later models)
    Phrases      the same, with the phrases or names of a lexicon for words (ERNIE, https://arxiv.org/abs/1904.09223)
    NGrams       runs of a few words (ALBERT, https://arxiv.org/abs/1909.11942)
    Spans        longer runs, each hidden, replaced or kept as one (SpanBERT, https://arxiv.org/abs/1907.10529)

For runs, all words of a text are cut into runs of drawn lengths, of which some are taken: so they never overlap.

Letters: B examples · T tokens · M masked · W words · R runs of words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from bertkit.corpus.chance import Array, fraction, number
from bertkit.corpus.flat import Flat
from bertkit.errors import BertkitError, look_up
from bertkit.spec import Bounds, Count, Rate, Spec
from bertkit.text.ranges import ranges

PACKED = 1 << 16
"""examples, and tokens of each, up to which they are sorted as single numbers"""

LENGTHS = 3 << 40
"""where the stream for lengths of runs begins; that of the order begins at 0"""

Odds = Annotated[float, Bounds(0)]
"""How likely something is, beside other odds."""


class Chosen(NamedTuple):
    """Tokens to be masked."""

    at: Array
    """[M] their places, ascending"""
    decided: Array
    """[M] the place whose chance decides what becomes of each: its own, or for all of a span that of the first"""


@dataclass(frozen=True)
class Choose(Spec):
    """Which tokens are masked."""

    @property
    def lexicons(self) -> tuple[str, ...]:
        """The lexicons whose units it must know: `Examples(..., lexicons=choose.lexicons)`."""
        return ()

    def chosen(self, flat: Flat, free: Array, room: Array) -> Chosen:
        """At most `room` [B] tokens of each example, and only where `free` [T]."""
        raise NotImplementedError


@dataclass(frozen=True)
class Pieces(Choose):
    """Any tokens, each as likely as any other."""

    def chosen(self, flat: Flat, free: Array, room: Array) -> Chosen:
        at = np.flatnonzero(free)
        order, first, count = _shuffled(flat, at)
        taken = np.sort(at[order[ranges(first, np.minimum(room, count))]])
        return Chosen(taken, taken)


@dataclass(frozen=True)
class WholeWords(Choose):
    """All tokens of some words: words in any order, passing over one that would be too much, as Google does it."""

    def chosen(self, flat: Flat, free: Array, room: Array) -> Chosen:
        return _whole(flat, flat.words, free, room)


@dataclass(frozen=True)
class Phrases(Choose):
    """Whole words, where a phrase of the lexicon is one word. The corpus was built with `--lexicon NAME=FILE`."""

    lexicon: str

    @property
    def lexicons(self) -> tuple[str, ...]:
        return (self.lexicon,)

    def chosen(self, flat: Flat, free: Array, room: Array) -> Chosen:
        return _whole(flat, look_up("lexicon of these examples", self.lexicon, flat.units), free, room)


@dataclass(frozen=True)
class NGrams(Choose):
    """Runs of neighbouring words. One that would be too much is shortened by words, as ALBERT does it.

    >>> NGrams().odds   # as 1 to 1/2 to 1/3
    (6, 3, 2)
    """

    odds: tuple[Odds, ...] = (6, 3, 2)
    """of runs of 1, 2, 3 … words"""
    words: bool = True
    """whole ones; otherwise any tokens count as such"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not sum(self.odds) > 0:
            raise BertkitError(f"NGrams.odds are {self.odds}: give odds of 1, 2, 3 … words, say (6, 3, 2)")

    def chosen(self, flat: Flat, free: Array, room: Array) -> Chosen:
        starts = flat.words if self.words else np.ones(len(flat.ids), bool)
        at, _ = _runs(flat, starts, free, room, np.array(self.odds, float))
        return Chosen(at, at)


@dataclass(frozen=True)
class Spans(Choose):
    """Runs of whole words, of which each is hidden, replaced or kept as one; every token is replaced for itself.

    Lengths are geometric up to the longest, 3.8 words on average. The last span is cut where the room ends, before a
    word.
    """

    stop: Rate = 0.2
    """how often a span ends after any of its words"""
    longest: Count = 10

    def chosen(self, flat: Flat, free: Array, room: Array) -> Chosen:
        return _runs(flat, flat.words, free, room, (1 - self.stop) ** np.arange(self.longest))


def _words(flat: Flat, starts: Array, free: Array) -> tuple[Array, Array]:
    """The first token of each word that is free and how many it has, [W]; none reaches beyond a special token."""
    opens = np.append(True, ~free[:-1])
    opens[flat.starts[:-1]] = True
    words = np.flatnonzero(starts | opens | ~free)
    sizes = np.diff(words, append=len(free))
    kept = free[words]
    return words[kept], sizes[kept]


def _whole(flat: Flat, starts: Array, free: Array, room: Array) -> Chosen:
    words, sizes = _words(flat, starts, free)
    order, _, count = _shuffled(flat, words)
    rows = np.repeat(np.arange(len(flat)), count)
    taken = order[_fitting(rows, sizes[order], room)]
    at = np.sort(ranges(words[taken], sizes[taken]))
    return Chosen(at, at)


def _runs(flat: Flat, starts: Array, free: Array, room: Array, odds: Array) -> Chosen:
    """Runs in any order, of each as many words as fit; what is decided, is decided by a run's first token."""
    words, sizes = _words(flat, starts, free)
    heads = _cut(flat, words, sizes, odds)
    order, _, _ = _shuffled(flat, words[heads])
    counts = np.diff(heads, append=len(words))[order]  # words of each run, [R]
    inner, run = ranges(heads[order], counts), np.repeat(np.arange(len(order)), counts)  # run by run, [W]
    rows = np.searchsorted(flat.starts, words[heads[order]], "right") - 1  # [R]
    taken = _fitting(rows[run], sizes[inner], room, run)
    inner, head = inner[taken], words[heads[order[run[taken]]]]
    at, decided = ranges(words[inner], sizes[inner]), np.repeat(head, sizes[inner])
    ascending = np.argsort(at)
    return Chosen(at[ascending], decided[ascending])


def _cut(flat: Flat, words: Array, sizes: Array, odds: Array) -> Array:
    """The words with which runs begin, [R]. What stands between special tokens is cut from its first word on; the n-th
    run has the length that the n-th word draws.
    """
    row = np.searchsorted(flat.starts, words, "right") - 1
    chance = fraction(number(flat.keys[row], LENGTHS + words - flat.starts[row]))
    lengths = 1 + np.searchsorted(np.cumsum(odds / odds.sum())[:-1], chance, "right")
    fresh = np.ones(len(words), bool)
    fresh[1:] = (words[1:] > words[:-1] + sizes[:-1]) | (row[1:] > row[:-1])
    first = np.flatnonzero(fresh)
    count = np.diff(first, append=len(words))
    before = np.cumsum(lengths) - lengths
    heads = before + np.repeat(first - before[first], count)
    kept: Array = heads[heads < np.repeat(first + count, count)]
    return kept


def _shuffled(flat: Flat, at: Array) -> tuple[Array, Array, Array]:
    """These tokens of each example in an order by chance: indices into `at`, example by example, and where each
    example's begin and how many there are, [B].
    """
    bounds = np.searchsorted(at, flat.starts)
    first, count = bounds[:-1], np.diff(bounds)
    row = np.repeat(np.arange(len(flat)), count)
    chance = number(flat.keys[row], at - flat.starts[row]) >> np.uint64(32)
    own = np.arange(len(at)) - first[row]
    if len(flat) > PACKED or count.max() > PACKED:
        return np.lexsort((own, chance, row)), first, count
    packed = (row.astype(np.uint64) << np.uint64(48)) | (chance << np.uint64(16)) | own.astype(np.uint64)
    packed.sort()  # several times as quick as sorting indices
    return first[row] + (packed & np.uint64(2**16 - 1)).astype(np.int64), first, count


def _fitting(rows: Array, sizes: Array, room: Array, runs: Array | None = None) -> Array:
    """Which words are taken if each example takes those that still fit, in order: indices of rows [W] and sizes [W].
    Of a run, ascending [W], none is taken after one that did not fit.

    In each turn an example takes what fits up to the first word that does not; no later word as long as that one can.
    """
    taken, left, open_ = np.zeros(len(rows), bool), room.copy(), np.arange(len(rows))
    ends = np.full(len(rows), len(rows))  # of runs: the first word that did not fit
    while True:
        fits = sizes[open_] <= left[rows[open_]]
        if runs is not None:
            over = open_[~fits][::-1]
            ends[runs[over]] = over  # the first one of each run is written last
            fits = open_ < ends[runs[open_]]
        open_ = open_[fits]
        if not len(open_):
            return np.flatnonzero(taken)
        row, size = rows[open_], sizes[open_]
        first = np.flatnonzero(np.diff(row, prepend=-1))
        running = np.cumsum(size)
        running -= np.repeat(running[first] - size[first], np.diff(first, append=len(row)))
        fits = running <= left[row]
        taken[open_[fits]] = True
        left -= np.bincount(row[fits], size[fits], len(left)).astype(np.int64)
        open_ = open_[~fits]
