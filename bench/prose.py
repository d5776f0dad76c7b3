"""Real English for timing: articles of Wikipedia, and books, news and talk to read before them.

They are read from ../shared, where datasets lie beside the project. Where it is absent, the documentation inside Python
stands in for both: it is a hundredth of that, and says so in the name of every case.
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
_TAG = re.compile(r"/\S+")
_BLANK = re.compile(r"\n\s*\n")


class Prose(NamedTuple):
    """Documents without empty lines."""

    name: str
    articles: list[str]
    others: list[str]
    """of other kinds; none of them is among the articles"""


def prose() -> Prose:
    """All that there is."""
    if not SHARED.is_dir():
        found = list(python_docs.documents())
        return Prose("python-docs", found[::2], found[1::2])
    articles = _plain(source.files([str(SHARED / "en-wikipedia-featured")]))
    return Prose("Wikipedia", list(articles), [document for text in _others() for document in _documents(text)])


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
    """So much text out of documents, shuffled; what is missing is made of their lines, shuffled again and again.

    >>> passed(["a b", "c"], 12e-6)
    ['c', 'a b', 'c', 'a b', 'c']
    """
    dice = random.Random(0)
    found = taken(dice.sample(documents, len(documents)), megabytes)
    lines = [line for document in documents for line in document.split("\n")]
    while (missing := megabytes - size(found)) > 0:
        found += taken(dice.sample(lines, len(lines)), missing)
    return found


def size(documents: Iterable[str]) -> float:
    """Megabytes."""
    return sum(len(document.encode()) for document in documents) / 1e6


def file(name: str, documents: Iterable[str]) -> Path:
    """Documents as contestants read them: an empty line between two."""
    path = peer.HOME / "texts" / f"{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    with artifact.file(path, overwrite=True) as out:
        out.write("\n\n".join(documents).encode())
    return path


def _plain(files: list[source.File]) -> Iterator[str]:
    for piece in source.pieces(files):
        yield from _documents(source.plain(piece))


def _documents(text: str) -> list[str]:
    return [document.strip() for document in _BLANK.split(text) if not document.isspace() and document]


def _others() -> Iterator[str]:
    for path in sorted([*(SHARED / "gutenberg").glob("*.txt.gz"), *(SHARED / "wikitext-2").glob("*.txt.gz")]):
        yield gzip.decompress(path.read_bytes()).decode(errors="replace")
    for name in ("abc", "state_union", "webtext", "brown"):
        with zipfile.ZipFile(SHARED / "nltk-corpora" / f"{name}.zip") as archive:
            for inside in sorted(archive.namelist()):
                if name == "brown" and re.fullmatch(r"brown/c\w\d\d", inside):
                    yield _TAG.sub("", archive.read(inside).decode(errors="replace"))  # word/tag
                elif inside.endswith(".txt"):
                    yield archive.read(inside).decode(errors="replace")
