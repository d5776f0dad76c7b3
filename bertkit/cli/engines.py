"""What computes, on the command line: the same words for every command that runs a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from bertkit.model import Model

Item = TypeVar("Item")
ENOUGH = 5000
"""texts for which it is worth some seconds to find the fastest engine"""

Engine = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What computes: torch, ctranslate2, onnx, openvino, or auto, the fastest of them here; see bertkit tune.",
    ),
]
BatchInvariant = Annotated[
    bool,
    typer.Option(
        "--batch-invariant", help="Compute each text alone, so that its neighbours change no bit of its answer; slower."
    ),
]


def used(model: Model, engine: str, batch_invariant: bool, items: Iterable[Item]) -> Iterator[Item]:
    """Choose the engine; where there is much to do and nobody knows the fastest one, measure first."""
    from bertkit.runtime import tune

    rest = iter(items)
    first: list[Item] = []
    if engine == "auto" and model.device.type == "cpu" and tune.remembered(model.network) is None:
        first = list(islice(rest, ENOUGH))
        if len(first) == ENOUGH:
            typer.echo("bertkit: finding the fastest engine for this model here; it will be remembered", err=True)
            tune.tune(model.network)
    model.use(engine, batch_invariant=batch_invariant)
    return chain(first, rest)
