"""Which of several labels? Single sentences and pairs: GLUE, sentiment, topics, intents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from bertkit.errors import BertkitError
from bertkit.evaluate.confusion import Confusion
from bertkit.evaluate.correlation import Paired
from bertkit.objectives.labels import LabelQuestion
from bertkit.objectives.objective import Objective
from bertkit.runtime.stream import Rows
from bertkit.tasks.item import Item, Texts
from bertkit.tasks.regression import number_of
from bertkit.tasks.task import Answer, Scorer, Scores
from bertkit.tasks.texts import TextTask, label_of, softmax

MEASURES = ("accuracy", "f1", "macro_f1", "matthews")


@dataclass(frozen=True)
class Labelled(Answer):
    """A label and how likely each one is."""

    label: str
    score: float
    scores: Mapping[str, float]

    def told(self) -> dict[str, Any]:
        return {"label": self.label, "score": self.score, "scores": dict(self.scores)}

    @property
    def short(self) -> str:
        return self.label


@dataclass(frozen=True)
class Classification(TextTask):
    """One label for each text or pair."""

    head = "classify"

    labels: tuple[str, ...]
    """in the order of the network's outputs"""
    measures: tuple[str, ...] = ("accuracy", "macro_f1")
    """of accuracy, f1 (of the second of two labels), macro_f1, matthews; the first decides which network is best"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.measures:
            raise BertkitError(f"Classification.measures is empty: give one or more of {', '.join(MEASURES)}")
        for name in self.measures:
            if name not in MEASURES:
                raise BertkitError(f"there is no measure {name!r}. There are: {', '.join(MEASURES)}")

    @property
    def objective(self) -> Objective:
        return LabelQuestion(self.labels)

    def true(self, item: Texts) -> dict[str, Any]:
        return {"label": self.number(item)}

    def number(self, item: Texts) -> int:
        """The place of an item's label."""
        label = label_of(item)
        if label not in self._places:
            raise BertkitError(
                f"{item.where} has the label {label!r}, which nothing is learned about. The "
                f"labels are: {', '.join(self.labels[:20])}. Correct it, add rows with it to the training set, or take "
                "the row out: --on-error skip"
            )
        return self._places[label]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: place for place, label in enumerate(self.labels)}

    @property
    def main(self) -> str:
        return self.measures[0]

    def stratum(self, item: Item) -> str:
        assert isinstance(item, Texts)
        return item.label or ""

    def answer(self, logits: Rows) -> Labelled:
        chances = softmax(logits).tolist()
        best = int(np.argmax(chances))
        return Labelled(self.labels[best], chances[best], dict(zip(self.labels, chances, strict=True)))

    def scorer(self) -> Scorer:
        return LabelScorer(self)


class LabelScorer(Scorer):
    """A table of true and found labels: the same size for any number of rows."""

    def __init__(self, task: Classification) -> None:
        self._task, self._table = task, Confusion(len(task.labels))

    def add(self, item: Item, answer: Labelled) -> None:
        assert isinstance(item, Texts)
        self._table.add(self._task.number(item), self._task.labels.index(answer.label))

    def scores(self) -> Scores:
        return {name: getattr(self._table, name)() for name in self._task.measures}


@dataclass(frozen=True)
class Graded(Answer):
    """A number by the chances of its bins, and the likeliest bin."""

    number: float
    label: str
    scores: Mapping[str, float]

    def told(self) -> dict[str, Any]:
        return {"score": self.number, "label": self.label, "scores": dict(self.scores)}

    @property
    def short(self) -> str:
        return f"{self.number:.3f}"


@dataclass(frozen=True)
class Grades(TextTask):
    """A number from `low` to `high` as one of so many bins of equal width: STS-B as a 5-way classification.

    The answer is the mean of the bins' middles, each with its chance, so that near grades count as near.

    >>> Grades().names
    ('0-1', '1-2', '2-3', '3-4', '4-5')
    >>> [Grades().bin(number) for number in (0.0, 0.99, 1.0, 5.0)]
    [0, 0, 1, 4]
    """

    head = "classify"

    bins: int = 5
    low: float = 0.0
    high: float = 5.0

    @property
    def main(self) -> str:
        return "pearson"

    @property
    def fewest(self) -> int:
        return 2  # for a correlation

    @property
    def names(self) -> tuple[str, ...]:
        """Of the bins."""
        edges = np.linspace(self.low, self.high, self.bins + 1)
        return tuple(f"{left:g}-{right:g}" for left, right in pairwise(edges))

    @property
    def objective(self) -> Objective:
        return LabelQuestion(self.names)

    def bin(self, number: float) -> int:
        """The place of a number's bin."""
        return min(int((number - self.low) / (self.high - self.low) * self.bins), self.bins - 1)

    def true(self, item: Texts) -> dict[str, Any]:
        number = number_of(item)
        if not self.low <= number <= self.high:
            raise BertkitError(f"{item.where}: {number:g} is not between {self.low:g} and {self.high:g}")
        return {"label": self.bin(number)}

    def stratum(self, item: Item) -> str:
        assert isinstance(item, Texts)
        return self.names[self.bin(number_of(item))]

    def answer(self, logits: Rows) -> Graded:
        chances, width = softmax(logits), (self.high - self.low) / self.bins
        number = float(chances @ (self.low + width * (np.arange(self.bins) + 0.5)))
        return Graded(number, self.names[int(chances.argmax())], dict(zip(self.names, chances.tolist(), strict=True)))

    def scorer(self) -> Scorer:
        return GradeScorer(self)


class GradeScorer(Scorer):
    """Correlations of numbers, and how many bins are right."""

    def __init__(self, task: Grades) -> None:
        self._task, self._pairs, self._table = task, Paired(), Confusion(task.bins)

    def add(self, item: Item, answer: Graded) -> None:
        assert isinstance(item, Texts)
        true = number_of(item)
        self._pairs.add(true, answer.number)
        self._table.add(self._task.bin(true), self._task.names.index(answer.label))

    def scores(self) -> Scores:
        return {
            "pearson": self._pairs.pearson(),
            "spearman": self._pairs.spearman(),
            "accuracy": self._table.accuracy(),
        }
