"""`bertkit vocab`: a vocabulary of one's own texts."""

from __future__ import annotations

import shutil
import textwrap
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertkit.cli.arguments import Json, bytes_of
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import columns as in_columns
from bertkit.cli.printing import facts as to_text
from bertkit.cli.printing import one_line
from bertkit.cli.sources import FIELD, Field, Format, OnError, Paths, Source, sources

if TYPE_CHECKING:
    from bertkit.corpus.source import Skipped
    from bertkit.vocab.coverage import Coverage, Split
    from bertkit.vocab.train import Report

TRAIN_EXAMPLE = "bertkit vocab train texts/ --size 30000 --output vocabulary"
SHOWN = 20
"""lines left out that are named; all are counted"""

app = typer.Typer(help="A vocabulary of your own texts.", no_args_is_help=True)


@app.callback()
def _vocab() -> None:
    """A vocabulary of your own texts."""


class VocabularyKind(StrEnum):
    """How words are spelled."""

    WORDPIECE = "wordpiece"
    BPE = "bpe"
    UNIGRAM = "unigram"


@app.command(epilog=f"Example: {TRAIN_EXAMPLE}")
def train(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the vocabulary appears when whole.")
    ],
    paths: Paths = None,
    source: Source = None,
    format: Format = None,
    field: Field = FIELD,
    size: Annotated[int, typer.Option(help="Tokens in all, special and unused ones included.")] = 30_000,
    kind: Annotated[
        VocabularyKind,
        typer.Option(metavar="NAME", help="wordpiece (BERT), bpe (RoBERTa, by bytes), unigram (ALBERT)."),
    ] = VocabularyKind.WORDPIECE,
    cased: Annotated[bool, typer.Option("--cased", help="Keep capitals and accents; bpe always does.")] = False,
    min_count: Annotated[
        int, typer.Option(metavar="N", help="Leave out characters and joins that occur less often.")
    ] = 2,
    alphabet: Annotated[
        int, typer.Option(metavar="N", help="Characters at most; in Chinese text Chinese ones come on top.")
    ] = 1000,
    unused: Annotated[int, typer.Option(metavar="N", help="Rows to be named later, as in Google's files.")] = 0,
    special: Annotated[
        list[str] | None,
        typer.Option(metavar="TOKEN", help="Found in raw text, never split, such as [NAME]. May be repeated."),
    ] = None,
    held_out: Annotated[
        float, typer.Option(metavar="SHARE", help="Of the documents: not learned from, judged on.")
    ] = 0.02,
    max_ram: Annotated[str, typer.Option(metavar="SIZE", help="Stay below it, whatever the corpus: 2G, 800M.")] = "2G",
    on_error: Annotated[
        OnError, typer.Option(metavar="WHAT", help="Lines that cannot be read: stop, or skip and list them.")
    ] = OnError.STOP,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a vocabulary that is there.")] = False,
    as_json: Json = False,
) -> None:
    """Learn a vocabulary from texts, in bounded memory, and judge it on texts that were held out.

    The same texts and options give the same files. Counts are exact for a corpus of any size.
    """
    from bertkit import artifact
    from bertkit.cli.progress import reading
    from bertkit.vocab.kind import Options
    from bertkit.vocab.train import train as make

    memory = bytes_of("--max-ram", max_ram)
    artifact.require_free(output, overwrite=overwrite)
    found = sources(paths, source, format, field, TRAIN_EXAMPLE)
    options = Options(size, cased, min_count, unused, tuple(special or ()), alphabet, held_out)
    left: list[Skipped] = []
    skip = left.append if on_error is OnError.SKIP else None
    with reading("counting", sum(file.size for file in found)) as progress:
        report = make(found, output, kind.value, options, memory, overwrite, skip, progress)
    typer.echo(to_json(report.json() | {"skipped": len(left)}) if as_json else _shown(report))
    for line in left[:SHOWN]:
        typer.echo(f"bertkit: left out: {line}", err=True)
    if len(left) > SHOWN:
        typer.echo(f"bertkit: left out: {len(left) - SHOWN:,} more", err=True)
    following = f". Next: bertkit tokenize {output} 'a text'" if kind is VocabularyKind.WORDPIECE else ""
    typer.echo(f"bertkit: wrote {output}{following}", err=True)


def _shown(report: Report) -> str:
    """Facts, a table of scripts, and the words that fare worst."""
    values: dict[str, object] = {
        "kind": report.kind + ("" if report.kind == "bpe" else ", cased" if report.options.cased else ", lower-cased"),
        "tokens": f"{report.size:,}: "
        + ", ".join(f"{count:,} {name}" for name, count in report.tokens.items() if count),
        "learned_from": f"{report.words:,} words, {report.types:,} different ones",
    }
    if report.rare:
        values["left_out"] = f"{report.rare:,} different words, the rarest"
    if report.too_long:
        values["too_long"] = f"{report.too_long:,} {'word' if report.too_long == 1 else 'words'}, left out"
    coverage = report.coverage
    title = f"How words are spelled in {report.judged_on} ({coverage.all.words:,} words):"
    parts = [to_text(values), f"{title}\n{_table(coverage)}"]
    if coverage.longest:
        parts.append("Most tokens:\n" + "\n".join(map(_split, coverage.longest)))
    if coverage.unknown:
        words = ", ".join(f"{one_line(split.word, 30)} ({split.times:,})" for split in coverage.unknown)
        parts.append(_fold(f"Most frequent unknown words: {words}"))
    return "\n\n".join(parts)


def _table(coverage: Coverage) -> str:
    rows = [("script", "words", "one token", "tokens per word", "unknown")]
    tallies = coverage.scripts if len(coverage.scripts) == 1 else {**coverage.scripts, "all": coverage.all}
    for name, tally in tallies.items():
        words = max(tally.words, 1)
        shares = (f"{tally.whole / words:.1%}", f"{tally.pieces / words:.2f}", f"{tally.unknown / words:.3%}")
        rows.append((name, f"{tally.words:,}", *shares))
    return in_columns(rows, (False, True, True, True, True))


def _split(split: Split) -> str:
    return one_line(
        f"  {one_line(split.word, 30)} = {' '.join(split.pieces)}", max(shutil.get_terminal_size().columns, 40)
    )


def _fold(sentence: str) -> str:
    width = max(shutil.get_terminal_size().columns, 20)
    return textwrap.fill(sentence, width, break_long_words=False, break_on_hyphens=False)
