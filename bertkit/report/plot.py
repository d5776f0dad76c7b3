"""The frame that charts share: a title, two axes, a surface to draw on, and the numbers behind it as a table.

Nothing is scaled: heights are pixels, widths are shares of the window, so that words keep their size on a telephone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.report.axis import Axis
from bertkit.report.markup import Html, element
from bertkit.report.table import Table

HEIGHT = 220
"""pixels between the horizontal axis and the top of the vertical one"""
BELOW = 44
"""pixels for the labels and the title of the horizontal axis"""
ROW = 17
"""pixels for a row of small words"""
CHARACTER = 7.2
"""pixels of a small digit"""


@dataclass(frozen=True)
class Plot:
    """Two axes and what they measure; `rows` are lines of words between the title and the surface."""

    title: str
    x: Axis
    y: Axis
    x_name: str
    y_name: str
    rows: int = 0

    @property
    def top(self) -> float:
        """Pixels above the surface."""
        return ROW * (self.rows + 1) + 6

    @property
    def bottom(self) -> float:
        """Where the horizontal axis lies, in pixels from the top."""
        return self.top + HEIGHT

    def left(self, value: float) -> str:
        """Where a value of the horizontal axis lies."""
        return percent(self.x.place(value))

    def height(self, value: float) -> float:
        """Pixels from the horizontal axis up to a value."""
        return self.y.place(value) * HEIGHT

    def figure(self, summary: str, drawn: Sequence[Html], numbers: Table, legend: Html | None = None) -> Html:
        """The whole chart. `summary` is a sentence for those who cannot see it."""
        return element(
            "figure",
            element("figcaption", self.title),
            *([legend] if legend else []),
            element("div", self._scale(), self._surface(summary, drawn), class_="frame"),
            element("details", element("summary", "The numbers"), numbers.html()),
            class_="chart",
        )

    def _scale(self) -> Html:
        labels = [(self.bottom - self.height(tick), self.y.label(tick)) for tick in self.y.ticks()]
        width = max((len(label) for _, label in labels), default=1) * CHARACTER + 8
        words = [element("text", label, x=width - 8, y=at + 4, text_anchor="end") for at, label in labels]
        return element("svg", *words, width=width, height=self.bottom + BELOW, class_="scale", aria_hidden="true")

    def _surface(self, summary: str, drawn: Sequence[Html]) -> Html:
        axis = element("line", x1=0, x2="100%", y1=self.bottom, y2=self.bottom, class_="axis")
        return element(
            "svg",
            element("title", self.title),
            element("desc", summary),
            *self._grid(),
            *drawn,
            axis,
            *self._words(),
            width="100%",
            height=self.bottom + BELOW,
            class_="plot",
            role="img",
        )

    def _grid(self) -> list[Html]:
        heights = [self.bottom - self.height(tick) for tick in self.y.ticks()]
        return [element("line", x1=0, x2="100%", y1=at, y2=at, class_="grid") for at in heights]

    def _words(self) -> list[Html]:
        words = [element("text", self.y_name, x=0, y=12, class_="name")]
        for tick in self.x.ticks():
            at = self.left(tick)
            words.append(element("line", x1=at, x2=at, y1=self.bottom, y2=self.bottom + 4, class_="axis"))
            words.append(element("text", self.x.label(tick), x=at, y=self.bottom + 18, text_anchor="middle"))
        name = element("text", self.x_name, x="100%", y=self.bottom + 38, text_anchor="end", class_="name")
        return [*words, name]


def percent(share: float) -> str:
    """A share of the width.

    >>> percent(0.12345)
    '12.345%'
    """
    return f"{share * 100:.3f}".rstrip("0").rstrip(".") + "%"


def short(text: str, longest: int = 36) -> str:
    """A label that fits; the whole of it is shown when the mouse rests on it.

    >>> short("a" * 50, 6)
    'aaaaa…'
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"
