"""Predictions of anybody: a file with one for each row of a dataset.

GLUE's submissions (index TAB prediction), one on each line, or the lines of `bertkit predict --json`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertkit.errors import BertkitError
from bertkit.tasks.node import Node, is_json, nodes
from bertkit.tasks.unpacked import reading

SHOWN = 3
"""ids that are named; the others are counted"""


class Said(NamedTuple):
    """One prediction."""

    where: str
    id: str | None
    """its index, where it has one"""
    value: str
    label: str | None = None
    """what was said beside a number: its likeliest bin"""


def said_in(path: Path, name: str) -> list[Said]:
    """The predictions of a file: index TAB prediction, one on each line, or objects that have it under `name`."""
    said = [_object(node, name) for node in nodes(path)] if is_json(path) else _lines(path)
    if not said:
        raise BertkitError(f"{path} has no predictions")
    return said


def _object(node: Node, name: str) -> Said:
    """A line of `bertkit predict --json`."""
    label = node.get("label")
    return Said(node.where, None, _plain(node.need(name)), None if label is None else _plain(label))


def _lines(path: Path) -> list[Said]:
    with reading(path) as file:
        lines = [line.strip("\r\n").split("\t") for line in file]
    while lines and not any(cell.strip() for cell in lines[-1]):
        lines.pop()
    said, width = list[Said](), len(lines[0]) if lines else 1
    for number, cells in enumerate(lines, 1):
        where = f"{path}, row {number}"
        if len(cells) != width or width > 2 or not cells[-1].strip():
            raise BertkitError(
                f"{where} has {len(cells)} columns ({', '.join(cells)[:60]!r}): write a prediction on each line, or on "
                "each an index, a tab and a prediction"
            )
        if width == 2 and number == 1 and not cells[0].strip().isdecimal():
            continue  # GLUE wants a header: index, prediction
        said.append(Said(where, cells[0].strip() if width == 2 else None, cells[-1].strip()))
    return said


def _plain(node: Node) -> str:
    if isinstance(node.value, bool) or not isinstance(node.value, str | int | float):
        raise node.error(f"is {json.dumps(node.value)[:60]}, but must be a label or a number")
    return str(node.value).strip()


def in_order(
    said: Sequence[Said], ids: Sequence[str], data: Path, predictions: Path, rows: Sequence[int] = ()
) -> list[Said]:
    """Predictions in the order of the data: by its ids, by numbers from 0 on, or by its `rows` as `bertkit predict
    --data` prints them, where they have an index."""
    if len(said) != len(ids):
        raise BertkitError(
            f"{predictions} has {len(said):,} predictions, but {data} has {len(ids):,} rows: there must be one for each"
        )
    if said[0].id is None:
        return list(said)
    found: dict[str, Said] = {}
    for one in said:
        assert one.id is not None  # one has an index, so all have
        if one.id in found:
            raise BertkitError(f"{one.where} has the index {one.id}, which stands above it already")
        found[one.id] = one
    numbers = [str(place) for place in range(len(ids))]
    for wanted in (ids, numbers, list(map(str, rows))):
        if found.keys() == set(wanted):
            return [found[id] for id in wanted]
    known = {*ids, *numbers}
    wrong = next((one for one in said if one.id not in known), said[0])
    named = f", or are called {few(ids)}" if any(ids) else ""
    raise BertkitError(
        f"{wrong.where} has the index {wrong.id}, which no row of {data} has: they count from 0 to {len(ids) - 1}"
        f"{named}"
    )


def finite(value: Any, where: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise BertkitError(f"{where}: {str(value)[:60]!r} is no number, and one is needed here")
    return number


def few(names: Sequence[str]) -> str:
    more = ["…"] if len(names) > SHOWN else []
    return ", ".join([*map(repr, names[:SHOWN]), *more]) or "none"
