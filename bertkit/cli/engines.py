"""What computes, on the command line: the same words for every command that runs a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bertkit.model import Model

Engine = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What computes: torch, onednn, ctranslate2, onnx, openvino, or auto, the fastest here; see bertkit tune.",
    ),
]
BatchInvariant = Annotated[
    bool,
    typer.Option(
        "--batch-invariant", help="Compute each text alone, so that its neighbours change no bit of its answer; slower."
    ),
]


def use(model: Model, engine: str, batch_invariant: bool, source: str | Path | None) -> None:
    """Choose the engine; where there is much to do and nobody knows the fastest one, measure first."""
    from bertkit.runtime import choose

    much = source is not None and Path(source).is_file() and Path(source).stat().st_size >= choose.MUCH
    if much and model.use(engine).untuned:
        typer.echo("bertkit: finding the fastest engine for this model here; it will be remembered", err=True)
        model.tune()
    model.use(engine, batch_invariant=batch_invariant)
