"""Histograms: how many values lie between which bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral

from bertkit.errors import BertkitError
from bertkit.report.axis import Axis, loose, tight
from bertkit.report.markup import Html, element
from bertkit.report.number import require_finite, shown
from bertkit.report.plot import ROW, Plot, short
from bertkit.report.table import Column, Table

MOST_BINS = 400
"""more bars than a window has pixels for cannot be seen"""


@dataclass(frozen=True)
class Mark:
    """A value on the horizontal axis with a name, such as a limit."""

    at: float
    label: str


@dataclass(frozen=True)
class Histogram:
    """Counts between edges, one fewer than edges; a value on an edge belongs to the bar on its right.

    `x_name` says what is measured and its unit, `y_name` what is counted. Edges that are all integers bound whole
    numbers. `beyond` counts values from the last edge on: they get a bar of their own, so that a few very large ones do
    not press all others together.

    >>> chart = Histogram("Lengths", [0, 8, 16], [3, 1], "tokens", "texts", [Mark(12, "limit")])
    >>> "<title>8 to 15 tokens: 1 texts (25.0%)</title>" in chart.html()
    True
    """

    title: str
    edges: Sequence[float]
    counts: Sequence[float]
    x_name: str
    y_name: str
    marks: Sequence[Mark] = ()
    beyond: float = 0

    def __post_init__(self) -> None:
        edges, counts = require_finite("edges", self.edges), require_finite("counts", self.counts)
        if len(edges) != len(counts) + 1 or not counts:
            raise BertkitError(
                f"{len(edges)} edges and {len(counts)} counts: a histogram has one more edge, 2 at least"
            )
        if len(counts) > MOST_BINS:
            raise BertkitError(f"{len(counts)} bars cannot be told apart: take at most {MOST_BINS}, with wider bounds")
        if any(left >= right for left, right in pairwise(edges)) or min(counts) < 0:
            raise BertkitError("edges must grow from left to right, and counts be 0 or more")
        require_finite("marks", [mark.at for mark in self.marks])
        require_finite("beyond", [self.beyond])
        if self.beyond < 0:
            raise BertkitError(f"beyond is {self.beyond}: a count is never below 0")

    def html(self) -> Html:
        """The chart as a figure."""
        bins = self._bins()
        x = tight(self.edges[0], bins[-1].right, whole=_whole(self.edges))
        y = loose(0, max(*(bin.count for bin in bins), 1), whole=_whole(self.counts))
        marks = _sorted([mark for mark in self.marks if x.low <= mark.at <= x.high], x)
        plot = Plot(self.title, x, y, self.x_name, self.y_name, rows=len(marks))
        bars = [self._bar(plot, bin) for bin in bins]
        lines = [_mark(plot, mark, row) for row, mark in enumerate(marks)]
        return plot.figure(self._summary(bins), [*bars, *lines], self._numbers(bins))

    def _bins(self) -> list[_Bin]:
        total, whole = (sum(self.counts) + self.beyond) or 1, _whole(self.edges)
        bins = []
        for (left, right), count in zip(pairwise(self.edges), self.counts, strict=True):
            last = right - 1 if whole else right
            words = shown(left) if left == last else f"{shown(left)} to {shown(last)}"
            bins.append(_Bin(left, right, count, count / total, words))
        if self.beyond:
            left, right = bins[-1].right, 2 * bins[-1].right - bins[-1].left
            bins.append(_Bin(left, right, self.beyond, self.beyond / total, f"{shown(left)} and more", "bar rest"))
        return bins

    def _bar(self, plot: Plot, bin: _Bin) -> Html:
        at, width = plot.left(bin.left), plot.left(plot.x.low + bin.right - bin.left)
        tall = max(plot.height(bin.count), 1.5) if bin.count else 0  # one text among a million can be seen
        words = f"{bin.words} {self.x_name}: {shown(bin.count)} {self.y_name} ({bin.share:.1%})"
        return element(
            "g",
            element("title", words),
            # the whole column answers the mouse, as a low bar alone would be hard to hit
            element("rect", x=at, y=plot.top, width=width, height=plot.bottom - plot.top, class_="hit"),
            element("rect", x=at, y=plot.bottom - tall, width=width, height=tall, class_=bin.kind),
            class_="bin",
        )

    def _summary(self, bins: list[_Bin]) -> str:
        tallest = max(bins, key=lambda bin: bin.count)
        marks = "".join(f" {mark.label}." for mark in self.marks)
        return (
            f"A histogram of {shown(sum(bin.count for bin in bins))} {self.y_name} by {self.x_name}, from "
            f"{bins[0].words} up to {bins[-1].words}; most, {shown(tallest.count)}, lie at {tallest.words}.{marks}"
        )

    def _numbers(self, bins: list[_Bin]) -> Table:
        rows = [(bin.words, bin.count, bin.share) for bin in bins]
        return Table(self.title, [self.x_name, self.y_name, Column("share", ".2%")], rows)


@dataclass(frozen=True)
class _Bin:
    left: float
    right: float
    count: float
    share: float
    words: str
    kind: str = "bar"


def _whole(values: Sequence[float]) -> bool:
    return all(isinstance(value, Integral) for value in values)


def _sorted(marks: list[Mark], x: Axis) -> list[Mark]:
    """From the outside in: a name, which points to the middle, then meets no line of the rows above it."""
    return sorted(marks, key=lambda mark: min(x.place(mark.at), 1 - x.place(mark.at)))


def _mark(plot: Plot, mark: Mark, row: int) -> Html:
    """A vertical line with its name in a row of its own, so that names never meet."""
    at, right = plot.left(mark.at), plot.x.place(mark.at) > 0.5
    height = ROW * (row + 2) - 4
    return element(
        "g",
        element("title", mark.label),
        element("line", x1=at, x2=at, y1=height - 11, y2=plot.bottom, class_="mark"),
        element(
            "text",
            short(mark.label),
            x=at,
            y=height,
            dx=-6 if right else 6,
            text_anchor="end" if right else "start",
            class_="mark",
        ),
    )
