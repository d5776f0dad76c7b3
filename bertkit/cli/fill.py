"""`bertkit fill`: the likeliest words for a gap."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from bertkit.cli.arguments import Json, ModelName

EXAMPLE = "bertkit fill bert-base-uncased 'Paris is the capital of [MASK].'"


def run(
    model: ModelName,
    text: Annotated[str, typer.Argument(help="A text with one or more [MASK].")],
    top: Annotated[int, typer.Option(help="How many guesses for each mask.", min=1)] = 5,
    as_json: Json = False,
) -> None:
    """Guess the tokens behind each [MASK] (needs a model with a masked-language-model head)."""
    import bertkit

    masks = bertkit.load(model).fill(text, top)
    if as_json:
        typer.echo(json.dumps([[asdict(guess) for guess in guesses] for guesses in masks], ensure_ascii=False))
        return
    for number, guesses in enumerate(masks, start=1):
        if len(masks) > 1:
            typer.echo(f"mask {number}")
        for guess in guesses:
            typer.echo(f"{guess.score:7.2%}  {guess.token:<14} {guess.text}")
