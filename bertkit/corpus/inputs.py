"""Inputs: the ways in which sentences become examples, one part for each.

RoBERTa (https://arxiv.org/abs/1907.11692) compared four of them, ALBERT (https://arxiv.org/abs/1909.11942) added one:

    FullSentences   sentences in a row, across documents, which are fields of their own
    DocSentences    sentences in a row, never across documents
    SegmentPairs    two segments of several sentences, the second may come from elsewhere (BERT's own)
    SentencePairs   two single sentences, the second may come from elsewhere
    OrderPairs      two segments in a row, which may be swapped

Examples follow the stored order: each says at which unit the next one begins. Where an example begins and what it is
made of depends on a key and on its first unit alone.

Letters: U units · N examples · P spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from bertkit.corpus.chance import Array, below, fraction, number
from bertkit.corpus.units import Units
from bertkit.spec import Bounds, Rate, Spec
from bertkit.text.ranges import ranges
from bertkit.text.template import Template

Length = Annotated[int, Bounds(8, 2**16)]
"""How many tokens an example may have, special ones included."""

LEFT = 1 / 8
"""how often a row of sentences leaves its last one to the next row. Two greedy walks meet soon and stay together, so
that epochs which only begin at different places are cut alike nearly everywhere"""
BLOCK = 1 << 17
"""units whose followers are worked out at a time"""
TRIES = 8
"""how often a sentence of another document is drawn until it fits"""

_SHORT, _TARGET, _MIDDLE, _COIN, _INSIDE, _ELSEWHERE = range(6)
"""places in a unit's stream of chance; draws of other documents are the last ones"""


class Cuts(NamedTuple):
    """Where examples begin."""

    first: Array
    """[N] the first unit of each"""
    after: Array
    """[N] the unit at which the one after it begins"""


class Spans(NamedTuple):
    """The tokens of examples: spans of text, which are the fields of the tokenizer's template."""

    example: Array
    """[P] the example of each span, ascending"""
    start: Array
    """[P] the first token"""
    stop: Array
    """[P] the token after the last"""
    segment: Array
    """[P] whose segment of the template each has, the first field's or the second's"""
    labels: Mapping[str, Array]
    """[N] for each question about examples"""


@dataclass(frozen=True)
class Inputs(Spec):
    """A way to make examples of at most `length` tokens."""

    length: Length
    takes_others: ClassVar[bool] = False
    """whether an example may hold text of two documents that are far apart"""

    def longest(self, template: Template) -> int:
        """How long a unit may be."""
        raise NotImplementedError

    def follows(self, units: Units, key: Array, first: Array) -> Array:
        """The unit at which the example after one that begins with `first` begins; `first` are neighbours, [N]."""
        raise NotImplementedError

    def spans(self, units: Units, key: Array, cuts: Cuts) -> Spans:
        """What these examples are made of."""
        raise NotImplementedError

    def cuts(self, units: Units, key: Array) -> Cuts:
        """All examples of these units, in order."""
        first = np.concatenate([np.array(block, np.int64) for block in self._walk(units, key)])
        return Cuts(first, np.append(first[1:], len(units)))

    def _walk(self, units: Units, key: Array) -> Iterator[list[int]]:
        """The first units of examples, from each to the next, in blocks."""
        unit = 0
        for start in range(0, len(units), BLOCK):
            stop = min(start + BLOCK, len(units))
            steps = self.follows(units, key, np.arange(start, stop)).tolist()
            found = []
            while unit < stop:
                found.append(unit)
                unit = steps[unit - start]
            yield found


# Sentences in a row ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FullSentences(Inputs):
    """Sentences in a row, with a [SEP] more where a document ends. Each is in one example of an epoch."""

    def longest(self, template: Template) -> int:
        return template.room(self.length)

    def follows(self, units: Units, key: Array, first: Array) -> Array:
        reach = np.arange(first[0], min(first[-1] + self.length, len(units)))
        template = units.template
        borders = units.document_of(reach) * len(template.between)  # what stands after each document before
        ends = units.starts[reach + 1] + borders
        begins = units.starts[first] + borders[: len(first)]
        most = first[0] + np.searchsorted(ends, begins + self.longest(template), "right")
        return _varied(first, most, np.full(1, len(units)), first == 0, key)

    def spans(self, units: Units, key: Array, cuts: Cuts) -> Spans:
        return _rows(units, cuts)


@dataclass(frozen=True)
class DocSentences(Inputs):
    """Sentences of one document in a row. Examples are shorter where documents are: fill batches by tokens."""

    def longest(self, template: Template) -> int:
        return template.room(self.length)

    def follows(self, units: Units, key: Array, first: Array) -> Array:
        document = units.document_of(first)
        end = units.documents[document + 1]
        most = np.minimum(_last(units, first, np.full(1, self.longest(units.template))), end)
        return _varied(first, most, end, first == units.documents[document], key)

    def spans(self, units: Units, key: Array, cuts: Cuts) -> Spans:
        return _rows(units, cuts)


