"""Entities in rows of tags, and their scores as CoNLL's official script counts them: whole entities, of the right kind.

Schemes: IOB1, IOB2 (B- begins, I- goes on), IOBES, BMES (M- goes on, E- ends, S- stands alone). Tags that fit no scheme
are read as the script reads them: an I- after another kind begins an entity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bertkit.errors import BertkitError


class Entity(NamedTuple):
    """Tokens from `start` to before `stop`, and what they are."""

    kind: str
    start: int
    stop: int


class Counts(NamedTuple):
    """How many entities were found rightly, found, and there."""

    right: int
    found: int
    true: int

    @property
    def precision(self) -> float:
        """The share of those found that are right."""
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """The share of those there that were found."""
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """2·right / (found + true)."""
        return 2 * self.right / (self.found + self.true) if self.found + self.true else 0.0


def entities(tags: Sequence[str]) -> list[Entity]:
    """What a row of tags says.

    >>> entities(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [Entity(kind='PER', start=0, stop=2), Entity(kind='LOC', start=3, stop=4), Entity(kind='LOC', start=4, stop=5)]
    >>> entities(["S-LOC", "B-ORG", "M-ORG", "E-ORG"])
    [Entity(kind='LOC', start=0, stop=1), Entity(kind='ORG', start=1, stop=4)]
    """
    found, start = [], 0
    before = _Tag("O", "")
    for place, tag in enumerate([*map(_tag, tags), _Tag("O", "")]):
        if before.ends_before(tag):
            found.append(Entity(before.kind, start, place))
        if tag.begins_after(before):
            start = place
        before = tag
    return found


class _Tag(NamedTuple):
    part: str
    kind: str

    def ends_before(self, after: _Tag) -> bool:
        """Whether an entity of which this is a token ends with it."""
        if self.part == "O":
            return False
        return self.part in "ES" or after.part in "BSO" or self.kind != after.kind

    def begins_after(self, before: _Tag) -> bool:
        """Whether an entity begins here."""
        if self.part == "O":
            return False
        return self.part in "BS" or before.part in "ESO" or self.kind != before.kind


def _tag(text: str) -> _Tag:
    part, _, kind = text.partition("-")
    if part not in ("O", "B", "I", "M", "E", "S") or (part == "O") != (not kind and part == "O"):
        raise BertkitError(f"{text!r} is no tag: tags are O, or B-, I-, M-, E- or S- and a kind, such as B-PER")
    return _Tag("I" if part == "M" else part, kind or "_" if part != "O" else "")


def score(true: Iterable[Sequence[str]], found: Iterable[Sequence[str]]) -> dict[str, Counts]:
    """Counts for each kind, and under "" for all together."""
    tallies: dict[str, list[int]] = {"": [0, 0, 0]}
    for number, (left, right) in enumerate(zip(true, found, strict=True)):
        if len(left) != len(right):
            raise BertkitError(f"sentence {number} has {len(left)} tags, and {len(right)} were given for it")
        there, said = set(entities(left)), set(entities(right))
        for place, group in enumerate((there & said, said, there)):
            for entity in group:
                for kind in ("", entity.kind):
                    tallies.setdefault(kind, [0, 0, 0])[place] += 1
    return {kind: Counts(*tallies[kind]) for kind in sorted(tallies)}
