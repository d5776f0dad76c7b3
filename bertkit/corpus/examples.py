"""Examples from a corpus: number `i` of epoch `e` is a function of the seed, `e`, `i` and the shards, nothing else.

Shards are dealt into stretches of some ten million tokens, anew in each epoch, and a stretch has its examples in a
keyed order. So an example is found without a list of examples, who reads on in order stays within a few files and some
tens of megabytes, and no process, worker or restart makes a difference.

Letters: B examples · T tokens · P spans · G stretches.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bertkit.corpus.chance import Array, key, number
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.flat import Flat
from bertkit.corpus.inputs import Cuts, Inputs, Spans
from bertkit.corpus.permutation import permuted
from bertkit.corpus.units import Units
from bertkit.errors import BertkitError
from bertkit.text.template import Template

STRETCH = 1 << 25
"""tokens of shards that are mixed with each other"""
KEPT = 2
"""stretches, and epochs, that are kept in memory"""
WINDOW = 1024
"""examples whose lengths are looked at to fill batches"""
SHORTEST = 3
"""tokens of the shortest example: one, and special ones around it"""

_DEAL, _ORDER, _CUT, _OWN = range(4)
"""what chance is asked for"""


class Stretch(NamedTuple):
    """Some shards whose examples are mixed."""

    units: Units
    cuts: Cuts
    key: Array
    """of what is drawn for its units"""


class Epoch(NamedTuple):
    """Which shards belong together."""

    shards: list[list[int]]
    """of each stretch"""
    ends: Array
    """[G + 1] the first example of each stretch, then their number"""
    key: Array
    """of what is drawn for its examples"""


class _Found(NamedTuple):
    """Where the tokens of some examples are."""

    numbers: Array
    """[B] what each example is called in any order of its epoch"""
    spans: Spans
    sources: list[tuple[Units, Array]]
    """units, and which of the spans are in them"""


class Examples:
    """The examples that one way of making inputs finds in a corpus.

    Another length is another `Examples` of the same corpus: BERT's first phase reads 128 tokens, its second 512.
    What phrases of a lexicon are is read only for `lexicons` that are asked for.

    Every epoch cuts and pairs anew, and its examples have keys of their own, which is where masks come from. With
    `copies`, that many epochs are all there are: they come again with the same examples and keys, in another order
    within a stretch. So the original BERT was trained, on 10 copies.
    """

    def __init__(
        self, corpus: Corpus, inputs: Inputs, seed: int = 0, lexicons: Sequence[str] = (), copies: int = 0
    ) -> None:
        self.corpus, self.inputs, self.seed, self.lexicons, self.copies = corpus, inputs, seed, tuple(lexicons), copies
        self._epochs: OrderedDict[int, Epoch] = OrderedDict()
        self._stretches: OrderedDict[tuple[int, int], Stretch] = OrderedDict()
        if inputs.takes_others and corpus.documents.sum() < 2:
            raise BertkitError(
                f"{type(inputs).__name__} takes text from another document, and {corpus.path} holds only one. "
                "Use DocSentences or OrderPairs, or mark the documents: an empty line between them"
            )
        if copies < 0:
            raise BertkitError(f"copies is {copies}: give how many epochs are made, or 0 for ever new ones")
        for lexicon in self.lexicons:
            _require(lexicon, corpus)

    def __reduce__(self) -> tuple[type[Examples], tuple[Corpus, Inputs, int, tuple[str, ...], int]]:
        return Examples, (self.corpus, self.inputs, self.seed, self.lexicons, self.copies)

    def count(self, epoch: int) -> int:
        """How many examples an epoch has; epochs differ a little."""
        return int(self._epoch(epoch).ends[-1])

    def read(self, epoch: int, indices: Sequence[int] | Array) -> Flat:
        """These examples of an epoch, in this order."""
        asked, tokenizer = np.asarray(indices, np.int64), self.corpus.tokenizer
        numbers, spans, sources = self._found(epoch, asked)
        size, template = spans.stop - spans.start, tokenizer.template
        before, after, last = _around(spans.example, template)
        ends = np.cumsum(before + size + after)  # of each span with what stands after it, [P]
        at = ends - after - size
        starts = np.append(0, ends[last])

        ids, words = np.empty(starts[-1], self.corpus.id_type), np.ones(starts[-1], bool)
        phrases = {lexicon: np.ones(starts[-1], bool) for lexicon in self.lexicons}
        _put(ids, starts[:-1], template.start)
        _put(ids, (ends - after)[~last], template.between)
        _put(ids, (ends - after)[last], template.end)
        for units, chosen in sources:
            units.copy(spans.start[chosen], size[chosen], ids, words, at[chosen], phrases)
        for column in (words, *phrases.values()):
            column[at] = True  # what was cut inside a word or a phrase starts one here
        if ids.max() >= len(tokenizer):
            raise BertkitError(
                f"{self.corpus.path} holds the id {ids.max()}, but the last token is {len(tokenizer) - 1}"
            )
        segment = np.array([template.segment(field) for field in (0, 1)], np.uint8)[spans.segment]
        segments = np.repeat(segment, np.diff(ends, prepend=0))
        keys = number(self._epoch(epoch).key, numbers)
        return Flat(ids, segments, words, starts, keys, spans.labels, units=phrases)

    def lengths(self, epoch: int, indices: Sequence[int] | Array) -> Array:
        """How many tokens these examples have, [B]; no token is read for it."""
        asked = np.asarray(indices, np.int64)
        _, spans, _ = self._found(epoch, asked)
        before, after, _ = _around(spans.example, self.corpus.tokenizer.template)
        return np.bincount(spans.example, before + spans.stop - spans.start + after, len(asked)).astype(np.int64)

    def batches(self, epoch: int, tokens: int, first: int = 0) -> Iterator[range]:
        """Neighbouring examples from `first` on, as many at a time as have at most `tokens` tokens together.

        A batch depends on its first example alone, so that going on from any of them gives the same ones.
        """
        if tokens < self.inputs.length:
            raise BertkitError(f"batches of {tokens} tokens cannot hold an example of {self.inputs.length}: give more")
        count, window = self.count(epoch), max(WINDOW, tokens // SHORTEST + 1)
        while first < count:
            ends = np.cumsum(self.lengths(epoch, range(first, min(first + window, count))))
            taken = 0
            while taken < len(ends):
                before = ends[taken - 1] if taken else 0
                stop = int(np.searchsorted(ends, before + tokens, "right"))
                if stop == len(ends) and first + stop < count:
                    break  # more may fit
                yield range(first + taken, first + stop)
                taken = stop
            first += taken

    def _found(self, epoch: int, indices: Array) -> _Found:
        (shards, ends, _), numbers = self._epoch(epoch), np.empty_like(indices)
        if not len(indices) or indices.min() < 0 or indices.max() >= ends[-1]:
            given = f"{indices.min()} to {indices.max()}" if len(indices) else "none"
            raise BertkitError(f"epoch {epoch} has the examples 0 to {ends[-1] - 1}; asked for: {given}")
        stretch = np.searchsorted(ends, indices, "right") - 1
        parts = []
        for place in np.unique(stretch).tolist():
            rows = np.flatnonzero(stretch == place)
            units, cuts, own = self._stretch(self._copy(epoch), place, shards[place])
            at = permuted(indices[rows] - ends[place], len(cuts.first), key(self.seed, _ORDER, epoch, place))
            numbers[rows] = ends[place] + at
            parts.append((units, rows, self.inputs.spans(units, own, Cuts(cuts.first[at], cuts.after[at]))))
        return _Found(numbers, *_together(parts, len(indices)))

    def _copy(self, epoch: int) -> int:
        """The epoch whose examples it has."""
        return epoch % self.copies if self.copies else epoch

    def _epoch(self, epoch: int) -> Epoch:
        epoch = self._copy(epoch)
        found = self._epochs.get(epoch)
        if found is None:
            order = permuted(np.arange(len(self.corpus)), len(self.corpus), key(self.seed, _DEAL, epoch))
            shards = _dealt(order.tolist(), self.corpus)
            counts = [len(self._stretch(epoch, place, dealt).cuts.first) for place, dealt in enumerate(shards)]
            if not sum(counts):
                raise BertkitError(f"{self.corpus.path} has too little text for {type(self.inputs).__name__}")
            found = self._epochs[epoch] = Epoch(shards, np.cumsum([0, *counts]), key(self.seed, _OWN, epoch))
            _forget(self._epochs)
        return found

    def _stretch(self, epoch: int, place: int, shards: list[int]) -> Stretch:
        found = self._stretches.pop((epoch, place), None)
        if found is None:
            longest = self.inputs.longest(self.corpus.tokenizer.template)
            units, own = Units(self.corpus, shards, longest), key(self.seed, _CUT, epoch, place)
            found = Stretch(units, self.inputs.cuts(units, own), own)
        self._stretches[epoch, place] = found
        _forget(self._stretches)
        return found


def _require(lexicon: str, corpus: Corpus) -> None:
    """Refuse a lexicon that the shards know nothing of."""
    if lexicon not in (known := corpus.shard(0).lexicons):
        raise BertkitError(
            f"{corpus.path} has no lexicon {lexicon!r}, it has: {', '.join(known) or 'none'}. Build it with the "
            f"phrases, one on each line of a file: bertkit corpus build ... --lexicon {lexicon}=FILE"
        )


def _around(example: Array, template: Template) -> tuple[Array, Array, Array]:
    """How many special tokens stand before and after each span, [P], and whether it is the last of its example."""
    first, last = np.diff(example, prepend=-1) != 0, np.diff(example, append=-1) != 0
    return first * len(template.start), np.where(last, len(template.end), len(template.between)), last


def _put(ids: Array, at: Array, tokens: Sequence[int]) -> None:
    """The same tokens from each of these places on."""
    for step, token in enumerate(tokens):
        ids[at + step] = token


def _forget(kept: OrderedDict[Any, Any]) -> None:
    while len(kept) > KEPT:
        kept.popitem(last=False)


def _dealt(order: list[int], corpus: Corpus) -> list[list[int]]:
    """Shards in this order, in stretches that have enough tokens and at least two documents each."""
    stretches: list[list[int]] = [[]]
    tokens = documents = 0
    for shard in order:
        if tokens >= STRETCH and documents > 1:
            stretches.append([])
            tokens = documents = 0
        stretches[-1].append(shard)
        tokens += int(corpus.tokens[shard])
        documents += int(corpus.documents[shard])
    if len(stretches) > 1 and (tokens < STRETCH or documents < 2):
        rest = stretches.pop()
        stretches[-1] += rest
    return stretches


def _together(parts: list[tuple[Units, Array, Spans]], count: int) -> tuple[Spans, list[tuple[Units, Array]]]:
    """The spans of several stretches in the order of the examples that were asked for."""
    example = np.concatenate([rows[spans.example] for _, rows, spans in parts])
    order = np.argsort(example, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    bounds = np.cumsum([0, *(len(spans.example) for _, _, spans in parts)])
    sources = [(units, place[bounds[at] : bounds[at + 1]]) for at, (units, _, _) in enumerate(parts)]
    labels = {name: np.empty(count, np.int64) for name in parts[0][2].labels}
    for _, rows, spans in parts:
        for name, values in spans.labels.items():
            labels[name][rows] = values
    start, stop, segment = (np.concatenate([part[2][column] for part in parts])[order] for column in (1, 2, 3))
    return Spans(example[order], start, stop, segment, labels), sources
