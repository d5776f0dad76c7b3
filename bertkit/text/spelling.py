"""Spelling: the tokens of many new chunks at once, by way of the words they are made of.

BERT cuts a chunk at every punctuation mark, so that "word", "Word," and "(word)" share a spelling. Only words that were
never seen are spelled by the tokenizer, many of them in one text.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from bertkit.errors import BertkitError
from bertkit.text.ranges import ranges
from bertkit.text.tokenizer import Tokenizer
from bertkit.text.wordpiece import CONTINUES

Array = np.ndarray[Any, np.dtype[Any]]

TOGETHER = 500
"""words that the tokenizer reads as one text: it takes longer to begin a text than to read a word"""
MOST_WORDS, MOST_CHARACTERS = 200_000, 8_000_000
"""words that are remembered, about 30 MB; beyond them all are forgotten"""

_END = "¶"
"""ends a chunk among words of ASCII"""
_APART = str.maketrans({mark: f" {mark} " for mark in string.punctuation})


class Speller:
    """Spells chunks, which are runs without white space.

    >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s", ","])
    >>> ids, lengths = Speller(tokenizer).spell(["Cats,", "cats", "[SEP]"])
    >>> ids.tolist(), lengths.tolist()
    ([5, 6, 7, 5, 6, 3], [3, 2, 1])
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._lowers = tokenizer, tokenizer.lowercase
        self._continues = np.array([token.startswith(CONTINUES) for token in tokenizer.vocabulary])
        self._added = [token.content for token in tokenizer._rust.get_added_tokens_decoder().values()]
        firsts = {form for name in self._added for form in (name[0], name[0].lower(), name[0].upper())}
        self._is_odd = re.compile(rf"[\x80-\U0010ffff{re.escape(''.join(sorted(firsts)))}]").search
        """whether there may be more to a chunk than words and marks: then the tokenizer reads it whole"""
        self._forget()

    def require(self, text: str, chunks: Sequence[str]) -> None:
        """Refuse a tokenizer that reads a text otherwise than its chunks in a row."""
        ids, _ = self.spell(chunks)
        spaced = [name for name in self._added if re.search(r"\s", name)]
        if spaced:
            raise BertkitError(f"the tokenizer has a token with a space in it, {spaced[0]!r}. Add it without the space")
        if self._tokenizer.ids_of_many([text], special_tokens=False)[0] != ids.tolist():
            raise BertkitError(
                "the tokenizer does not cut texts as BERT does, at spaces, marks and Chinese characters. Choose "
                "another one, or set tokenize_chinese_chars to true in its tokenizer_config.json"
            )

    def spell(self, chunks: Sequence[str]) -> tuple[Array, Array]:
        """The tokens of all chunks in a row, [T], and how many each has, [C]."""
        if len(self._numbers) > MOST_WORDS or self._characters > MOST_CHARACTERS:
            self._forget()
        odd = np.array([self._is_odd(chunk) is not None for chunk in chunks], bool)
        plain, counts = self._by_words([chunk for chunk, is_odd in zip(chunks, odd, strict=True) if not is_odd])
        whole, more = self._as_they_are([chunk for chunk, is_odd in zip(chunks, odd, strict=True) if is_odd])
        lengths, starts = np.empty(len(chunks), np.int64), np.empty(len(chunks), np.int64)
        lengths[~odd], lengths[odd] = counts, more
        starts[~odd], starts[odd] = np.cumsum(counts) - counts, len(plain) + np.cumsum(more) - more
        return np.concatenate([plain, whole])[ranges(starts, lengths)], lengths

    def _forget(self) -> None:
        self._numbers, self._characters = {_END: 0}, 0
        self._ids = np.empty(0, np.int64)
        """tokens of all words in a row, [R]"""
        self._lengths = np.zeros(1, np.int64)
        """how many each word has, [N]"""

    def _by_words(self, chunks: Sequence[str]) -> tuple[Array, Array]:
        text = f" {_END} ".join([*chunks, ""])
        words = (text.lower() if self._lowers else text).translate(_APART).split()  # W of them
        numbers = self._numbers
        new = [word for word in dict.fromkeys(words) if word not in numbers]
        self._characters += sum(map(len, new))
        ids, lengths = self._new(new)
        numbers.update(zip(new, range(len(numbers), len(numbers) + len(new)), strict=True))
        self._ids, self._lengths = np.append(self._ids, ids), np.append(self._lengths, lengths)

        found = np.fromiter(map(numbers.__getitem__, words), np.int64, len(words))
        tokens = self._lengths[found]  # of each word, [W]
        rows = np.cumsum(self._lengths) - self._lengths
        through = np.cumsum(tokens)[found == 0]  # up to the end of each chunk, [C]
        return self._ids[ranges(rows[found], tokens)], np.diff(through, prepend=0)

    def _new(self, words: Sequence[str]) -> tuple[Array, Array]:
        """As `spell`, for words without marks: what does not continue a word begins the next."""
        groups = [words[first : first + TOGETHER] for first in range(0, len(words), TOGETHER)]
        encoded = self._tokenizer.ids_of_many(["\n".join(group) for group in groups], special_tokens=False)
        ids = np.array([*chain.from_iterable(encoded)], np.int64)
        starts = np.flatnonzero(~self._continues[ids])
        if len(starts) != len(words):  # one of them is nothing but characters that BERT drops
            return self._as_they_are(words)
        return ids, np.diff(starts, append=len(ids))

    def _as_they_are(self, chunks: Sequence[str]) -> tuple[Array, Array]:
        """As `spell`, by the tokenizer itself."""
        groups = [chunks[first : first + TOGETHER] for first in range(0, len(chunks), TOGETHER)]
        ids, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        encoded = self._tokenizer.encode_many(["\n".join(group) for group in groups], special_tokens=False)
        for number, (group, found) in enumerate(zip(groups, encoded, strict=True)):
            stops = np.cumsum([len(chunk) + 1 for chunk in group])  # where the next chunk begins
            last = np.array(found.offsets, np.int64).reshape(-1, 2)[:, 1] - 1  # character of each token
            ids.append(np.array(found.ids, np.int64))
            owners.append(number * TOGETHER + np.searchsorted(stops, last, "right"))
        return np.concatenate(ids), np.bincount(np.concatenate(owners), minlength=len(chunks))
