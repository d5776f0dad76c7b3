"""Which of several options? SWAG, CODAH, C3, ARCT, RACE: each option is read as a pair of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from bertkit.batch import Example
from bertkit.errors import BertkitError
from bertkit.objectives.choices import ChoiceQuestion
from bertkit.objectives.objective import Objective
from bertkit.runtime.stream import example
from bertkit.tasks.item import Item, Options
from bertkit.tasks.task import Answer, Asked, Lesson, Reader, Scorer, Scores, Task, required
from bertkit.tasks.texts import softmax, watched
from bertkit.text import Tokenizer


@dataclass(frozen=True)
class Chosen(Answer):
    """The place of the likeliest option, from 0 on, and how likely each one is."""

    choice: int
    scores: tuple[float, ...]

    def told(self) -> dict[str, Any]:
        return {"choice": self.choice, "score": self.scores[self.choice], "scores": list(self.scores)}

    @property
    def short(self) -> str:
        return str(self.choice)


@dataclass(frozen=True)
class MultipleChoice(Task):
    """One option for each question; questions may have different numbers of them."""

    @property
    def main(self) -> str:
        return "accuracy"

    @property
    def objective(self) -> Objective:
        return ChoiceQuestion()

    def require(self, item: Item) -> None:
        if cast(Options, item).right is None:
            raise BertkitError(f"{item.where} does not say which option is right: give its number, or take it out")

    def lessons(self, items: Sequence[Item], reader: Reader) -> Iterator[Lesson]:
        found = cast(Sequence[Options], items)
        texts = [text for one in found for pair in one.pairs for text in pair]
        ids = iter(reader.tokenizer.ids_of_many(texts, special_tokens=False))
        for one in found:
            rows = []
            for option in range(len(one.pairs)):
                fields = [next(ids), next(ids)]
                reading, *_ = reader.read(fields, one)
                tokens = example(reading.ids, reading.segments).tokens
                rows.append(Example(tokens, labels={"option": option, "right": int(option == one.right)}))
            yield rows

    def answers(self, asked: Asked, items: Iterable[Item]) -> Iterator[Chosen]:
        waiting: deque[Item] = deque()
        fields = (pair for item in watched(items, waiting) for pair in cast(Options, item).pairs)
        said = asked.model.logits(fields, "choice", asked.policy, None, asked.cut)
        logits = (float(row[0]) for rows in said for row in rows)
        first = next(logits, None)
        while first is not None:
            options = len(cast(Options, waiting.popleft()).pairs)
            chances = softmax(np.array([first, *(next(logits) for _ in range(options - 1))]))
            yield Chosen(int(chances.argmax()), tuple(chances.tolist()))
            asked.done()
            first = next(logits, None)

    def scorer(self) -> Scorer:
        return ChoiceScorer()

    def item(self, given: Mapping[str, Any] | str, number: int, tokenizer: Tokenizer) -> Item:
        """An object with a text and its choices."""
        names = "an object with text (what all options have in common) and choices (a list of texts)"
        if isinstance(given, str):
            raise BertkitError(f"input {number} is a text alone: this task wants {names}, as JSON on one line")
        text, choices = required(given, "text", number, names), given.get("choices")
        if not (isinstance(choices, list) and len(choices) > 1 and all(isinstance(one, str) for one in choices)):
            raise BertkitError(f"input {number} has no choices, a list of two texts or more: this task wants {names}")
        return Options(Path("input"), number, tuple((text, choice) for choice in choices))


class ChoiceScorer(Scorer):
    """How many are right."""

    def __init__(self) -> None:
        self._right = self._rows = 0

    def add(self, item: Item, answer: Chosen) -> None:
        self._right += cast(Options, item).right == answer.choice
        self._rows += 1

    def scores(self) -> Scores:
        return {"accuracy": self._right / max(self._rows, 1)}
