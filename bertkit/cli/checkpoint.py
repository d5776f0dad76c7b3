"""`bertkit checkpoint`: what a run can go on from."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import typer

from bertkit.cli.arguments import Json
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import columns, one_line
from bertkit.cli.report import Run
from bertkit.errors import BertkitError

VERIFY_EXAMPLE = "bertkit checkpoint verify runs/first"

app = typer.Typer(help="What a run can go on from.", no_args_is_help=True)


@app.callback()
def _checkpoint() -> None:
    """What a run can go on from."""


class _Checked(NamedTuple):
    step: int
    size: int
    wrong: str


@app.command(epilog=f"Example: {VERIFY_EXAMPLE}")
def verify(directory: Run, as_json: Json = False) -> None:
    """Compare every checkpoint of a run with the sizes and hashes it was written with.

    Exit code 1: the newest is not whole, so that a run which goes on would repeat steps, or all of them.
    """
    from bertkit.train.page import require_run

    require_run(directory)
    found = _checked(directory)
    if not found:
        raise BertkitError(
            f"{directory} has no checkpoints: the same command begins at step 0, unless the run is finished"
        )
    taken = max((one.step for one in found if not one.wrong), default=None)
    if as_json:
        checked = [{"step": step, "bytes": size, "whole": not wrong, "wrong": wrong} for step, size, wrong in found]
        typer.echo(to_json({"checkpoints": checked, "resume": taken}))
    else:
        rows = [(f"{step:,}", f"{size / 1e6:,.1f} MB", one_line(wrong) or "whole") for step, size, wrong in found]
        typer.echo(columns([("step", "size", "state"), *rows], (True, True, False)))
    typer.echo(f"bertkit: {_said(directory, taken)}", err=True)
    if taken != found[-1].step:
        raise typer.Exit(1)


def _checked(run: Path) -> list[_Checked]:
    """All checkpoints, oldest first; those that a run at work forgets meanwhile are left out."""
    from bertkit import artifact
    from bertkit.train import checkpoint

    found = []
    for step, path in checkpoint.steps(run):
        wrong = ""
        try:
            artifact.verify(path)
        except BertkitError as error:
            if not path.exists():
                continue
            wrong = str(error).removeprefix(f"{artifact.resolved(path)}: ")
        found.append(_Checked(step, sum(file.stat().st_size for file in path.rglob("*") if file.is_file()), wrong))
    return found


def _said(run: Path, taken: int | None) -> str:
    if taken is None:
        return f"none is whole: the run would begin at step 0 again. Next: {_again(run)}"
    return f"the run would go on from step {taken:,}. Next: {_again(run)}"


def _again(run: Path) -> str:
    """The command that goes on with a run: a fine-tuning's recipe has a task."""
    from bertkit.text.files import read_text

    tunes = (run / "recipe.toml").is_file() and "\n[task]\n" in read_text(run / "recipe.toml")
    return f"bertkit {'finetune --recipe' if tunes else 'pretrain'} {run / 'recipe.toml'}"
