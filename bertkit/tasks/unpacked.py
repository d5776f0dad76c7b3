"""Files of text as they come, packed or not."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from bertkit.errors import BertkitError


@contextmanager
def reading(path: Path) -> Iterator[IO[str]]:
    """A file as text, unpacked where it is packed, whose faults are told as ours."""
    try:
        with _bytes(path) as inside:
            yield io.TextIOWrapper(inside, encoding="utf-8-sig", newline="")
    except UnicodeDecodeError as error:
        raise BertkitError(f"{path}{_place(path)} is not UTF-8: {_remedy(path)}") from error
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise BertkitError(f"{path} cannot be read to its end: {error}") from error


@contextmanager
def _bytes(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as raw:
        yield cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if path.suffix.lower() == ".gz" else raw


def _place(path: Path) -> str:
    """The first line that is not UTF-8, for a message; it is looked for only when something is wrong."""
    with suppress(OSError, EOFError, zlib.error), _bytes(path) as file:  # packed files may be damaged as well
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return f", row {number} (byte {line[error.start]:#04x} at place {error.start + 1})"
    return ""


def _remedy(path: Path) -> str:
    coding = "latin1"
    with suppress(OSError, EOFError, zlib.error), _bytes(path) as file:
        coding = "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else coding
    return f"convert it first, for example: iconv -f {coding} -t utf-8 {path.name.removesuffix('.gz')}"
