"""Which labels, any number of them? Each has a threshold of its own, tuned on the development set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from bertkit.errors import BertkitError
from bertkit.evaluate.labelsets import LabelSets, best_threshold
from bertkit.objectives.labels import LabelsQuestion
from bertkit.objectives.objective import Objective
from bertkit.runtime.stream import Rows
from bertkit.spec import Rate
from bertkit.tasks.item import Item, Texts
from bertkit.tasks.task import Answer, Scorer, Scores
from bertkit.tasks.texts import TextTask

USUAL = 0.5


@dataclass(frozen=True)
class Several(Answer):
    """The labels that are likely enough, and how likely each one is."""

    labels: tuple[str, ...]
    scores: Mapping[str, float]

    def told(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "scores": dict(self.scores)}

    @property
    def short(self) -> str:
        return "|".join(self.labels)


@dataclass(frozen=True)
class MultiLabels(TextTask):
    """Any number of labels for each text or pair."""

    head = "classify"

    labels: tuple[str, ...]
    separator: str = "|"
    """between the labels of a row"""
    thresholds: tuple[Rate, ...] = ()
    """of each label; 0.5 where there are none"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholds and len(self.thresholds) != len(self.labels):
            raise BertkitError(f"there are {len(self.thresholds)} thresholds for {len(self.labels)} labels: give all")

    @property
    def main(self) -> str:
        return "micro_f1"

    @property
    def tunes(self) -> bool:
        return True

    @property
    def objective(self) -> Objective:
        return LabelsQuestion(self.labels)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: place for place, label in enumerate(self.labels)}

    def flags(self, item: Texts) -> Rows:
        """Which labels an item has, [C]."""
        there = np.zeros(len(self.labels), np.bool_)
        if item.label is None:
            raise BertkitError(f"{item.where} says nothing about labels: give them, or take the row out")
        for label in split(item.label, self.separator):
            if label not in self._places:
                raise BertkitError(
                    f"{item.where} has the label {label!r}, which nothing is learned about. The labels are: "
                    f"{', '.join(self.labels[:20])}. Correct it, add rows with it to the training set, or take the row "
                    "out: --on-error skip"
                )
            there[self._places[label]] = True
        return there

    def true(self, item: Texts) -> dict[str, Any]:
        return {"labels": self.flags(item).astype(np.float32)}

    def stratum(self, item: Item) -> str:
        assert isinstance(item, Texts)
        return item.label or ""

    def answer(self, logits: Rows) -> Several:
        chances = 1 / (1 + np.exp(-logits.astype(np.float64)))
        return self.decided(Several((), dict(zip(self.labels, chances.tolist(), strict=True))))

    def decided(self, answer: Several) -> Several:
        least = self.thresholds or (USUAL,) * len(self.labels)
        there = [label for label, at in zip(self.labels, least, strict=True) if answer.scores[label] >= at]
        return replace(answer, labels=tuple(there))

    def tuned(self, answered: Iterable[tuple[Item, Several]]) -> Self:
        pairs = [
            (self.flags(item), list(answer.scores.values())) for item, answer in answered if isinstance(item, Texts)
        ]
        true, chances = np.array([one for one, _ in pairs]), np.array([one for _, one in pairs])  # [N, C] each
        found = [best_threshold(true[:, place], chances[:, place], USUAL) for place in range(len(self.labels))]
        return replace(self, thresholds=tuple(found))

    def scorer(self) -> Scorer:
        return SetScorer(self)


class SetScorer(Scorer):
    """Counts for each label."""

    def __init__(self, task: MultiLabels) -> None:
        self._task, self._sets = task, LabelSets(len(task.labels))

    def add(self, item: Item, answer: Several) -> None:
        assert isinstance(item, Texts)
        found = np.isin(self._task.labels, answer.labels)
        self._sets.add(self._task.flags(item), found)

    def scores(self) -> Scores:
        return {"micro_f1": self._sets.micro_f1(), "macro_f1": self._sets.macro_f1(), "exact": self._sets.exact()}


def split(label: str, separator: str) -> list[str]:
    """The labels of a row.

    >>> split("a| b", "|")
    ['a', 'b']
    """
    return [part.strip() for part in label.split(separator) if part.strip()]
