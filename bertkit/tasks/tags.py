"""Schemes of tags: how a row of tags writes entities down.

IOB1     I- for all, B- only where an entity follows another of its kind at once
IOB2     B- begins every entity, I- goes on
IOBES    B- begins, I- goes on, E- ends, S- stands alone
BMES     the same with M- in place of I-

Files come in any of them; we learn IOB2. What tags mean is told in evaluate/entities.py; here it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from bertkit.evaluate.entities import Entity, entities

Scheme = Literal["IOB2", "IOB1", "IOBES", "BMES"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)


def written(found: Iterable[Entity], length: int, scheme: Scheme = "IOB2") -> tuple[str, ...]:
    """The tags of so many words, in which these entities are; they do not overlap, and come in order.

    >>> written([Entity("PER", 0, 2), Entity("LOC", 3, 4)], 5, "IOBES")
    ('B-PER', 'E-PER', 'O', 'S-LOC', 'O')
    """
    tags = ["O"] * length
    before = Entity("", 0, 0)
    for entity in found:
        assert before.stop <= entity.start < entity.stop <= length, entity
        touches = before.kind == entity.kind and before.stop == entity.start
        parts = _parts(entity.stop - entity.start, touches, scheme)
        tags[entity.start : entity.stop] = [_tag(part, entity.kind) for part in parts]
        before = entity
    return tuple(tags)


def _parts(size: int, touches: bool, scheme: Scheme) -> str:
    if scheme == "IOB2":
        return "B" + "I" * (size - 1)
    if scheme == "IOB1":
        return ("B" if touches else "I") + "I" * (size - 1)
    between = "I" if scheme == "IOBES" else "M"
    return "S" if size == 1 else "B" + between * (size - 2) + "E"


def _tag(part: str, kind: str) -> str:
    return part if kind == "_" else f"{part}-{kind}"  # tags without a kind are read as of the kind _


def to_iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """The same entities in IOB2.

    >>> to_iob2(["I-PER", "I-PER", "O", "S-LOC", "B-ORG", "E-ORG"])
    ('B-PER', 'I-PER', 'O', 'B-LOC', 'B-ORG', 'I-ORG')
    """
    return written(entities(tags), len(tags))


def scheme(rows: Iterable[Sequence[str]]) -> Scheme | None:
    """The scheme that all rows of tags follow, the first of SCHEMES where several fit; None where none does.

    >>> scheme([["I-PER", "I-PER", "O"], ["O", "I-LOC", "B-LOC"]])
    'IOB1'
    """
    fitting = list(SCHEMES)
    for tags in rows:
        if found := entities(tags):
            parts = [tag.partition("-")[0] for tag in tags]
            fitting = [each for each in fitting if [tag[0] for tag in written(found, len(tags), each)] == parts]
    return fitting[0] if fitting else None
