"""Text in bulk: documents to token ids, with words, sentences and documents marked.

Words follow Zipf's law, and a chunk of text has the same tokens every time. So chunks become numbers through a table,
only new ones are tokenised, and all else is arithmetic on arrays: ids are those of `Tokenizer.encode`. Where chunks
are no such thing, with byte-level BPE and Unigram, lines are read as they are (`lines.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bertkit.text.chunks import has_chinese, spaced
from bertkit.text.lexicon import Lexicon
from bertkit.text.lines import BLANK, RUN, ByLine, Part, segmented
from bertkit.text.pieces import Continued
from bertkit.text.ranges import ranges
from bertkit.text.segment import Segment
from bertkit.text.sentences import BREAKS, Rules, Splitter, Start
from bertkit.text.spelling import require_chunks
from bertkit.text.table import Table
from bertkit.text.tokenizer import Tokenizer

Array = np.ndarray[Any, np.dtype[Any]]

BLOCK = 200_000
"""characters that are arrays at a time"""

LINE, DOCUMENT, WORD = "\x01", "\x02", "\x03"
_OURS = (LINE, DOCUMENT, WORD)
_BREAK = re.compile(r"\r\n?")
_LAST = re.compile(r"\S[^\S\n]*\n")
"""the last character of a line; what follows it stays together, since an empty line may be part of it"""
_PROBE = "A字国b, don't (re-read) 3.5% of it。"
_CONTROL = str.maketrans(dict.fromkeys(_OURS, "\u200b"))


class Tokens(NamedTuple):
    """The tokens of documents in a row; no sentence and no document is empty."""

    ids: Array
    """[T] uint16, or uint32 for vocabularies that need it"""
    words: Array
    """[T] whether a word starts here"""
    sentences: Array
    """[S] the first token of each sentence"""
    documents: Array
    """[D] the first sentence of each document"""
    units: Mapping[str, Array] = {}
    """for each lexicon [T]: whether a word or one of its phrases starts here"""

    def of(self, documents: Array) -> Tokens:
        """Those of some documents, [D] bool."""
        sentence = np.repeat(documents, np.diff(self.documents, append=len(self.sentences)))  # [S]
        lengths = np.diff(self.sentences, append=len(self.ids))
        token = np.repeat(sentence, lengths)  # [T]
        sizes, counts = lengths[sentence], np.diff(self.documents, append=len(self.sentences))[documents]
        return Tokens(
            self.ids[token],
            self.words[token],
            (np.cumsum(sizes) - sizes).astype(np.uint32),
            (np.cumsum(counts) - counts).astype(np.uint32),
            {name: starts[token] for name, starts in self.units.items()},
        )


class Bulk:
    """A tokenizer for whole corpora. A line break ends a sentence, an empty line a document.

    >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "##s", "."])
    >>> found = Bulk(tokenizer).read("A cat. Cats.\\n\\nA cat.")
    >>> found.ids.tolist(), found.words.astype(int).tolist()
    ([5, 6, 8, 6, 7, 8, 5, 6, 8], [1, 1, 1, 1, 0, 1, 1, 1, 1])
    >>> found.sentences.tolist(), found.documents.tolist()
    ([0, 3, 6], [0, 2])
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        splitter: Splitter | None = None,
        segment: Segment | None = None,
        lexicons: Mapping[str, Lexicon] | None = None,
    ) -> None:
        self._splitter, self._segment, self._lexicons = splitter or Rules(), segment, lexicons or {}
        if not isinstance(tokenizer.pieces, Continued):
            self._parts: Callable[[str], Iterable[Part]] = ByLine(tokenizer, self._splitter, segment).read
            return
        self._parts = self._by_chunk
        require_chunks(tokenizer, _PROBE, spaced(_PROBE).split())
        self._table = Table(tokenizer, list(_OURS))

    def read(self, text: str) -> Tokens:
        """The tokens of a text of any length."""
        text = self._splitter.lines(text)
        parts = list(self._parts(_BREAK.sub("\n", text) if "\r" in text else text))
        tokens = np.concatenate([part.ids for part in parts])
        lengths = [len(part.ids) for part in parts]
        sentences = _with_tokens([part.sentences for part in parts], lengths)
        documents = _with_tokens([part.documents for part in parts], lengths)
        words = np.concatenate([part.words for part in parts])
        starts = np.searchsorted(sentences, documents).astype(np.uint32)
        units = {name: lexicon.units(tokens, words, sentences) for name, lexicon in self._lexicons.items()}
        return Tokens(tokens, words, sentences.astype(np.uint32), starts, units)

    def _by_chunk(self, text: str) -> Iterator[Part]:
        return map(self._block, _blocks(text))

    def _block(self, block: str) -> Part:
        types = self._table.numbers(self._marked(block))
        real = types >= len(_OURS)
        marks = np.flatnonzero(~real)
        before = marks - np.arange(len(marks))  # how many real chunks come before each mark
        line, document, word = (before[types[marks] == number] for number in range(len(_OURS)))
        types = types[real]

        starts = np.zeros(len(types) + 1, bool)  # of sentences; the last is beyond the end
        if self._splitter.by_table:
            ends, begins = self._table.ends.take(types[:-1]), self._table.starts.take(types[1:])
            starts[1:-1] = BREAKS.take(ends * np.int8(len(Start)) + begins)
        starts[line] = starts[document] = True

        lengths = self._table.lengths.take(types)
        at = np.append(np.int32(0), np.cumsum(lengths, dtype=np.int32))  # the first token of each chunk
        rows = ranges(self._table.rows.take(types), lengths)
        words = self._table.words.take(rows)
        if self._segment:
            # a character inside a word, unless one starts there
            joined = self._table.chinese.take(types) & (lengths > 0)
            joined[word] = False
            words[at[:-1][joined]] = False
        return Part(self._table.ids.take(rows), words, at[starts], at[document])

    def _marked(self, block: str) -> str:
        """The block with our own chunks where lines, documents and Chinese words begin."""
        if any(mark in block for mark in _OURS):
            block = block.translate(_CONTROL)
        block = BLANK.sub(f" {DOCUMENT} ", block).replace("\n", f" {LINE} ")
        if self._segment and has_chinese(block):
            block = RUN.sub(self._words, block)
        return spaced(block)

    def _words(self, run: re.Match[str]) -> str:
        assert self._segment is not None
        return "".join(f" {WORD} {word} " for word in segmented(self._segment, run[0]))


def _with_tokens(starts: Sequence[Array], lengths: Sequence[int]) -> Array:
    """The starts of all that have tokens, in texts of these lengths in a row: one without starts where the next does.

    >>> _with_tokens([np.array([0, 3]), np.array([0, 2, 4])], [3, 4]).tolist()
    [0, 3, 5]
    """
    stops = np.cumsum(lengths)
    found = np.concatenate(starts) + np.repeat(stops - lengths, [len(part) for part in starts])
    return found[np.diff(found, append=stops[-1]) > 0]


def _blocks(text: str) -> Iterator[str]:
    """The text in blocks that end before a line break; the first one begins a document."""
    at, lead = 0, "\n\n"
    while found := _LAST.search(text, at + BLOCK):
        yield lead + text[at : found.start() + 1]
        at, lead = found.start() + 1, ""
    yield lead + text[at:]
