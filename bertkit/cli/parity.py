"""`bertkit parity`: how far a model, its export and its int8 version are apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertkit.cli.arguments import Json
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import facts, one_line

if TYPE_CHECKING:
    from bertkit.parity import Parity

EXAMPLE = "bertkit parity minilm minilm-onnx"
WIDE = 60
"""characters of a text that are shown"""


def run(
    a: Annotated[str, typer.Argument(metavar="A", help="A model, a run of bertkit finetune, an export.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one, of the same kind.")],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Rows as the models were learned from, or a text on each line; else our own."
        ),
    ] = None,
    most: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Exit with 1 where the largest difference is above it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Let two models say the same texts and compare: numbers, cosines, and answers that changed.

    What is compared are the vectors of sentence encoders, or the logits of the task's head.
    """
    from bertkit.parity import parity

    found = parity(a, b, data)
    typer.echo(to_json(found.told(), indent=2) if as_json else facts(_shown(found)))
    for change in [] if as_json else found.examples:
        first, second = (one_line(side, WIDE) for side in (change.first, change.second))
        typer.echo(f"  {one_line(change.text, WIDE)!r}: {first} → {second}")
    if most is not None and not found.largest <= most:
        typer.echo(f"bertkit: the largest difference is {found.largest:.1e}, and --most is {most:g}", err=True)
        raise typer.Exit(1)


def _shown(found: Parity) -> dict[str, Any]:
    answers = {"changed answers": f"{found.changed:,} of {found.answers:,}"} if found.answers else {}
    return {
        "texts": f"{found.texts:,}" + (f" ({found.cut:,} cut to the limit)" if found.cut else ""),
        "largest_difference": f"{found.largest:.2e}",
        "mean_difference": f"{found.mean:.2e}",
        "smallest_cosine": f"{found.cosine:.6f}",
        "mean_cosine": f"{found.mean_cosine:.6f}",
        **answers,
    }
