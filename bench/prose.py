"""Real English for timing: encyclopedia, books, news, speeches and talk, as they were written.

They are read from ../shared, where datasets lie beside the project. Where it is absent, the documentation inside Python
stands in: there is far less of it, and every case says so in its name.
"""

from __future__ import annotations

import gzip
import random
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import peer
from bertkit import artifact
from bertkit.corpus import python_docs, source

SHARED = peer.ROOT.parent / "shared" / "data"
REAL = "English"
PART = 20_000
"""characters of a document that is part of a book"""

_TAG = re.compile(r"/\S+")


class Prose(NamedTuple):
    """Documents without empty lines, in an order by chance that is always the same."""

    name: str
    documents: list[str]
    others: list[str]
    """more, to read before: in part with spaces around every mark, which would make timing too easy"""


def prose() -> Prose:
    """All that there is."""
    if not SHARED.is_dir():
        found = _shuffled(python_docs.documents())
        return Prose("python-docs", found[::2], found[1::2])
    return Prose(REAL, _shuffled(_natural()), _shuffled(_spaced()))


def taken(documents: Iterable[str], megabytes: float) -> list[str]:
    """The first documents that have so many bytes together; all where there are fewer.

    >>> taken(["one", "two", "three"], 5e-6)
    ['one', 'two']
    """
    found: list[str] = []
    room = megabytes * 1e6
    for document in documents:
        if room <= 0:
            break
        found.append(document)
        room -= len(document.encode())
    return found


def passed(documents: Sequence[str], megabytes: float) -> list[str]:
    """So much text out of documents; what is missing is made of their lines, shuffled again and again.

    >>> passed(["a b", "c"], 8e-6)
    ['a b', 'c', 'c', 'a b']
    """
    found, dice = taken(documents, megabytes), random.Random(0)
    lines = [line for document in documents for line in document.split("\n")]
    while (missing := megabytes - size(found)) > 0:
        found += taken(dice.sample(lines, len(lines)), missing)
    return found


def size(documents: Iterable[str]) -> float:
    """Megabytes.

    >>> size(["naïve", "ly"]) * 1e6
    8.0
    """
    return sum(len(document.encode()) for document in documents) / 1e6


def file(name: str, documents: Iterable[str]) -> Path:
    """Documents as contestants read them: an empty line between two."""
    path = peer.HOME / "texts" / f"{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    with artifact.file(path, overwrite=True) as out:
        out.write("\n\n".join(documents).encode())
    return path


def _shuffled(documents: Iterable[str]) -> list[str]:
    found = list(documents)
    return random.Random(0).sample(found, len(found))


def _natural() -> Iterator[str]:
    for piece in source.pieces(source.files([str(SHARED / "en-wikipedia-featured")])):
        yield from filter(None, map(_compact, source.plain(piece).split("\n\n")))
    for path in sorted((SHARED / "gutenberg").glob("*.txt.gz")):
        yield from _parts(gzip.decompress(path.read_bytes()))
    for name in ("abc", "state_union", "webtext"):
        yield from _archived(name, r".*\.txt")


def _spaced() -> Iterator[str]:
    for path in sorted((SHARED / "wikitext-2").glob("*.txt.gz")):
        yield from _parts(gzip.decompress(path.read_bytes()))
    for part in _archived("brown", r"brown/c\w\d\d"):
        yield _TAG.sub("", part)  # word/tag


def _archived(name: str, pattern: str) -> Iterator[str]:
    with zipfile.ZipFile(SHARED / "nltk-corpora" / f"{name}.zip") as archive:
        for inside in sorted(archive.namelist()):
            if re.fullmatch(pattern, inside):
                yield from _parts(archive.read(inside))


def _parts(book: bytes) -> Iterator[str]:
    """Lines of a book, as many as make a document."""
    part, room = [], PART
    for line in _compact(book.decode(errors="replace")).split("\n"):
        part.append(line)
        room -= len(line)
        if room <= 0:
            yield "\n".join(part)
            part, room = [], PART
    if part:
        yield "\n".join(part)


def _compact(text: str) -> str:
    """Without empty lines, which would end a document."""
    return "\n".join(line for line in text.splitlines() if line.strip())
