"""Duplicates: texts that occur again, exactly or nearly, found in bounded memory.

Exact ones have equal hashes. A table holds so many different ones at most; when it is full, it keeps the half of them
that has the smaller hashes, and so on. What it holds it has counted from the beginning, so that its counts are exact
for a sample of the texts, chosen by their content, and shares of the sample are those of the corpus.

Near ones are found by MinHash. For each of 60 orders of all runs of three words, a document keeps the first run that it
has; two documents agree in so many of them as they have runs in common among all runs of both (Jaccard's similarity).
Three numbers in a row make a band, and only documents that agree in one of the 20 bands are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bertkit.corpus.block import Block, mixed

Array = np.ndarray[Any, np.dtype[Any]]

MOST_EXCERPTS = 500
"""texts that are remembered by their beginning"""
MOST_COMPARED = 100_000
"""documents whose 60 numbers are kept, 240 bytes each"""
SHINGLE = 3
"""words in a run"""
LEAST_SHINGLES = 8
"""of a document that is compared: two that are shorter are alike by chance"""
ROWS, BANDS = 3, 20
HASHES = ROWS * BANDS
ALIKE = 0.5
"""runs in common from which two documents are near duplicates; five changed words in a hundred leave 0.75 of them"""


@dataclass(frozen=True)
class Example:
    """The beginning of a text, how often it occurs, and in how many documents."""

    text: str
    times: int
    documents: int


@dataclass(frozen=True)
class Repeated:
    """Texts that occur more than once. Where `covered` is below 1, all counts are of that share of the texts."""

    texts: int
    """all of them, each time counted"""
    copies: int
    """those that were there before"""
    copied_characters: int
    covered: float
    examples: list[Example]

    @property
    def share(self) -> float:
        """The share of copies among all."""
        return self.copies / max(self.texts, 1)


class Repeats:
    """Counts equal texts, by hash; at most `most` different ones."""

    def __init__(self, most: int, least: int) -> None:
        self._most, self._least = most, least
        self._level = 0
        self._keys = np.empty(0, np.uint64)
        """[N] in order"""
        self._rows = np.empty((0, 3), np.uint32)
        """[N, 3] how often each occurs, in how many documents, and its characters"""
        self._excerpts: dict[int, str] = {}

    @property
    def covered(self) -> float:
        """The share of texts that is counted."""
        return 0.5**self._level

    def add(self, keys: Array, sizes: Array, owners: Array, excerpt: Callable[[int], str]) -> Array:
        """Count texts by hash, characters and document, [N] each, and say which were there before, [N].

        `excerpt(i)` is asked for the i-th text when it is found in `least` documents.
        """
        before = self._known(keys)
        kept = np.flatnonzero(self._within(keys))
        order = kept[np.argsort(keys[kept], kind="stable")]
        ordered = keys[order]
        first = _changes(ordered)
        before[order[~first]] = True
        at = np.flatnonzero(first)
        if len(at):
            rows = np.empty((len(at), 3), np.uint32)
            rows[:, 0] = np.diff(at, append=len(order))
            rows[:, 1] = np.add.reduceat((first | _changes(owners[order])).astype(np.uint32), at)
            rows[:, 2] = sizes[order[at]]
            self._merge(ordered[at], rows)
            self._remember(ordered[at], order[at], excerpt)
            self._shrink()
        return before

    def result(self, examples: int) -> Repeated:
        """What was counted, with the texts that waste most."""
        times, size = self._rows[:, 0].astype(np.int64), self._rows[:, 2].astype(np.int64)
        return Repeated(
            texts=int(times.sum()),
            copies=int((times - 1).sum()),
            copied_characters=int(((times - 1) * size).sum()),
            covered=self.covered,
            examples=self._examples(examples),
        )

    def widespread(self) -> tuple[int, int, int]:
        """Of texts in `least` documents or more: how many there are, how often they occur, and their characters."""
        rows = self._rows[self._rows[:, 1] >= self._least].astype(np.int64)
        return len(rows), int(rows[:, 0].sum()), int((rows[:, 0] * rows[:, 2]).sum())

    def _examples(self, most: int) -> list[Example]:
        keys = np.array(sorted(self._excerpts), np.uint64)
        rows = self._rows[np.searchsorted(self._keys, keys)].astype(np.int64)
        best = np.argsort(-(rows[:, 0] - 1) * rows[:, 2], kind="stable")[:most]
        return [Example(self._excerpts[int(keys[place])], int(rows[place, 0]), int(rows[place, 1])) for place in best]

    def _within(self, keys: Array) -> Array:
        return (keys >> np.uint64(64 - self._level)) == 0 if self._level else np.ones(len(keys), bool)

    def _known(self, keys: Array) -> Array:
        if not len(self._keys):
            return np.zeros(len(keys), bool)
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.asarray(self._keys[place] == keys)

    def _merge(self, keys: Array, rows: Array) -> None:
        known = self._known(keys)
        place = np.searchsorted(self._keys, keys)
        self._rows[place[known], :2] += rows[known, :2]
        self._keys = np.insert(self._keys, place[~known], keys[~known])
        self._rows = np.insert(self._rows, place[~known], rows[~known], axis=0)

    def _remember(self, keys: Array, places: Array, excerpt: Callable[[int], str]) -> None:
        many = self._rows[np.searchsorted(self._keys, keys), 1] >= self._least
        for key, place in zip(keys[many].tolist(), places[many].tolist(), strict=True):
            if key not in self._excerpts:
                self._excerpts[key] = excerpt(place)
        if len(self._excerpts) > 4 * MOST_EXCERPTS:
            held = np.array(sorted(self._excerpts), np.uint64)
            rows = self._rows[np.searchsorted(self._keys, held)].astype(np.int64)
            best = np.argsort(-(rows[:, 0] - 1) * rows[:, 2], kind="stable")[:MOST_EXCERPTS]
            self._excerpts = {key: self._excerpts[key] for key in held[best].tolist()}

    def _shrink(self) -> None:
        while len(self._keys) > self._most:
            self._level += 1
            kept = int(np.searchsorted(self._keys, np.uint64(1 << (64 - self._level))))
            self._keys, self._rows = self._keys[:kept].copy(), self._rows[:kept].copy()
            limit = 1 << (64 - self._level)
            self._excerpts = {key: text for key, text in self._excerpts.items() if key < limit}


@dataclass(frozen=True)
class Pair:
    """Two documents that are nearly the same, by their beginnings, and how much they share."""

    first: str
    second: str
    alike: float


@dataclass(frozen=True)
class NearlyRepeated:
    """Documents that are nearly copies of others; exact copies are not among them.

    Where `covered` is below 1, all counts are of that share of the documents.
    """

    documents: int
    """those that were compared"""
    copies: int
    """those that could go, if one of each group stays"""
    groups: int
    largest: int
    covered: float
    examples: list[Pair]

    @property
    def share(self) -> float:
        """The share of documents that could go."""
        return self.copies / max(self.documents, 1)


class _Kept(NamedTuple):
    signatures: Array
    """[K, HASHES] uint32"""
    beginnings: list[str]


class Near:
    """Collects documents and finds those that are nearly the same.

    It keeps `most` documents. When there are more, it keeps a sample by the first of their 60 numbers, in which near
    duplicates agree mostly, so that they stay or go together.
    """

    def __init__(self, most: int) -> None:
        self._most, self._level, self._kept = most, 0, 0
        self._parts: list[_Kept] = []
        random = np.random.Generator(np.random.PCG64(20181011))
        self._factors = random.integers(0, 2**32, HASHES, np.uint32) | np.uint32(1)
        self._shifts = random.integers(0, 2**32, HASHES, np.uint32)

    @property
    def covered(self) -> float:
        """The share of documents that is compared."""
        return 0.5**self._level

    def add(self, block: Block, chosen: Array) -> None:
        """Take the chosen documents of a block, [D] bool."""
        shingles, bounds, numbers = _shingles(block, chosen)
        if not len(numbers):
            return
        first = self._lowest(shingles, bounds, 0)
        within = self._within(first)
        if not within.all():
            lengths = np.diff(bounds, append=len(shingles))
            shingles, first, numbers = shingles[np.repeat(within, lengths)], first[within], numbers[within]
            bounds = np.append(0, np.cumsum(lengths[within]))[:-1]
        if not len(numbers):
            return
        signatures = np.empty((len(numbers), HASHES), np.uint32)
        signatures[:, 0] = first
        for number in range(1, HASHES):
            signatures[:, number] = self._lowest(shingles, bounds, number)
        self._parts.append(_Kept(signatures, [block.document(number) for number in numbers.tolist()]))
        self._kept += len(numbers)
        while self._kept > self._most:
            self._thin_out()

    def result(self, examples: int) -> NearlyRepeated:
        """Compare all, and say what was found."""
        kept = self._joined()
        left, right = _candidates(kept.signatures)
        alike = np.empty(len(left))
        for at in range(0, len(left), 1 << 16):  # some at a time: a comparison has 60 numbers
            part = slice(at, at + (1 << 16))
            alike[part] = (kept.signatures[left[part]] == kept.signatures[right[part]]).mean(axis=1)
        found = alike >= ALIKE
        left, right, alike = left[found], right[found], alike[found]
        groups = _groups(len(kept.signatures), left, right)
        sizes = np.bincount(groups, minlength=1)
        return NearlyRepeated(
            documents=len(kept.signatures),
            copies=int((sizes - 1)[sizes > 1].sum()),
            groups=int((sizes > 1).sum()),
            largest=int(sizes.max()) if (sizes > 1).any() else 0,
            covered=self.covered,
            examples=_pairs(kept.beginnings, groups, left, right, alike, examples),
        )

    def _lowest(self, shingles: Array, bounds: Array, number: int) -> Array:
        """The lowest number of each document in one of the orders, [D]."""
        found: Array = np.minimum.reduceat(shingles * self._factors[number] + self._shifts[number], bounds)
        return found

    def _within(self, first: Array) -> Array:
        if not self._level:
            return np.ones(len(first), bool)
        return np.asarray(mixed(first.astype(np.uint64)) >> np.uint64(64 - self._level) == 0)

    def _thin_out(self) -> None:
        self._level += 1
        parts = []
        for part in self._parts:
            within = self._within(part.signatures[:, 0])
            names = [name for name, stays in zip(part.beginnings, within.tolist(), strict=True) if stays]
            if names:
                parts.append(_Kept(part.signatures[within], names))
        self._parts = parts
        self._kept = sum(len(part.beginnings) for part in parts)

    def _joined(self) -> _Kept:
        signatures = [np.empty((0, HASHES), np.uint32), *(part.signatures for part in self._parts)]
        return _Kept(np.concatenate(signatures), [name for part in self._parts for name in part.beginnings])


def _shingles(block: Block, chosen: Array) -> tuple[Array, Array, Array]:
    """The runs of three words in the chosen documents [S], the first of each document [K], and its number [K]."""
    counts = block.words_of_documents() - SHINGLE + 1
    numbers = np.flatnonzero(chosen & (counts >= LEAST_SHINGLES))
    counts = counts[numbers]
    bounds = np.cumsum(counts) - counts
    places = np.repeat(block.document_words[numbers] - bounds, counts) + np.arange(counts.sum())
    words = block.word_hashes()
    runs = words[places]
    for step in range(1, SHINGLE):
        runs = mixed(runs) + words[places + step]
    return (mixed(runs) >> np.uint64(32)).astype(np.uint32), bounds, numbers


def _changes(values: Array) -> Array:
    """Whether each value differs from the one before; the first does."""
    found = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def _candidates(signatures: Array) -> tuple[Array, Array]:
    """Pairs of documents that agree in a band: each with the first of its bucket, and with the one before it."""
    count = len(signatures)
    pairs = [np.empty(0, np.int64)]
    for band in range(BANDS):
        rows = signatures[:, band * ROWS : (band + 1) * ROWS].astype(np.uint64)
        keys = np.zeros(count, np.uint64)
        for row in range(ROWS):
            keys = mixed(keys + rows[:, row] + np.uint64(1))
        order = np.argsort(keys, kind="stable")
        new = _changes(keys[order])
        again = np.flatnonzero(~new)
        heads = np.flatnonzero(new)[np.cumsum(new)[again] - 1]
        pairs += order[heads] * count + order[again], order[again - 1] * count + order[again]
    found = np.unique(np.concatenate(pairs))
    return found // max(count, 1), found % max(count, 1)


def _groups(count: int, left: Array, right: Array) -> Array:
    """The smallest document that each is connected with through pairs, [K]."""
    labels = np.arange(count)
    while True:
        least = np.minimum(labels[left], labels[right])
        new = labels.copy()
        np.minimum.at(new, left, least)
        np.minimum.at(new, right, least)
        new = new[new]
        if np.array_equal(new, labels):
            return labels
        labels = new


def _pairs(names: list[str], groups: Array, left: Array, right: Array, alike: Array, most: int) -> list[Pair]:
    """A pair of each group, the most alike first."""
    order = np.argsort(-alike, kind="stable")
    _, first = np.unique(groups[left[order]], return_index=True)
    places = order[np.sort(first)[:most]].tolist()
    return [Pair(names[left[place]], names[right[place]], float(alike[place])) for place in places]
