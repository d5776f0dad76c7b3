"""Training a vocabulary: texts to counted words to tokens to files, and a judgement on held-out text.

The same texts and options give the same files, whatever the memory and the order in which anything is counted.
"""

from __future__ import annotations

import heapq
import logging
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bertkit import artifact
from bertkit.corpus.source import File, Skipped, pieces, plain
from bertkit.errors import BertkitError, look_up
from bertkit.vocab import share
from bertkit.vocab.bytelevel import ByteLevel
from bertkit.vocab.counts import Counts
from bertkit.vocab.coverage import Coverage, judge
from bertkit.vocab.kind import Kind, Learned, Options, Word
from bertkit.vocab.unigram import Unigram
from bertkit.vocab.wordpiece import WordPiece

KINDS: dict[str, type[Kind]] = {"wordpiece": WordPiece, "bpe": ByteLevel, "unigram": Unigram}

TYPES = 1_000_000
"""different words that tokens are learned from at most; the most frequent ones"""
SMALL = 1000
"""words of held-out text from which a judgement begins to mean something"""

_BASE, _PER_TYPE = 300 * 2**20, 700
"""bytes for Python and a piece of text, and for each word while tokens are learned"""
_LEAST = 400 * 2**20
_COUNTED, _WORDS, _HELD = 0.5, 0.3, 0.1
"""shares of the memory above the base, while chunks become words"""
_BLOCK = 4096

HELD_OUT, EVERYTHING = "held-out text", "the text that was learned from"

log = logging.getLogger("bertkit")


@dataclass(frozen=True)
class Report:
    """What was counted, learned and judged."""

    kind: str
    options: Options
    size: int
    """tokens that the vocabulary has"""
    tokens: dict[str, int]
    """how many of them are of which sort"""
    words: int
    """words that were counted to learn from"""
    types: int
    """different ones among them"""
    rare: int
    """types that were left out because more frequent ones fill the memory"""
    too_long: int
    """words that were left out because they are longer than the kind can spell"""
    judged_on: str
    """held-out text, or all of it"""
    coverage: Coverage

    def json(self) -> dict[str, Any]:
        """Everything for a program to read."""
        numbers = {"words": self.words, "types": self.types, "rare_types": self.rare, "too_long_words": self.too_long}
        learned = {"kind": self.kind, "size": self.size, "tokens": self.tokens, **numbers}
        return {
            **learned,
            "options": asdict(self.options),
            "judged_on": self.judged_on,
            "coverage": self.coverage.json(),
        }


def train(
    sources: Sequence[File],
    output: Path,
    kind: str = "wordpiece",
    options: Options = Options(),  # noqa: B008 - frozen
    memory: int = 2 * 2**30,
    overwrite: bool = False,
    skip: Callable[[Skipped], None] | None = None,
    read: Callable[[int], None] | None = None,
) -> Report:
    """Write a vocabulary of the sources to the directory `output`.

    `skip` hears of what cannot be read and is left out (else it is an error), `read` how many bytes of files were read.

    >>> import tempfile
    >>> from bertkit.corpus.source import embedded
    >>> texts = [embedded("cats", b"The cat sat. The cats sat on a mat, and a cat sat on the cats.")]
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     report = train(texts, Path(parent, "vocabulary"), options=Options(size=40, min_count=1))
    ...     from bertkit.text import Tokenizer
    ...     print(Tokenizer.load(Path(parent, "vocabulary")).encode("cats sat", special_tokens=False).tokens)
    ['cats', 'sat']
    """
    part = look_up("kind of vocabulary", kind, KINDS)(options)
    if memory < _LEAST:
        raise BertkitError(f"--max-ram is {memory // 2**20} MB: any corpus needs {_LEAST // 2**20} MB")
    artifact.require_free(output, overwrite=overwrite)
    room = memory - _BASE
    with Counts(int(room * _WORDS)) as words, Counts(int(room * _HELD)) as held_words:
        judged_on = _count(sources, part, options.held_out, room, words, held_words, skip, read)
        if not words.total:
            raise BertkitError(f"the corpus is empty: there is no word in {', '.join(x.name for x in sources[:3])}")
        kept, types, rare, too_long = _frequent(words, part.longest)
        total = words.total
        if len(kept) * _PER_TYPE > room:
            need = (len(kept) * _PER_TYPE + _BASE) // 2**20
            raise BertkitError(f"--max-ram is {memory // 2**20} MB: learning from {len(kept):,} words needs {need} MB")
        found = part.learn(kept)
        _warn(found, options)
        coverage = judge(found, held_words if judged_on == HELD_OUT else words)
    report = Report(kind, options, len(found.tokens), found.facts, total, types, rare, too_long, judged_on, coverage)
    with artifact.directory(
        output, "vocabulary", overwrite=overwrite, facts={"kind": kind, "size": report.size}
    ) as place:
        found.write(place)
    return report


