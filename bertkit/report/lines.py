"""Lines: values that change along an axis, such as a loss over steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from numbers import Integral
from typing import TypeVar

from bertkit.errors import BertkitError
from bertkit.report.axis import loose, tight
from bertkit.report.markup import Html, element
from bertkit.report.number import is_number, require_finite, shown
from bertkit.report.palette import LINES
from bertkit.report.plot import HEIGHT, Plot, short
from bertkit.report.table import Table

MOST_POINTS = 1000
"""points of a line that are drawn; of more, each stretch keeps its lowest and its highest"""
MOST_DOTS, MOST_SEEN = 100, 24
"""points of a line that show their value under the mouse, and those that always show a dot"""
MOST_ROWS = 200
"""rows of the table behind the chart"""
WIDTH = 1000

Point = tuple[float, float]
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Line:
    """A name, and a value at each place, from left to right. A value that is not finite leaves a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float]

    def points(self) -> list[Point]:
        """Places and values together."""
        return list(zip(self.x, self.y, strict=True))


@dataclass(frozen=True)
class Level:
    """A value on the vertical axis with a name, such as what chance reaches."""

    at: float
    label: str


@dataclass(frozen=True)
class Lines:
    """Up to four lines over one axis, told apart by colour and by dashes, and levels to compare them with.

    >>> chart = Lines("Loss", [Line("train", [0, 100, 200], [3.0, 2.5, 2.25])], "steps", "loss")
    >>> "<title>train: 2.25 at 200 steps</title>" in chart.html()
    True
    """

    title: str
    lines: Sequence[Line]
    x_name: str
    y_name: str
    levels: Sequence[Level] = ()

    def __post_init__(self) -> None:
        require_finite(f"the levels of {self.title!r}", [level.at for level in self.levels])
        if not 0 < len(self.lines) <= LINES:
            raise BertkitError(
                f"{len(self.lines)} lines in {self.title!r}: one chart tells 1 to {LINES} apart; draw more"
            )
        for line in self.lines:
            if len(line.x) != len(line.y):
                raise BertkitError(f"the line {line.name!r} has {len(line.x)} places and {len(line.y)} values")
            places = require_finite(f"the places of {line.name!r}", line.x)
            if any(left > right for left, right in pairwise(places)):
                raise BertkitError(f"the places of {line.name!r} do not grow from left to right: sort them first")
            for value in line.y:
                if not is_number(value):
                    raise BertkitError(f"the line {line.name!r} has the value {value!r}, which is not a number")

    def html(self) -> Html:
        """The chart as a figure."""
        places = [place for line in self.lines for place in line.x] or [0.0]
        values = [value for line in self.lines for value in line.y if math.isfinite(value)] or [0.0]
        x = tight(min(places), max(places), whole=all(isinstance(place, Integral) for place in places))
        values += [level.at for level in self.levels]
        y = loose(min(values), max(values))
        plot = Plot(self.title, x, y, self.x_name, self.y_name)
        drawn = [self._drawn(plot, line, number) for number, line in enumerate(self.lines)]
        ends = [finite[-1] for line in self.lines if (finite := [y for y in line.y if math.isfinite(y)])]
        levels = [_level(plot, level, any(end > level.at for end in ends)) for level in self.levels]
        return plot.figure(self._summary(), [*drawn, *levels], self._numbers(), self._legend())

    def _drawn(self, plot: Plot, line: Line, number: int) -> Html:
        """Curves on a surface that is stretched to the window, dots on top of it that are not."""
        points = list(thinned(line.points(), MOST_POINTS))
        curves = [
            element(
                "polyline",
                points=" ".join(f"{plot.x.place(x) * WIDTH:.1f},{HEIGHT - plot.height(y):.1f}" for x, y in stretch),
                vector_effect="non-scaling-stroke",
            )
            for stretch in _stretches(points)
        ]
        surface = element(
            "svg",
            *curves,
            x=0,
            y=plot.top,
            width="100%",
            height=HEIGHT,
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            preserveAspectRatio="none",
        )
        finite = [point for point in line.points() if math.isfinite(point[1])]
        dots = [self._dot(plot, line.name, *point) for point in _spread(finite, MOST_DOTS)]
        quiet = " quiet" if len(dots) > MOST_SEEN else ""
        return element("g", surface, *dots, class_=f"line line-{number}{quiet}")

    def _dot(self, plot: Plot, name: str, x: float, y: float) -> Html:
        words = element("title", f"{name}: {shown(y)} at {shown(x)} {self.x_name}")
        place = {"cx": plot.left(x), "cy": f"{plot.bottom - plot.height(y):.1f}"}
        return element(
            "g", words, element("circle", **place, r=9, class_="hit"), element("circle", **place, r=2.5), class_="dot"
        )

    def _legend(self) -> Html:
        entries = []
        for number, line in enumerate(self.lines):
            stroke = element("line", x1=0, x2=26, y1=6, y2=6)
            drawn = element("svg", element("g", stroke, class_=f"line line-{number}"), width=26, height=12)
            entries.append(element("li", drawn, " ", line.name))
        return element("ul", *entries, class_="legend")

    def _summary(self) -> str:
        ends = []
        for line in self.lines:
            finite = [point for point in line.points() if math.isfinite(point[1])]
            if finite:
                ends.append(f"{line.name} goes from {shown(finite[0][1])} to {shown(finite[-1][1])}")
        levels = "".join(f" {level.label}: {shown(level.at)}." for level in self.levels)
        return f"{self.y_name} over {self.x_name}: {'; '.join(ends) or 'no values'}.{levels}"

    def _numbers(self) -> Table:
        values = [dict(line.points()) for line in self.lines]
        places = sorted({place for column in values for place in column})
        some = list(_spread(places, MOST_ROWS))
        caption = self.title if len(some) == len(places) else f"{self.title}, {len(some)} of {len(places):,} places"
        rows = [(place, *(column.get(place) for column in values)) for place in some]
        return Table(caption, [self.x_name, *(line.name for line in self.lines)], rows)


