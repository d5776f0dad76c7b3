"""A table of chunks: which tokens each has, how it ends and starts; looked up for all chunks of a text at once.

Letters: B bytes of a text · C chunks in it · N chunks in the table · T their tokens in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bertkit.text.chunks import are_chinese
from bertkit.text.column import Column
from bertkit.text.numbering import Numbering
from bertkit.text.ranges import ranges
from bertkit.text.runs import WORD, Runs
from bertkit.text.sentences import MAY_END, MAY_START, STARTS, ends_of, starts_of
from bertkit.text.spelling import Speller
from bertkit.text.tokenizer import Tokenizer

Array = np.ndarray[Any, np.dtype[Any]]

MOST_TYPES, MOST_BYTES = 250_000, 5_000_000
"""chunks in the table, and their bytes; beyond them only those stay that were seen again: most never are"""
KEPT_TYPES, KEPT_BYTES = 150_000, 100
"""chunks that stay at most, and the bytes of the longest"""
BLOCK_TYPES, TOKENS_PER_TYPE = 30_000, 5
"""new chunks that a block of text may bring, and tokens of a chunk: there is room for so many from the beginning"""

_SPACES = b" \t\n\r"
_ASCII = 0x7F
_PAIR = np.uint64(0xFFFF)
"""of the first eight bytes of a chunk, the first two"""


class Table:
    """The chunks of a tokenizer; `firsts` have the numbers 0, 1, … for good."""

    def __init__(self, tokenizer: Tokenizer, firsts: list[str]) -> None:
        self._speller, self._firsts = Speller(tokenizer), len(firsts)
        self._continues = ~np.array([tokenizer.pieces.begins(token) for token in tokenizer.vocabulary])
        most = MOST_TYPES + BLOCK_TYPES
        self._numbering = Numbering(most, MOST_BYTES)
        self.ids = Column(np.uint16 if len(tokenizer) <= 2**16 else np.uint32, TOKENS_PER_TYPE * most)
        """tokens of all chunks in a row, [T]"""
        self.words = Column(bool, TOKENS_PER_TYPE * most)
        """whether each starts a word, [T]"""
        self.rows, self.lengths = Column(np.int32, most), Column(np.int32, most)
        """the first token of each chunk, and how many it has, [N]"""
        self.ends, self.starts = Column(np.int8, most), Column(np.int8, most)
        """how each chunk ends and starts, [N]"""
        self.chinese = Column(bool, most)
        """whether each chunk is a Chinese character, [N]"""
        self._seen = Column(np.int32, most)
        """how often each was seen, what is long ago counted less, [N]"""
        self.numbers(" ".join(firsts))

    def __len__(self) -> int:
        """How many chunks it has, N."""
        return len(self._numbering)

    def numbers(self, text: str) -> Array:
        """The number of each chunk of a text whose only white space is " \\t\\n\\r", [C]; new ones are added."""
        if len(self) > MOST_TYPES or self._numbering.size > MOST_BYTES:
            self._keep_what_was_seen_again()
        data = np.frombuffer(f" {text}{' ' * WORD}".encode("utf-8", "surrogatepass"), np.uint8)  # [B]
        solid = (data != _SPACES[0]) & (data != _SPACES[1]) & (data != _SPACES[2]) & (data != _SPACES[3])
        edges = np.flatnonzero(solid[1:] != solid[:-1]) + 1
        starts, stops = edges[::2], edges[1::2]
        if not len(starts):
            return np.empty(0, np.int32)
        found = self._numbering.numbers(Runs.of(data, starts, stops - starts), self._learn)
        np.add.at(self._seen[:], found, np.int32(1))  # with a 1 of another type it is forty times slower
        return found

    def _learn(self, chunks: Runs) -> None:
        ids, lengths = self._speller.spell(chunks)
        self.rows.extend(len(self.ids) + np.cumsum(lengths) - lengths)
        self.lengths.extend(lengths)
        self.ids.extend(ids)
        self.words.extend(~self._continues[ids])
        first, last = chunks.data[chunks.starts], chunks.starts + chunks.sizes - 1
        finals = chunks.data[last - 1] | chunks.data[last].astype(np.int32) << 8  # there is a space before the first
        self.ends.extend(_each(ends_of, chunks, MAY_END[finals]))
        pairs = chunks.heads & _PAIR
        self.starts.extend(_each(starts_of, chunks, MAY_START[pairs], STARTS[pairs]))
        self.chinese.extend(_each(are_chinese, chunks, first > _ASCII))
        self._seen.extend(np.zeros(len(lengths), np.int32))

    def _keep_what_was_seen_again(self) -> None:
        """Forget the other chunks; the first ones stay."""
        seen = self._seen[:]
        seen[: self._firsts] = np.iinfo(np.int32).max
        kept = np.flatnonzero((seen > 1) & (self._numbering.sizes <= KEPT_BYTES))  # [K]
        if len(kept) > KEPT_TYPES:
            kept = np.sort(kept[np.argpartition(-seen[kept], KEPT_TYPES)[:KEPT_TYPES]])
        lengths = self.lengths[kept]
        tokens = ranges(self.rows[kept], lengths)
        for column in (self.ids, self.words):
            column.replace(column[tokens])
        for column in (self.lengths, self.ends, self.starts, self.chinese):
            column.replace(column[kept])
        self.rows.replace(np.cumsum(lengths) - lengths)
        self._seen.replace(seen[kept] // 2)
        self._numbering.keep(kept)


def _each(function: Callable[[Sequence[str]], Array], chunks: Runs, which: Array, others: Array | int = 0) -> Array:
    """What a function says of some chunks, and what is known of the others, [C]."""
    found = np.full(len(which), others, np.int8)
    found[which] = function(chunks.take(which).texts())
    return found
