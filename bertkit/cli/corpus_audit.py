"""`bertkit corpus audit`: what is wrong with raw text, before a model learns it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from bertkit.cli.arguments import Json, require_page
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import one_line
from bertkit.cli.sources import FIELD, Field, Format, OnError, Paths, Source, sources
from bertkit.errors import BertkitError

EXAMPLE = "bertkit corpus audit texts/ --tokenizer minilm --html audit.html"


def run(
    paths: Paths = None,
    source: Source = None,
    format: Format = None,
    field: Field = FIELD,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            "-t",
            metavar="MODEL",
            help="Also count what it cannot spell: a directory with a vocabulary, an alias or a name.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PAGE.html", help="Also write a page for a browser.")
    ] = None,
    on_error: Annotated[
        OnError, typer.Option(metavar="WHAT", help="Lines that cannot be read: stop, or skip and list them.")
    ] = OnError.STOP,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the page if it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Find what quietly ruins pre-training in texts, in one pass and bounded memory.

    Copies and near copies, lines that many documents share, damaged characters, unknown words, odd lengths.
    """
    if html is not None:
        require_page(html, overwrite)
    elif overwrite:
        raise BertkitError("--overwrite is for the page: add --html audit.html, or leave it out")
    found = sources(paths, source, format, field, EXAMPLE)

    from bertkit.cli.progress import reading
    from bertkit.corpus.audit import audit
    from bertkit.corpus.findings import WIDTH, summary
    from bertkit.weights import find, folder

    opened = None if tokenizer is None else folder.read_tokenizer(folder.home(find.find(tokenizer)))
    with reading("auditing", sum(file.size for file in found)) as progress:
        result = audit(found, opened, on_error is OnError.SKIP, progress)
    if html is not None:
        from bertkit.corpus.audit_page import page

        page(result).write(html, overwrite)
    columns = shutil.get_terminal_size().columns
    typer.echo(to_json(result.as_dict()) if as_json else summary(result, min(max(columns, 40), WIDTH)))
    for line in result.skipped_lines:
        typer.echo(f"bertkit: left out: {one_line(line)}", err=True)
    if result.skipped > len(result.skipped_lines):
        typer.echo(f"bertkit: left out: {result.skipped - len(result.skipped_lines):,} more", err=True)
    if html is not None:
        typer.echo(f"bertkit: wrote {html}. Next: open it in a browser", err=True)
