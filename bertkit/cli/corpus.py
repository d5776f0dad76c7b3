"""`bertkit corpus`: raw text to shards of tokens, and a look at what is in them."""

from __future__ import annotations

import re
import signal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertkit.cli.arguments import Json
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import facts as to_text
from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.corpus.source import File

BUILD_EXAMPLE = "bertkit corpus build texts/ --tokenizer minilm --output shards --workers 2"

app = typer.Typer(help="Raw text to shards of tokens for pre-training.", no_args_is_help=True)

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


class Sentences(StrEnum):
    """Who finds sentences."""

    RULES = "rules"
    LINES = "lines"
    SENTENCEX = "sentencex"


class Words(StrEnum):
    """What makes words of Chinese characters."""

    NONE = "none"
    JIEBA = "jieba"
    SPACES = "spaces"


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


@app.command(epilog=f"Example: {BUILD_EXAMPLE}")
def build(
    tokenizer: Tokenizer,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the corpus appears when whole.")],
    paths: Paths = None,
    source: Source = None,
    format: Format = None,
    field: Field = "text",
    sentences: Annotated[
        Sentences,
        typer.Option(metavar="NAME", help="rules (our own), lines (each is one already), sentencex (the library)."),
    ] = Sentences.RULES,
    words: Annotated[
        Words,
        typer.Option(
            metavar="NAME",
            help="Chinese words for whole-word masking: none (characters), jieba, spaces (separated already).",
        ),
    ] = Words.NONE,
    dictionary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --words jieba: words of your own, one on each line.")
    ] = None,
    lexicon: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE", help="Phrases or entities to mark as units, one on each line. May be repeated."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes; the result does not depend on it.")] = 1,
    max_ram: Annotated[
        str, typer.Option(metavar="SIZE", help="All processes together stay below it: 2G, 800M.")
    ] = "2G",
    on_error: Annotated[
        OnError, typer.Option(metavar="WHAT", help="Lines that cannot be read: stop, or skip and list them.")
    ] = OnError.STOP,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a corpus that is there.")] = False,
    as_json: Json = False,
) -> None:
    """Turn texts into a directory of token shards, in bounded memory.

    Killed or stopped at any moment, the same command goes on where it was; the result is the same to the byte.
    """
    from bertkit.cli.progress import reading
    from bertkit.corpus.build import Options, workers_within
    from bertkit.corpus.build import build as make
    from bertkit.weights import find, folder

    count = workers_within(bytes_of("--max-ram", max_ram), workers)
    found = sources(paths, source, format, field, BUILD_EXAMPLE)
    options = Options(on_error.value, sentences.value, words.value, dictionary, _lexicons(lexicon or []))
    opened = folder.read_tokenizer(folder.home(find.find(tokenizer)))
    try:
        with reading("building", sum(file.size for file in found)) as progress:
            index = make(found, opened, output, options, count, overwrite, progress)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        typer.echo(f"bertkit: stopped. The same command goes on from {output}.partial", err=True)
        raise typer.Exit(130) from None
    shown = _shown(index, found)
    typer.echo(to_json(shown) if as_json else to_text(shown))
    for line in index["skipped_lines"]:
        typer.echo(f"bertkit: left out: {line}", err=True)
    typer.echo(f"bertkit: wrote {output}. Next: bertkit corpus inspect {output}", err=True)


def sources(
    paths: list[str] | None, source: Embedded | None, format: FileFormat | None, field: str, example: str
) -> list[File]:
    """The files that a command line names, or the text that Python brings along."""
    from bertkit.corpus import source as reading

    if bool(paths) == bool(source):
        raise BertkitError(f"give files, folders or patterns, or --source python-docs. Example: {example}")
    if source is None:
        return reading.files(paths or [], format and format.value, field)
    from bertkit.corpus import python_docs

    return [reading.embedded(source.value, python_docs.text())]


def bytes_of(option: str, given: str) -> int:
    """A size in bytes.

    >>> bytes_of("--max-ram", "1.5G")
    1610612736
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?)(?:i?B)?", given.strip(), re.IGNORECASE)
    if not found:
        raise BertkitError(f"{option} {given!r} is no size: write it like 2G or 800M")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


def _lexicons(given: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for one in given:
        name, _, path = one.partition("=") if "=" in one else (Path(one).stem, "", one)
        if not re.fullmatch(r"[\w-]{1,40}", name) or name in found:
            raise BertkitError(f"--lexicon {one!r}: give each a name of its own, of letters and digits: phrases=FILE")
        if not Path(path).is_file():
            raise BertkitError(f"--lexicon {one!r}: there is no file {path!r}")
        found[name] = Path(path)
    return found


def _shown(index: dict[str, Any], found: list[File]) -> dict[str, Any]:
    """What a user wants to know of a corpus first."""
    read = sum(file["size"] for file in index["sources"])
    names = ("documents", "sentences", "words", "tokens")
    facts = {"files": len(index["sources"]), "bytes": read, **{name: index[name] for name in names}}
    facts |= {"shards": len(index["shards"]), "bytes_per_id": index["bytes_per_id"]}
    return {**facts, "skipped": index["skipped"]} if index["skipped"] else facts
