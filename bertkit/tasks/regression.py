"""Which number? Similarities (STS-B), ratings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from bertkit.errors import BertkitError
from bertkit.evaluate.correlation import Paired
from bertkit.objectives.labels import NumberQuestion
from bertkit.objectives.objective import Objective
from bertkit.runtime.stream import Rows
from bertkit.tasks.item import Item, Texts
from bertkit.tasks.task import Answer, Scorer, Scores
from bertkit.tasks.texts import TextTask, label_of


@dataclass(frozen=True)
class Number(Answer):
    """A number."""

    number: float

    def told(self) -> dict[str, Any]:
        return {"score": self.number}

    @property
    def short(self) -> str:
        return f"{self.number:.3f}"


@dataclass(frozen=True)
class Regression(TextTask):
    """A number for each text or pair."""

    head = "regress"

    @property
    def main(self) -> str:
        return "pearson"

    @property
    def fewest(self) -> int:
        return 2  # for a correlation

    @property
    def objective(self) -> Objective:
        return NumberQuestion()

    def true(self, item: Texts) -> dict[str, Any]:
        return {"number": number_of(item)}

    def answer(self, logits: Rows) -> Number:
        return Number(float(logits[0]))

    def scorer(self) -> Scorer:
        return NumberScorer()


class NumberScorer(Scorer):
    """Correlations; two numbers are kept of each row, for ranks need them all."""

    def __init__(self) -> None:
        self._pairs = Paired()

    def add(self, item: Item, answer: Number) -> None:
        assert isinstance(item, Texts)
        self._pairs.add(number_of(item), answer.number)

    def scores(self) -> Scores:
        return {"pearson": self._pairs.pearson(), "spearman": self._pairs.spearman()}


def number_of(item: Texts) -> float:
    """The number of an item, which must have one."""
    label = label_of(item)
    try:
        number = float(label)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BertkitError(
            f"{item.where}: {label!r} is no number, and a score is asked for. Correct it, or take the row out: "
            "--on-error skip. For words as labels name the column with --label"
        )
    return number
