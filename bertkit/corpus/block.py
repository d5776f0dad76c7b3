"""A block: some plain text as arrays, with its lines, words and documents, and a hash of any stretch of it.

The hash of a stretch is a difference of two sums, so that all words, lines and documents cost a look-up each. It is of
64 bits and of our own: Python's differs from run to run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from bertkit.corpus import scripts

Array = np.ndarray[Any, np.dtype[Any]]

CHARACTERS = 1_000_000
"""of a block, about; twice as many at most"""
_BREAK = re.compile(r"\r\n?")
_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n")
_BASE = 0x9E3779B97F4A7C15 | 1
_WRAP = 2**64


class Block:
    """A text, and where its parts are; lines and documents are those that hold something.

    >>> block = Block("One line.\\nAnother.\\n\\n  One line.\\n")
    >>> block.line_starts.tolist(), block.document_lines.tolist(), block.words_of_documents().tolist()
    ([0, 10, 22], [0, 2, 3], [3, 2])
    >>> first, _, last = block.line_hashes().tolist()
    >>> first == last
    True
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.codes = scripts.codes(text)
        """[C] code points"""
        self.kinds = scripts.kinds(self.codes)
        """[C] places in `scripts.NAMES`"""
        self._find_lines()
        self._find_words()

    def _find_lines(self) -> None:
        breaks = np.flatnonzero(self.codes == 10)
        seen = np.flatnonzero(~scripts.is_white(self.codes))
        first = np.searchsorted(seen, np.append(0, breaks + 1))
        last = np.searchsorted(seen, np.append(breaks, len(self.codes)))
        full = np.flatnonzero(last > first)  # numbers of lines that hold something, [L]
        self.line_starts, self.line_ends = seen[first[full]], seen[last[full] - 1] + 1
        """[L] without white space around"""
        new = np.diff(full, prepend=-2) > 1
        self.document_lines = np.append(np.flatnonzero(new), len(full))
        """[D + 1] the first line of each document, and the number of lines"""
        self.line_documents = np.cumsum(new) - 1
        """[L] the document of each line"""
        self.document_starts = self.line_starts[self.document_lines[:-1]]
        self.document_ends = self.line_ends[self.document_lines[1:] - 1]
        """[D]"""

    def _find_words(self) -> None:
        """A run of letters and digits is a word; Chinese and Japanese characters are words of their own."""
        inside = np.zeros(len(self.codes) + 2, bool)
        inside[1:-1] = self.kinds <= scripts.DIGITS
        alone = np.zeros(len(self.codes) + 2, bool)
        alone[1:-1] = (self.kinds >= scripts.HAN) & (self.kinds <= scripts.KATAKANA)
        here, before, after = slice(1, -1), slice(0, -2), slice(2, None)
        self.word_starts = np.flatnonzero(inside[here] & (~inside[before] | alone[here] | alone[before]))
        self.word_ends = np.flatnonzero(inside[here] & (~inside[after] | alone[here] | alone[after])) + 1
        """[W]"""
        self.document_words = np.searchsorted(self.word_starts, np.append(self.document_starts, len(self.codes)))
        """[D + 1] the first word of each document, and the number of words"""

    def words_of_documents(self) -> Array:
        """How many words each document has, [D]."""
        return np.diff(self.document_words)

    def line_hashes(self) -> Array:
        """[L]"""
        return _stretches(_sums(self.codes), self.line_starts, self.line_ends)

    def line_and_document_hashes(self) -> tuple[Array, Array]:
        """[L] and [D]; the sums are made once."""
        sums = _sums(self.codes)
        return (
            _stretches(sums, self.line_starts, self.line_ends),
            _stretches(sums, self.document_starts, self.document_ends),
        )

    def word_hashes(self) -> Array:
        """[W] the same for capital and small letters"""
        return _stretches(_sums(scripts.small(self.codes)), self.word_starts, self.word_ends)

    def line(self, number: int, longest: int = 100) -> str:
        """A line, or its beginning."""
        return _excerpt(self.text[self.line_starts[number] : self.line_ends[number]], longest)

    def document(self, number: int, longest: int = 100) -> str:
        """The beginning of a document."""
        return _excerpt(self.text[self.document_starts[number] : self.document_ends[number]], longest)

    def around(self, place: int, longest: int = 40) -> str:
        """What stands around a character."""
        start = max(place - longest // 2, 0)
        return _excerpt(self.text[start : start + longest + 1].strip(), longest)


def blocks(text: str) -> Iterator[Block]:
    """A text in blocks. They end where a document does; one that is far too long is cut at a line, or anywhere."""
    if "\r" in text:
        text = _BREAK.sub("\n", text)
    at = 0
    while at < len(text):
        cut = _cut(text, at)
        yield Block(text[at:cut])
        at = cut


def _cut(text: str, at: int) -> int:
    least, most = at + CHARACTERS, at + 2 * CHARACTERS
    if most >= len(text):
        return len(text)
    found = _EMPTY_LINE.search(text, least, most)
    if found:
        return found.end()
    line = text.find("\n", least, most)
    return line + 1 if line >= 0 else most


def mixed(values: Array) -> Array:
    """Numbers of 64 bits, each changed into another one that looks like chance: splitmix64's last steps."""
    values = values ^ (values >> np.uint64(30))
    values = values * np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


def _sums(points: Array) -> Array:
    """The sum of all characters before each place, a character weighing a power of its place, [C + 1]."""
    powers, _ = _powers()
    values = mixed(points.astype(np.uint64) + np.uint64(_BASE))
    values *= powers[: len(points)]
    sums = np.zeros(len(points) + 1, np.uint64)
    np.cumsum(values, out=sums[1:])
    return sums


def _stretches(sums: Array, starts: Array, ends: Array) -> Array:
    """A hash for each stretch, the same wherever it stands."""
    _, inverses = _powers()
    return mixed((sums[ends] - sums[starts]) * inverses[starts] + (ends - starts).astype(np.uint64))


@cache
def _powers() -> tuple[Array, Array]:
    """Powers of the base and of its inverse, modulo 2**64."""
    size = 2 * CHARACTERS + 1
    tables = []
    for base in (_BASE, pow(_BASE, -1, _WRAP)):
        table = np.full(size, base, np.uint64)
        table[0] = 1
        tables.append(np.cumprod(table))
    return tables[0], tables[1]


def _excerpt(text: str, longest: int) -> str:
    """A text on one line, shortened."""
    words = " ".join(text[: 2 * longest].split())
    return words if len(words) <= longest and len(text) <= 2 * longest else words[: longest - 1].rstrip() + "…"
