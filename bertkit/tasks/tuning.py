"""A tuning: all that decides a fine-tuning, as a recipe decides a pre-training. Its TOML repeats the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from bertkit import tasks
from bertkit.errors import BertkitError, look_up
from bertkit.spec import Bounds, Count, Positive, Rate, Spec
from bertkit.tasks.layout import Layout
from bertkit.tasks.task import Task
from bertkit.text.truncate import Policy
from bertkit.train.compute import Compute
from bertkit.train.optimizer import Adam, Optimizer
from bertkit.train.recipe import Seed, Some, read_as

ON_ERROR = {"stop": "", "skip": ""}
RATE, ROWS, EPOCHS = 5e-5, 32, 3.0
"""of the paper: 5e-5, 3e-5 or 2e-5; 16 or 32 rows; 3 epochs"""


@dataclass(frozen=True)
class Tuning(Spec):
    """A whole fine-tuning."""

    output: str
    model: str
    """what learning begins with: a directory, an alias or a name"""
    task: Task
    layout: Layout
    train: str
    """the file that is learned from"""
    dev: str = ""
    """the file that says which network is best; if empty, a part of `train`"""
    held_out: Rate = 0.1
    """that part; 0: no exam is held, and the last network is kept"""
    folds: Annotated[int, Bounds(0, 1000)] = 0
    """parts of `train` that take turns in being held out, instead; 0: none do"""
    fold: Annotated[int, Bounds(0, 1000)] = 0
    """the part whose turn it is, from 0 on"""
    on_error: str = "stop"
    """what happens at a row that cannot be learned from: stop, or skip it and say so"""
    limit: Some = 0
    """the most tokens of an input; 0: as many as the model takes"""
    truncate: Policy | None = None
    """what happens to longer ones; if not given, what suits the task"""
    epochs: Positive = EPOCHS
    rows: Count = ROWS
    """examples of a step"""
    tokens: Count = 8192
    """that are in memory at once"""
    optimizer: Optimizer = field(default_factory=lambda: Adam(rate=RATE))
    warmup: Rate = 0.1
    """the share of steps in which the rate goes up; then it goes down to 0 in even steps"""
    clip: Annotated[float, Bounds(0)] = 1.0
    """the longest gradient; 0: as long as it is"""
    evaluate_every: Some = 0
    """steps from one exam to the next; 0: an exam after each epoch"""
    patience: Some = 0
    """exams in a row without a better one, after which learning ends; 0: all epochs are learned"""
    log_every: Count = 10
    checkpoint_minutes: Annotated[float, Bounds(0)] = 5.0
    """what a kill costs at most"""
    compute: Compute = field(default_factory=Compute)
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        look_up("on_error", self.on_error, ON_ERROR)
        if self.folds == 1 or (self.folds and self.fold >= self.folds):
            raise BertkitError(f"fold {self.fold} of {self.folds}: give 2 folds or more, and one of them from 0 on")
        if self.folds and self.dev:
            raise BertkitError(f"with folds, parts of {self.train} take turns in being held out: leave out dev")

    @property
    def policy(self) -> Policy:
        """What happens to inputs that are too long."""
        return self.truncate or self.task.policy


def read(path: Path, changes: Sequence[str] = ()) -> Tuning:
    """The tuning of a TOML file, with changes such as `epochs=4.0` or `output=runs/mine`."""
    tasks.learn_parts()
    return read_as(Tuning, path, changes)
