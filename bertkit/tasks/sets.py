"""The sets of a tuning: items to learn from, and items for exams, read from files as often as they are needed."""

from __future__ import annotations

import logging
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertkit.errors import BertkitError
from bertkit.evaluate.fingerprint import digest
from bertkit.tasks.item import Item
from bertkit.tasks.layout import Layout
from bertkit.tasks.predictions import few
from bertkit.tasks.split import Array, folds, held_out
from bertkit.tasks.task import Task
from bertkit.tasks.tuning import Tuning

log = logging.getLogger("bertkit")


SHOWN = 3
"""rows that are left out and named; the others are counted"""


@dataclass(frozen=True, eq=False)
class Rows:
    """Some items of a file, read again whenever somebody asks for them."""

    path: Path
    layout: Layout
    places: Array
    """of these items among all, ascending"""
    skips: bool = False
    """whether the file has rows that cannot be used"""

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Item]:
        items = self.layout.items(self.path, lambda error: None) if self.skips else self.layout.items(self.path)
        wanted = iter(self.places.tolist())
        next_ = next(wanted, None)
        for place, item in enumerate(items):
            if place == next_:
                yield item
                next_ = next(wanted, None)


@dataclass(frozen=True, eq=False)
class Looked:
    """A file that was looked through: of every item that can be used its place, its stratum and its group, [N] each."""

    path: Path
    layout: Layout
    places: Array
    strata: list[str]
    groups: list[str]
    skips: bool

    def rows(self, chosen: Array | None = None) -> Rows:
        """Its items, or some of them, [N] bool."""
        return Rows(self.path, self.layout, self.places if chosen is None else self.places[chosen], self.skips)


@dataclass(frozen=True)
class Sets:
    """What is learned from, and what is looked at; None where there is nothing of it."""

    train: Rows
    dev: Rows | None
    told: str
    """in words"""

    def prints(self) -> dict[str, str]:
        """SHA-256 of the files."""
        paths = [rows.path for rows in (self.train, self.dev) if rows is not None]
        return {str(path): digest(path) for path in dict.fromkeys(paths)}


def sets(tuning: Tuning) -> Sets:
    """The sets that a tuning names, looked through once: every row can be learned from, or is refused by its number."""
    looked = look_through(Path(tuning.train), tuning.layout, tuning.task, tuning.on_error)
    if tuning.dev or not (tuning.folds or tuning.held_out):
        train = looked.rows()
        dev = look_through(Path(tuning.dev), tuning.layout, tuning.task, tuning.on_error).rows() if tuning.dev else None
        _require_enough(dev, tuning.task)
        exams = f"{len(dev):,} of {dev.path}" if dev else "none"
        return Sets(train, dev, f"{len(train):,} rows of {train.path} to learn from, {exams} for exams")
    held = _held(looked, tuning)
    train, dev = looked.rows(~held), looked.rows(held)
    if not len(train) or not len(dev):
        raise BertkitError(
            f"{looked.path} has {len(held)} rows, too few to hold out a part: give --dev FILE, or --held-out 0"
        )
    _require_enough(dev, tuning.task)
    turn = f"fold {tuning.fold + 1} of {tuning.folds}" if tuning.folds else f"{held.mean():.0%}"
    spread = "evenly over labels" if len(set(looked.strata)) > 1 else "by chance"
    spread = "whole groups" if any(looked.groups) else spread
    told = f"{len(train):,} rows of {looked.path} to learn from, {len(dev):,} held out for exams ({turn}, {spread})"
    return Sets(train, dev, told + _unlearned(looked.strata, held))


def _unlearned(strata: Sequence[str], held: Array) -> str:
    """A word on strata all of whose rows are held out: such a label is asked for and was never seen."""
    seen = {stratum for stratum, out in zip(strata, held, strict=True) if not out}
    unseen = sorted(set(strata) - seen)
    if not unseen:
        return ""
    return f"; held out altogether and so never learned: {few(unseen)} (give such labels more rows, or --dev FILE)"


def _require_enough(dev: Rows | None, task: Task) -> None:
    """Say at once what would otherwise be said after an epoch."""
    if dev is not None and len(dev) < task.fewest:
        raise BertkitError(
            f"{dev.path}: {len(dev)} row is for exams, and {task.main} needs {task.fewest} or more: give --dev FILE "
            "with more of them, a larger --held-out, or --held-out 0"
        )


def _held(looked: Looked, tuning: Tuning) -> Array:
    """Which items are not learned from, [N]; the same whatever the seed of the tuning, so that seeds compare."""
    if not tuning.folds:
        return held_out(looked.strata, looked.groups, tuning.held_out, seed=0)
    fold = folds(looked.strata, looked.groups, tuning.folds, seed=0)
    there = len(np.unique(fold))
    if there < tuning.folds:
        what = "groups" if any(looked.groups) else "rows"
        raise BertkitError(
            f"{looked.path} has {there} {what}, too few for {tuning.folds} folds: give --folds {max(min(5, there), 2)}"
        )
    held: Array = fold == tuning.fold
    return held


class Refusal:
    """What is done about rows that cannot be used: the first one ends it, or they are counted and some are named."""

    def __init__(self, on_error: str) -> None:
        self._on_error, self.count = on_error, 0

    def __call__(self, error: BertkitError) -> None:
        if self._on_error == "stop":
            raise error
        self.count += 1
        if self.count <= SHOWN:
            log.warning("left out: %s", error)

    def tell(self, path: Path) -> None:
        """Say how many there were."""
        if self.count:
            log.warning("%s: %s rows are left out", path, f"{self.count:,}")


def usable(path: Path, layout: Layout, task: Task, refuse: Refusal) -> Iterator[tuple[int, Item]]:
    """The items of a file that a task can use, each with its place; no more than one is held at a time."""
    for place, item in enumerate(layout.items(path, refuse)):
        try:
            task.require(item)
        except BertkitError as error:
            refuse(error)
            continue
        yield place, item


def look_through(path: Path, layout: Layout, task: Task, on_error: str = "stop") -> Looked:
    """Read a file once. A row that cannot be learned from is refused, or left out and said."""
    refuse, places = Refusal(on_error), array("q")
    strata: list[str] = []
    groups: list[str] = []
    for place, item in usable(path, layout, task, refuse):
        places.append(place)
        strata.append(sys.intern(task.stratum(item)))
        groups.append(sys.intern(item.group))
    if not places:
        raise BertkitError(f"{path} has no rows{' that can be used' if refuse.count else ''}")
    refuse.tell(path)
    return Looked(path, layout, np.asarray(places), strata, groups, refuse.count > 0)
