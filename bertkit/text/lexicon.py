"""A lexicon: phrases and names of a user, found among tokens as units of their own.

ERNIE masks phrases and entities as a whole. A unit is a word, or a phrase of the lexicon in place of its words.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.errors import BertkitError
from bertkit.text.tokenizer import Tokenizer

Array = np.ndarray[Any, np.dtype[Any]]


class Lexicon:
    """Phrases, each as its tokens; the longest that fits is taken, from left to right, within a sentence.

    >>> vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "new", "york", "##er", "a"]
    >>> ids, words = np.array([8, 5, 6, 5, 6, 7]), np.array([True, True, True, True, True, False])
    >>> Lexicon(["New York"], Tokenizer.from_vocabulary(vocabulary)).units(ids, words, np.array([0])).astype(int)
    array([1, 1, 0, 1, 1, 0])
    """

    def __init__(self, phrases: Iterable[str], tokenizer: Tokenizer) -> None:
        encoded = tokenizer.ids_of_many(list(phrases), special_tokens=False)
        unknown = tokenizer.unk_id
        self._phrases: set[tuple[int, ...]] = {tuple(ids) for ids in encoded if len(ids) > 1 and unknown not in ids}
        self._lengths: dict[tuple[int, int], list[int]] = {}
        """first two tokens -> lengths of the phrases that start so, longest first"""
        for length, pair in sorted({(-len(ids), (ids[0], ids[1])) for ids in self._phrases}):
            self._lengths.setdefault(pair, []).append(-length)
        self._pairs = np.sort(np.array([first << 32 | second for first, second in self._lengths], np.int64))

    @classmethod
    def load(cls, path: Path, tokenizer: Tokenizer) -> Lexicon:
        """From a file with a phrase on each line; what follows a tab is left aside."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise BertkitError(f"{path} is not UTF-8 at byte {error.start + 1}: write a phrase on each line") from None
        return cls([line.split("\t")[0].strip() for line in lines if line.strip()], tokenizer)

    def __len__(self) -> int:
        return len(self._phrases)

    def units(self, ids: Array, words: Array, sentences: Array) -> Array:
        """Whether a unit starts at each token, [T], given the first token of each word and of each sentence."""
        units = words.copy()
        if len(ids) < 2 or not self._phrases:
            return units
        pairs = ids[:-1].astype(np.int64) << 32 | ids[1:]  # [T - 1]
        found = np.searchsorted(self._pairs, pairs)
        starts = np.flatnonzero((self._pairs[np.minimum(found, len(self._pairs) - 1)] == pairs) & words[:-1])
        ends = np.append(sentences[1:], len(ids))[np.searchsorted(sentences, starts, "right") - 1]
        whole = np.append(words, True)  # a phrase ends where a word does
        done = 0
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            if start < done:
                continue
            for length in self._lengths[int(ids[start]), int(ids[start + 1])]:
                stop = start + length
                if stop <= end and whole[stop] and tuple(ids[start:stop].tolist()) in self._phrases:
                    units[start + 1 : stop] = False
                    done = stop
                    break
        return units
