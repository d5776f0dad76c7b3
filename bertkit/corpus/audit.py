"""The audit of a corpus: what quietly ruins pre-training, counted in one pass and in bounded memory.

Duplicates, lines that many documents share, damaged characters, words a tokenizer cannot spell, and how long and in
which scripts the texts are. Tables have a most; where a corpus has more, they hold a sample chosen by content whose
counts are exact, and the result says how much it covers (see `duplicates.py`).

A word is a run of letters and digits; Chinese and Japanese characters are words of their own. A document is what an
empty line ends; one of more than a million characters counts as several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bertkit.corpus import scripts
from bertkit.corpus.block import Block, blocks
from bertkit.corpus.census import Census, Unknown
from bertkit.corpus.damage import Damage, Found
from bertkit.corpus.duplicates import MOST_COMPARED, Near, NearlyRepeated, Repeated, Repeats
from bertkit.corpus.format import Lines
from bertkit.corpus.source import File, Fingerprint, Piece, Skipped, pieces, plain
from bertkit.corpus.spread import Distribution, Spread
from bertkit.errors import BertkitError
from bertkit.text import Tokenizer

MOST_DOCUMENTS, MOST_LINES = 1_000_000, 2_000_000
"""different ones that are told apart, 20 bytes each"""
LEAST_DOCUMENTS = 10
"""a line in so many different documents is boilerplate"""
LONG_LINE = 10_000
"""characters that no paragraph has"""
SHORT_DOCUMENT = 20
"""words below which a document is short"""
EXAMPLES, WORDS, SKIPPED = 20, 50, 20


@dataclass(frozen=True)
class Boilerplate:
    """Lines that occur in many different documents."""

    documents: int
    """in at least so many"""
    lines: int
    """different ones"""
    times: int
    """how often they occur together"""
    characters: int
    share: float
    """of the characters of all lines that were counted"""


@dataclass(frozen=True)
class LongLines:
    """Lines longer than any paragraph."""

    limit: int
    """characters"""
    lines: int
    longest: int
    """characters of the longest line of all"""
    examples: list[tuple[str, int, str]]
    """file, characters, beginning"""


@dataclass(frozen=True)
class Audit:
    """All that was counted."""

    files: list[str]
    bytes: int
    characters: int
    documents: int
    lines: int
    sentences: int
    words: int
    empty_documents: int
    short_documents: float
    """the share of documents with fewer words than `SHORT_DOCUMENT`"""
    document_words: Distribution
    document_characters: Distribution
    sentence_words: Distribution
    scripts: dict[str, int]
    """characters of each kind, most first"""
    repeated_documents: Repeated
    near_documents: NearlyRepeated
    repeated_lines: Repeated
    """lines of documents that are no exact copies themselves"""
    boilerplate: Boilerplate
    damage: dict[str, Found]
    long_lines: LongLines
    unknown: Unknown | None
    skipped: int
    """lines that could not be read"""
    skipped_lines: list[str]
    limits: dict[str, int]
    """how much the tables hold at most"""

    def as_dict(self) -> dict[str, Any]:
        """Everything, for a program."""
        return asdict(self)


def audit(
    sources: Sequence[File],
    tokenizer: Tokenizer | None = None,
    skip: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Audit:
    """Count what is wrong with a corpus; with a tokenizer also what it cannot spell.

    What cannot be read is an error, or left out and counted with `skip`. `progress` hears how many bytes of files were
    read.

    >>> from bertkit.corpus.source import embedded
    >>> found = audit([embedded("two", b"The same text.\\n\\nThe same text.\\n")])
    >>> found.documents, found.repeated_documents.copies
    (2, 1)
    """
    counts = _Counts(tokenizer)
    read: list[Fingerprint] = []
    for piece in pieces(sources, counts.skip if skip else None, read.append):
        counts.add(piece, plain(piece, counts.skip if skip else None))
        if progress:
            progress(piece.read)
    if not counts.documents:
        raise BertkitError(f"the corpus is empty: there is no text in {', '.join(x.name for x in sources[:3])}")
    return counts.result([file.name for file in sources], sum(file.size for file in read))


class _Counts:
    """Everything that is counted on the way."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self.documents = 0
        self._characters = self._lines = self._words = self._empty = self._skipped = self._longest = 0
        self._skips: list[str] = []
        self._long: list[tuple[str, int, str]] = []
        self._long_lines = self._line_characters = 0
        self._kinds = np.zeros(len(scripts.NAMES), np.int64)
        self._document_words, self._sentence_words, self._document_characters = Spread(), Spread(), Spread(8)
        self._repeated = Repeats(MOST_DOCUMENTS, least=2)
        self._repeated_lines = Repeats(MOST_LINES, least=LEAST_DOCUMENTS)
        self._near = Near(MOST_COMPARED)
        self._damage = Damage()
        self._census = Census(tokenizer)

    def skip(self, found: Skipped) -> None:
        """Note what was left out."""
        self._skipped += 1
        if len(self._skips) < SKIPPED:
            self._skips.append(str(found))

    def add(self, piece: Piece, text: str) -> None:
        """Count the documents of a piece."""
        self._empty += _empty(piece, text)
        for block in blocks(text):
            self._add(block, piece.file.name)

    def _add(self, block: Block, file: str) -> None:
        words, line_sizes = block.words_of_documents(), block.line_ends - block.line_starts
        sizes = block.document_ends - block.document_starts
        self.documents += len(words)
        self._lines += len(line_sizes)
        self._words += len(block.word_starts)
        self._characters += len(block.codes)
        self._kinds += np.bincount(block.kinds, minlength=len(self._kinds))
        self._document_words.add(words)
        self._document_characters.add(sizes)
        self._sentence_words.add(self._census.read(block.text))
        self._damage.add(block)
        self._add_long(block, line_sizes, file)
        self._add_repeats(block, sizes, line_sizes)

    def _add_repeats(self, block: Block, sizes: Any, line_sizes: Any) -> None:
        lines, documents = block.line_and_document_hashes()
        copies = self._repeated.add(documents, sizes, np.arange(len(documents)), block.document)
        self._near.add(block, ~copies)
        # lines without a word, such as a row of stars, are marks of a layout, and copies were counted as a whole
        worded = np.searchsorted(block.word_starts, block.line_ends) > np.searchsorted(
            block.word_starts, block.line_starts
        )
        kept = np.flatnonzero(worded & ~copies[block.line_documents])
        self._line_characters += int(line_sizes[kept].sum())
        self._repeated_lines.add(
            lines[kept], line_sizes[kept], block.line_documents[kept], lambda place: block.line(int(kept[place]))
        )

    def _add_long(self, block: Block, line_sizes: Any, file: str) -> None:
        if not len(line_sizes):
            return
        self._longest = max(self._longest, int(line_sizes.max()))
        long = np.flatnonzero(line_sizes > LONG_LINE)
        self._long_lines += len(long)
        for place in long[: EXAMPLES - len(self._long)].tolist():
            self._long.append((file, int(line_sizes[place]), block.line(place)))

    def result(self, files: list[str], size: int) -> Audit:
        """The audit."""
        order = np.argsort(-self._kinds, kind="stable").tolist()
        sentences = self._sentence_words.distribution()
        lines = self._repeated_lines.result(EXAMPLES)
        different, times, characters = self._repeated_lines.widespread()
        share = characters / lines.covered / max(self._line_characters, 1)
        return Audit(
            files=files,
            bytes=size,
            characters=self._characters,
            documents=self.documents,
            lines=self._lines,
            sentences=sentences.count,
            words=self._words,
            empty_documents=self._empty,
            short_documents=self._document_words.share_below(SHORT_DOCUMENT),
            document_words=self._document_words.distribution(),
            document_characters=self._document_characters.distribution(),
            sentence_words=sentences,
            scripts={scripts.NAMES[kind]: int(self._kinds[kind]) for kind in order if self._kinds[kind]},
            repeated_documents=self._repeated.result(EXAMPLES),
            near_documents=self._near.result(EXAMPLES),
            repeated_lines=lines,
            boilerplate=Boilerplate(LEAST_DOCUMENTS, different, times, characters, min(share, 1.0)),
            damage=self._damage.result(),
            long_lines=LongLines(LONG_LINE, self._long_lines, self._longest, self._long),
            unknown=self._census.unknown(WORDS),
            skipped=self._skipped,
            skipped_lines=self._skips,
            limits={"documents": MOST_DOCUMENTS, "lines": MOST_LINES, "compared": MOST_COMPARED},
        )


def _empty(piece: Piece, text: str) -> int:
    """Documents that hold nothing: where every line of a file is one, it can be seen."""
    if not text or not piece.file.format.by_line:
        return 0
    parts = text.split("\n\n")
    if piece.file.format.name == Lines.name and not parts[-1]:
        parts.pop()  # what follows the last line break is no line
    return sum(1 for part in parts if not part or part.isspace())
