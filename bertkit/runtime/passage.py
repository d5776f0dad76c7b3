"""Values per token of texts of any length: windows go through a network, and are stitched to one row per token."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise

import numpy as np

from bertkit.batch import Example
from bertkit.errors import BertkitError, about
from bertkit.runtime.lanes import Lanes
from bertkit.runtime.stream import Rows, example
from bertkit.text import Tokenizer, stitch
from bertkit.text.encoding import Encoding
from bertkit.text.reading import read
from bertkit.text.stitch import Found
from bertkit.text.truncate import Cut, Policy
from bertkit.text.window import windows

CHARACTERS = 4
"""of a token, about: windows are bounded by characters"""

TokenRun = Callable[[Iterable[list[Example]], int], Iterator[list[Rows]]]
"""Groups of examples and how many -> for each group one array [tokens, ...] per example, in their order."""


@dataclass(frozen=True)
class Fields:
    """An input as the ids of its fields, without special tokens. Who asks may derive one that knows more."""

    ids: list[list[int]]


@dataclass(frozen=True)
class Text(Fields):
    """The last field as a text, of which tokens are slices."""

    text: str
    encoding: Encoding

    @classmethod
    def of(cls, fields: Sequence[str], tokenizer: Tokenizer) -> Text:
        """Texts, tokenised."""
        encodings = tokenizer.encode_many(list(fields), special_tokens=False)
        return cls([found.ids for found in encodings], fields[-1], encodings[-1])

    def slice(self, first: int, last: int) -> tuple[int, int]:
        """From one token to another, with the accents that follow it: normalising dropped them."""
        start, end = self._offsets[first][0], self._offsets[last][1]
        while end < len(self.text) and unicodedata.combining(self.text[end]):
            end += 1
        return start, end

    @cached_property
    def _offsets(self) -> list[tuple[int, int]]:
        """An encoding makes them anew whenever it is asked, which for every word of a book would take hours."""
        return self.encoding.offsets

    def words(self) -> list[tuple[int, int]]:
        """Of each word its first token, and the one after its last."""
        words = self.encoding.words
        firsts = [at for at in range(len(words)) if at == 0 or words[at] != words[at - 1]]
        return list(pairwise([*firsts, len(words)]))


class Passage:
    """The fields of an input, and what a head says of the last field's tokens in each window."""

    def __init__(self, fields: Fields, tokenizer: Tokenizer, limit: int, policy: Policy) -> None:
        self.fields = fields
        self.lengths = [len(ids) for ids in fields.ids]
        self.readings = read(fields.ids, tokenizer, limit, policy)
        self.windows = [reading.window for reading in self.readings]
        self.rows: list[Rows] = []
        """[tokens of the last field, ...] for each window"""
        self.firsts: list[Rows] = []
        """[...] of each window's first token, which speaks for the window"""

    def tokens(self) -> Rows:
        """One row per token of the last field, [tokens, ...]; 0 where a policy cut it off."""
        return stitch.tokens(self.rows, self.windows, -1, self.lengths[-1])

    def held(self) -> Rows:
        """Whether a window holds the token, [tokens]."""
        there: Rows = stitch.owners(self.windows, -1, self.lengths[-1]) >= 0
        return there

    def spans(self, top: int, longest: int) -> list[Found]:
        """The best spans of at most `longest` tokens, from logits [tokens, 2] for a start and for an end."""
        firsts, lasts = [rows[:, 0] for rows in self.rows], [rows[:, 1] for rows in self.rows]
        return stitch.spans(firsts, lasts, self.windows, -1, self.lengths[-1], top, longest)

    def nothing(self) -> float:
        """The score of no answer: both ends at the first token, in the window that is least sure of it."""
        return float(min(row[0] + row[1] for row in self.firsts))


def passages(
    inputs: Iterable[Fields],
    tokenizer: Tokenizer,
    run: TokenRun,
    lanes: Lanes,
    limit: int,
    policy: Policy,
    cut: Cut,
) -> Iterator[Passage]:
    """Inputs of any number and length, a window at a time in memory, each with what is said of it."""
    seen = 0
    for window in windows(inputs, lambda fields: CHARACTERS * sum(map(len, fields.ids))):
        cut.latest.clear()
        made = []
        for index, fields in enumerate(window, start=seen):
            with about(f"texts[{index}]"):
                made.append(Passage(fields, tokenizer, limit, policy))
            cut.count(index, made[-1].lengths, made[-1].windows)
        _run(made, run, lanes)
        yield from made
        seen += len(window)


def texts(inputs: Iterable[Sequence[str]], tokenizer: Tokenizer) -> Iterator[Text]:
    """Inputs as texts; one with a field that is no text is named by its place."""
    for index, fields in enumerate(inputs):
        for text in fields:
            if not isinstance(text, str):
                raise BertkitError(f"texts[{index}] is {text!r} ({type(text).__name__}), not a str")
        with about(f"texts[{index}]"):
            yield Text.of(fields, tokenizer)


def _run(group: Sequence[Passage], run: TokenRun, lanes: Lanes) -> None:
    readings = [reading for passage in group for reading in passage.readings]
    out: list[tuple[Rows, Rows]] = [(np.empty(0), np.empty(0))] * len(readings)
    groups = list(lanes.groups([len(reading.ids) for reading in readings]))
    chosen = ([readings[index] for index in group] for group in groups)
    examples = ([example(reading.ids, reading.segments) for reading in own] for own in chosen)
    for indices, made in zip(groups, run(examples, len(groups)), strict=True):
        for index, rows in zip(indices, made, strict=True):
            out[index] = rows[readings[index].of(-1)], rows[0]
    rows_of = iter(out)
    for passage in group:
        own = list(islice(rows_of, len(passage.readings)))
        passage.rows, passage.firsts = [rows for rows, _ in own], [first for _, first in own]
