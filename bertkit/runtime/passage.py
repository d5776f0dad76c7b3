"""Values per token of texts of any length: windows go through an engine, and are stitched to one row per token."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
import torch
from torch import Tensor

from bertkit.batch import Batch, Packed, collate
from bertkit.errors import BertkitError, about
from bertkit.runtime.lanes import Lanes
from bertkit.runtime.stream import Rows, example
from bertkit.text import Tokenizer, stitch
from bertkit.text.reading import read
from bertkit.text.truncate import Cut, Policy
from bertkit.text.window import windows

TokenEngine = Callable[[Batch], list[Rows]]
"""A batch in, one array [tokens, ...] per example out, in the order of the examples."""


def token_engine(function: Callable[[Batch], Tensor], device: torch.device) -> TokenEngine:
    """`function` gives values [..., C] per token in the batch's own layout."""

    @torch.inference_mode()
    def run(batch: Batch) -> list[Rows]:
        moved = batch.to(device)
        padded = moved.restore(moved.layout.to_padded(function(moved))).float().cpu().numpy()  # [B, L, C]
        lengths = moved.restore(moved.layout.to_padded(torch.ones_like(moved.tokens["ids"]))).sum(1)  # [B]
        return [rows[:length] for rows, length in zip(padded, lengths.tolist(), strict=True)]

    return run


@dataclass(frozen=True)
class Tagged:
    """A word of a text, its label and how likely it is; `text[start:end]` is the word."""

    word: str
    label: str
    score: float
    start: int
    end: int


@dataclass(frozen=True)
class Answer:
    """An answer to a question, `passage[start:end]`; `score` is the sum of the logits of its start and its end."""

    text: str
    score: float
    start: int
    end: int


class Passage:
    """An input of one or several fields, and what an engine says of the last one's tokens in each window."""

    def __init__(self, fields: Sequence[str], tokenizer: Tokenizer, limit: int, policy: Policy) -> None:
        self.text = fields[-1]
        self._encodings = tokenizer.encode_many(list(fields), special_tokens=False)
        self.lengths = [len(found) for found in self._encodings]
        self.readings = read([found.ids for found in self._encodings], tokenizer, limit, policy)
        self.windows = [reading.window for reading in self.readings]
        self.rows: list[Rows] = []
        """[tokens of the window, ...] for each window"""

    def tagged(self, labels: Sequence[str]) -> list[Tagged]:
        """The words that the windows hold, each with the label of its first token, from logits [tokens, labels]."""
        encoding, length = self._encodings[-1], self.lengths[-1]
        logits = stitch.tokens(self.rows, self.windows, -1, length)
        there = stitch.owners(self.windows, -1, length) >= 0
        offsets, words = encoding.offsets, encoding.words
        firsts = [at for at in range(length) if at == 0 or words[at] != words[at - 1]]
        out = []
        for first, after in pairwise([*firsts, length]):
            if there[first]:
                chances = np.exp(logits[first] - logits[first].max())
                best, (start, end) = int(chances.argmax()), self._slice(offsets[first], offsets[after - 1])
                score = float(chances[best] / chances.sum())
                out.append(Tagged(self.text[start:end], labels[best], score, start, end))
        return out

    def answers(self, top: int, longest: int) -> list[Answer]:
        """The best answers of at most `longest` tokens, from logits [tokens, 2] for a start and for an end."""
        firsts, lasts = [rows[:, 0] for rows in self.rows], [rows[:, 1] for rows in self.rows]
        found = stitch.spans(firsts, lasts, self.windows, -1, self.lengths[-1], top, longest)
        offsets = self._encodings[-1].offsets
        places = [(*self._slice(offsets[span.first], offsets[span.last]), span.score) for span in found]
        return [Answer(self.text[start:end], score, start, end) for start, end, score in places]

    def _slice(self, first: tuple[int, int], last: tuple[int, int]) -> tuple[int, int]:
        """From the first token to the last, with the accents that follow it: normalising dropped them."""
        end = last[1]
        while end < len(self.text) and unicodedata.combining(self.text[end]):
            end += 1
        return first[0], end


def passages(
    inputs: Iterable[Sequence[str]],
    tokenizer: Tokenizer,
    engine: TokenEngine,
    limit: int,
    policy: Policy,
    cut: Cut,
    lanes: Lanes = Lanes(),  # noqa: B008 - frozen
) -> Iterator[Passage]:
    """Inputs of any number and length, a window at a time in memory, each with what the engine says of it."""
    seen = 0
    for window in windows(checked(inputs), lambda fields: sum(map(len, fields))):
        cut.latest.clear()
        made = []
        for index, fields in enumerate(window, start=seen):
            with about(f"texts[{index}]"):
                made.append(Passage(fields, tokenizer, limit, policy))
            cut.count(index, made[-1].lengths, made[-1].windows)
        _run(made, engine, lanes)
        yield from made
        seen += len(window)


def checked(inputs: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """The inputs; one with a field that is no text is named by its place."""
    for index, fields in enumerate(inputs):
        for text in fields:
            if not isinstance(text, str):
                raise BertkitError(f"texts[{index}] is {text!r} ({type(text).__name__}), not a str")
        yield fields


def _run(group: Sequence[Passage], engine: TokenEngine, lanes: Lanes) -> None:
    readings = [reading for passage in group for reading in passage.readings]
    out: list[Rows] = [np.empty(0)] * len(readings)
    groups = list(lanes.groups([len(reading.ids) for reading in readings]))
    chosen = ([readings[index] for index in group] for group in groups)
    batches = (collate([example(reading.ids, reading.segments) for reading in own], Packed) for own in chosen)
    for indices, made in zip(groups, lanes.map(engine, batches), strict=True):
        for index, rows in zip(indices, made, strict=True):
            out[index] = rows[readings[index].of(-1)]
    rows_of = iter(out)
    for passage in group:
        passage.rows = list(islice(rows_of, len(passage.readings)))