def _last(units: Units, first: Array, room: Array) -> Array:
    """The unit before which each example ends if it takes all that fits into its room."""
    return np.searchsorted(units.starts, units.starts[first] + room, "right") - 1


def _varied(first: Array, most: Array, end: Array, head: Array, key: Array) -> Array:
    """Where the next example begins if this one takes at most the units up to `most`, unless that is the end.

    The one at a head is shortened by any number of units, others by one now and then, so that epochs differ.
    """
    keys, count = number(key, first), most - first
    coin = number(keys, _COIN)
    fewer = np.where(head, below(coin, count), (fraction(coin) < LEFT) & (count > 1))
    return most - np.where(most < end, fewer, 0)


def _rows(units: Units, cuts: Cuts) -> Spans:
    """Units in a row, a span for each document that they touch."""
    document = units.document_of(cuts.first)
    count = units.document_of(cuts.after - 1) - document + 1
    example, document = np.repeat(np.arange(len(count)), count), ranges(document, count)
    start = np.maximum(cuts.first[example], units.documents[document])
    stop = np.minimum(cuts.after[example], units.documents[document + 1])
    return Spans(example, units.starts[start], units.starts[stop], np.zeros(len(example), np.uint8), {})


# Pairs ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Chunk(NamedTuple):
    """Units in a row that become a pair, [N] each."""

    keys: Array
    first: Array
    middle: Array
    """where the second segment begins; `last` in a chunk of one unit"""
    last: Array
    """the unit after the last"""
    target: Array
    """the tokens that both segments shall have at most, unless a single unit has more"""


@dataclass(frozen=True)
class Pairs(Inputs):
    """Two segments: [CLS] A [SEP] B [SEP]."""

    def room(self, template: Template) -> int:
        """Tokens of text."""
        return template.room(self.length, fields=2)

    def longest(self, template: Template) -> int:
        return self.room(template) // 2  # so that any two units make a pair

    def _chunk(self, units: Units, key: Array, first: Array, short: float) -> Chunk:
        """What fits into the room, or into less of it in some short examples; the cut is at any unit."""
        keys, room = number(key, first), self.room(units.template)
        drawn = 2 + below(number(keys, _TARGET), room - 1)
        target = np.where(fraction(number(keys, _SHORT)) < short, drawn, room)
        end = units.documents[units.document_of(first) + 1]
        last = np.clip(_last(units, first, target), first + 1, end)
        middle = first + 1 + below(number(keys, _MIDDLE), np.maximum(last - first - 1, 1))
        return Chunk(keys, first, middle, last, target)


@dataclass(frozen=True)
class SegmentPairs(Pairs):
    """BERT's own: A and B are sentences in a row, or B is from another document. `next` is 0 if B really follows.

    Where B is random the next example begins with what follows A, so that no text is lost. A single unit (the last of
    its document, or a short example) is cut before one of its words; one word alone always gets a random B.
    """

    random: Rate = 0.5
    """how often B is from another document"""
    short: Rate = 0.1
    """how often an example is shorter than it could be"""
    takes_others: ClassVar[bool] = True

    def follows(self, units: Units, key: Array, first: Array) -> Array:
        chunk = self._chunk(units, key, first, self.short)
        return np.where(_coin(chunk.keys, self.random), chunk.middle, chunk.last)

    def spans(self, units: Units, key: Array, cuts: Cuts) -> Spans:
        chunk = self._chunk(units, key, cuts.first, self.short)
        start, middle, stop = (units.starts[place] for place in chunk[1:4])
        random, single = _coin(chunk.keys, self.random), chunk.last - chunk.first == 1
        alone = np.flatnonzero(single & ~random)
        inside = _word_inside(units, chunk.keys[alone], start[alone], stop[alone])
        middle[alone] = np.where(inside > 0, inside, stop[alone])
        random[alone] = inside == 0

        size = middle - start
        rest = chunk.target - size
        rest = np.where(single, np.maximum(rest, size), rest)
        far = np.flatnonzero(random)
        second = middle.copy()
        second[far], stop[far] = _elsewhere(units, chunk.keys[far], chunk.first[far], rest[far])
        return _pairs(start, middle, second, stop, {"next": random.astype(np.int64)})


