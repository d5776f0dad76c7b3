"""`bertkit evaluate`: how good a fine-tuned model is on a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bertkit.cli.arguments import Json
from bertkit.cli.engines import BatchInvariant, Engine, use
from bertkit.cli.finetune import OnError
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import facts

EXAMPLE = "bertkit evaluate runs/mine --data test.tsv --json"

Finetuned = Annotated[Path, typer.Argument(metavar="RUN", help="A run of bertkit finetune, or the model in it.")]


def run(
    model: Finetuned,
    data: Annotated[Path, typer.Option(metavar="FILE", help="Rows with the same columns and labels.")],
    on_error: Annotated[OnError, typer.Option(help="Rows that cannot be scored: stop, or skip them.")] = OnError.STOP,
    engine: Engine = "auto",
    batch_invariant: BatchInvariant = False,
    as_json: Json = False,
) -> None:
    """Score a fine-tuned model on a file, in bounded memory.

    The score carries its fingerprint: weights, tokenizer, data, truncation and settings by their hashes.
    """
    from bertkit.cli.progress import counting
    from bertkit.tasks.finetuned import Finetuned as Opened

    opened = Opened.load(model)
    use(opened.model, engine, batch_invariant, data)
    with counting("examining", None) as (_, advance):
        result = opened.evaluate(data, on_error.value, advance)
    if as_json:
        typer.echo(to_json(result.told()))
        return
    scores = {name: f"{value:.4f}" for name, value in result.scores.items()}
    typer.echo(facts({**scores, "rows": result.rows, "fingerprint": result.fingerprint["id"]}))
    if result.cut.texts or result.cut.chunked:
        typer.echo(f"bertkit: {result.cut.among(result.rows)}", err=True)
