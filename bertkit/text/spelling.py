"""Spelling: the tokens of many new chunks at once, by way of the words they are made of.

BERT cuts a chunk at every punctuation mark, so that "word", "Word," and "(word)" share a spelling. Words of plain ASCII
are cut out here and looked up; the tokenizer's model spells those that are new. The tokenizer reads all other chunks.

Letters: C chunks · W words in them · T their tokens.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

import numpy as np
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from bertkit.errors import BertkitError
from bertkit.text.column import Column
from bertkit.text.numbering import Numbering
from bertkit.text.ranges import ranges
from bertkit.text.runs import WORD, Runs
from bertkit.text.tokenizer import Tokenizer

Array = np.ndarray[Any, np.dtype[Any]]

TOGETHER = 500
"""chunks that the tokenizer reads as one text: it takes longer to begin a text than to read a chunk"""
MOST_WORDS, MOST_BYTES = 60_000, 1_000_000
"""words that are remembered, and their bytes"""
_BLOCK_WORDS, _TOKENS_PER_WORD = 30_000, 4
"""new words that a text may bring, and tokens of a word: there is room for so many from the beginning"""

_BYTES = np.arange(256, dtype=np.uint8)
_LOWER = np.frombuffer(_BYTES.tobytes().lower(), np.uint8)
_IS_MARK = np.isin(_BYTES, list(string.punctuation.encode()))


class Speller:
    """Spells chunks, which are runs of bytes without white space in a text of UTF-8.

    >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s", ","])
    >>> text = np.frombuffer(b"Cats, cats [SEP]" + bytes(WORD), np.uint8)
    >>> ids, lengths = Speller(tokenizer).spell(Runs.of(text, np.array([0, 6, 11]), np.array([5, 4, 5])))
    >>> ids.tolist(), lengths.tolist()
    ([5, 6, 7, 5, 6, 3], [3, 2, 1])
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._lowers, rust = tokenizer, tokenizer.lowercase, tokenizer.rust
        self._words = _Words(rust.model, len(tokenizer))
        self._is_odd = np.ones(256, bool)
        """of each byte: whether there may be more to a chunk with it than words and marks of ASCII"""
        if isinstance(rust.normalizer, BertNormalizer) and isinstance(rust.pre_tokenizer, BertPreTokenizer):
            added = [token.content[0] for token in rust.get_added_tokens_decoder().values()]
            firsts = {byte for first in added for form in (first.lower(), first.upper()) for byte in form.encode()}
            self._is_odd[[byte for byte in range(0x21, 0x7F) if byte not in firsts]] = False

    def spell(self, chunks: Runs) -> tuple[Array, Array]:
        """The tokens of the chunks in a row, [T], and how many each has, [C]."""
        if not len(chunks.sizes):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        odd = np.logical_or.reduceat(self._is_odd[chunks.content()], np.cumsum(chunks.sizes) - chunks.sizes)
        plain, counts = self._by_words(chunks.take(~odd))
        whole, more = self._by_tokenizer(chunks.take(odd).texts())
        lengths, rows = np.empty(len(odd), np.int64), np.empty(len(odd), np.int64)
        lengths[~odd], lengths[odd] = counts, more
        rows[~odd], rows[odd] = np.cumsum(counts) - counts, len(plain) + np.cumsum(more) - more
        return np.concatenate([plain, whole])[ranges(rows, lengths)], lengths

    def _by_words(self, chunks: Runs) -> tuple[Array, Array]:
        """A mark is a word, and so is what stands between marks."""
        content = np.append(chunks.content(), np.zeros(WORD, np.uint8))
        firsts = np.cumsum(chunks.sizes) - chunks.sizes  # [C]
        mark, starts = _IS_MARK[content[:-WORD]], np.zeros(len(content) - WORD, bool)
        starts[firsts] = True
        starts |= mark
        starts[1:] |= mark[:-1]
        at = np.flatnonzero(starts)  # [W]
        sizes = np.diff(at, append=len(starts))
        ids, lengths = self._words.spell(Runs.of(_LOWER[content] if self._lowers else content, at, sizes))
        return ids, np.add.reduceat(lengths, np.searchsorted(at, firsts)) if len(at) else lengths

    def _by_tokenizer(self, chunks: Sequence[str]) -> tuple[Array, Array]:
        groups = [chunks[first : first + TOGETHER] for first in range(0, len(chunks), TOGETHER)]
        ids, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        encoded = self._tokenizer.encode_many(["\n".join(group) for group in groups], special_tokens=False)
        for number, (group, found) in enumerate(zip(groups, encoded, strict=True)):
            stops = np.cumsum([len(chunk) + 1 for chunk in group])  # where the next chunk begins
            last = np.array(found.offsets, np.int64).reshape(-1, 2)[:, 1] - 1  # character of each token
            ids.append(np.array(found.ids, np.int64))
            owners.append(number * TOGETHER + np.searchsorted(stops, last, "right"))
        return np.concatenate(ids), np.bincount(np.concatenate(owners), minlength=len(chunks))


def require_chunks(tokenizer: Tokenizer, text: str, chunks: Sequence[str]) -> None:
    """Refuse a tokenizer that reads a text otherwise than its chunks in a row."""
    added = [token.content for token in tokenizer.rust.get_added_tokens_decoder().values()]
    spaced = [name for name in added if re.search(r"\s", name)]
    if spaced:
        raise BertkitError(f"the tokenizer has a token with a space in it, {spaced[0]!r}. Add it without the space")
    whole, *parts = tokenizer.ids_of_many([text, *chunks], special_tokens=False)
    if whole != [i for part in parts for i in part]:
        raise BertkitError(
            "the tokenizer does not cut texts as BERT does, at spaces, marks and Chinese characters. Choose another "
            "one, or set tokenize_chinese_chars to true in its tokenizer_config.json"
        )


class _Words:
    """The tokens that the tokenizer's model makes of each word."""

    def __init__(self, model: Any, tokens: int) -> None:
        self._tokenize, most = model.tokenize, MOST_WORDS + _BLOCK_WORDS
        self._numbering = Numbering(most, MOST_BYTES)
        self._ids = Column(np.uint16 if tokens <= 2**16 else np.uint32, _TOKENS_PER_WORD * most)
        self._rows, self._lengths = Column(np.int32, most), Column(np.int32, most)
        """the first token of each word, and how many it has"""

    def spell(self, words: Runs) -> tuple[Array, Array]:
        """Their tokens in a row, [T], and how many each has, [W]."""
        if len(self._numbering) > MOST_WORDS or self._numbering.size > MOST_BYTES:
            nothing = np.empty(0, np.int64)
            self._numbering.keep(nothing)
            for column in (self._ids, self._rows, self._lengths):
                column.replace(nothing)
        numbers = self._numbering.numbers(words, self._learn)
        lengths = self._lengths.take(numbers)
        return self._ids.take(ranges(self._rows.take(numbers), lengths)), lengths

    def _learn(self, words: Runs) -> None:
        pieces = [self._tokenize(word) for word in words.texts()]
        lengths = np.array([len(row) for row in pieces])
        self._rows.extend(len(self._ids) + np.cumsum(lengths) - lengths)
        self._lengths.extend(lengths)
        self._ids.extend(np.array([piece.id for row in pieces for piece in row]))