@dataclass(frozen=True)
class SentencePairs(Pairs):
    """A and B are single sentences, neighbours or of two documents. `next` is 0 if B really follows.

    The last sentence of a document follows its predecessor, which is used again then. A document of one sentence can
    only have random neighbours.
    """

    random: Rate = 0.5
    """how often B is from another document"""
    takes_others: ClassVar[bool] = True

    def follows(self, units: Units, key: Array, first: Array) -> Array:
        end = units.documents[units.document_of(first) + 1]
        paired = ~_coin(number(key, first), self.random) & (first + 1 < end)
        return np.where(paired, first + 2, first + 1)

    def spans(self, units: Units, key: Array, cuts: Cuts) -> Spans:
        keys, document = number(key, cuts.first), units.document_of(cuts.first)
        random = _coin(keys, self.random)
        at_end = cuts.first + 1 == units.documents[document + 1]
        random |= at_end & (cuts.first == units.documents[document])
        a = cuts.first - (at_end & ~random)
        b = a + 1
        far = np.flatnonzero(random)
        b[far] = _other_units(units, keys[far], cuts.first[far], np.full(len(far), self.room(units.template)))
        starts = units.starts
        return _pairs(starts[a], starts[a + 1], starts[b], starts[b + 1], {"next": random.astype(np.int64)})


@dataclass(frozen=True)
class OrderPairs(Pairs):
    """ALBERT's: A and B are segments in a row, or swapped. `order` is 0 if A comes first in the text, 1 if swapped.

    A single unit is cut before one of its words, or inside if it is one word; one token alone is left out.
    """

    swapped: Rate = 0.5
    """how often the later segment comes first"""
    short: Rate = 0.1
    """how often an example is shorter than it could be"""

    def follows(self, units: Units, key: Array, first: Array) -> Array:
        return self._chunk(units, key, first, self.short).last

    def cuts(self, units: Units, key: Array) -> Cuts:
        found = super().cuts(units, key)
        enough = units.starts[found.after] - units.starts[found.first] > 1
        return Cuts(found.first[enough], found.after[enough])

    def spans(self, units: Units, key: Array, cuts: Cuts) -> Spans:
        chunk = self._chunk(units, key, cuts.first, self.short)
        start, middle, stop = (units.starts[place] for place in chunk[1:4])
        alone = np.flatnonzero(chunk.last - chunk.first == 1)
        inside = _word_inside(units, chunk.keys[alone], start[alone], stop[alone])
        middle[alone] = np.where(inside > 0, inside, (start[alone] + stop[alone]) // 2)
        swapped = _coin(chunk.keys, self.swapped)
        a, b = np.stack([start, middle]), np.stack([middle, stop])
        (start, stop), (second, end) = np.where(swapped, b, a), np.where(swapped, a, b)
        return _pairs(start, stop, second, end, {"order": swapped.astype(np.int64)})


def _coin(keys: Array, share: float) -> Array:
    return fraction(number(keys, _COIN)) < share


def _pairs(start: Array, stop: Array, second: Array, end: Array, labels: Mapping[str, Array]) -> Spans:
    """A from `start` to before `stop`, B from `second` to before `end`, [N] each."""
    example, segment = np.repeat(np.arange(len(start)), 2), np.tile(np.array([0, 1], np.uint8), len(start))
    return Spans(example, np.stack([start, second], 1).ravel(), np.stack([stop, end], 1).ravel(), segment, labels)


def _word_inside(units: Units, keys: Array, start: Array, stop: Array) -> Array:
    """The first token of any word but the first between start and stop; 0 if there is one word. They are few."""
    found, chance = np.zeros(len(start), np.int64), fraction(number(keys, _INSIDE)).tolist()
    for row, (first, last) in enumerate(zip(start.tolist(), stop.tolist(), strict=True)):
        words = np.flatnonzero(units.words(first, last)[1:])
        if len(words):
            found[row] = first + 1 + words[int(chance[row] * len(words))]
    return found


def _elsewhere(units: Units, keys: Array, first: Array, room: Array) -> tuple[Array, Array]:
    """Text of another document for each first unit: the first token, and the one after the last.

    It starts at any unit and takes as many as fit. Where not even one that was drawn does, it ends before a word.
    """
    unit = _other_units(units, keys, first, room)
    start, end = units.starts[unit], units.documents[units.document_of(unit) + 1]
    stop = units.starts[np.clip(_last(units, unit, room), unit + 1, end)]
    for row in np.flatnonzero(stop - start > room).tolist():
        begin, most = int(start[row]), int(room[row])
        words = np.flatnonzero(units.words(begin, begin + most + 1)[1:])
        stop[row] = begin + (1 + words[-1] if len(words) else most)
    return start, stop


def _other_units(units: Units, keys: Array, first: Array, room: Array) -> Array:
    """A unit of another document for each: any document, any of its units; drawn again if it is too long."""
    own, found, open_ = units.document_of(first), np.zeros(len(first), np.int64), np.arange(len(first))
    for attempt in range(TRIES):
        place = _ELSEWHERE + 2 * attempt
        document = below(number(keys[open_], place), len(units.documents) - 2)
        document += document >= own[open_]
        begin = units.documents[document]
        unit = begin + below(number(keys[open_], place + 1), units.documents[document + 1] - begin)
        found[open_] = unit
        open_ = open_[units.starts[unit + 1] - units.starts[unit] > room[open_]]
        if not len(open_):
            break
    return found
