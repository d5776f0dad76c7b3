"""Tables: rows of TSV, CSV, JSONL and parquet, compressed or not, with or without a header, one at a time.

A row's number is that of its first line in the file, so that an error leads to it. Columns without a header are called
1, 2, 3 …; what a column means is told in columns.py.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bertkit.errors import BertkitError
from bertkit.tasks.unpacked import reading
from bertkit.tasks.values import values

LONGEST = 2**27
"""characters of the longest cell"""
SNIFFED = 20
"""rows by which a file without a telling name is understood"""

SHOWN = 30
"""characters of a cell in a message"""

Values = Mapping[str, Any]
Refuse = Callable[[BertkitError], None]


class Row(NamedTuple):
    """One row: the line that it begins in, from 1 on, and its values by column."""

    number: int
    values: Values


@dataclass(frozen=True)
class Table:
    """A file of rows. `rows` reads it again each time it is asked."""

    path: Path
    columns: tuple[str, ...]
    header: bool
    """whether the first row names the columns"""
    kind: str
    """tsv, csv, parquet, jsonl (an object on each line) or json (objects in a list or an object, over several lines)"""

    def rows(self, refuse: Refuse | None = None) -> Iterator[Row]:
        """All rows, one at a time. `refuse` hears of a row that cannot be read; where it does not raise, the row is
        left out."""
        if self.kind in _DELIMITERS:
            return _cells(self, refuse or _stop)
        match self.kind:
            case "parquet":
                return _parquet(self.path)
            case "jsonl":
                return _lines(self.path, refuse or _stop)
        return _objects(self.path, refuse or _stop)

    def where(self, row: Row) -> str:
        """How a message names a row."""
        return f"{self.path}, row {row.number}"

    @property
    def shown(self) -> str:
        """Its columns for a message; where nothing names them, with what stands in the first row."""
        first = None if self.header else next(self.rows(lambda error: None), None)
        if first is None:
            return ", ".join(self.columns)
        return ", ".join(f"{name} ({_short(value)!r})" for name, value in first.values.items())


_DELIMITERS = {"tsv": "\t", "csv": ","}
_JSON = dict.fromkeys((".jsonl", ".ndjson", ".json"), "json")
_SUFFIXES = {".tsv": "tsv", ".csv": "csv", ".parquet": "parquet", **_JSON}


def opened(path: Path, names: Sequence[str] = ()) -> Table:
    """The table in a file. Its first row is a header where one of `names` is in it, whatever the case."""
    if not path.is_file():
        raise missing(path)
    kind = kind_of(path) or _sniffed(path)
    if kind == "csv" and _tabbed(path):
        kind = "tsv"
    if kind == "parquet":
        return Table(path, _parquet_columns(path), header=True, kind=kind)
    if kind == "json":
        kind = "jsonl" if _is_by_lines(path) else "json"
        first = next((_lines if kind == "jsonl" else _objects)(path, _stop), None)
        if first is None:
            raise BertkitError(f"{path} has no rows")
        return Table(path, tuple(first.values), header=True, kind=kind)
    row = next(_records(path, kind), None)
    if row is None:
        raise BertkitError(f"{path} has no rows")
    cells = [cell.strip() for cell in row[1]]
    header = bool({cell.lower() for cell in cells} & {name.lower() for name in names}) and len(set(cells)) == len(cells)
    columns = tuple(cells) if header else tuple(str(place + 1) for place in range(len(cells)))
    return Table(path, columns, header, kind)


def missing(path: Path) -> BertkitError:
    """The error for what is no file, with the files that are there."""
    home = path if path.is_dir() else path.parent
    there = sorted(each.name for each in home.glob("*") if each.is_file()) if home.is_dir() else []
    files = ", ".join(there[:10]) + (", …" if there[10:] else "") if there else "none"
    what = f"{path} is a folder: give one of its files" if path.is_dir() else f"there is no file {path}"
    return BertkitError(f"{what}. In {home} are: {files}" if home.is_dir() else f"{what}, nor a folder {home}")


def kind_of(path: Path) -> str:
    """What a file's name says it is: tsv, csv, json or parquet; empty where it does not."""
    return _SUFFIXES.get(Path(path.name.lower().removesuffix(".gz")).suffix, "")


