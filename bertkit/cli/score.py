"""`bertkit score`: what anybody's predictions are worth, as the official scripts count."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertkit.cli.arguments import Json
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import columns, facts, one_line

if TYPE_CHECKING:
    from bertkit.tasks.scoring import Scored

app = typer.Typer(help="Score a file of predictions, whoever made them.", no_args_is_help=True)

Data = Annotated[Path, typer.Option(metavar="FILE", help="The set with the true answers; may end in .gz.")]
Predictions = Annotated[Path, typer.Option(metavar="FILE", help="What was predicted; may end in .gz.")]


class Measure(StrEnum):
    """How answers are compared."""

    SQUAD = "squad"
    CMRC = "cmrc"


@app.command(epilog="Example: bertkit score squad --data dev-v1.1.json --predictions predictions.json")
def squad(
    data: Data,
    predictions: Predictions,
    measure: Annotated[
        Measure, typer.Option(metavar="NAME", help="squad (English words), cmrc (Chinese characters).")
    ] = Measure.SQUAD,
    no_answer: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON {id: score of no answer}: tells the best threshold (SQuAD 2.0)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Exact match and F1 of answers, percent: SQuAD 1.1 and 2.0, CMRC 2018. Predictions are JSON {id: text}."""
    from bertkit.tasks import scoring

    scored = scoring.squad(data, predictions, measure.value, no_answer)
    totals = {name: value for name, value in scored.details.items() if name.endswith("total")}
    _show(scored, as_json, _rounded(scored, 2) | totals)


@app.command(epilog="Example: bertkit score glue --task mrpc --data MRPC/dev.tsv --predictions MRPC.tsv")
def glue(
    task: Annotated[
        str, typer.Option(metavar="NAME", help="cola, sst2, mrpc, qqp, stsb, stsb-5way, mnli, qnli, rte, wnli.")
    ],
    data: Data,
    predictions: Predictions,
    labels: Annotated[
        str, typer.Option(metavar="A,B,…", help="Which labels the numbers 0, 1, … in predictions stand for.")
    ] = "",
    as_json: Json = False,
) -> None:
    """The measures of one of GLUE's tasks, from 0 to 1.

    Predictions are GLUE's submission (index, tab, prediction), one on each line, or JSON lines with label or score.
    """
    from bertkit.tasks import scoring

    order = [label.strip() for label in labels.split(",")] if labels else []
    scored = scoring.glue(task, data, predictions, order)
    _show(scored, as_json, _rounded(scored, 4) | {"rows": scored.rows})


@app.command(epilog="Example: bertkit score ner --data eng.testb --predictions predicted.txt")
def ner(
    predictions: Predictions,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The set with the true tags; left out, they are the column before the predicted ones."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Precision, recall and F1 of whole entities, percent, as conlleval counts them.

    Predictions are words with tags in the last column, as the data; or one file with true and predicted tags last.
    """
    from bertkit.tasks import scoring

    scored = scoring.ner(predictions, data)
    if as_json:
        _show(scored, as_json, {})
        return
    rows = {"all": {**scored.scores, "found": scored.details["found"]}, **scored.details["kinds"]}
    names = ("precision", "recall", "f1")
    table = [
        (one_line(kind), *(f"{row[name]:.2f}" for name in names), f"{row['found']:,}") for kind, row in rows.items()
    ]
    typer.echo(columns([("", *names, "found"), *table], (False, True, True, True, True)))
    _show(scored, as_json, {"sentences": scored.rows, "words": scored.details["words"]})


@app.command(epilog="Example: bertkit score sts --data STS-B/dev.tsv --predictions numbers.txt")
def sts(data: Data, predictions: Predictions, as_json: Json = False) -> None:
    """Pearson's and Spearman's correlations with true similarities: STS-B, Chinese STS-B, STS12 to STS16.

    Predictions are one number on each line, or an index, a tab and a number.
    """
    from bertkit.tasks import scoring

    scored = scoring.sts(data, predictions)
    _show(scored, as_json, _rounded(scored, 4) | {"rows": scored.rows})


def _rounded(scored: Scored, digits: int) -> dict[str, Any]:
    """Scores for a reader; thresholds stay whole, to be copied."""
    return {
        name: str(value) if name.endswith("thresh") else f"{value:.{digits}f}" for name, value in scored.scores.items()
    }


def _show(scored: Scored, as_json: bool, shown: dict[str, Any]) -> None:
    for note in scored.notes:
        typer.echo(f"bertkit: {one_line(note)}", err=True)
    if as_json:
        typer.echo(to_json(scored.told()))
        return
    typer.echo(facts(shown | {"fingerprint": scored.fingerprint["id"]}))
