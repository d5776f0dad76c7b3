"""`bertkit pretrain`: learn from a corpus what a recipe says; the same command again goes on where it was."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.train.run import Told

EXAMPLE = "bertkit pretrain recipes/bert-tiny.toml output=runs/first train.steps=9000 train.schedule.warmup=500"
SECONDS = 10.0
"""from one line to the next where there is no terminal"""
LATELY = 0.98
"""of what was known about the pace, kept from one step to the next"""


def run(
    recipe: Annotated[Path, typer.Argument(help="A TOML file, such as recipes/bert-tiny.toml.")],
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Changes to it, such as train.steps=60.")
    ] = None,
) -> None:
    """Pre-train a BERT on a corpus of `bertkit corpus build`, or on raw texts that the recipe names.

    Killed at any moment, the same command goes on from the last checkpoint and ends with the same weights. Ctrl-C saves
    and ends. Every key of a recipe may be changed: output=DIR, train.steps=60, train.optimizer.rate=1e-4, seed=1,
    model.weights=DIR to go on with a model that is there. Keys that do not exist are told, with those that do.
    """
    from bertkit.train import recipe as recipes
    from bertkit.train.page import filling
    from bertkit.train.pretrain import pretrain
    from bertkit.train.run import StoppedError

    if not recipe.is_file():
        there = ", ".join(map(str, sorted(Path("recipes").glob("*.toml")))) or "none in ./recipes"
        raise BertkitError(f"there is no recipe {recipe}. There are: {there}")
    read = recipes.read(recipe, changes or ())
    leads = os.environ.get("RANK", "0") == "0"
    with Display(leads) as display:
        try:
            made = pretrain(read, display.tell, display.say)
        except StoppedError as stopped:
            display.say(str(stopped))
            raise typer.Exit(130) from None
    if leads:
        display.say(f"wrote {made}. Next: bertkit report {made.parent}, or {filling(made.parent)}")


class Display:
    """A bar on a terminal, a line now and then elsewhere; silent in all processes but one."""

    def __init__(self, shows: bool = True) -> None:
        self._shows, self._bars = shows, shows and sys.stderr.isatty()

    def __enter__(self) -> Display:
        from rich.console import Console, RenderableType
        from rich.progress import BarColumn, Progress, TextColumn

        class Bar(Progress):
            """A bar with the measurements on a line of their own, for narrow terminals."""

            measured = ""

            def get_renderables(self) -> Iterable[RenderableType]:
                yield self.make_tasks_table(self.tasks)
                yield self.measured

        self._bar = Bar(
            TextColumn("step {task.completed:,} of {task.total:,}"),
            BarColumn(),
            TextColumn("{task.description}"),
            console=Console(file=sys.stderr),
            disable=not self._bars,
        )
        self._bar.__enter__()
        self._task = self._bar.add_task("", total=1, visible=False)
        self._pace, self._last, self._said = 0.0, 0.0, 0.0
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.__exit__(None, None, None)

    def say(self, what: str) -> None:
        """A line that stays."""
        if self._shows:
            typer.echo(f"bertkit: {what}", err=True)

    def tell(self, told: Told) -> None:
        """What a step came to."""
        now = time.monotonic()
        took, self._last = now - (self._last or now), now  # of the first one only its end is known
        self._pace = LATELY * self._pace + (1 - LATELY) * took if self._pace else took
        left = timedelta(seconds=round(self._pace * (told.steps - told.step)))
        still = f"{left} left" if self._pace else ""
        if self._bars:
            self._bar.measured = line(told)
            self._bar.update(self._task, total=told.steps, completed=told.step, description=still, visible=True)
        elif now - self._said >= SECONDS or told.step == told.steps:
            self._said = now
            self.say(f"step {told.step:,} of {told.steps:,}: {line(told)}{', ' * bool(still)}{still}")


def line(told: Told) -> str:
    """The measurements of a step: losses, shares of right answers, rate, gradient, speed."""
    right = told.learned.right
    parts = [f"{name} {loss:.3f} ({right[name]:.0%})" for name, loss in told.learned.losses.items()]
    course = [f"rate {told.rate:.1e}", f"gradient {told.learned.norm:.2f}", f"{told.speed:,.0f} tokens/s"]
    return ", ".join([*parts, *course])
