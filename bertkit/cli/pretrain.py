"""`bertkit pretrain`: learn from a corpus what a recipe says; the same command again goes on where it was."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.train.run import Told

EXAMPLE = "bertkit pretrain recipes/bert-tiny.toml data.corpus=shards output=runs/first train.steps=1000"


def run(
    recipe: Annotated[Path, typer.Argument(help="A TOML file, such as recipes/bert-tiny.toml.")],
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Changes to it, such as train.steps=60.")
    ] = None,
) -> None:
    """Pre-train a BERT on a corpus of `bertkit corpus build`.

    Killed at any moment, the same command goes on from the last checkpoint and ends with the same weights.
    """
    from bertkit.train import recipe as recipes
    from bertkit.train.run import StoppedError, pretrain

    if not recipe.is_file():
        there = ", ".join(map(str, sorted(Path("recipes").glob("*.toml")))) or "none in ./recipes"
        raise BertkitError(f"there is no recipe {recipe}. There are: {there}")
    with _Display() as display:
        try:
            made = pretrain(recipes.read(recipe, changes or ()), display.tell)
        except StoppedError as stopped:
            typer.echo(f"bertkit: {stopped}", err=True)
            raise typer.Exit(130) from None
    typer.echo(f"bertkit: wrote {made}. Next: bertkit fill {made} 'a text with a [MASK] in it'", err=True)


class _Display:
    """A bar on a terminal, a line now and then elsewhere."""

    def __enter__(self) -> _Display:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("step {task.completed:,}/{task.total:,}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            disable=not sys.stderr.isatty(),
        )
        self._bar.__enter__()
        self._task = self._bar.add_task("", total=None)
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.__exit__(None, None, None)

    def tell(self, told: Told) -> None:
        right = told.learned.right
        parts = [f"{name} {loss:.3f} ({right[name]:.1%})" for name, loss in told.learned.losses.items()]
        said = ", ".join([*parts, f"rate {told.rate:.1e}"])
        self._bar.update(self._task, total=told.steps, completed=told.step, description=said)
