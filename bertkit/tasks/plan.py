"""From what somebody typed to a tuning: a known dataset by its name, or any file, understood by looking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError, unknown
from bertkit.tasks.guess import KINDS, Guess, guess, task_of
from bertkit.tasks.known import KNOWN, Known
from bertkit.tasks.layout import TableLayout, require_only
from bertkit.tasks.table import missing
from bertkit.tasks.tagging import Tagging
from bertkit.tasks.task import Task
from bertkit.tasks.tuning import Tuning


@dataclass(frozen=True)
class Wish:
    """What was typed; empty where nothing was said."""

    model: str
    output: str
    task: str = ""
    """the name of a known dataset, or a kind of task"""
    data: str = ""
    """the folder of a known dataset"""
    train: str = ""
    dev: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    """role -> the column that has it: text, pair, label, score"""
    only: tuple[str, ...] = ()
    chain: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    """of the tuning, by their names"""


def plan(wish: Wish, say: Callable[[str], None]) -> Tuning:
    """The tuning that is meant; `say` hears how files were understood."""
    if wish.task and wish.task not in KNOWN and wish.task not in KINDS:
        raise unknown("task", wish.task, [*KNOWN, *KINDS])
    set_ = KNOWN.get(wish.task)
    train, dev = _files(wish, set_)
    settings = dict(wish.settings)
    on_error = settings.get("on_error", "stop")
    if set_ is not None and not wish.columns:
        found = Guess(_narrowed(set_, wish.only), "tagging" if set_.task is None else "", set_.title)
        task = set_.task or task_of(found, train, _refusing(on_error), wish.chain)
        settings.setdefault("limit", set_.limit)
    else:
        found = guess(train, wish.columns, wish.task if wish.task in KINDS else "", wish.only)
        task = task_of(found, train, _refusing(on_error), wish.chain)
    if wish.chain and not isinstance(task, Tagging):
        raise BertkitError(f"--crf is for tags, and {train} is learned as {type(task).__name__}: leave it out")
    if isinstance(found.layout, TableLayout) and wish.only:
        require_only(found.layout, [train, dev] if dev else [train])
    say(f"{train}: {found.why}; {_told(task)}")
    named = {"output": wish.output, "model": wish.model, "task": task, "layout": found.layout}
    return Tuning(**named, train=str(train), dev=str(dev) if dev else "", **settings)  # type: ignore[arg-type]


def _narrowed(set_: Known, only: tuple[str, ...]) -> Any:
    if not only:
        return set_.layout
    if not isinstance(set_.layout, TableLayout):
        raise BertkitError(f"--only is for tables, and {set_.title} is none: leave it out")
    layout = set_.layout
    return replace(layout, only=only)


def _files(wish: Wish, set_: Known | None) -> tuple[Path, Path | None]:
    if wish.train and wish.data:
        raise BertkitError(f"give --data {wish.data} or --train {wish.train}, not both")
    if wish.train:
        for given in filter(None, (wish.train, wish.dev)):
            if not Path(given).exists():
                raise missing(Path(given))
        return Path(wish.train), Path(wish.dev) if wish.dev else None
    if not wish.data:
        raise BertkitError("what shall be learned from? --train FILE, or --task NAME --data FOLDER for a known dataset")
    if set_ is None:
        raise BertkitError(
            f"--data {wish.data} needs --task, one of {', '.join(KNOWN)}. For a file of yours: --train FILE"
        )
    folder = Path(wish.data)
    dev = Path(wish.dev) if wish.dev else set_.file(folder, "dev")
    if wish.settings.get("folds") and not wish.dev:
        dev = None
    return set_.required(folder, "train"), dev


def _refusing(on_error: str) -> Callable[[BertkitError], None]:
    def refuse(error: BertkitError) -> None:
        if on_error == "stop":
            raise error

    return refuse


def _told(task: Task) -> str:
    """A task in words."""
    labels: tuple[str, ...] = getattr(task, "labels", ())
    some = ", ".join(labels[:8]) + (", …" if labels[8:] else "")
    kind = type(task).__name__
    return f"{kind} with {len(labels)} labels: {some}" if labels else kind
