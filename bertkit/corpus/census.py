"""A census of chunks: each different one is looked at once; its sentence marks and unknown words are known ever after.

Chunks are those of `bertkit.text.chunks`, which WordPiece reads independently of each other, so that the tokens counted
here are those of `Tokenizer.encode`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from bertkit.corpus import scripts
from bertkit.text import Tokenizer
from bertkit.text.chunks import spaced
from bertkit.text.sentences import BREAKS, end_of, start_of

Array = np.ndarray[Any, np.dtype[Any]]

MOST_TYPES = 200_000
"""chunks the table remembers; beyond them it keeps the half that was seen most"""
MOST_UNKNOWN = 100_000
"""unknown words that are counted; beyond them the rarer half is forgotten"""
TOGETHER = 2000
"""chunks that are tokenised in one go, which is twice as fast as one by one"""
_LINE = "\x01"
_STAND_IN = {1: "\u200b"}


@dataclass(frozen=True)
class Count:
    """Tokens, and how many of them are [UNK]."""

    tokens: int
    unknown: int

    @property
    def rate(self) -> float:
        """The share of [UNK]."""
        return self.unknown / max(self.tokens, 1)


@dataclass(frozen=True)
class Unknown:
    """What a tokenizer cannot spell."""

    total: Count
    scripts: dict[str, Count]
    """by the script of the chunk that a token is from: that of its first letter; most tokens first"""
    words: list[tuple[str, int]]
    """the most frequent unknown words"""


class Census:
    """Reads plain text: a line break ends a sentence.

    >>> Census(None).read("A cat. It sleeps.\\nAnd so on").tolist()
    [2, 2, 3]
    """

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer = tokenizer
        self._numbers = _Numbers()
        self._facts = np.empty((0, 5), np.int64)
        """[N, 5] of each chunk: how it ends, how it starts, its script, its tokens, the unknown ones among them"""
        self._seen = np.empty(0, np.int64)
        """how often each was seen, the last time counted most, [N]"""
        self._unknown = np.empty(0, np.int64)
        """how often each was seen since its unknown words were counted, [N]"""
        self._totals = np.zeros((len(scripts.NAMES), 2), np.int64)
        self._words: Counter[str] = Counter()

    def read(self, text: str) -> Array:
        """The words of each sentence of a text, [S]; Chinese characters are words of their own."""
        if _LINE in text:
            text = text.translate(_STAND_IN)
        types = self._look_up(spaced(text.replace("\n", f" {_LINE} ")).split())
        real = types > 0
        breaks = np.cumsum(real)[~real]  # how many chunks come before each line break
        types = types[real]
        facts = self._facts[types]
        starts = np.zeros(len(types) + 1, bool)
        starts[1:-1] = BREAKS[facts[:-1, 0], facts[1:, 1]]
        starts[breaks] = starts[0] = starts[-1] = True
        if self._tokenizer:
            for column in range(2):
                self._totals[:, column] += np.bincount(
                    facts[:, 2], weights=facts[:, 3 + column], minlength=len(scripts.NAMES)
                ).astype(np.int64)
            self._unknown += np.bincount(types, minlength=len(self._unknown))
        lengths = np.diff(np.flatnonzero(starts))
        return lengths[lengths > 0]

    def unknown(self, words: int) -> Unknown | None:
        """What was found, with so many words; None without a tokenizer."""
        if not self._tokenizer:
            return None
        self._count_words()
        order = np.argsort(-self._totals[:, 0], kind="stable").tolist()
        found = {scripts.NAMES[kind]: Count(*self._totals[kind].tolist()) for kind in order if self._totals[kind, 0]}
        total = Count(*self._totals.sum(axis=0).tolist())
        ordered = sorted(self._words.items(), key=lambda item: (-item[1], item[0]))
        return Unknown(total, found, ordered[:words])

    def _look_up(self, chunks: list[str]) -> Array:
        """The number of each chunk, [C]; 0 is a line break."""
        if len(self._numbers) > MOST_TYPES:
            self._forget()
        known = len(self._facts)
        found = np.fromiter(map(self._numbers.__getitem__, chunks), np.int64, len(chunks))
        self._learn(list(islice(reversed(self._numbers), len(self._numbers) - known))[::-1])
        self._seen += np.bincount(found, minlength=len(self._seen))
        return found

    def _learn(self, chunks: list[str]) -> None:
        if not chunks:
            return
        facts = np.zeros((len(chunks), 5), np.int64)
        facts[:, 0] = np.fromiter(map(end_of, chunks), np.int64, len(chunks))
        facts[:, 1] = np.fromiter(map(start_of, chunks), np.int64, len(chunks))
        if self._tokenizer:
            facts[:, 2] = _scripts(chunks)
            for at in range(0, len(chunks), TOGETHER):
                facts[at : at + TOGETHER, 3:] = _tokens(self._tokenizer, chunks[at : at + TOGETHER])
        self._facts = np.concatenate([self._facts, facts])
        self._seen = np.append(self._seen, np.zeros(len(chunks), np.int64))
        self._unknown = np.append(self._unknown, np.zeros(len(chunks), np.int64))

    def _forget(self) -> None:
        self._count_words()
        kept = np.sort(np.argsort(-self._seen, kind="stable")[: MOST_TYPES // 2])
        kept = np.union1d([0], kept)
        names = list(self._numbers)
        self._numbers = _Numbers({names[old]: new for new, old in enumerate(kept.tolist())})
        self._facts, self._seen = self._facts[kept], self._seen[kept] // 2
        self._unknown = np.zeros(len(kept), np.int64)

    def _count_words(self) -> None:
        """Add the unknown words inside the chunks that were seen since this was done last."""
        assert self._tokenizer or not self._facts[:, 4].any()
        places = np.flatnonzero((self._facts[:, 4] > 0) & (self._unknown > 0))
        if not self._tokenizer or not len(places):
            return
        names, unk = list(self._numbers), self._tokenizer.unk_id
        chunks = [names[place] for place in places.tolist()]
        for chunk, times, found in zip(
            chunks,
            self._unknown[places].tolist(),
            self._tokenizer.encode_many(chunks, special_tokens=False),
            strict=True,
        ):
            for row, (start, stop) in zip(found.ids, found.offsets, strict=True):
                if row == unk:
                    self._words[chunk[start:stop][:100]] += times
        self._unknown[:] = 0
        if len(self._words) > MOST_UNKNOWN:
            self._words = Counter(dict(self._words.most_common(MOST_UNKNOWN // 2)))


class _Numbers(dict[str, int]):
    """Chunks and their numbers; a new one gets the next."""

    def __init__(self, known: dict[str, int] | None = None) -> None:
        super().__init__(known or {_LINE: 0})

    def __missing__(self, chunk: str) -> int:
        number = self[chunk] = len(self)
        return number


def _tokens(tokenizer: Tokenizer, chunks: list[str]) -> Array:
    """How many tokens each chunk has, and how many of them are unknown, [N, 2]; read as lines of one text."""
    found = tokenizer.encode("\n".join(chunks), special_tokens=False)
    ends = np.cumsum(np.fromiter(map(len, chunks), np.int64, len(chunks)) + 1)
    starts = np.fromiter((start for start, _ in found.offsets), np.int64, len(found))
    owners = np.searchsorted(ends, starts, side="right")
    unknown = np.array(found.ids, np.int64) == tokenizer.unk_id
    return np.stack([np.bincount(where, minlength=len(chunks)) for where in (owners, owners[unknown])], axis=1)


def _scripts(chunks: list[str]) -> Array:
    """The kind of each chunk's first letter, or of its first character where it has no letter, [N]."""
    kinds = scripts.kinds(scripts.codes("".join(chunks)))
    lengths = np.fromiter(map(len, chunks), np.int64, len(chunks))
    starts = np.cumsum(lengths) - lengths
    letters = np.flatnonzero(kinds <= scripts.LETTERS)
    if not len(letters):
        return np.asarray(kinds[starts])
    first = letters[np.minimum(np.searchsorted(letters, starts), len(letters) - 1)]
    inside = (first >= starts) & (first < starts + lengths)
    return np.asarray(kinds[np.where(inside, first, starts)])
