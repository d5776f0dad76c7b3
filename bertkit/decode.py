"""From what heads say of tokens to words with labels and to answers; the runtime knows of neither."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bertkit.runtime.passage import Passage, Text
from bertkit.runtime.stream import Rows


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


def likeliest(logits: Rows) -> Rows:
    """Of each word alone: [W, C] -> [W]."""
    best: Rows = logits.argmax(-1)
    return best


def tagged(
    text: Text, passage: Passage, labels: Sequence[str], path: Callable[[Rows], Rows] = likeliest
) -> list[Tagged]:
    """The words that the windows hold, each with the label of its first token, from logits [tokens, labels].

    `path` chooses the labels of all words [W, C] -> [W].
    """
    there = passage.held()
    words = [(first, after) for first, after in text.words() if there[first]]
    logits = passage.tokens()[[first for first, _ in words]]  # [W, C]
    out = []
    for (first, after), row, best in zip(words, logits, path(logits).tolist(), strict=True):
        chances, (start, end) = np.exp(row - row.max()), text.slice(first, after - 1)
        out.append(Tagged(text.text[start:end], labels[best], float(chances[best] / chances.sum()), start, end))
    return out


def answers(text: Text, passage: Passage, top: int, longest: int) -> list[Answer]:
    """The best answers of at most `longest` tokens, best first."""
    places = [(*text.slice(span.first, span.last), span.score) for span in passage.spans(top, longest)]
    return [Answer(text.text[start:end], score, start, end) for start, end, score in places]