def _count(
    sources: Sequence[File],
    kind: Kind,
    fraction: float,
    room: int,
    words: Counts,
    held_words: Counts,
    skip: Callable[[Skipped], None] | None,
    read: Callable[[int], None] | None,
) -> str:
    """Count all texts into words and held-out words; what a judgement can be made on."""
    with Counts(int(room * _COUNTED)) as chunks, Counts(int(room * _HELD)) as held:
        for piece in pieces(sources, skip):
            kept, out = share.split(plain(piece, skip), fraction)
            for text, counts in ((kept, chunks), (out, held)):
                if text and not text.isspace():
                    counts.add(kind.chunks(text))
            if read:
                read(piece.read)
        is_large = held.total >= SMALL
        _cut(chunks, kind, words)
        _cut(held, kind, held_words if is_large else words)
    return HELD_OUT if is_large else EVERYTHING


def _cut(chunks: Iterable[Word], kind: Kind, words: Counts) -> None:
    """Cut chunks into words, many at a time: chunks that occur equally often go together."""
    same: defaultdict[int, list[str]] = defaultdict(list)
    for chunk, count in chunks:
        same[count].append(chunk)
        if len(same[count]) >= _BLOCK:
            words.add(kind.words(same.pop(count)), count)
    for count, group in same.items():
        words.add(kind.words(group), count)


def _frequent(words: Counts, longest: int) -> tuple[list[Word], int, int, int]:
    """The most frequent words in the order of their characters; all types, those left out, and words too long.

    Of equally frequent words those go that a checksum puts last, which is the same ones every time and of no language.
    """
    often, too_long = Counter[int](), 0
    for word, count in words:
        if len(word) <= longest:
            often[count] += 1
        else:
            too_long += count
    types = often.total()
    bound, above = 0, 0
    for count in sorted(often, reverse=True):
        if above + often[count] > TYPES:
            bound = count
            break
        above += often[count]
    short = ((word, count) for word, count in words if len(word) <= longest)
    if not bound:
        return list(short), types, 0, too_long
    kept: list[Word] = []

    def ties() -> Iterator[tuple[int, str]]:
        for word, count in short:
            if count > bound:
                kept.append((word, count))
            elif count == bound:
                yield zlib.crc32(word.encode("utf-8", "surrogatepass")), word

    last = heapq.nsmallest(TYPES - above, ties())
    kept += [(word, bound) for _, word in last]
    return sorted(kept), types, types - len(kept), too_long


def _warn(found: Learned, options: Options) -> None:
    if len(found.tokens) < options.size:
        log.warning(
            "the vocabulary has %s tokens, not the %s asked for: nothing else occurs %s times. Give more text, or a "
            "smaller --size%s",
            f"{len(found.tokens):,}",
            f"{options.size:,}",
            options.min_count,
            ", or --min-count 1" if options.min_count > 1 else "",
        )
