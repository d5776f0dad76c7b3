"""`bertkit tune`: which engine is fastest for a model on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertkit.cli.arguments import Json, ModelName
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import columns

if TYPE_CHECKING:
    from bertkit.runtime.engines.engine import Setup
    from bertkit.runtime.tune import Measured, Trial

EXAMPLE = "bertkit tune minilm"


def run(
    model: ModelName,
    again: Annotated[bool, typer.Option("--again", help="Measure also what was measured before.")] = False,
    as_json: Json = False,
) -> None:
    """Measure every engine that takes a model, for some seconds, and remember the fastest for this machine.

    One is chosen for many texts and one for a single short one; torch, which holds no weights a second time, where no
    other is 5 % faster. Every command with --engine auto, and bertkit.load, use them from then on, for all models of
    the same shape.
    """
    import bertkit
    from bertkit.runtime import tune

    network = bertkit.load(model, engine="torch").network
    found = None if again else tune.remembered(network)
    if found is None:
        found = tune.tune(network, tell=None if as_json else _tell)
    choice = found.choice()
    assert choice is not None, "torch takes every network"
    if as_json:
        rows = [_row(trial, found.tokens) for trial in found.trials]
        typer.echo(to_json({"trials": rows, "single": str(choice.single), "bulk": str(choice.bulk)}, indent=2))
        return
    typer.echo(_table(found))
    typer.echo(f"many texts: {choice.bulk}\na single one: {choice.single}")


def _tell(setup: Setup, reason: str) -> None:
    typer.echo(f"bertkit: {setup}: {reason or 'takes part'}", err=True)


def _row(trial: Trial, tokens: int) -> dict[str, Any]:
    told: dict[str, Any] = {"engine": str(trial.setup)}
    if trial.reason:
        return told | {"reason": trial.reason}
    return told | {"tokens_per_second": round(tokens / trial.bulk), "query_milliseconds": round(trial.single * 1e3, 3)}


def _table(found: Measured) -> str:
    timed = sorted((trial for trial in found.trials if not trial.reason), key=lambda trial: trial.bulk)
    rows = [(str(trial.setup), f"{found.tokens / trial.bulk:,.0f}", f"{trial.single * 1e3:.1f}", "") for trial in timed]
    rows += [(trial.setup.engine, "", "", trial.reason) for trial in found.trials if trial.reason]
    return columns([("engine", "tokens/s", "query, ms", ""), *rows], (False, True, True, False))
