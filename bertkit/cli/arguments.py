"""Arguments that several commands take, in the same words."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from bertkit.errors import BertkitError

ModelName = Annotated[
    str, typer.Argument(metavar="MODEL", help="A directory, an alias such as minilm, or a Hugging Face name.")
]
Texts = Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="Texts; for those in a file see --input.")]
Input = Annotated[
    str | None, typer.Option("--input", "-i", metavar="FILE", help="A UTF-8 file, one text per line; - is stdin.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]

_LATIN = "convert it first, for example: iconv -f latin1 -t utf-8 {name}"
_FOREIGN = {
    b"\x1f\x8b": "it is compressed, unpack it on the way (zcat {name} | …) and give - in its place",
    b"\xff\xfe": "it is UTF-16, convert it first: iconv -f utf-16 -t utf-8 {name}",
    b"\xfe\xff": "it is UTF-16, convert it first: iconv -f utf-16 -t utf-8 {name}",
}
"""how files begin that are often taken for UTF-8, and what to do"""


def texts_from(texts: list[str] | None, source: str | None, example: str) -> Iterator[str]:
    """The texts on the command line, or the lines of a file, one at a time."""
    if texts and source is not None:
        raise BertkitError(f"give texts or --input, not both. Example: {example}")
    if source is not None:
        _require_readable(source)
        return lines(source)
    if not texts:
        raise BertkitError(f"no texts: write them after MODEL, or --input FILE (- is stdin). Example: {example}")
    if len(texts) == 1 and len(texts[0]) < 256 and Path(texts[0]).is_file():
        typer.echo(f"bertkit: {texts[0]!r} is taken as a text. For the lines of the file: --input {texts[0]}", err=True)
    return iter(texts)


def require_page(html: Path, overwrite: bool) -> None:
    """Say at once what would otherwise be said when the page is written."""
    if html.suffix not in (".html", ".htm"):
        raise BertkitError(f"--html {html} must end in .html, which browsers open: --html {html.stem}.html")
    if html.is_file() and not overwrite:
        raise BertkitError(f"--html {html} exists. Give another name, or add --overwrite to replace it")


def bytes_of(option: str, given: str) -> int:
    """A size in bytes.

    >>> bytes_of("--max-ram", "1.5G")
    1610612736
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?)(?:i?B)?", given.strip(), re.IGNORECASE)
    if not found:
        raise BertkitError(f"{option} {given!r} is no size: write it like 2G or 800M")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


def lines(source: str) -> Iterator[str]:
    """The lines of a UTF-8 file (`-` is standard input) without their ends; an empty line is an empty text."""
    if source == "-":
        yield from _decoded(sys.stdin.buffer, "standard input", source)
        return
    with Path(source).open("rb") as file:
        yield from _decoded(file, source, source)


def _require_readable(source: str) -> None:
    """Say at once what would otherwise be said after the model was loaded."""
    if source == "-":
        if sys.stdin is None:
            raise BertkitError("standard input is closed: pipe texts into it, or give --input FILE")
        return
    path = Path(source)
    if path.is_dir():
        raise BertkitError(f"--input {source} is a directory: give a text file with one text per line")
    if not path.exists():
        raise BertkitError(f"--input {source}: there is no such file. Give one with one text per line, or - for stdin")
    path.open("rb").close()


def _decoded(file: BinaryIO, name: str, argument: str) -> Iterator[str]:
    for number, line in enumerate(file, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            place = f"{name}, line {number} is not UTF-8 (byte {line[error.start]:#04x} at place {error.start + 1})"
            remedy = _FOREIGN.get(line[:2] if number == 1 else b"", _LATIN)
            raise BertkitError(f"{place}: {remedy.format(name='FILE' if argument == '-' else argument)}") from None
