"""What the columns of a table are: found by their names, else by what stands in them, shown, and open to correction.

Without names, a label is what repeats and is short; texts are what does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from bertkit.errors import BertkitError, unknown
from bertkit.tasks.table import Row, Table

SEEN = 2000
"""rows that are looked at"""
REPEATED = 0.5
"""values that differ, as a share of rows: a label has fewer"""
MANY = 1000
"""labels at most, where nobody names the column"""

TEXT = (
    "text",
    "sentence",
    "review",
    "content",
    "title",
    "comment",
    "text_a",
    "sentence1",
    "premise",
    "question1",
    "#1 string",
)
ASKED = ("question", "sentence")
"""text and pair where a table has both, as QNLI; each alone is a text"""
PAIR = ("text_b", "sentence2", "hypothesis", "question2", "pair", "#2 string")
LABEL = (
    "label",
    "labels",
    "class",
    "category",
    "gold_label",
    "is_duplicate",
    "quality",
    "target",
    "intent",
    "sentiment",
)
SCORE = ("score", "similarity", "rating")
NAMES = (*TEXT, *PAIR, *LABEL, *SCORE, "tokens", "tags", "question", "context", "answers")
"""words by which a first row is known as a header"""


@dataclass(frozen=True)
class Columns:
    """Which column is which; None where there is none."""

    text: str
    pair: str | None = None
    label: str | None = None
    score: str | None = None
    why: str = "by their names"

    def __str__(self) -> str:
        parts = {"text": self.text, "pair": self.pair, "label": self.label, "score": self.score}
        told = ", ".join(f"{part} {name!r}" for part, name in parts.items() if name is not None)
        return f"{told} ({self.why})"


def chosen(table: Table, named: Mapping[str, str]) -> Columns:
    """The columns of a table; `named` are those that somebody chose, such as {"text": "body"}."""
    for name in named.values():
        if name not in table.columns:
            raise unknown(f"column of {table.path}", name, table.columns)
    found = _by_name(table, named)
    if found is None or (found.label is None and found.score is None and len(table.columns) > 1):
        told = {"text": found.text, **named} if found else named
        found = _by_content(table, told) or found
    if found is None:
        raise BertkitError(
            f"{table.path}: it is not plain which of the columns {table.shown} is what. Say it: --text COLUMN --label "
            "COLUMN, and --pair COLUMN for a second text"
            + ("" if table.header else "; by these numbers, or by names where the first row has them")
        )
    return found


def _leave_out(error: BertkitError) -> None:
    """Rows that cannot be read are told when all are read, not while columns are looked for."""


def _by_name(table: Table, named: Mapping[str, str]) -> Columns | None:
    if not table.header and not named:
        return None
    lower = {name.lower(): name for name in reversed(table.columns)}

    def find(role: str, words: Sequence[str]) -> str | None:
        return named.get(role) or next((lower[word] for word in words if word in lower), None)

    asked = [lower[word] for word in ASKED if word in lower]
    text, pair = find("text", TEXT), find("pair", PAIR)
    if len(asked) == len(ASKED) and not pair and "text" not in named:
        text, pair = asked
    label, score = find("label", LABEL), find("score", SCORE)
    if text is None:
        return None
    return Columns(text, pair, label, None if label else score, "as you said" if named else "by their names")


def _by_content(table: Table, named: Mapping[str, str]) -> Columns | None:
    rows = list(islice(table.rows(_leave_out), SEEN))
    free = [name for name in table.columns if name not in named.values()]
    texts = {name: [str(row.values.get(name, "")) for row in rows] for name in free}
    label = named.get("label") or _label(texts)
    rest = [name for name in free if name != label and not _counts(texts[name])]
    rest = [*filter(None, [named.get("text")]), *rest]
    if not rest or len(rest) > 2 or (label is None and len(table.columns) > 1):
        return None
    return Columns(rest[0], rest[1] if len(rest) > 1 else None, label, None, "by what stands in them")


def _label(texts: Mapping[str, Sequence[str]]) -> str | None:
    """The column that repeats most, if one does: few values, shorter than any text."""
    rows = max(map(len, texts.values()), default=0)
    kinds = {name: len(set(values)) for name, values in texts.items()}
    fitting = [name for name, count in kinds.items() if count <= max(2, min(MANY, REPEATED * rows))]
    lengths = {name: sum(map(len, values)) / max(len(values), 1) for name, values in texts.items()}
    best = min(fitting, key=lambda name: (lengths[name], kinds[name]), default=None)
    return best if best is not None and len(texts) > 1 else None


def _counts(values: Sequence[str]) -> bool:
    """Whether a column only numbers its rows."""
    return len(values) > 1 and all(value.isdecimal() for value in values) and len(set(values)) == len(values)


def labels(rows: Iterable[Row], column: str, table: Table) -> list[str]:
    """The labels that occur, in a fixed order: numbers by size, words by the alphabet."""
    found: set[str] = set()
    for row in rows:
        found.add(label_of(row, column, table))
    if len(found) < 2:
        raise BertkitError(
            f"{table.path}: the column {column!r} has only one label, {next(iter(found), 'none')!r}. Two or more are "
            "needed to learn from; is it the right column? --label COLUMN names another"
        )
    numbers = all(name.lstrip("-").isdecimal() for name in found)
    return sorted(found, key=int) if numbers else sorted(found)


def label_of(row: Row, column: str, table: Table) -> str:
    """The label of a row, which must have one."""
    value: Any = row.values.get(column)
    if value is None or not str(value).strip():
        raise BertkitError(
            f"{table.where(row)} has no label in the column {column!r}: give it one, or take the row out"
        )
    return str(value).strip()
