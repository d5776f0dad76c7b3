"""`bertkit report`: a run as one page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "bertkit report runs/first --output first.html"
PAGE = "report.html"

Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="The output of a bertkit pretrain or finetune, finished or not.")
]


def run(
    directory: Run,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PAGE.html", help="In place of RUN/report.html.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace PAGE.html if it exists.")] = False,
) -> None:
    """Show a run as one page that needs no network: curves, alarms, what it fills in, recipe, machine.

    A run that is at work may be looked at as often as you like.
    """
    from bertkit.train.page import page

    place = output or directory / PAGE
    page(directory).write(place, overwrite or output is None)
    typer.echo(f"bertkit: wrote {place}. Next: open it in a browser", err=True)
