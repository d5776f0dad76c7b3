"""Sentences whose words have tags: CoNLL-2003 (https://aclanthology.org/W03-0419) and all files that look like it, with
a word on each line, its tag in the last column, and an empty line after each sentence.

Also, a sentence in each object of a JSON file or each row of a parquet file:

    {"tokens": ["EU", "rejects"], "tags": ["B-ORG", "O"]}                         tags may be called ner_tags
    {"text": "台湾的银行", "label": {"address": {"台湾": [[0, 1]]}}}              CLUENER 2020; ends are inside

In the latter, characters are the words. In Weibo-NER each character carries its place in its word (口0 腔1), which is
taken off. Tags are left in the scheme of the file; tags.py turns them into another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from bertkit.errors import BertkitError
from bertkit.evaluate.entities import Entity
from bertkit.evaluate.entities import entities as read
from bertkit.tasks.item import Words
from bertkit.tasks.node import Node, is_json, nodes
from bertkit.tasks.table import kind_of
from bertkit.tasks.tags import written
from bertkit.tasks.unpacked import reading

LAST = -1
SEEN = 1000
"""lines by which it is told whether characters carry their places"""
DOCUMENT = "-DOCSTART-"

_PLACED = re.compile(r"(\ufffd+|.)([0-9]+)", re.DOTALL)  # a character that was lost is two signs in Weibo-NER


def sentences(path: Path, column: int = LAST, entities: bool = True) -> Iterator[Words]:
    """The sentences of a file, in its order.

    Tags stand in `column`, counted from 0, or from the end as -1; a file of one column has none. They must be those of
    entities, such as B-PER, unless `entities` is False.
    """
    known: set[str] = set()
    empty = True
    for sentence in map(_sentence, nodes(path)) if is_objects(path) else _lines(path, column):
        empty = False
        if entities and sentence.tags is not None and not known.issuperset(sentence.tags):
            _check(sentence)
            known.update(sentence.tags)
        yield sentence
    if empty:
        raise BertkitError(f"{path} has no sentences: it must have a word on each line, and its tag behind it")


def _check(sentence: Words) -> None:
    for place, tag in enumerate(sentence.tags or ()):
        try:
            read([tag])
        except BertkitError as error:
            raise BertkitError(f"{sentence.where}: the tag of word {place + 1} is wrong: {error}") from None


def is_objects(path: Path) -> bool:
    kind = kind_of(path)
    if kind or not is_json(path):
        return kind in ("json", "parquet")
    with reading(path) as file:  # a file of words may begin with one of these signs
        line = next((line.strip() for line in file if line.strip()), "")
    return line in ("{", "[") or line.startswith(('{"', "[{"))


def _lines(path: Path, column: int) -> Iterator[Words]:
    words, tags, begin = list[str](), list[str](), 1
    width, place = 0, None
    with reading(path) as file:
        head = list(islice(file, SEEN))
        placed = _are_placed(map(_cells, head))
        for number, line in enumerate(chain(head, file, [""]), 1):
            cells = _cells(line)
            if not cells or cells[0] == DOCUMENT:
                if words:
                    yield Words(path, begin, tuple(words), None if place is None else tuple(tags))
                    words, tags = [], []
                continue
            if not width:
                width = len(cells)
                place = _place(path, width, column)
            if len(cells) != width:
                raise BertkitError(
                    f"{path}, row {number} has {len(cells)} columns, but the first has {width}: every line must have a "
                    "word and all that stands behind it, or be empty"
                )
            if not words:
                begin = number
            words.append(_without_place(cells[0], path, number) if placed else cells[0])
            if place is not None:
                tags.append(cells[place])


def _cells(line: str) -> list[str]:
    """The columns of a line: between tabs where it has some, else between spaces. Other white space may be a word."""
    line = line.strip(" \t\r\n")
    if "\t" not in line:
        cells = line.split(" ")
    else:
        cells = [cell.strip(" ") for cell in line.split("\t")] if " " in line else line.split("\t")
    return [cell for cell in cells if cell] if "" in cells else cells


def _place(path: Path, width: int, column: int) -> int | None:
    """Where the tags stand; None where there is only one column, of words."""
    if width == 1 and kind_of(path) == "csv":
        raise BertkitError(f"{path} has no tabs or spaces between its columns: put a tab between a word and its tag")
    if width == 1 and column == LAST:
        return None
    place = column if column >= 0 else width + column
    if not 0 < place < width:
        raise BertkitError(
            f"{path} has no tags in column {column}: it has columns 0 to {width - 1}, and words stand in 0"
        )
    return place


def _are_placed(rows: Iterable[list[str]]) -> bool:
    """Whether all words are characters with their place in a word behind them: 0, or one more than before."""
    before, some = -1, False
    for cells in rows:
        if not cells:
            before = -1
            continue
        found = _PLACED.fullmatch(cells[0])
        if found is None or len(found[2]) > 3 or int(found[2]) not in (0, before + 1):
            return False
        before, some = int(found[2]), True
    return some


def _without_place(word: str, path: Path, number: int) -> str:
    found = _PLACED.fullmatch(word)
    if found is None:
        raise BertkitError(
            f"{path}, row {number}: {word!r} is no character with its place in a word behind it, as those before it are"
        )
    return found[1]


def _sentence(node: Node) -> Words:
    """The sentence of an object or a row."""
    tokens = node.get("tokens", "words")
    if tokens is None:
        return _spans(node)
    words = tuple(each.text() for each in tokens.each())
    found = node.get("tags", "ner_tags", "labels")
    tags = None if found is None else tuple(map(_tag, found.each()))
    if not words:
        raise node.error("has no words: take it out")
    if tags is not None and len(tags) != len(words):
        raise node.error(f"has {len(words)} words, but {len(tags)} tags: every word must have one")
    return Words(node.path, node.row, words, tags)


def _tag(node: Node) -> str:
    if isinstance(node.value, int):
        raise node.error(
            f"is {node.value}: write tags by their names, such as B-PER, since nothing says what numbers mean"
        )
    return node.text()


def _spans(node: Node) -> Words:
    """A text whose entities are given by their places. Of those that overlap the longest is taken, then the first."""
    text, label = node.need("text").text(), node.get("label")
    if not text:
        raise node.error("has an empty text: take it out")
    if label is None:
        return Words(node.path, node.row, tuple(text))
    free, kept = [True] * len(text), list[Entity]()
    for entity in sorted(_entities(label, text), key=lambda one: (one.start - one.stop, one.start)):
        if all(free[entity.start : entity.stop]):
            free[entity.start : entity.stop] = [False] * (entity.stop - entity.start)
            kept.append(entity)
    kept.sort(key=lambda one: one.start)
    return Words(node.path, node.row, tuple(text), written(kept, len(text)))


def _entities(label: Node, text: str) -> Iterator[Entity]:
    for kind, names in label.inside():
        for name, places in names.inside():
            for place in places.each():
                ends = [end.number() for end in place.each()]
                if len(ends) != 2 or not 0 <= ends[0] <= ends[1] < len(text) or text[ends[0] : ends[1] + 1] != name:
                    raise place.error(f"is {ends}, but must be where {name!r} begins and ends in the text, from 0 on")
                yield Entity(kind, ends[0], ends[1] + 1)
