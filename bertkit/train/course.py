"""A course: what a run learns, and when. Pre-training is one, fine-tuning another; the run itself knows neither."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch.utils.data import Dataset

from bertkit.batch import Batch
from bertkit.model import Model
from bertkit.objectives.learner import Learner
from bertkit.objectives.objective import Objective
from bertkit.train.compute import Compute
from bertkit.train.feed import Place, Portion
from bertkit.train.optimizer import Optimizer
from bertkit.train.processes import Member
from bertkit.train.schedule import Schedule

Line = tuple[str, dict[str, Any]]
"""of a journal: its kind and its values"""


@dataclass(frozen=True)
class Pace:
    """How many steps, how large, and what is done on the way."""

    steps: int
    optimizer: Optimizer
    schedule: Schedule
    clip: float
    log_every: int
    evaluate_every: int
    checkpoint_every: int
    keep_last: int
    """checkpoints that stay; 0: none does, once the model is there"""
    best: str = ""
    """the name under which the network of the best exam is kept"""
    patience: int = 0
    """exams in a row without a better one, after which it is enough; 0: all steps are done"""
    checkpoint_minutes: float = 0.0
    """a checkpoint after so much time as well"""
    tensorboard: bool = False


class Stage(NamedTuple):
    """Steps that learn from one kind of examples."""

    first: int
    stop: int
    note: Mapping[str, Any]
    """what the journal says of it; empty: nothing"""
    feed: Callable[[Place, Member], tuple[Dataset[Batch], Iterator[Portion]]]
    """the examples, and what each step from a place on takes of them"""


class Course(ABC):
    """What a run asks of what it learns. All of it is the same whenever it is asked, so that a run can go on."""

    output: Path
    seed: int
    objective: Objective
    pace: Pace
    compute: Compute
    workers: int

    @abstractmethod
    def model(self) -> Model:
        """The network that learning begins with."""

    def prime(self, model: Model) -> None:  # noqa: B027 - most need nothing
        """Give a network what only its very beginning needs."""

    @abstractmethod
    def learner(self, model: Model) -> Learner:
        """The network and all that learns with it."""

    @abstractmethod
    def stages(self) -> list[Stage]:
        """All steps, in order."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What it learns from, by fingerprints."""

    @abstractmethod
    def recognise(self, facts: Mapping[str, Any]) -> None:
        """Refuse to go on with a run that learned from something else."""

    @abstractmethod
    def beginning(self, learner: Learner) -> dict[str, Any]:
        """What is known before the first step."""

    @abstractmethod
    def examine(self, learner: Learner, models: Mapping[str, Model], step: int) -> list[Line]:
        """What an exam after a step comes to."""

    @abstractmethod
    def worth(self, line: Mapping[str, Any]) -> float | None:
        """How good the network is by a line of an exam, more is better; None where the line does not say."""

    def save(self, model: Model, path: Path) -> None:
        """Keep a network."""
        with model.network.evaluating():
            model.save(path, overwrite=True)
