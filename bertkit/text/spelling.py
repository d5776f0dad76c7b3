"""Spelling: the tokens of many new chunks at once, by way of the words they are made of.

BERT cuts a chunk at every punctuation mark, so that "word", "Word," and "(word)" share a spelling, and a word of plain
ASCII is spelled here, by the longest tokens first as Google defined it. The tokenizer reads whatever else there is.

Letters: B bytes of a text · C chunks of it · T their tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from bertkit.errors import BertkitError
from bertkit.text.ranges import ranges
from bertkit.text.tokenizer import Tokenizer

Array = np.ndarray[Any, np.dtype[Any]]

TOGETHER = 500
"""chunks that the tokenizer reads as one text: it takes longer to begin a text than to read a chunk"""

LATELY = 10_000
"""words of several tokens that are remembered"""

_END, _END_ID = "\n", -1
"""ends a chunk among words of ASCII"""
_WORD = re.compile(r"[!-/:-@\[-`{-~\n]|[^!-/:-@\[-`{-~\n]+")
"""a mark, or what stands between marks"""


class Speller:
    """Spells chunks, which are runs of bytes without white space in a text of UTF-8.

    >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s", ","])
    >>> text = np.frombuffer(b"Cats, cats [SEP]", np.uint8)
    >>> ids, lengths = Speller(tokenizer).spell(text, np.array([0, 6, 11]), np.array([5, 10, 16]))
    >>> ids.tolist(), lengths.tolist()
    ([5, 6, 7, 5, 6, 3], [3, 2, 1])
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._lowers, rust = tokenizer, tokenizer.lowercase, tokenizer._rust
        self._pieces = _WordPiece(rust.get_vocab(with_added_tokens=False), rust.model)
        self._is_odd = np.ones(256, bool)
        """of each byte: whether there may be more to a chunk with it than words and marks of ASCII"""
        if isinstance(rust.normalizer, BertNormalizer) and isinstance(rust.pre_tokenizer, BertPreTokenizer):
            added = [token.content[0] for token in rust.get_added_tokens_decoder().values()]
            firsts = {byte for first in added for form in (first.lower(), first.upper()) for byte in form.encode()}
            self._is_odd[[byte for byte in range(0x21, 0x7F) if byte not in firsts]] = False

    def spell(self, data: Array, starts: Array, stops: Array) -> tuple[Array, Array]:
        """The tokens of the chunks of a text [B] in a row, [T], and how many each has, [C]."""
        sizes = stops - starts
        content, places = data[ranges(starts, sizes)], np.cumsum(sizes) - sizes
        odd = np.logical_or.reduceat(self._is_odd[content], places) if len(sizes) else np.empty(0, bool)
        plain, counts = self._by_words(_lines(content, places[~odd], sizes[~odd]))
        whole, more = self._by_tokenizer(_lines(content, places[odd], sizes[odd]).split(_END)[:-1])
        lengths, rows = np.empty(len(odd), np.int64), np.empty(len(odd), np.int64)
        lengths[~odd], lengths[odd] = counts, more
        rows[~odd], rows[odd] = np.cumsum(counts) - counts, len(plain) + np.cumsum(more) - more
        return np.concatenate([plain, whole])[ranges(rows, lengths)], lengths

    def _by_words(self, lines: str) -> tuple[Array, Array]:
        ids = self._pieces.ids(_WORD.findall(lines.lower() if self._lowers else lines))
        ends = np.flatnonzero(ids == _END_ID)  # [C]
        return ids[ids != _END_ID], np.diff(ends, prepend=-1) - 1

    def _by_tokenizer(self, chunks: Sequence[str]) -> tuple[Array, Array]:
        groups = [chunks[first : first + TOGETHER] for first in range(0, len(chunks), TOGETHER)]
        ids, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        encoded = self._tokenizer.encode_many([_END.join(group) for group in groups], special_tokens=False)
        for number, (group, found) in enumerate(zip(groups, encoded, strict=True)):
            stops = np.cumsum([len(chunk) + 1 for chunk in group])  # where the next chunk begins
            last = np.array(found.offsets, np.int64).reshape(-1, 2)[:, 1] - 1  # character of each token
            ids.append(np.array(found.ids, np.int64))
            owners.append(number * TOGETHER + np.searchsorted(stops, last, "right"))
        return np.concatenate(ids), np.bincount(np.concatenate(owners), minlength=len(chunks))


def require_chunks(tokenizer: Tokenizer, text: str, chunks: Sequence[str]) -> None:
    """Refuse a tokenizer that reads a text otherwise than its chunks in a row."""
    added = [token.content for token in tokenizer._rust.get_added_tokens_decoder().values()]
    spaced = [name for name in added if re.search(r"\s", name)]
    if spaced:
        raise BertkitError(f"the tokenizer has a token with a space in it, {spaced[0]!r}. Add it without the space")
    whole, *parts = tokenizer.ids_of_many([text, *chunks], special_tokens=False)
    if whole != [i for part in parts for i in part]:
        raise BertkitError(
            "the tokenizer does not cut texts as BERT does, at spaces, marks and Chinese characters. Choose another "
            "one, or set tokenize_chinese_chars to true in its tokenizer_config.json"
        )


def _lines(content: Array, places: Array, sizes: Array) -> str:
    """Chunks, each with a line break after it."""
    text = np.full(sizes.sum() + len(sizes), ord(_END), np.uint8)
    text[ranges(np.cumsum(sizes + 1) - sizes - 1, sizes)] = content[ranges(places, sizes)]
    return text.tobytes().decode("utf-8", "surrogatepass")


class _WordPiece:
    """Words of ASCII to tokens: always the longest that fits, the unknown one alone where none does."""

    def __init__(self, vocabulary: dict[str, int], model: Any) -> None:
        mark = model.continuing_subword_prefix
        longest = model.max_input_chars_per_word
        self._first = {token: i for token, i in vocabulary.items() if len(token) <= longest} | {_END: _END_ID}
        self._next = {token.removeprefix(mark): i for token, i in vocabulary.items() if token.startswith(mark)}
        self._unknown = vocabulary[model.unk_token]
        self._longest = longest
        self._lately: dict[str, list[int]] = {}
        """words that were spelled not long ago: rare words come again in the same text, with other marks"""

    def ids(self, words: Iterable[str]) -> Array:
        """The tokens of all words in a row, [T]."""
        found: list[int] = []
        whole, append = self._first.get, found.append
        for word in words:
            token = whole(word)
            if token is None:
                found += self._spelled(word)
            else:
                append(token)
        return np.array(found, np.int64)

    def _spelled(self, word: str) -> list[int]:
        if len(word) > self._longest:
            return [self._unknown]
        found = self._lately.get(word)
        if found is None:
            if len(self._lately) >= LATELY:
                self._lately.clear()
            found = self._lately[word] = self._spell(word)
        return found

    def _spell(self, word: str) -> list[int]:
        found: list[int] = []
        start, stop, end, tokens = 0, len(word), len(word), self._first
        while start < end:
            while (token := tokens.get(word[start:stop])) is None:
                stop -= 1
                if stop == start:
                    return [self._unknown]
            found.append(token)
            start, stop, tokens = stop, end, self._next
        return found
