"""Nodes: what stands in a JSON file or in a row of a table, with its place, so that an error leads to it.

A JSON file is one value, an object on each line, or objects one after the other over several lines each.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertkit.errors import BertkitError
from bertkit.tasks.table import kind_of, missing, opened
from bertkit.tasks.unpacked import reading
from bertkit.tasks.values import BLOCK, values

_SHOWN = reprlib.Repr()
_SHOWN.maxstring = 60


class Node(NamedTuple):
    """A value and where it stands.

    >>> node = Node({"data": [{"id": 7}]}, Path("x.json"), 1)
    >>> node.need("data").each()[0].need("title")
    Traceback (most recent call last):
    bertkit.errors.BertkitError: x.json, row 1, data[0] has no 'title': it has id
    """

    value: Any
    path: Path
    row: int
    """the line that the outermost value begins in, or its number in a list; from 1 on"""
    place: str = ""
    """the way from there, such as data[3].title"""

    @property
    def where(self) -> str:
        """How a message names it."""
        return f"{self.path}, row {self.row}" + (f", {self.place}" if self.place else "")

    def get(self, *names: str) -> Node | None:
        """What an object has under the first of these names; None where there is none of them, or null."""
        if not isinstance(self.value, Mapping):
            raise self.error(f"is {_SHOWN.repr(self.value)}, but must be an object with {' or '.join(names)}")
        for name in names:
            if self.value.get(name) is not None:
                return self._below(name)
        return None

    def _below(self, name: str) -> Node:
        shown = _plain(name)
        return Node(self.value[name], self.path, self.row, f"{self.place}.{shown}" if self.place else shown)

    def need(self, *names: str) -> Node:
        """The same, where there must be one."""
        found = self.get(*names)
        if found is None:
            there = ", ".join(map(_plain, self.value)) or "nothing"
            raise self.error(f"has no {' or '.join(map(repr, names))}: it has {there}")
        return found

    def inside(self) -> list[tuple[str, Node]]:
        """All that an object has, by name."""
        if not isinstance(self.value, Mapping):
            raise self.error(f"is {_SHOWN.repr(self.value)}, but must be an object")
        return [(name, self._below(name)) for name in self.value]

    def each(self) -> list[Node]:
        """What is in a list."""
        if not isinstance(self.value, list):
            raise self.error(f"is {_SHOWN.repr(self.value)}, but must be a list")
        return [Node(one, self.path, self.row, f"{self.place}[{place}]") for place, one in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error(f"is {_SHOWN.repr(self.value)}, but must be a text")
        return self.value

    def number(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.error(f"is {_SHOWN.repr(self.value)}, but must be a whole number")
        return self.value

    def name(self) -> str:
        """A title or an id: a text or a number."""
        return self.value if isinstance(self.value, str) else str(self.number())

    def unpacked(self) -> Node:
        """What the cell of a table holds, which may be JSON."""
        if not isinstance(self.value, str) or not self.value.startswith(("{", "[")):
            return self
        try:
            return self._replace(value=json.loads(self.value))
        except (ValueError, RecursionError):
            return self

    def error(self, message: str) -> BertkitError:
        return BertkitError(f"{self.where} {message}")


def _plain(name: object) -> str:
    """A key as it is, where that can be printed."""
    text = str(name)
    return text if text.isprintable() and text else repr(text)


def nodes(path: Path, names: Sequence[str] = ()) -> Iterator[Node]:
    """The rows of a table, or the values of a JSON file; those of a list one by one. `names` are those of a header."""
    if not is_json(path):
        for row in opened(path, names).rows():
            yield Node(row.values, path, row.number)
        return
    number = 0
    for line, found in values(path):
        if not isinstance(found, list):
            yield Node(found, path, line)
            continue
        for value in found:
            number += 1
            yield Node(value, path, number)


def is_json(path: Path) -> bool:
    """Whether a file is JSON: by its name, else by how it begins."""
    if not path.is_file():
        raise missing(path)
    if kind := kind_of(path):
        return kind == "json"
    with reading(path) as file:
        return file.read(BLOCK).lstrip()[:1] in ("{", "[")
