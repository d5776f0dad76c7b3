"""Tables: a caption, headings, and rows whose numbers stand below each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.errors import BertkitError
from bertkit.report.markup import Html, element
from bertkit.report.number import is_number, shown

MOST_ROWS = 2000
"""rows that a page shows; more would make browsers slow, and nobody reads them there"""


@dataclass(frozen=True)
class Column:
    """A heading, and the format of the numbers below it, such as `.1%`."""

    name: str
    form: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of values. A heading is a str or a `Column`; the first cell of each row is the row's own heading.

    >>> table = Table("Cut", ["policy", Column("lost", ".1%")], [("head", 0.125)])
    >>> '<th scope="row">head</th><td class="number">12.5%</td>' in table.html()
    True
    """

    caption: str
    columns: Sequence[str | Column]
    rows: Sequence[Sequence[object]]

    def __post_init__(self) -> None:
        for index, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise BertkitError(
                    f"row {index} of the table {self.caption!r} has {len(row)} cells for {len(self.columns)} columns"
                )

    def html(self) -> Html:
        """The table, in a frame that scrolls where the window is narrower."""
        columns = [column if isinstance(column, Column) else Column(column) for column in self.columns]
        rows = self.rows[:MOST_ROWS]
        numeric = [_is_numeric([row[place] for row in rows]) for place in range(len(columns))]
        heads = [
            element("th", column.name, scope="col", class_="number" if right else None)
            for column, right in zip(columns, numeric, strict=True)
        ]
        body = [self._row(row, columns, numeric) for row in rows]
        left = len(self.rows) - len(rows)
        caption = f"{self.caption} (the first {len(rows):,} rows of {len(self.rows):,})" if left else self.caption
        table = element(
            "table",
            element("caption", element("span", caption)),
            element("thead", element("tr", *heads)),
            element("tbody", *body),
        )
        # reachable by keyboard, since it may scroll
        return element("div", table, class_="scroll", role="region", tabindex="0", aria_label=caption)

    def _row(self, row: Sequence[object], columns: Sequence[Column], numeric: Sequence[bool]) -> Html:
        cells = []
        for place, (value, column, right) in enumerate(zip(row, columns, numeric, strict=True)):
            text, kind = shown(value, column.form), "number" if right else None
            first = place == 0
            cells.append(element("th", text, scope="row", class_=kind) if first else element("td", text, class_=kind))
        return element("tr", *cells)


def _is_numeric(values: Sequence[object]) -> bool:
    """Whether a column stands to the right: it has numbers, or nothing at all where they would be."""
    return any(map(is_number, values)) or all(value is None for value in values)
