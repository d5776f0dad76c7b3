"""Lines in bulk, for tokenizers that read a text otherwise than its chunks in a row: byte-level BPE and Unigram.

The tokenizer reads every line as a whole, and offsets say at which tokens words and sentences start.

Letters: T tokens of a line · S sentences in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bertkit.errors import BertkitError
from bertkit.text.chunks import CHINESE
from bertkit.text.encoding import Encoding
from bertkit.text.segment import Segment
from bertkit.text.sentences import Splitter, firsts
from bertkit.text.tokenizer import Tokenizer

Array = np.ndarray[Any, np.dtype[Any]]

BLOCK = 200_000
"""characters that are tokenised at a time"""

BLANK = re.compile(r"\n(?:[^\S\n]*\n)+")
RUN = re.compile(f"[{CHINESE}]+")


class Line(NamedTuple):
    """A line with text in it, and whether a document begins with it."""

    text: str
    opens: bool


class Part(NamedTuple):
    """The tokens of a part of a text in a row."""

    ids: Array
    """[T]"""
    words: Array
    """[T] whether a word starts here"""
    sentences: Array
    """the first token of each sentence"""
    documents: Array
    """the first token of each document"""


class ByLine:
    """Reads lines. A word starts where the vocabulary spells one, at a special token and after it, and in Chinese at
    each character or where the segmenter says.

    A sentence that starts inside a token starts with the next one.
    """

    def __init__(self, tokenizer: Tokenizer, splitter: Splitter, segment: Segment | None) -> None:
        self._tokenizer, self._splitter, self._segment = tokenizer, splitter, segment
        self._type = np.uint16 if len(tokenizer) <= 2**16 else np.uint32
        special = {token.content for token in tokenizer.rust.get_added_tokens_decoder().values() if token.special}
        self._special = np.array([token in special for token in tokenizer.vocabulary])
        begins = np.array([tokenizer.pieces.begins(token) for token in tokenizer.vocabulary])
        self._begins = begins | self._special

    def read(self, text: str) -> Iterator[Part]:
        """The tokens of a text without carriage returns, some lines at a time."""
        for lines in _blocks(_lines(text)):
            encoded = self._tokenizer.encode_many([line.text for line in lines], special_tokens=False)
            yield self._joined(lines, encoded)

    def _joined(self, lines: list[Line], encoded: list[Encoding]) -> Part:
        parts = [self._line(line.text, found) for line, found in zip(lines, encoded, strict=True)]
        at = np.cumsum([0, *(len(ids) for ids, _, _ in parts)])
        opens = np.array([line.opens for line in lines], bool)
        sentences = [starts + first for (_, _, starts), first in zip(parts, at, strict=False)]
        nothing = np.empty(0, np.int64)
        return Part(
            np.concatenate([np.empty(0, self._type), *(ids.astype(self._type) for ids, _, _ in parts)]),
            np.concatenate([np.empty(0, bool), *(words for _, words, _ in parts)]),
            np.concatenate([nothing, *sentences]),
            at[:-1][opens],
        )

    def _line(self, text: str, found: Encoding) -> tuple[Array, Array, Array]:
        """Ids [T], whether a word starts at each [T], and the first token of each sentence [S]."""
        ids = np.array(found.ids, np.int64)
        begin, end = np.array(found.offsets, np.int64).reshape(-1, 2).T  # [T]
        sentences = self._sentences(text, begin, np.maximum.accumulate(end))
        words = self._begins[ids]
        words[1:] |= self._special[ids[:-1]]
        if not text.isascii():
            self._mark_chinese(text, begin, words)
        words[sentences[sentences < len(ids)]] = True
        return ids, words, sentences

    def _sentences(self, text: str, begin: Array, end: Array) -> Array:
        if not self._splitter.by_table:
            return np.zeros(1, np.int64)
        places = np.array(firsts(text) or [0], np.int64)
        found = np.searchsorted(end, places, "right")  # the token that holds the first character
        inside = [
            at < len(begin) and begin[at] < place and not text[begin[at] : place].isspace()
            for at, place in zip(found.tolist(), places.tolist(), strict=True)
        ]
        found += np.array(inside, np.int64)
        found[:1] = 0  # what stands before the first sentence belongs to it
        return found

    def _mark_chinese(self, text: str, begin: Array, words: Array) -> None:
        chinese, starts = np.zeros(len(text) + 1, bool), np.zeros(len(text) + 1, bool)
        for run in RUN.finditer(text):
            chinese[run.start() : run.end()] = True
            starts[self._word_places(run)] = True
        first = np.append(True, begin[1:] != begin[:-1])[: len(begin)]  # of the tokens that spell one character
        inside = chinese[begin]
        words[inside] = (starts[begin] & first)[inside]

    def _word_places(self, run: re.Match[str]) -> Array:
        """The first character of each word in a run of Chinese characters."""
        if self._segment is None:
            return np.arange(run.start(), run.end())
        sizes = np.array([len(word) for word in segmented(self._segment, run[0])])
        places: Array = run.start() + np.cumsum(sizes) - sizes
        return places


def segmented(segment: Segment, run: str) -> list[str]:
    """The words of a run of Chinese characters, which must add up to it."""
    words = segment(run)
    if "".join(words) != run:
        raise BertkitError(f"the segmenter made {words[:5]} of {run[:20]!r}: words must add up to the text")
    return words


def _lines(text: str) -> Iterator[Line]:
    for document in BLANK.split(text):
        opens = True
        for line in document.split("\n"):
            if line.strip():
                yield Line(line, opens)
                opens = False


def _blocks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines in lists of so many characters; one list at least."""
    block, size = list[Line](), 0
    for line in lines:
        block.append(line)
        size += len(line.text)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    yield block
