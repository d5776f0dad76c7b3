"""`bertkit quantize`: a model in int8, kept if it is faster here and answers as well."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertkit.cli.arguments import Json
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import columns

if TYPE_CHECKING:
    from bertkit.compress.quantize import Line, Verdict

EXAMPLE = "bertkit quantize runs/mine --output mine-int8 --data dev.tsv"


def run(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model, a sentence encoder, or a run of bertkit finetune.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the int8 model goes.")],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Rows to judge it by: as it was fine-tuned with, pairs with scores, or texts; else our own sentences.",
        ),
    ] = None,
    loss: Annotated[float, typer.Option(metavar="SHARE", help="The most of its score that it may lose.")] = 0.01,
    calibrate: Annotated[
        bool, typer.Option(help="Centre what is rounded by the texts, which costs nothing later; or do not.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Keep it also where it is slower or worse.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the output if it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Turn a model's matrices into 8-bit whole numbers, measure size, speed and score against fp32, and decide.

    By default a model that is slower on this machine, or loses more than 1 % of its score, is not kept, and the exit
    code is 1. All commands take what is kept like any other model.
    """
    from bertkit.compress.quantize import quantize

    def say(what: str) -> None:
        typer.echo(f"bertkit: {what}", err=True)

    verdict = quantize(model, output, data, loss, calibrate, force, overwrite, say)
    typer.echo(to_json(verdict.told(), indent=2) if as_json else _table(verdict))
    for reason in verdict.refusals:
        say(reason)
    if verdict.path is None:
        say("nothing was written. To keep it all the same: --force; to allow more: --loss SHARE")
        raise typer.Exit(1)
    say(f"{verdict.path} is an int8 model. Next: bertkit embed {verdict.path} 'a text', or predict, or evaluate")


def _table(verdict: Verdict) -> str:
    def row(line: Line) -> tuple[str, ...]:
        return line.name, f"{line.megabytes:,.1f}", f"{line.tokens_per_second:,.0f}", f"{line.score:.4f}", line.engine

    return columns(
        [("", "MB", "tokens/s", verdict.measure, "engine"), row(verdict.before), row(verdict.after)],
        (False, True, True, True, False),
    )
