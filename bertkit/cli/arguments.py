"""Arguments that several commands take, in the same words."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from bertkit.errors import BertkitError

ModelName = Annotated[
    str, typer.Argument(metavar="MODEL", help="A directory, an alias such as minilm, or a Hugging Face name.")
]
Texts = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts; or use --input.")]
Input = Annotated[str | None, typer.Option("--input", "-i", help="A UTF-8 file with one text per line; - is stdin.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


def texts_from(texts: list[str] | None, source: str | None, example: str) -> Iterator[str]:
    """The texts on the command line, or the lines of a file, one at a time."""
    if bool(texts) == (source is not None):
        raise BertkitError(f"give texts or --input, {'not both' if texts else 'neither was given'}. Example: {example}")
    return iter(texts) if texts else lines(source or "-")


def lines(source: str) -> Iterator[str]:
    """The lines of a UTF-8 file (`-` is standard input) without their ends; an empty line is an empty text."""
    if source == "-":
        yield from _decoded(sys.stdin.buffer, "standard input")
        return
    path = Path(source)
    if not path.is_file():
        raise BertkitError(f"there is no file {source}: give a text file with one text per line, or - for stdin")
    with path.open("rb") as file:
        yield from _decoded(file, source)


def _decoded(file: BinaryIO, name: str) -> Iterator[str]:
    for number, line in enumerate(file, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise BertkitError(
                f"{name}, line {number} is not UTF-8 (byte {line[error.start]:#04x} at place {error.start + 1}): "
                f"convert it first, for example: iconv -f latin1 -t utf-8 {name}"
            ) from None
