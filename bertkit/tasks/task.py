"""A task: what a dataset means to a model. Datasets are told apart by their readers and their labels, not by classes.

It says which objective its items teach (`objective`), what of an item the model learns from (`lessons`), what the model
answers (`answers`), and how good answers are (`scorer`). What is kept beside a model, so that it can answer, is the
task itself as JSON: labels, thresholds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from bertkit.batch import Example
from bertkit.errors import BertkitError, about
from bertkit.model import Model
from bertkit.objectives.objective import Objective
from bertkit.spec import Spec
from bertkit.tasks.item import Item
from bertkit.text import Tokenizer
from bertkit.text.reading import Reading, read
from bertkit.text.truncate import Cut, KeepHead, Policy

Scores = dict[str, float]
"""by measure"""


@dataclass(frozen=True)
class Answer:
    """What a model says of an item; `told` is what is printed."""

    def told(self) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def short(self) -> str:
        """In one word, for a line of text or a submission."""
        raise NotImplementedError


class Scorer(ABC):
    """Counts answers one at a time; its memory does not grow with their number, but where a measure needs them all."""

    @abstractmethod
    def add(self, item: Item, answer: Any) -> None:
        """Take an answer into account."""

    @abstractmethod
    def scores(self) -> Scores:
        """Of all so far."""


@dataclass(frozen=True)
class Reader:
    """How a model reads: its tokenizer, the most tokens, and what happens to more."""

    tokenizer: Tokenizer
    limit: int
    policy: Policy
    cut: Cut = field(default_factory=Cut)
    """what was cut on the way"""

    def read(self, fields: Sequence[Sequence[int]], item: Item) -> list[Reading]:
        """An item's fields, as ids, in the windows that the policy makes of them."""
        with about(item.where):
            readings = read(fields, self.tokenizer, self.limit, self.policy)
        self.cut.count(0, [len(field) for field in fields], [reading.window for reading in readings])
        return readings


@dataclass(frozen=True)
class Asked:
    """A model that is asked: what happens to long inputs, what was cut, and who hears how many items are answered."""

    model: Model
    policy: Policy
    cut: Cut = field(default_factory=Cut)
    progress: Callable[[int], None] | None = None

    def done(self, items: int = 1) -> None:
        """So many more are answered."""
        if self.progress:
            self.progress(items)


Lesson = list[Example]
"""sequences that are learned from together: one, or one for each option"""


@dataclass(frozen=True)
class Task(Spec):
    """The base of all tasks."""

    @property
    def main(self) -> str:
        """The measure by which networks are compared; more is better."""
        raise NotImplementedError

    @property
    def policy(self) -> Policy:
        """What happens to inputs that are too long, unless somebody says otherwise."""
        return KeepHead()

    @property
    def tunes(self) -> bool:
        """Whether a development set says more than how good answers are."""
        return False

    @property
    def fewest(self) -> int:
        """The fewest rows that can be scored."""
        return 1

    @property
    def objective(self) -> Objective:
        """What is learned."""
        raise NotImplementedError

    def require(self, item: Item) -> None:
        """Refuse an item that cannot be learned from or scored, by its file and row."""
        raise NotImplementedError

    def stratum(self, item: Item) -> str:
        """Items of one stratum are spread evenly when a set is split."""
        return ""

    def lessons(self, items: Sequence[Item], reader: Reader) -> Iterator[Lesson]:
        """What is learned from items."""
        raise NotImplementedError

    def answers(self, asked: Asked, items: Iterable[Item]) -> Iterator[Any]:
        """What a model says of each item, in order; items in any number."""
        raise NotImplementedError

    def scorer(self) -> Scorer:
        """How good answers are."""
        raise NotImplementedError

    def tuned(self, answered: Iterable[tuple[Item, Any]]) -> Self:
        """The task with what answers on a development set say about thresholds."""
        return self

    def decided(self, answer: Any) -> Any:
        """An answer again, after thresholds changed."""
        return answer

    def item(self, given: Mapping[str, Any] | str, number: int, tokenizer: Tokenizer) -> Item:
        """What somebody asks without a file: a text, or values by the names of columns."""
        raise NotImplementedError


def required(given: Mapping[str, Any], name: str, number: int, names: str) -> str:
    """A text that must be there."""
    value = given.get(name)
    if not isinstance(value, str):
        there = f"{value!r}" if name in given else f"only {', '.join(given) or 'nothing'}"
        raise BertkitError(f"input {number} has no text {name!r}, but {there}: this task wants {names}")
    return value
