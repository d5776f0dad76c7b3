"""`bertkit corpus`: raw text to shards of tokens, and a look at what is in them."""

from __future__ import annotations

import re
import signal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertkit.cli import corpus_audit, corpus_inspect
from bertkit.cli.arguments import Json, bytes_of
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import facts as to_text
from bertkit.cli.sources import Field, Format, OnError, Paths, Source, Tokenizer, sources
from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.corpus.source import File

UNKNOWN = 0.02
"""share of unknown tokens beyond which a vocabulary is not made for a text"""
BUILD_EXAMPLE = "bertkit corpus build texts/ --tokenizer minilm --output shards --workers 2"

app = typer.Typer(help="Raw text to shards of tokens for pre-training, and a look at both.", no_args_is_help=True)


class Sentences(StrEnum):
    """Who finds sentences."""

    RULES = "rules"
    LINES = "lines"
    SENTENCEX = "sentencex"


class Words(StrEnum):
    """What makes words of Chinese characters."""

    AUTO = "auto"
    NONE = "none"
    JIEBA = "jieba"
    SPACES = "spaces"


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
            help="What makes Chinese words, for whole-word masking: auto (jieba if the vocabulary is Chinese), none "
            "(each character is one), jieba, spaces (the text separates them).",
        ),
    ] = Words.AUTO,
    dictionary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --words jieba: words of your own, one on each line.")
    ] = None,
    lexicon: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE", help="Phrases or entities to mark as units, one on each line. May be repeated."
        ),
    ] = None,
    held_out: Annotated[
        float, typer.Option(metavar="SHARE", help="Of the documents: not learned from, only asked about, such as 0.01.")
    ] = 0.0,
    workers: Annotated[int, typer.Option(metavar="N", min=1, max=256, help="Processes; the result is the same.")] = 1,
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
    from bertkit.corpus.build import Options, require_free, workers_within
    from bertkit.corpus.build import build as make
    from bertkit.weights import find, folder

    count = workers_within(bytes_of("--max-ram", max_ram), workers)
    require_free(output, overwrite)
    found = sources(paths, source, format, field, BUILD_EXAMPLE)
    options = Options(on_error.value, sentences.value, words.value, dictionary, _lexicons(lexicon or []), held_out)
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
    if index["unknown"] > UNKNOWN * index["tokens"]:
        typer.echo(
            f"bertkit: {index['unknown'] / index['tokens']:.1%} of the tokens are [UNK]: the vocabulary of {tokenizer} "
            "does not fit this text. To make one that does: bertkit vocab train --help",
            err=True,
        )
    typer.echo(f"bertkit: wrote {output}. Next: bertkit corpus inspect {output}", err=True)


for command, verb in ((corpus_inspect, "inspect"), (corpus_audit, "audit")):
    app.command(name=verb, epilog=f"Example: {command.EXAMPLE}")(command.run)


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
    facts |= {"unknown": index["unknown"], "shards": len(index["shards"]), "bytes_per_id": index["bytes_per_id"]}
    return {**facts, "skipped": index["skipped"]} if index["skipped"] else facts
