"""Masked tokens (BERT, https://arxiv.org/abs/1810.04805): some are hidden, replaced or kept; the model names them.

Drawn anew for every example of every epoch, from the example's own key: whatever batch it is read in, its mask is the
same.

Letters: M masked · V rows of the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from bertkit.corpus.chance import Array, below, fraction, number
from bertkit.corpus.flat import Flat
from bertkit.errors import BertkitError
from bertkit.objectives.choose import Choose, Chosen, Pieces
from bertkit.spec import Rate, Spec
from bertkit.text import Tokenizer

MARK = "mlm"
"""the name under which masked places and their true ids are kept"""

_ACTION, _TOKEN = 1 << 40, 2 << 40
"""where the streams for what happens to a token begin; those of its choice begin at 0 and at `LENGTHS`"""


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

    choose: Choose = field(default_factory=Pieces)
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
        chosen = self.choose.chosen(flat, free, room)
        at, ids = chosen.at, flat.ids.copy()
        ids[at] = self._instead(flat, chosen, vocabulary)
        return replace(flat, ids=ids, marks={**flat.marks, MARK: (at, flat.ids[at].astype(np.int64))})

    def _instead(self, flat: Flat, chosen: Chosen, vocabulary: Vocabulary) -> Array:
        """What stands at each masked place, [M]. Tokens that are decided together are replaced each for itself."""
        at, decided = chosen
        row = np.searchsorted(flat.starts, at, "right") - 1
        keys, start = flat.keys[row], flat.starts[row]
        chance = fraction(number(keys, _ACTION + decided - start))
        drawn = vocabulary.ordinary[below(number(keys, _TOKEN + at - start), len(vocabulary.ordinary))]
        other = np.where(chance < self.keep, flat.ids[at], drawn)
        return np.where(chance < self.keep + self.random, other, vocabulary.mask)
