"""`bertkit finetune`: teach a model a task, from a known dataset or any table."""

from __future__ import annotations

import math
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertkit.cli.arguments import Json
from bertkit.cli.printing import as_json as to_json
from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.tasks.tuning import Tuning

EXAMPLE = "bertkit finetune --model minilm --train train.tsv --dev dev.tsv --output runs/mine"


class OnError(StrEnum):
    """What happens to a row that cannot be learned from."""

    STOP = "stop"
    SKIP = "skip"


def _option(help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(metavar=metavar, help=help, **more)


def run(
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Changes to a --recipe, such as rows=16.")
    ] = None,
    model: Annotated[str, _option("A directory, an alias such as minilm, or a Hugging Face name.", "MODEL")] = "",
    output: Annotated[str, _option("The run's directory; the same command again goes on there.", "RUN")] = "",
    task: Annotated[
        str,
        _option(
            "A known dataset (cola, sst2, mrpc, qqp, stsb, stsb-5way, mnli, qnli, rte, wnli, xnli, squad, squad2, "
            "cmrc, swag, codah, c3, arct, race, conll), or a kind: classification, regression, multilabel, tagging, "
            "answering, choice. If not given, told from the file.",
            "NAME",
        ),
    ] = "",
    data: Annotated[str, _option("The folder of a known dataset, as it comes.", "FOLDER")] = "",
    train: Annotated[str, _option("A file to learn from: TSV, CSV, JSONL, parquet, CoNLL, SQuAD's JSON.", "FILE")] = "",
    dev: Annotated[str, _option("A file for exams; if not given, a tenth of --train is held out.", "FILE")] = "",
    text: Annotated[str, _option("The column of texts.", "COLUMN")] = "",
    pair: Annotated[str, _option("The column of second texts.", "COLUMN")] = "",
    label: Annotated[str, _option("The column of labels; several in a row have | between them.", "COLUMN")] = "",
    score: Annotated[str, _option("The column of numbers to learn.", "COLUMN")] = "",
    only: Annotated[
        list[str] | None, _option("Only rows with this value, such as language=zh.", "COLUMN=VALUE")
    ] = None,
    epochs: Annotated[float | None, _option("How often all rows are learned from; 3 if not given.")] = None,
    rate: Annotated[float | None, _option("The highest learning rate; 5e-5 if not given.")] = None,
    batch: Annotated[int | None, _option("Rows of a step; 32 if not given.", min=1)] = None,
    length: Annotated[
        int | None, _option("The most tokens of an input; if not given, what the dataset or model has.", min=3)
    ] = None,
    truncate: Annotated[
        str | None, _option("What happens to longer ones: head, tail, head+tail, chunk, error.", "NAME")
    ] = None,
    crf: Annotated[bool, _option("For tags: learn how they follow each other (a CRF).")] = False,
    held_out: Annotated[float | None, _option("The share held out where there is no --dev; 0: none.", "SHARE")] = None,
    folds: Annotated[int, _option("Cross-validate: so many parts take turns in being held out.", min=0)] = 0,
    seeds: Annotated[int, _option("Repeat with so many seeds, and tell mean and spread.", min=1)] = 1,
    seed: Annotated[int | None, _option("Where chance begins; 0 if not given.", min=0)] = None,
    patience: Annotated[int | None, _option("End after so many exams in a row without a better one.", min=0)] = None,
    on_error: Annotated[
        OnError | None, _option("Rows that cannot be learned from: stop, or skip them and say so.")
    ] = None,
    recipe: Annotated[
        Path | None, _option("All settings from a TOML file, such as recipes/finetune/mrpc.toml.", "FILE")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fine-tune a model on a task: the best network on the development set is kept in RUN/model.

    Columns and labels are told from the file and shown; name them where that goes wrong. Killed at any moment, the same
    command goes on and ends with the same weights. Ctrl-C saves and ends.
    """
    from bertkit.cli.pretrain import Display
    from bertkit.tasks.plan import Wish, plan
    from bertkit.tasks.repeats import repeat
    from bertkit.train.run import StoppedError

    settings = _settings(epochs, rate, batch, length, truncate, held_out, seed, patience, on_error)
    leads = os.environ.get("RANK", "0") == "0"
    columns = {
        role: name for role, name in (("text", text), ("pair", pair), ("label", label), ("score", score)) if name
    }
    with Display(leads) as display:
        if recipe is not None:
            _refuse_beside_recipe(task=task, data=data, only=only, crf=crf, folds=folds, **columns)
            tuning = _from_recipe(recipe, changes or [], settings, model, output, train, dev)
        else:
            if changes:
                raise BertkitError(f"{changes[0]!r} changes a recipe, and there is none: add --recipe FILE")
            for name, given in (("--model", model), ("--output", output)):
                if not given:
                    raise BertkitError(f"{name} is missing. Example: {EXAMPLE}")
            if folds == 1:
                raise BertkitError("--folds 1: one part cannot take turns. Give 2 or more, such as --folds 5")
            if folds:
                settings["folds"] = folds
            wish = Wish(model, output, task, data, train, dev, columns, tuple(only or ()), crf, settings)
            tuning = plan(wish, display.say)
        try:
            told = repeat(tuning, seeds, display.tell, display.say)
        except StoppedError as stopped:
            display.say(str(stopped))
            raise typer.Exit(130) from None
    if leads:
        typer.echo(to_json(told) if as_json else _line(told))


def _line(told: dict[str, Any]) -> str:
    lines = [f"{name} {value}" for name, value in told["shown"].items()]
    return "\n".join([*lines, f"wrote {told['model']}. Next: {told['next']}"])


def _settings(
    epochs: float | None,
    rate: float | None,
    batch: int | None,
    length: int | None,
    truncate: str | None,
    held_out: float | None,
    seed: int | None,
    patience: int | None,
    on_error: OnError | None,
) -> dict[str, Any]:
    """What was said on the command line, by the names of a tuning."""
    from bertkit.text.truncate import named
    from bertkit.train.optimizer import Adam

    for option, given in (("--epochs", epochs), ("--rate", rate)):
        if given is not None and not 0 < given < math.inf:
            raise BertkitError(f"{option} {given:g}: give a number above 0")
    if held_out is not None and not 0 <= held_out < 1:
        raise BertkitError(f"--held-out {held_out:g}: give a share of all rows, such as 0.1; 0 holds out none")
    said = {
        "epochs": epochs,
        "optimizer": None if rate is None else Adam(rate=rate),
        "rows": batch,
        "limit": length,
        "truncate": None if truncate is None else named(truncate),
        "held_out": held_out,
        "seed": seed,
        "patience": patience,
        "on_error": None if on_error is None else on_error.value,
    }
    return {name: value for name, value in said.items() if value is not None}


def _refuse_beside_recipe(**given: Any) -> None:
    """A recipe says what is learned: what else would say it is refused, not passed over."""
    for option, value in given.items():
        if value:
            raise BertkitError(f"--{option} does not go with --recipe, which says it already: leave out one of them")


def _from_recipe(
    path: Path, changes: list[str], settings: dict[str, Any], model: str, output: str, train: str, dev: str
) -> Tuning:
    from dataclasses import replace

    from bertkit.tasks.tuning import read

    if not path.is_file():
        raise BertkitError(f"there is no recipe {path}")
    files = {"model": model, "output": output, "train": train, "dev": dev}
    given = [f"{name}={value}" for name, value in files.items() if value]
    found = read(path, [*changes, *given])
    if "optimizer" in settings:  # of which only the rate was said
        settings["optimizer"] = replace(found.optimizer, rate=settings["optimizer"].rate)
    return replace(found, **settings)