def _level(plot: Plot, level: Level, under: bool) -> Html:
    """A horizontal line, and its name at the right: above it, or under it where lines end above."""
    at = plot.bottom - plot.height(level.at)
    words = f"{level.label}: {shown(level.at)}"
    return element(
        "g",
        element("title", words),
        element("line", x1=0, x2="100%", y1=at, y2=at, class_="level"),
        element("text", short(words, 48), x="100%", y=at + (16 if under else -6), text_anchor="end", class_="mark"),
    )


def thinned(points: Sequence[Point], most: int) -> Iterator[Point]:
    """At most about so many points: of each stretch the lowest and the highest, so that no peak is lost.

    >>> list(thinned([(0, 1), (1, 9), (2, 2), (3, 3), (4, 0), (5, 3)], 4))
    [(0, 1), (1, 9), (3, 3), (4, 0)]
    """
    if len(points) <= most:
        yield from points
        return
    stretches = max(1, most // 2)
    for number in range(stretches):
        part = points[len(points) * number // stretches : len(points) * (number + 1) // stretches]
        finite = [point for point in part if math.isfinite(point[1])]
        if not finite:
            yield part[0]
            continue
        yield from sorted({min(finite, key=lambda point: point[1]), max(finite, key=lambda point: point[1])})


def _stretches(points: Iterable[Point]) -> Iterator[list[Point]]:
    """Points without a gap between them."""
    for finite, group in groupby(points, key=lambda point: math.isfinite(point[1])):
        if finite:
            yield list(group)


def _spread(values: Sequence[_Value], most: int) -> Iterator[_Value]:
    """At most so many of the values, evenly, with the first and the last.

    >>> list(_spread([0, 1, 2, 3, 4, 5, 6], 3))
    [0, 3, 6]
    """
    if len(values) <= most:
        yield from values
    else:
        yield from (values[round(step * (len(values) - 1) / (most - 1))] for step in range(most))
