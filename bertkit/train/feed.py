"""The feed: which examples each step learns from, and the batches they make.

A place in the examples is an epoch and a number. From a place on, the batches of all following steps are a function of
the examples alone: a checkpoint keeps its place, and going on from it costs nothing, however far it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import tee
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset

from bertkit.batch import Batch, Packed, gather
from bertkit.corpus.examples import Examples
from bertkit.objectives.mask import Vocabulary
from bertkit.objectives.objective import Objective


class Place(NamedTuple):
    """The next example."""

    epoch: int = 0
    number: int = 0


class Request(NamedTuple):
    """Neighbouring examples of one epoch."""

    epoch: int
    first: int
    stop: int


class Portion(NamedTuple):
    """What a step learns from."""

    requests: tuple[Request, ...]
    after: Place
    """where the next step begins"""


def portions(
    examples: Examples, place: Place, rows: int, micro: int, rank: int = 0, world: int = 1
) -> Iterator[Portion]:
    """The portions of all steps from a place on: `rows` examples each, of which a process reads its share.

    They are read in small batches of at most `micro` examples; none has examples of two epochs.
    """
    while True:
        requests: list[Request] = []
        left = rows
        while left:
            count = examples.count(place.epoch)
            stop = min(place.number + left, count)
            requests += _shared(Request(place.epoch, place.number, stop), micro, rank, world)
            left -= stop - place.number
            place = Place(place.epoch, stop) if stop < count else Place(place.epoch + 1, 0)
        yield Portion(tuple(requests), place)


def _shared(whole: Request, micro: int, rank: int, world: int) -> Iterator[Request]:
    """The small batches of one process."""
    size = whole.stop - whole.first
    first, stop = (whole.first + size * part // world for part in (rank, rank + 1))
    for start in range(first, stop, micro):
        yield Request(whole.epoch, start, min(start + micro, stop))


class Reading(Dataset[Batch]):
    """Requests to batches: examples read, corrupted and packed."""

    def __init__(self, examples: Examples, objective: Objective) -> None:
        self._examples, self._objective = examples, objective
        self._vocabulary = Vocabulary.of(examples.corpus.tokenizer)

    def __getitem__(self, asked: Request) -> Batch:
        flat = self._examples.read(asked.epoch, range(asked.first, asked.stop))
        flat = self._objective.corrupt(flat, self._vocabulary)
        return gather({"ids": flat.ids, "segments": flat.segments}, flat.lengths, flat.marks, flat.labels, Packed)


class Feed:
    """The batches of each step, read ahead by `workers` processes, or here where there are none."""

    def __init__(self, reading: Dataset[Batch], steps: Iterable[Portion], workers: int = 0) -> None:
        self._steps, ahead = tee(steps)
        self._loader: DataLoader[Batch] = DataLoader(
            reading,
            batch_size=None,
            sampler=_Requests(ahead),
            num_workers=workers,
            worker_init_fn=_alone if workers else None,
            multiprocessing_context="fork" if workers else None,
        )

    def __iter__(self) -> Iterator[tuple[Portion, list[Batch]]]:
        batches = iter(self._loader)
        for portion in self._steps:
            yield portion, [next(batches) for _ in portion.requests]


class _Requests:
    """What torch calls a sampler: it asks for the requests of one step after the other."""

    def __init__(self, steps: Iterator[Portion]) -> None:
        self._steps = steps

    def __iter__(self) -> Iterator[Request]:
        return (request for portion in self._steps for request in portion.requests)


def _alone(_: Any) -> None:
    torch.set_num_threads(1)
