"""Layouts: how the files of a dataset are read into items.

TableLayout       rows with columns for texts, labels, scores: TSV, CSV, JSONL, parquet
WordsLayout       a word and its tag on each line (CoNLL), or tokens and tags in a table
QuestionsLayout   SQuAD's JSON, or question, context and answers in a table
OptionsLayout     questions with several options: SWAG, CODAH, C3, ARCT, RACE
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError
from bertkit.spec import Spec
from bertkit.tasks import choices, conll, squad
from bertkit.tasks.columns import NAMES
from bertkit.tasks.item import Item, Texts
from bertkit.tasks.table import Row, Table, opened

SEPARATOR = "\t"
"""between the two texts of a pair on one line"""

Refuse = Callable[[BertkitError], None]
"""what is done about a row that cannot be read: it raises, or the row is left out"""


def stop(error: BertkitError) -> None:
    """Nothing is left out."""
    raise error


@dataclass(frozen=True)
class Layout(Spec):
    """The base of all layouts."""

    def items(self, path: Path, refuse: Refuse = stop) -> Iterator[Item]:
        """The items of a file, one at a time."""
        raise NotImplementedError


@dataclass(frozen=True)
class TableLayout(Layout):
    """Of each role the column that has it: the first of these names that a table has. Without a header columns are
    called 1, 2, 3 …"""

    text: tuple[str, ...]
    pair: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    """a label, several, or a number"""
    id: tuple[str, ...] = ("index", "id")
    only: tuple[str, ...] = ()
    """rows that have these values, each as column=value; tables without such a column are taken whole"""
    alias: tuple[str, ...] = ()
    """labels that some files write otherwise, each as theirs=ours"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.text:
            raise BertkitError("TableLayout.text is empty: name the column of texts")

    def items(self, path: Path, refuse: Refuse = stop) -> Iterator[Item]:
        table = self.opened(path)
        fields = self._unlabelled(table) or [_required(table, names) for names in (self.text, self.pair) if names]
        label, id = (next((name for name in names if name in table.columns), None) for names in (self.label, self.id))
        label = None if label in fields else label
        wanted = [(column, value) for column, _, value in (one.partition("=") for one in self.only)]
        wanted = [(column, value) for column, value in wanted if column in table.columns]
        ours = dict(one.split("=", 1) for one in self.alias)
        for row in table.rows(refuse):
            if all(str(row.values.get(column)) == value for column, value in wanted):
                try:
                    texts = tuple(_text(table, row, name) for name in fields)
                    told = None if label is None else _label(row.values.get(label))
                except BertkitError as error:
                    refuse(error)
                    continue
                name = "" if id is None else str(row.values.get(id))
                yield Texts(path, row.number, texts, None if told is None else ours.get(told, told), name)

    def opened(self, path: Path) -> Table:
        """The table of a file; a first row with one of our columns is its header."""
        named = [name for name in (*self.text, *self.pair, *self.label) if not name.isdecimal()]
        return opened(path, named or NAMES)

    def named(self, given: str | Mapping[str, Any], number: int) -> Mapping[str, Any]:
        """A text, a pair with a tab between its texts, or values by the names of columns; as `text` and `pair`.

        >>> TableLayout(("premise",), ("hypothesis",)).named("It rains.\\tIt is wet.", 1)
        {'text': 'It rains.', 'pair': 'It is wet.'}
        """
        names = {"text": ("text", *self.text)} | ({"pair": ("pair", *self.pair)} if self.pair else {})
        if isinstance(given, str):
            given = dict(zip(names, given.split(SEPARATOR, 1) if self.pair else [given], strict=False))
        found = {}
        for role, several in names.items():
            found[role] = next((given[name] for name in several if name in given), None)
            if not isinstance(found[role], str):
                wanted = "two texts with a tab between them" if self.pair else "a line of text"
                shown = " and ".join(several[0] for several in names.values())
                there = f"{role!r} is {found[role]!r}" if role in given else f"it has {', '.join(given)}"
                raise BertkitError(f"input {number}: this model wants {wanted}, or an object with {shown}; {there}")
        if not self.pair and given.get("pair") is not None:
            raise BertkitError(f"input {number} has a pair of texts, and this model learned from single ones")
        return found

    def _unlabelled(self, table: Table) -> list[str]:
        """The columns of texts where all columns are counted and only that of labels is left out, as in test sets."""
        fields = [*self.text, *self.pair]
        there = sorted([*fields, *self.label])
        if there != [str(place + 1) for place in range(len(there))] or len(table.columns) != len(fields):
            return []
        return [str(sorted(fields).index(name) + 1) for name in fields]


@dataclass(frozen=True)
class WordsLayout(Layout):
    """Words with tags."""

    entities: bool = True
    """whether tags say where entities begin and go on; else they are any words, such as parts of speech"""

    def items(self, path: Path, refuse: Refuse = stop) -> Iterator[Item]:
        return conll.sentences(path, entities=self.entities)


@dataclass(frozen=True)
class QuestionsLayout(Layout):
    """Questions about contexts."""

    def items(self, path: Path, refuse: Refuse = stop) -> Iterator[Item]:
        return squad.questions(path)


@dataclass(frozen=True)
class OptionsLayout(Layout):
    """Questions with options."""

    def items(self, path: Path, refuse: Refuse = stop) -> Iterator[Item]:
        return choices.options(path)


def _required(table: Table, names: tuple[str, ...]) -> str:
    found = next((name for name in names if name in table.columns), None)
    if found is not None:
        return found
    wanted, counted = " or ".join(map(repr, names)), all(name.isdecimal() for name in names)
    if counted and table.header:
        remedy = "columns are counted here, as in the table that was learned from: take the header off"
    elif counted:
        remedy = "there must be as many columns as in the table that was learned from"
    else:
        remedy = (
            "call it so in the first row. Before learning, columns may be named: --text COLUMN --label COLUMN, and "
            "--pair COLUMN for a second text"
        )
    raise BertkitError(f"{table.path} has no column {wanted}. It has: {table.shown}; {remedy}")


def _text(table: Table, row: Row, column: str) -> str:
    value = row.values.get(column)
    if not isinstance(value, str):
        raise BertkitError(
            f"{table.where(row)}: {column!r} is {value!r}, not a text. Write one, or take the row out: --on-error skip"
        )
    return value


def _label(value: Any) -> str | None:
    """A label as text: several in a list with | between them, truth values as 0 and 1."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        return "|".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)


def require_only(layout: TableLayout, paths: Sequence[Path]) -> None:
    """Refuse a wish for rows of which no table can say whether they have it."""
    for one in layout.only:
        column, sign, _ = one.partition("=")
        there = {name: None for path in paths for name in layout.opened(path).columns}
        if not sign or column not in there:
            raise BertkitError(f"--only {one}: write it as COLUMN=VALUE, with one of the columns {', '.join(there)}")
