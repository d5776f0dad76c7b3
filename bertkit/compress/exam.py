"""How well a quantised model does, in the number by which its user judges it.

A fine-tuned model is judged by its task's measure on somebody's rows. A sentence encoder by how well its cosines follow
the scores of pairs, where the rows have scores. Without rows, or with plain texts, it is the mean cosine between the
vectors before and after.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from bertkit.errors import BertkitError
from bertkit.evaluate.correlation import spearman
from bertkit.model import Model, load
from bertkit.tasks.finetuned import Finetuned, is_finetuned
from bertkit.tasks.guess import guess
from bertkit.tasks.item import Item, Options, Question, Texts, Words
from bertkit.tasks.layout import Layout, stop
from bertkit.tasks.regression import number_of
from bertkit.weights.find import find

Subject = Model | Finetuned
MOST = 5000
"""texts whose vectors are compared"""


def model_of(subject: Subject) -> Model:
    """The network and its tokenizer."""
    return subject.model if isinstance(subject, Finetuned) else subject


def opened(source: str | os.PathLike[str]) -> Subject:
    """A run of bertkit finetune, the model in it, or any other model."""
    path = find(source)
    return Finetuned.load(path) if is_finetuned(path) else load(source)


class Exam(ABC):
    """A number for a model; more is better."""

    measure: str

    @abstractmethod
    def score(self, subject: Subject) -> float:
        """How well it does, with the engine that it uses."""


@dataclass(frozen=True)
class TaskExam(Exam):
    """The measure of a task on a file."""

    data: Path
    measure: str

    def score(self, subject: Subject) -> float:
        assert isinstance(subject, Finetuned)
        return subject.evaluate(self.data).scores[self.measure]


@dataclass(frozen=True)
class PairExam(Exam):
    """Spearman's correlation of cosines with the scores of pairs."""

    pairs: Sequence[tuple[str, str]]
    true: Sequence[float]
    measure: str = "spearman of cosines"

    def score(self, subject: Subject) -> float:
        vectors = model_of(subject).embed([text for pair in self.pairs for text in pair], normalize=True)
        return spearman(np.array(self.true), (vectors[::2] * vectors[1::2]).sum(1))


@dataclass(frozen=True)
class CosineExam(Exam):
    """The mean cosine with the vectors of the model as it was."""

    texts: Sequence[str]
    before: np.ndarray
    measure: str = "mean cosine"

    @classmethod
    def of(cls, texts: Sequence[str], subject: Subject) -> CosineExam:
        """Against what the model says now."""
        return cls(texts, _vectors(subject, texts))

    def score(self, subject: Subject) -> float:
        return float((self.before * _vectors(subject, self.texts)).sum(1).mean())


def _vectors(subject: Subject, texts: Sequence[str]) -> np.ndarray:
    made: np.ndarray = model_of(subject).embed(list(texts), normalize=True)
    return made


def exam(subject: Subject, data: Path | None, sample: Sequence[str]) -> tuple[Exam, list[str]]:
    """By which number a model is judged, and texts that are like those it will see."""
    if data is None:
        return CosineExam.of(sample, subject), list(sample)
    layout = subject.layout if isinstance(subject, Finetuned) else layout_of(data)
    items = list(islice(layout.items(data, stop), MOST)) if layout else []
    texts = [text for item in items for text in _texts(item)] if layout else lines_of(data)
    if not texts:
        raise BertkitError(f"{data} holds no texts: give rows like those that the model will see")
    if isinstance(subject, Finetuned):
        return TaskExam(data, subject.task.main), texts
    scored = [(item.fields, number_of(item)) for item in items if isinstance(item, Texts) and _has_score(item)]
    if len(scored) > 1 and len(scored) == len(items):
        return PairExam([(fields[0], fields[1]) for fields, _ in scored], [number for _, number in scored]), texts
    return CosineExam.of(texts[:MOST], subject), texts


def layout_of(data: Path) -> Layout | None:
    """How a file is read; None for one of plain lines."""
    try:
        return guess(data, {}).layout
    except BertkitError:
        return None


def lines_of(data: Path) -> list[str]:
    """A text on each line that is not blank; the first few thousand."""
    with data.open(encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\r\n") for line in islice(file, MOST) if line.strip()]


def _has_score(item: Texts) -> bool:
    try:
        return len(item.fields) == 2 and np.isfinite(number_of(item)).item()
    except BertkitError:
        return False


def _texts(item: Item) -> list[str]:
    match item:
        case Texts():
            return list(item.fields)
        case Words():
            return [" ".join(item.words)]
        case Question():
            return [f"{item.question} {item.context}"]
        case Options():
            return [" ".join(pair) for pair in item.pairs]
    return []