def _sniffed(path: Path) -> str:
    """tsv where the first lines have tabs, json where they are objects, else csv."""
    with reading(path) as file:
        lines = [line for _, line in zip(range(SNIFFED), file, strict=False)]
    if lines and lines[0].lstrip().startswith(("{", "[")):
        return "json"
    return "tsv" if any("\t" in line for line in lines) else "csv"


def _tabbed(path: Path) -> bool:
    """Whether a file that is called .csv has tabs in place of commas, as some do."""
    with reading(path) as file:
        line = file.readline()
    return "\t" in line and "," not in line


def _records(path: Path, kind: str) -> Iterator[tuple[int, list[str]]]:
    """The line that each record begins in, and its cells. TSV has no quotes, as in GLUE; CSV has."""
    csv.field_size_limit(LONGEST)
    quoting: Literal[0, 3] = csv.QUOTE_NONE if kind == "tsv" else csv.QUOTE_MINIMAL
    with reading(path) as file:
        reader = csv.reader(file, delimiter=_DELIMITERS[kind], quoting=quoting)
        number = 1
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield number, cells
            number = reader.line_num + 1


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _stop(error: BertkitError) -> None:
    raise error


def _cells(table: Table, refuse: Refuse) -> Iterator[Row]:
    records = _records(table.path, table.kind)
    if table.header:
        next(records)
    width = len(table.columns)
    for number, cells in records:
        if len(cells) != width:
            refuse(
                BertkitError(
                    f"{table.path}, row {number} has {len(cells)} columns, but the first row has {width} "
                    f"({', '.join(table.columns)}): {_remedy(table.kind)}"
                )
            )
            continue
        yield Row(number, dict(zip(table.columns, cells, strict=True)))


def _remedy(kind: str) -> str:
    if kind == "tsv":
        return "is there a tab or a line end inside a text? A .tsv has none; a .csv may have them between quotes"
    return 'put texts that have commas, quotes or line ends between quotes ("), and write " twice inside'


def _is_by_lines(path: Path) -> bool:
    """Whether the first line that is not blank is a whole object."""
    with reading(path) as file:
        first = next((line for line in file if line.strip()), "")
    try:
        return isinstance(json.loads(first), dict) or not first
    except (ValueError, RecursionError):
        return not first.strip().startswith(("[", "{")) or len(first.strip()) > 1


def _lines(path: Path, refuse: Refuse) -> Iterator[Row]:
    with reading(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as error:
                refuse(BertkitError(f"{path}, row {number} is not JSON: {error}. Every line must be one object"))
                continue
            if not isinstance(found, dict):
                refuse(BertkitError(f"{path}, row {number} is no JSON object: every line must be one, by columns"))
                continue
            yield Row(number, found)


def _objects(path: Path, refuse: Refuse) -> Iterator[Row]:
    """Objects that lie in a list, in one object under any names, or one after the other."""
    number = 0
    for _, found in values(path):
        inside = found.values() if isinstance(found, dict) else found if isinstance(found, list) else [found]
        nested = isinstance(found, list) or (inside and all(isinstance(one, dict) for one in inside))
        for one in inside if nested else [found]:
            number += 1
            if isinstance(one, dict):
                yield Row(number, one)
            else:
                refuse(BertkitError(f"{path}, row {number} is no JSON object: every row must be one, by columns"))


def _parquet_columns(path: Path) -> tuple[str, ...]:
    return tuple(_arrow(path).schema_arrow.names)


def _parquet(path: Path) -> Iterator[Row]:
    number = 0
    file = _arrow(path)
    import pyarrow

    try:
        for batch in file.iter_batches(batch_size=1024):
            for values in batch.to_pylist():
                number += 1
                yield Row(number, values)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise BertkitError(f"{path} cannot be read to its end: {error}") from error


def _arrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ModuleNotFoundError:
        raise BertkitError("to read .parquet files: pip install 'bertkit[corpus]'") from None
    try:
        return parquet.ParquetFile(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise BertkitError(f"{path} is no parquet file: {error}") from None
