"""`bertkit fill`: the likeliest words for a gap."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from bertkit.cli.arguments import Json, ModelName
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import columns, one_line

EXAMPLE = "bertkit fill bert-base-uncased 'Paris is the capital of [MASK].'"


def run(
    model: ModelName,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A text with one or more [MASK].")],
    top: Annotated[int, typer.Option(metavar="NUMBER", help="How many guesses for each mask.", min=1)] = 5,
    as_json: Json = False,
) -> None:
    """Guess the tokens behind each [MASK]; the model needs a masked-language-model head.

    With --json a list with one list of guesses per mask.
    """
    import bertkit

    masks = bertkit.load(model).fill(text, top)
    if as_json:
        typer.echo(to_json([[asdict(guess) for guess in guesses] for guesses in masks]))
        return
    for number, guesses in enumerate(masks, start=1):
        if len(masks) > 1:
            typer.echo(f"mask {number}")
        rows = [(f"{guess.score:.2%}", guess.token, one_line(guess.text)) for guess in guesses]
        typer.echo(columns(rows, (True, False, False)))
