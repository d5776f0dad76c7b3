"""Lessons: items as a model learns from them, all in memory as arrays, in an order of their own in every epoch.

Batches hold neighbours in length, so that little is wasted: an epoch's order is drawn at random, cut into pools of some
batches, each pool is sorted by length and cut into batches, and the batches are dealt at random again. All of it is a
function of the seed and the epoch.

Letters: N lessons · S sequences · T tokens.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from torch.utils.data import Dataset

from bertkit.batch import Batch, Packed, gather
from bertkit.corpus.chance import key, number
from bertkit.errors import BertkitError
from bertkit.tasks.item import Item
from bertkit.tasks.task import Lesson, Reader, Task
from bertkit.text.ranges import ranges
from bertkit.text.window import windows
from bertkit.train.feed import Place, Portion, Request
from bertkit.train.processes import Member

Array = np.ndarray[Any, np.dtype[Any]]

POOL = 50
"""batches that are sorted together"""
_ORDER, _DEAL = range(2)
"""what chance is asked for"""


class Lessons(Dataset[Batch]):
    """All that is learned from, and the batches of each epoch."""

    def __init__(self, lessons: Iterable[Lesson], rows: int, seed: int) -> None:
        made = _Arrays()
        for lesson in lessons:
            made.add(lesson)
        if not made.sizes:
            raise BertkitError("there is nothing to learn from")
        self._rows, self._seed = rows, seed
        self._ids, self._segments = np.asarray(made.ids), np.asarray(made.segments)  # [T] each
        self._starts = _starts(made.lengths)  # [S + 1], of sequences among tokens
        self._sizes = np.asarray(made.sizes)  # [N], sequences of each lesson
        self._firsts = _starts(made.sizes)  # [N + 1], of lessons among sequences
        self._labels = {name: np.array(values) for name, values in made.labels.items()}  # [S, ...] each
        self._marks = {name: (np.asarray(at), np.asarray(true)) for name, (at, true) in made.marks.items()}  # [M] each
        self._marked = {name: _starts(counts) for name, counts in made.marked.items()}  # [S + 1] each
        self.lengths = np.diff(self._starts[self._firsts])  # [N], tokens of each lesson
        self._order = lru_cache(2)(self._drawn)

    def __reduce__(self) -> Any:
        raise TypeError("lessons are shared with workers by forking, not sent to them")

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def tokens(self) -> int:
        """Of all of them."""
        return len(self._ids)

    def _drawn(self, epoch: int) -> Array:
        order = np.argsort(number(key(self._seed, _ORDER, epoch), np.arange(len(self))), kind="stable")
        pool = POOL * self._rows
        pools = [order[first : first + pool] for first in range(0, len(order), pool)]
        order = np.concatenate([part[np.argsort(-self.lengths[part], kind="stable")] for part in pools])
        whole = len(order) // self._rows
        dealt = np.argsort(number(key(self._seed, _DEAL, epoch), np.arange(whole)), kind="stable")
        batches = order[: whole * self._rows].reshape(whole, self._rows)[dealt]
        return np.concatenate([batches.ravel(), order[whole * self._rows :]])

    def portions(self, place: Place, tokens: int, member: Member) -> Iterator[Portion]:
        """What all steps from a place on learn from: so many rows each, fewer in the last one of an epoch.

        A process has its share of each, in small batches of about `tokens` tokens at most. Fewer rows than there are
        processes are left out.
        """
        while True:
            stop = min(place.number + self._rows, len(self))
            after = Place(place.epoch, stop) if stop < len(self) else Place(place.epoch + 1, 0)
            size = stop - place.number
            if size >= member.world:
                first, last = (place.number + size * part // member.world for part in (member.rank, member.rank + 1))
                yield Portion(tuple(self._cut(Request(place.epoch, first, last), tokens)), after)
            place = after

    def steps(self, world: int = 1) -> int:
        """Of an epoch."""
        rest = len(self) % self._rows
        return len(self) // self._rows + (rest >= world)

    def _cut(self, whole: Request, tokens: int) -> Iterator[Request]:
        lengths, first, held = self.lengths[self._order(whole.epoch)[whole.first : whole.stop]], whole.first, 0
        for place, length in enumerate(lengths.tolist(), whole.first):
            if held and held + length > tokens:
                yield Request(whole.epoch, first, place)
                first, held = place, 0
            held += length
        yield Request(whole.epoch, first, whole.stop)

    def __getitem__(self, asked: Request) -> Batch:
        lessons = self._order(asked.epoch)[asked.first : asked.stop]
        sequences = ranges(self._firsts[lessons], self._sizes[lessons])
        starts, lengths = self._starts[sequences], np.diff(self._starts)[sequences]
        tokens = ranges(starts, lengths)
        moved = np.cumsum(lengths) - lengths - starts  # how far each sequence's tokens move
        labels = {name: values[sequences] for name, values in self._labels.items()}
        labels["question"] = np.repeat(np.arange(len(lessons)), self._sizes[lessons])
        marks = {}
        for name, (at, true) in self._marks.items():
            first, counts = self._marked[name][sequences], np.diff(self._marked[name])[sequences]
            places = ranges(first, counts)
            marks[name] = at[places] + np.repeat(moved, counts), true[places]
        fields = {"ids": self._ids[tokens], "segments": self._segments[tokens]}
        return gather(fields, lengths, marks, labels, Packed)


class _Arrays:
    """What lessons come to, while they come; a token takes five bytes."""

    def __init__(self) -> None:
        self.ids, self.segments = array("I"), array("B")
        self.lengths, self.sizes = array("q"), array("q")
        self.labels: dict[str, list[Any]] = {}
        self.marks: dict[str, tuple[array[int], array[int]]] = {}
        self.marked: dict[str, array[int]] = {}

    def add(self, lesson: Lesson) -> None:
        for one in lesson:
            for name, (at, true) in one.marks.items():
                places, values = self.marks.setdefault(name, (array("q"), array("q")))
                places.extend((at + len(self.ids)).tolist())
                values.extend(true.tolist())
                self.marked.setdefault(name, array("q")).append(len(at))
            for name, value in one.labels.items():
                self.labels.setdefault(name, []).append(value)
            self.ids.extend(one.tokens["ids"].tolist())
            self.segments.extend(one.tokens["segments"].tolist())
            self.lengths.append(len(one))
        self.sizes.append(len(lesson))


def _starts(lengths: array[int]) -> Array:
    return np.concatenate([[0], np.cumsum(np.asarray(lengths))])


def lessons_of(task: Task, items: Iterable[Item], reader: Reader) -> Iterator[Lesson]:
    """The lessons of any number of items."""
    for window in windows(items, lambda item: 1):
        yield from task.lessons(window, reader)
