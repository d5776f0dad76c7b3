"""Masked tokens (BERT, https://arxiv.org/abs/1810.04805): some are hidden, replaced or kept; the model names them.

Drawn anew for every example of every epoch, from the example's own key: whatever batch it is read in, its mask is the
same.

Letters: B examples · T tokens · M masked · W words · V rows of the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bertkit.corpus.chance import Array, below, fraction, number
from bertkit.corpus.flat import Flat
from bertkit.errors import BertkitError
from bertkit.spec import Rate, Spec
from bertkit.text import Tokenizer
from bertkit.text.ranges import ranges

MARK = "mlm"
"""the name under which masked places and their true ids are kept"""

PACKED = 1 << 16
"""examples, and tokens of each, up to which they are sorted as single numbers"""

_ACTION, _TOKEN = 1 << 40, 2 << 40
"""where the streams for what happens to a token begin; those of its choice begin at 0"""


class Vocabulary(NamedTuple):
    """What masking must know of a vocabulary."""

    mask: int
    """the id of [MASK]"""
    fixed: Array
    """[V] whether a token is never masked: [PAD], [CLS], [SEP], [MASK]"""
    ordinary: Array
    """ids that may stand where another token was: all but the special ones"""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Vocabulary:
        """What a tokenizer says."""
        fixed = np.zeros(len(tokenizer), bool)
        fixed[[tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id]] = True
        ordinary = np.flatnonzero(~fixed)
        return cls(tokenizer.mask_id, fixed, ordinary[ordinary != tokenizer.unk_id])


@dataclass(frozen=True)
class Choose(Spec):
    """Which tokens are masked."""

    def chosen(self, flat: Flat, free: Array, room: Array) -> Array:
        """Places of tokens, ascending [M]: at most `room` [B] of each example, and only where `free` [T]."""
        raise NotImplementedError


@dataclass(frozen=True)
class Pieces(Choose):
    """Any tokens, each as likely as any other."""

    def chosen(self, flat: Flat, free: Array, room: Array) -> Array:
        at = np.flatnonzero(free)
        order, first, count = _shuffled(flat, at)
        return np.sort(at[order[ranges(first, np.minimum(room, count))]])


@dataclass(frozen=True)
class WholeWords(Choose):
    """All tokens of some words: words in any order, passing over one that would be too much, as Google does it."""

    def chosen(self, flat: Flat, free: Array, room: Array) -> Array:
        words = np.flatnonzero(flat.words)
        sizes = np.diff(words, append=len(flat.ids))
        words, sizes = words[free[words]], sizes[free[words]]
        order, _, count = _shuffled(flat, words)
        rows = np.repeat(np.arange(len(flat)), count)
        taken = order[_fitting(rows, sizes[order], room)]
        return np.sort(ranges(words[taken], sizes[taken]))


@dataclass(frozen=True)
class Mask(Spec):
    """A share of the tokens is asked for; of these most are hidden behind [MASK].

    >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"])
    >>> tokens = np.array([2, 5, 6, 7, 6, 5, 7, 3], np.uint16)
    >>> flat = Flat(tokens, np.zeros(8, np.uint8), np.ones(8, bool), np.array([0, 8]), np.array([7], np.uint64))
    >>> masked = Mask(rate=0.3, random=0.0, keep=0.0).corrupt(flat, Vocabulary.of(tokenizer))
    >>> at, true = masked.marks["mlm"]
    >>> masked.ids[at].tolist(), (true == tokens[at]).tolist()
    ([4, 4], [True, True])
    """

    choose: Choose = Pieces()
    rate: Rate = 0.15
    """how many of the tokens, special ones not counted; at least one of an example"""
    random: Rate = 0.1
    """the share of these that any token stands for"""
    keep: Rate = 0.1
    """the share that stays as it is"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.random + self.keep > 1:
            raise BertkitError(f"Mask.random is {self.random} and Mask.keep is {self.keep}: together at most 1")

    def corrupt(self, flat: Flat, vocabulary: Vocabulary) -> Flat:
        """The examples as the model sees them; `marks["mlm"]` has the places and the true ids."""
        free = ~vocabulary.fixed[flat.ids]
        count = np.add.reduceat(free, flat.starts[:-1], dtype=np.int64)
        room = np.minimum(np.maximum(np.rint(self.rate * count), 1), count).astype(np.int64)
        at = self.choose.chosen(flat, free, room)
        ids = flat.ids.copy()
        ids[at] = self._instead(flat, at, vocabulary)
        return replace(flat, ids=ids, marks={**flat.marks, MARK: (at, flat.ids[at].astype(np.int64))})

    def _instead(self, flat: Flat, at: Array, vocabulary: Vocabulary) -> Array:
        """What stands at each masked place, [M]."""
        row = np.searchsorted(flat.starts, at, "right") - 1
        keys, place = flat.keys[row], at - flat.starts[row]
        chance = fraction(number(keys, _ACTION + place))
        drawn = vocabulary.ordinary[below(number(keys, _TOKEN + place), len(vocabulary.ordinary))]
        other = np.where(chance < self.keep, flat.ids[at], drawn)
        return np.where(chance < self.keep + self.random, other, vocabulary.mask)


def _shuffled(flat: Flat, at: Array) -> tuple[Array, Array, Array]:
    """These tokens of each example in an order by chance: indices into `at`, example by example, and where each
    example's begin and how many there are, [B].
    """
    bounds = np.searchsorted(at, flat.starts)
    first, count = bounds[:-1], np.diff(bounds)
    row = np.repeat(np.arange(len(flat)), count)
    chance = number(flat.keys[row], at - flat.starts[row]) >> np.uint64(32)
    own = np.arange(len(at)) - first[row]
    if len(flat) > PACKED or count.max() > PACKED:
        return np.lexsort((own, chance, row)), first, count
    packed = (row.astype(np.uint64) << np.uint64(48)) | (chance << np.uint64(16)) | own.astype(np.uint64)
    packed.sort()  # several times as quick as sorting indices
    return first[row] + (packed & np.uint64(2**16 - 1)).astype(np.int64), first, count


def _fitting(rows: Array, sizes: Array, room: Array) -> Array:
    """Which words are taken if each example takes those that still fit, in order: indices of rows [W] and sizes [W].

    In each turn an example takes what fits up to the first word that does not; no later word as long as that one can.
    """
    taken, left, open_ = np.zeros(len(rows), bool), room.copy(), np.arange(len(rows))
    while True:
        open_ = open_[sizes[open_] <= left[rows[open_]]]
        if not len(open_):
            return np.flatnonzero(taken)
        row, size = rows[open_], sizes[open_]
        first = np.flatnonzero(np.diff(row, prepend=-1))
        running = np.cumsum(size)
        running -= np.repeat(running[first] - size[first], np.diff(first, append=len(row)))
        fits = running <= left[row]
        taken[open_[fits]] = True
        left -= np.bincount(row[fits], size[fits], len(left)).astype(np.int64)
        open_ = open_[~fits]
