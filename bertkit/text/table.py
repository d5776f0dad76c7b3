"""A table of chunks: which tokens each has, how it ends and starts; looked up for all chunks of a text at once.

Everything is an array. A chunk is found by a 64-bit hash of its bytes, in a hash table that is one array of numbers,
and then compared with the bytes that the table keeps of it: should two chunks ever share a hash, the table begins anew
with another one. So what is found is exact, and a chunk costs some fifty bytes where a dictionary takes hundreds.

Letters: B bytes of a text · C chunks in it · N chunks in the table · T their tokens in a row · Q their bytes in a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bertkit.text.chunks import CLOSERS, are_chinese
from bertkit.text.ranges import ranges
from bertkit.text.sentences import ENDING, MAY_START, STARTS, ends_of, starts_of
from bertkit.text.spelling import Speller
from bertkit.text.tokenizer import Tokenizer
from bertkit.text.wordpiece import CONTINUES

Array = np.ndarray[Any, np.dtype[Any]]

MOST_TYPES, MOST_BYTES = 250_000, 5_000_000
"""chunks in the table, and their bytes; beyond them only those stay that were seen again: most never are"""
KEPT_TYPES, KEPT_BYTES = 150_000, 100
"""chunks that stay at most, and the bytes of the longest"""
BLOCK_TYPES, TOKENS_PER_TYPE = 30_000, 5
"""new chunks that a block of text may bring, and tokens of a chunk: there is room for so many from the beginning"""
SLOT_BITS = 20
"""slots of the hash table, as a power of two: four for each chunk"""
WORD, LONG = 8, 256
"""bytes that are looked at together; a chunk of more bytes than LONG is looked at alone"""

_MASKS = np.array([2 ** (8 * size) - 1 for size in range(WORD + 1)], np.uint64)
"""what is kept of a word of which so many bytes belong to a chunk"""
_SPACES = b" \t\n\r"
_ASCII = 0x7F
_BYTES = np.arange(256)
_MAY_END = np.isin(_BYTES, list((CLOSERS + ENDING).encode())) | (_BYTES > _ASCII)
"""bytes at the end of a chunk that may end a sentence"""


class Column:
    """An array that grows at its end. It has its room from the beginning, so that memory does not run out later."""

    def __init__(self, dtype: Any, room: int) -> None:
        self._array, self._size = np.full(room, 0, dtype), 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, at: Any) -> Array:
        found: Array = self._array[: self._size][at]
        return found

    def take(self, at: Array) -> Array:
        """The values at these places; beyond the last one it is the last."""
        return self._array[: self._size].take(at, mode="clip")

    def windows(self) -> Array:
        """The eight bytes from each byte on as a number."""
        return _windows(self._array)

    def extend(self, values: Array) -> None:
        """Put values behind the last one."""
        size = self._size + len(values)
        if size + WORD > len(self._array):
            self._array = np.concatenate([self[:], np.zeros(max(size, self._size) + WORD, self._array.dtype)])
        self._array[self._size : size] = values
        self._size = size

    def replace(self, values: Array) -> None:
        """Take other values in their place."""
        self._size = 0
        self.extend(values)


class Table:
    """The chunks of a tokenizer; `firsts` have the numbers 0, 1, … for good."""

    def __init__(self, tokenizer: Tokenizer, firsts: list[str]) -> None:
        self._speller, self._firsts, self._seed = Speller(tokenizer), firsts, 0
        self._continues = np.array([token.startswith(CONTINUES) for token in tokenizer.vocabulary])
        types, tokens = MOST_TYPES + BLOCK_TYPES, TOKENS_PER_TYPE * (MOST_TYPES + BLOCK_TYPES)
        self.ids = Column(np.uint16 if len(tokenizer) <= 2**16 else np.uint32, tokens)
        """tokens of all chunks in a row, [T]"""
        self.words = Column(bool, tokens)
        """whether each starts a word, [T]"""
        self.rows, self.lengths = Column(np.int32, types), Column(np.int32, types)
        """the first token of each chunk, and how many it has, [N]"""
        self.ends, self.starts = Column(np.int8, types), Column(np.int8, types)
        """how each chunk ends and starts, [N]"""
        self.chinese = Column(bool, types)
        """whether each chunk is a Chinese character, [N]"""
        self._bytes = Column(np.uint8, MOST_BYTES)
        self._places, self._sizes, self._heads = Column(np.int32, types), Column(np.int32, types), Column("<u8", types)
        """all chunks as they are written in a row, [Q]; the place of each, how many it has, and the first eight, [N]"""
        self._hashes, self._seen = Column(np.uint64, types), Column(np.int32, types)
        """the hash of each, and how often it was seen, what is long ago counted less, [N]"""
        self._slots = np.empty(2**SLOT_BITS, np.int32)
        """numbers of chunks, each at its hash or at the next slot that was free; -1 where there is none"""
        self._begin()

    def __len__(self) -> int:
        """How many chunks it has, N."""
        return len(self._hashes)

    def numbers(self, text: str) -> Array:
        """The number of each chunk of a text whose only white space is " \\t\\n\\r", [C]; new ones are added."""
        if len(self) > MOST_TYPES or len(self._bytes) > MOST_BYTES:
            self._keep_what_was_seen_again()
        data = np.frombuffer(f" {text}{' ' * WORD}".encode("utf-8", "surrogatepass"), np.uint8)  # [B]
        solid = (data != _SPACES[0]) & (data != _SPACES[1]) & (data != _SPACES[2]) & (data != _SPACES[3])
        edges = np.flatnonzero(solid[1:] != solid[:-1]).astype(np.int32) + 1
        starts, stops = edges[::2], edges[1::2]
        if not len(starts):
            return np.empty(0, np.int32)
        sizes = stops - starts
        heads = _windows(data)[starts] & _MASKS[np.minimum(sizes, WORD)]
        found = self._found(data, starts, sizes, heads)
        while not self._is_written(data, starts, sizes, heads, found):
            self._seed += 1
            self._begin()
            found = self._found(data, starts, sizes, heads)
        np.add.at(self._seen[:], found, 1)
        return found

    def _begin(self) -> None:
        """An empty table, with another factor to make hashes by."""
        self._factor = np.random.default_rng(self._seed).integers(2**63, 2**64, dtype=np.uint64) | np.uint64(1)
        for column in self._columns():
            column.replace(np.empty(0))
        self._slots[:] = -1
        self.numbers(" ".join(self._firsts))

    def _columns(self) -> list[Column]:
        return [column for column in vars(self).values() if isinstance(column, Column)]

    def _found(self, data: Array, starts: Array, sizes: Array, heads: Array) -> Array:
        hashes = self._hashed(data, starts, sizes, heads)
        found = self._looked_up(hashes)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            new = missing[np.sort(np.unique(hashes[missing], return_index=True)[1])]
            self._learn(data, starts[new], sizes[new], heads[new])
            self._insert(hashes[new])
            found[missing] = self._looked_up(hashes[missing])
        return found

    def _hashed(self, data: Array, starts: Array, sizes: Array, heads: Array) -> Array:
        """A number for each chunk, eight bytes of all of them at a time, [C]."""
        hashes = _mixed(sizes.astype(np.uint64) * self._factor ^ heads, self._factor)
        for which, words in _tails(_windows(data), starts, sizes):
            hashes[which] = _mixed(hashes[which] ^ words, self._factor)
        for chunk in np.flatnonzero(sizes > LONG).tolist():
            digest = hashlib.blake2b(data[starts[chunk] :][: sizes[chunk]].tobytes(), digest_size=WORD)
            hashes[chunk] = int.from_bytes(digest.digest(), "little")
        return hashes * self._factor  # the slot is in its upper bits

    def _is_written(self, data: Array, starts: Array, sizes: Array, heads: Array, found: Array) -> bool:
        """Whether every chunk is what the table says of its number."""
        if not (np.array_equal(self._heads.take(found), heads) and np.array_equal(self._sizes.take(found), sizes)):
            return False
        longer = np.flatnonzero(sizes > WORD)
        starts, sizes, places = starts[longer], sizes[longer], self._places.take(found[longer])
        given, known = _tails(_windows(data), starts, sizes), _tails(self._bytes.windows(), places, sizes)
        if not all(np.array_equal(ours[1], theirs[1]) for ours, theirs in zip(given, known, strict=True)):
            return False
        return all(
            np.array_equal(data[starts[chunk] :][: sizes[chunk]], self._bytes[places[chunk] :][: sizes[chunk]])
            for chunk in np.flatnonzero(sizes > LONG).tolist()
        )

    def _looked_up(self, hashes: Array) -> Array:
        """The number of the chunk with each hash, -1 where there is none, [C]."""
        slots = _slot(hashes)
        found = self._slots.take(slots)
        others = np.flatnonzero(found >= 0)
        while len(others := others[self._hashes.take(found[others]) != hashes[others]]):
            slots[others] = (slots[others] + 1) % len(self._slots)
            found[others] = self._slots[slots[others]]
            others = others[found[others] >= 0]
        return found

    def _insert(self, hashes: Array) -> None:
        """Number new chunks by their hashes."""
        numbers, slots = len(self) + np.arange(len(hashes), dtype=np.int32), _slot(hashes)
        self._hashes.extend(hashes)
        while len(numbers):
            free = np.flatnonzero(self._slots[slots] < 0)
            taken, which = np.unique(slots[free], return_index=True)  # one of those that want the same slot
            self._slots[taken] = numbers[free[which]]
            numbers, slots = np.delete(numbers, free[which]), (np.delete(slots, free[which]) + 1) % len(self._slots)

    def _learn(self, data: Array, starts: Array, sizes: Array, heads: Array) -> None:
        stops = starts + sizes
        ids, lengths = self._speller.spell(data, starts, stops)
        self.rows.extend(len(self.ids) + np.cumsum(lengths) - lengths)
        self.lengths.extend(lengths)
        self.ids.extend(ids)
        self.words.extend(~self._continues[ids])
        first, last = data[starts], data[stops - 1]
        self.ends.extend(_each(ends_of, data, starts, stops, _MAY_END[last]))
        pairs = heads & _MASKS[2]
        self.starts.extend(_each(starts_of, data, starts, stops, MAY_START[pairs], STARTS[pairs]))
        self.chinese.extend(_each(are_chinese, data, starts, stops, first > _ASCII))
        self._heads.extend(heads)
        self._places.extend(len(self._bytes) + np.cumsum(sizes) - sizes)
        self._sizes.extend(sizes)
        self._bytes.extend(data[ranges(starts, sizes)])
        self._seen.extend(np.zeros(len(sizes), np.int32))

    def _keep_what_was_seen_again(self) -> None:
        """Forget the other chunks; the first ones stay."""
        seen = self._seen[:]
        seen[: len(self._firsts)] = np.iinfo(np.int32).max
        kept = np.flatnonzero((seen > 1) & (self._sizes[:] <= KEPT_BYTES))  # [K]
        if len(kept) > KEPT_TYPES:
            kept = np.sort(kept[np.argpartition(-seen[kept], KEPT_TYPES)[:KEPT_TYPES]])
        lengths, sizes, hashes = self.lengths[kept], self._sizes[kept], self._hashes[kept]
        tokens, content = ranges(self.rows[kept], lengths), ranges(self._places[kept], sizes)
        for column in (self.ids, self.words):
            column.replace(column[tokens])
        self._bytes.replace(self._bytes[content])
        for column in (self.lengths, self._sizes, self._heads, self.ends, self.starts, self.chinese):
            column.replace(column[kept])
        self.rows.replace(np.cumsum(lengths) - lengths)
        self._places.replace(np.cumsum(sizes) - sizes)
        self._seen.replace(seen[kept] // 2)
        self._hashes.replace(hashes[:0])
        self._slots[:] = -1
        self._insert(hashes)


def _windows(data: Array) -> Array:
    """The eight bytes from each byte on as a number, [B - 7]; it is a view."""
    return np.ndarray((len(data) - WORD + 1,), "<u8", data, 0, (1,))


def _tails(windows: Array, starts: Array, sizes: Array) -> Iterator[tuple[Array, Array]]:
    """The second eight bytes of each chunk that has them, then the third, as far as LONG."""
    which = np.arange(len(starts))
    for first in range(WORD, LONG, WORD):
        which = which[sizes[which] > first]
        if not len(which):
            return
        yield which, windows[starts[which] + first] & _MASKS[np.minimum(sizes[which] - first, WORD)]


def _mixed(hashes: Array, factor: Any) -> Array:
    product = hashes * factor
    mixed: Array = product ^ (product >> np.uint64(32))
    return mixed


def _each(
    function: Callable[[Sequence[str]], Array],
    data: Array,
    starts: Array,
    stops: Array,
    which: Array,
    others: Array | int = 0,
) -> Array:
    """What a function says of some chunks of a text, and what is known of the others, [C]."""
    found, at = np.full(len(starts), others, np.int8), np.flatnonzero(which)
    raw = data.tobytes()
    bounds = zip(starts[at].tolist(), stops[at].tolist(), strict=True)
    found[at] = function([raw[start:stop].decode("utf-8", "surrogatepass") for start, stop in bounds])
    return found


def _slot(hashes: Array) -> Array:
    return (hashes >> np.uint64(64 - SLOT_BITS)).astype(np.int64)
