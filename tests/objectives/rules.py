"""What masking does, written out slowly: one example, one token, one draw at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from bertkit.corpus.flat import Flat
from bertkit.objectives.choose import Choose, NGrams, Phrases, Pieces, Spans
from bertkit.objectives.mask import Mask, Vocabulary

ALL = 2**64 - 1
ACTION, TOKEN, LENGTH = (number << 40 for number in (1, 2, 3))
SIGNIFICANCE = 1e-3
"""A right sampler would fail a test with one seed of a thousand; the seeds here are fixed."""

Array = np.ndarray[Any, np.dtype[Any]]
Word = list[int]
"""the places of its tokens"""


def likely(observed: Array, expected: Array, freedom: int) -> bool:
    """Pearson's χ² test: whether counts could be so far from what is expected by chance."""
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(torch.special.gammaincc(torch.tensor(freedom / 2.0), torch.tensor(statistic / 2.0))) > SIGNIFICANCE


def splitmix64(key: int, place: int) -> int:
    state = (key + (place + 1) * 0x9E3779B97F4A7C15) & ALL
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & ALL
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & ALL
    return state ^ (state >> 31)


def fraction(key: int, place: int) -> float:
    return (splitmix64(key, place) >> 11) / 2**53


def odds(choose: NGrams | Spans) -> list[float]:
    """How likely a run of 1, 2, … words is, by the words of the papers."""
    if isinstance(choose, NGrams):
        return [value / sum(choose.odds) for value in choose.odds]
    geometric = [choose.stop * (1 - choose.stop) ** (length - 1) for length in range(1, choose.longest + 1)]
    return [value / sum(geometric) for value in geometric]


class Slowly:
    """One example of a batch."""

    def __init__(self, choose: Choose, flat: Flat, row: int, fixed: Array) -> None:
        self.choose, self.flat, self.fixed = choose, flat, fixed
        self.start, self.stop, self.key = int(flat.starts[row]), int(flat.starts[row + 1]), int(flat.keys[row])

    def texts(self) -> list[list[Word]]:
        """The words between special tokens."""
        choose, found, after_special = self.choose, [], True
        starts = self.flat.units[choose.lexicon] if isinstance(choose, Phrases) else self.flat.words
        pieces = isinstance(choose, Pieces) or (isinstance(choose, NGrams) and not choose.words)
        for place in range(self.start, self.stop):
            if self.fixed[self.flat.ids[place]]:
                after_special = True
                continue
            if after_special:
                found.append([[place]])
            elif starts[place] or pieces:
                found[-1].append([place])
            else:
                found[-1][-1].append(place)
            after_special = False
        return found

    def drawn(self, text: list[Word]) -> Iterator[int]:
        """The lengths of runs as long as there are words."""
        assert isinstance(self.choose, (NGrams, Spans))
        bounds, used = list(accumulate(odds(self.choose))), 0
        for word in text:
            if used >= len(text):
                return
            chance = fraction(self.key, LENGTH + word[0] - self.start)
            length = 1 + sum(chance >= bound for bound in bounds[:-1])
            yield length
            used += length

    def runs(self) -> list[list[Word]]:
        """What may be taken: single words, or words that were drawn to be together."""
        if not isinstance(self.choose, (NGrams, Spans)):
            return [[word] for text in self.texts() for word in text]
        found = []
        for text in self.texts():
            at = 0
            for length in self.drawn(text):
                found.append(text[at : at + length])
                at += length
        return found

    def taken(self, most: int) -> list[list[Word]]:
        """Runs in an order by chance: words of each until one is too much."""
        runs = self.runs()
        order = sorted(range(len(runs)), key=lambda n: (splitmix64(self.key, runs[n][0][0] - self.start) >> 32, n))
        found = []
        for number in order:
            some: list[Word] = []
            for word in runs[number]:
                if len(word) > most:
                    break
                some.append(word)
                most -= len(word)
            if some:
                found.append(some)
        return found

    def decided(self, most: int) -> dict[int, int]:
        """Places of tokens that are taken, and the places whose chance decides."""
        together = isinstance(self.choose, Spans)
        places = {at: run[0][0] if together else at for run in self.taken(most) for word in run for at in word}
        return dict(sorted(places.items()))


def instead(mask: Mask, flat: Flat, row: int, at: int, decided: int, vocabulary: Vocabulary) -> int:
    """What stands where a token was masked."""
    key, start = int(flat.keys[row]), int(flat.starts[row])
    chance = fraction(key, ACTION + decided - start)
    if chance < mask.keep:
        return int(flat.ids[at])
    if chance >= mask.keep + mask.random:
        return vocabulary.mask
    count = len(vocabulary.ordinary)
    return int(vocabulary.ordinary[(splitmix64(key, TOKEN + at - start) >> 32) * count >> 32])
