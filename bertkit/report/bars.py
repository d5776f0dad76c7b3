"""Bars: one value per name, as a table whose middle column is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bertkit.errors import BertkitError
from bertkit.report.markup import Html, element
from bertkit.report.number import require_finite, shown
from bertkit.report.plot import percent

MOST_BARS = 500


@dataclass(frozen=True)
class Bars:
    """Values by name, from a common zero; those below it are drawn to the left, in another colour.

    `name` heads the names and `unit` the values; `form` is a format specification, such as `.1%`.

    >>> '<td class="number">1,200</td>' in Bars("Languages", {"en": 1200, "zh": 300}, unit="texts").html()
    True
    """

    title: str
    values: Mapping[str, float]
    name: str = ""
    unit: str = ""
    form: str = ""

    def __post_init__(self) -> None:
        require_finite(f"the values of {self.title!r}", list(self.values.values()))
        if not 0 < len(self.values) <= MOST_BARS:
            raise BertkitError(f"{len(self.values)} bars in {self.title!r}: give 1 to {MOST_BARS}")

    def html(self) -> Html:
        """The chart as a table."""
        low, high = min(0.0, *self.values.values()), max(0.0, *self.values.values())
        heads = [
            element("th", self.name or "name", scope="col"),
            element("td", class_="drawn"),
            element("th", self.unit or "value", scope="col", class_="number"),
        ]
        rows = [self._row(name, value, low, high) for name, value in self.values.items()]
        head = element("thead", element("tr", *heads), class_=None if self.name or self.unit else "hidden")
        table = element("table", element("caption", self.title), head, element("tbody", *rows), class_="bars")
        return element("div", table, class_="chart")

    def _row(self, name: str, value: float, low: float, high: float) -> Html:
        extent = (high - low) or 1.0
        start, width = (min(value, 0.0) - low) / extent, abs(value) / extent
        zero = percent(-low / extent)
        words = f"{name}: {shown(value, self.form)} {self.unit}".strip()
        drawn = element(
            "svg",
            element("title", words),
            element(
                "rect", x=percent(start), y=2, width=percent(width), height=14, class_="below" if value < 0 else "bar"
            ),
            element("line", x1=zero, x2=zero, y1=0, y2=18, class_="axis"),
            width="100%",
            height=18,
            aria_hidden="true",
        )
        return element(
            "tr",
            element("th", name, scope="row"),
            element("td", drawn, class_="drawn"),
            element("td", shown(value, self.form), class_="number"),
        )
