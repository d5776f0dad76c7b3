"""Items: what a dataset asks about, whoever wrote its file. Readers make them, tasks turn them into examples.

Texts       a text, or two, with a label, several labels or a number
Words       words, each with a tag
Question    a question about a context, which holds the answers
Options     several pairs of texts, of which one is right

What is to be answered is None where a file does not say it, as in test sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Item:
    """The base of all items; where it stands, for messages."""

    path: Path
    row: int
    """the line that it begins in, or its number where lines mean nothing; from 1 on"""

    @property
    def where(self) -> str:
        """How a message names it."""
        return f"{self.path}, row {self.row}"

    @property
    def group(self) -> str:
        """Items of one group belong on one side when a set is split; empty: it stands alone."""
        return ""


@dataclass(frozen=True, slots=True)
class Texts(Item):
    """A text or a pair of them."""

    fields: tuple[str, ...]
    label: str | None = None
    """as the file has it: a label, several with a separator, a number"""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Words(Item):
    """A sentence, cut into words by the file."""

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    spans: tuple[tuple[int, int], ...] = ()
    """where each word stands in the text that it was cut from, if there was one"""


class Answer(NamedTuple):
    """An answer, and where in the context it begins: -1 where its file says that the context has it in other words."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Question(Item):
    """A question and the context that answers it."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] | None = None
    """all that are right; () where the context has none (SQuAD 2.0)"""
    title: str = ""

    @property
    def group(self) -> str:
        return self.title


@dataclass(frozen=True, slots=True)
class Options(Item):
    """Pairs of texts, one for each option: what all have in common first."""

    pairs: tuple[tuple[str, str], ...]
    right: int | None = None
    id: str = ""

    @property
    def group(self) -> str:
        return self.pairs[0][0]
