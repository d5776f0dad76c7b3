"""Where raw text comes from, in the same words for every command that reads it."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.corpus.source import File

FIELD = "text"
"""where jsonl and parquet keep the text unless told otherwise"""

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH", help="Files, folders or patterns: txt, jsonl, parquet, wiki; gz, bz2, xz, zst."),
]


class FileFormat(StrEnum):
    """How documents lie in files."""

    TXT = "txt"
    LINES = "lines"
    JSONL = "jsonl"
    WIKI = "wiki"


class Embedded(StrEnum):
    """Texts that every machine has."""

    PYTHON_DOCS = "python-docs"


class OnError(StrEnum):
    """What happens to a line that cannot be read."""

    STOP = "stop"
    SKIP = "skip"


Source = Annotated[
    Embedded | None,
    typer.Option("--source", metavar="NAME", help="Text inside the installed Python, to start with: python-docs."),
]
Format = Annotated[
    FileFormat | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="txt (an empty line ends a document), lines (a document on each), jsonl, wiki (WikiExtractor's). "
        "If not given, told from the files.",
    ),
]
Field = Annotated[str, typer.Option(metavar="NAME", help="Where jsonl and parquet keep the text.")]
Tokenizer = Annotated[
    str,
    typer.Option("--tokenizer", "-t", metavar="MODEL", help="A directory with a vocabulary, an alias or a name."),
]


def sources(
    paths: list[str] | None, source: Embedded | None, format: FileFormat | None, field: str, example: str
) -> list[File]:
    """The files that a command line names, or the text that Python brings along."""
    from bertkit.corpus import source as reading

    if paths and source:
        raise BertkitError(f"give {paths[0]} or --source {source.value}, not both. Example: {example}")
    if not paths and not source:
        raise BertkitError(f"give files, folders or patterns, or --source python-docs. Example: {example}")
    if source is not None:
        if format is not None or field != FIELD:
            raise BertkitError(f"--source {source.value} is plain text: leave out --format and --field")
        from bertkit.corpus import python_docs

        return [reading.embedded(source.value, python_docs.text())]
    for path in paths or []:
        _refuse_shards(Path(path))
    found = reading.files(paths or [], format and format.value, field)
    if field != FIELD and not any(hasattr(file.format, "field") for file in found):
        raise BertkitError(
            f"--field {field} is for jsonl and parquet, and {found[0].name} is {found[0].format.name}: leave it out, "
            "or add --format jsonl"
        )
    return found


def _refuse_shards(path: Path) -> None:
    """Say at once that tokens are no text; files of JSON in the same folder would be taken for it."""
    from bertkit.corpus.build import INDEX

    home = path.parent if path.suffix == ".safetensors" else path
    if (home / INDEX).is_file():
        raise BertkitError(
            f"{path} holds shards of tokens, not raw text: give the texts it was made of. To look at shards: bertkit "
            f"corpus inspect {shlex.quote(str(home))}"
        )
