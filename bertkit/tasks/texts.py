"""Texts and pairs, and what tasks about whole texts share: how they are read, asked and answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from bertkit.batch import Example
from bertkit.errors import BertkitError
from bertkit.runtime.stream import Rows, example
from bertkit.tasks.item import Item, Texts
from bertkit.tasks.task import Asked, Lesson, Reader, Task, required
from bertkit.text import Tokenizer


@dataclass(frozen=True)
class TextTask(Task):
    """The base of tasks about a text or a pair."""

    head: ClassVar[str]
    """whose logits are read"""

    def true(self, item: Texts) -> dict[str, Any]:
        """What is right, as the objective wants it; an item without it is refused."""
        raise NotImplementedError

    def answer(self, logits: Rows) -> Any:
        """What logits [C] mean."""
        raise NotImplementedError

    def require(self, item: Item) -> None:
        texts = cast(Texts, item)
        for field in texts.fields:
            if not field.strip():
                raise BertkitError(f"{item.where}: a text is empty. Write it, or take the row out: --on-error skip")
        self.true(texts)

    def lessons(self, items: Sequence[Item], reader: Reader) -> Iterator[Lesson]:
        found = cast(Sequence[Texts], items)
        ids = iter(reader.tokenizer.ids_of_many([text for one in found for text in one.fields], special_tokens=False))
        for one in found:
            fields, true = [next(ids) for _ in one.fields], self.true(one)
            for reading in reader.read(fields, one):
                tokens = example(reading.ids, reading.segments).tokens
                yield [Example(tokens, labels=true)]

    def answers(self, asked: Asked, items: Iterable[Item]) -> Iterator[Any]:
        fields = (cast(Texts, item).fields for item in items)
        for rows in asked.model.logits(fields, self.head, asked.policy, asked.progress, asked.cut):
            for row in rows:
                yield self.answer(row)

    def item(self, given: Mapping[str, Any] | str, number: int, tokenizer: Tokenizer) -> Item:
        """A text, or `text` and `pair`."""
        given = {"text": given} if isinstance(given, str) else given
        names = [name for name in ("text", "pair") if name == "text" or given.get(name) is not None]
        wanted = "a text, or an object with text, and pair for a second one"
        return Texts(Path("input"), number, tuple(required(given, name, number, wanted) for name in names))


def label_of(item: Texts) -> str:
    """The label of an item, which must have one."""
    if item.label is None or not item.label.strip():
        raise BertkitError(f"{item.where} has no label: give it one, or take the row out: --on-error skip")
    return item.label.strip()


def softmax(logits: Rows) -> Rows:
    """Chances, float64.

    >>> softmax(np.log(np.array([1.0, 3.0]))).round(6).tolist()
    [0.25, 0.75]
    """
    odds = np.exp(logits.astype(np.float64) - logits.max())
    chances: Rows = odds / odds.sum()
    return chances


def watched(items: Iterable[Item], waiting: deque[Item]) -> Iterator[Item]:
    """The items; each is remembered until its answer is there."""
    for item in items:
        waiting.append(item)
        yield item
