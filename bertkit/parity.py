"""Two of a kind side by side: a model, its export, its int8 version; the same texts go through both.

What is compared is what an export of either would say: vectors, or the logits of the task's head. Of logits it is also
told how many answers changed: labels of texts and of tokens, ends of spans, masked words.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.batch import Array
from bertkit.compress.exam import MOST, layout_of, lines_of, model_of, opened
from bertkit.compress.sample import SENTENCES
from bertkit.errors import BertkitError
from bertkit.export.ending import LOGITS, SENTENCE, TOKENS, ending_of
from bertkit.export.export import head_of
from bertkit.export.exported import SHEET, Exported, Sheet, is_export
from bertkit.export.speaker import Live, Speaker
from bertkit.runtime.stream import Given
from bertkit.tasks.finetuned import layout_beside
from bertkit.tasks.item import Item, Options, Question, Texts, Words
from bertkit.tasks.layout import stop
from bertkit.text.truncate import Cut
from bertkit.weights.find import find

SHOWN = 5
"""changed answers that are shown"""


@dataclass(frozen=True)
class Change:
    """A text of which something else is said."""

    text: str
    first: str
    second: str


@dataclass
class Parity:
    """How far two are apart, over so many texts. Numbers are those of all outputs; cosines are those of each text.

    >>> found = Parity()
    >>> found.add({"logits": np.array([1.0, 0.0])}, {"logits": np.array([0.0, 2.0])})
    >>> found.largest, found.mean, found.cosine
    (2.0, 1.5, 0.0)
    """

    texts: int = 0
    largest: float = 0.0
    """difference of any number"""
    cosine: float = 1.0
    """the smallest of any text"""
    answers: int = 0
    """what was decided in all: one for each text, or for each token"""
    changed: int = 0
    examples: list[Change] = field(default_factory=list)
    cut: int = 0
    """texts that were too long"""
    _differences: float = 0.0
    _numbers: int = 0
    _cosines: float = 0.0

    @property
    def mean(self) -> float:
        """The mean difference."""
        return self._differences / max(self._numbers, 1)

    @property
    def mean_cosine(self) -> float:
        return self._cosines / max(self.texts, 1)

    def add(self, first: Mapping[str, Array], second: Mapping[str, Array]) -> None:
        """Take into account what both say of a text."""
        a, b = (np.concatenate([x.ravel() for x in said.values()]).astype(np.float64) for said in (first, second))
        apart, cosine = np.abs(a - b), _cosine(a, b)
        self.texts += 1
        self.largest = float(np.maximum(self.largest, apart.max()))  # NaN stays NaN
        self.cosine = float(np.minimum(self.cosine, cosine))
        self._differences += float(apart.sum())
        self._numbers += apart.size
        self._cosines += cosine

    def decide(self, text: Given, first: Sequence[str], second: Sequence[str]) -> None:
        """Take into account what both decide about a text."""
        other = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
        self.answers += len(first)
        self.changed += len(other)
        if other and len(self.examples) < SHOWN:
            shown = text if isinstance(text, str) else "\t".join(text)
            self.examples.append(Change(shown, *(" ".join(side) for side in zip(*other, strict=True))))

    def told(self) -> dict[str, Any]:
        """For a program to read."""
        near = {"largest_difference": self.largest, "mean_difference": self.mean}
        cosines = {"smallest_cosine": self.cosine, "mean_cosine": self.mean_cosine}
        examples = [{"text": one.text, "a": one.first, "b": one.second} for one in self.examples]
        answers = {"answers": self.answers, "changed": self.changed, "examples": examples} if self.answers else {}
        return {"texts": self.texts, "cut": self.cut, **near, **cosines, **answers}


def parity(a: str | os.PathLike[str], b: str | os.PathLike[str], data: Path | None = None) -> Parity:
    """Compare what two of them say of the same texts: models, runs of bertkit finetune, int8 models, exports.

    `data` is a file of rows or of lines; without it sentences of our own stand in.
    """
    head = _told_head(a, b)
    first, second = speaker(a, head), speaker(b, head)
    _require_alike(a, first, b, second)
    found, cut = Parity(), Cut()
    given = list(SENTENCES) if data is None else _read(data, (a, b), first.kind == SENTENCE)
    if not given:
        raise BertkitError(f"{data} holds no texts: give rows or lines like those that the models will see")
    pairs = zip(given, first.rows(given, cut=cut), second.rows(given, cut=Cut()), strict=True)
    for text, left, right in pairs:
        left, right = _compared(left), _compared(right)
        _require_same_tokens(text, left, right)
        found.add(left, right)
        if decide := DECISIONS.get(first.kind):
            found.decide(text, decide(left, first), decide(right, first))
    found.cut = cut.texts
    return found


def speaker(source: str | os.PathLike[str], head: str | None = None) -> Speaker:
    """Whatever it is, as one who can be asked; models answer with their own engine, and with this head if need be."""
    path = find(source)
    if is_export(path):
        return Exported.load(path)
    subject = opened(source)
    return Live(ending_of(model_of(subject), head or head_of(subject)))


def _told_head(*sources: str | os.PathLike[str]) -> str | None:
    """Whose logits are told by an export among them."""
    exports = (path for path in map(find, sources) if is_export(path))
    return next((Sheet.read(path / SHEET).head for path in exports), None)


def _compared(said: Mapping[str, Array]) -> dict[str, Array]:
    """Tokens' vectors are on the way to a sentence's, and no answer of their own."""
    return {name: values for name, values in said.items() if name != TOKENS}


def _require_alike(a: object, first: Speaker, b: object, second: Speaker) -> None:
    left, right = ({one.name: one.axes for one in each.outputs if one.name != TOKENS} for each in (first, second))
    if left != right:
        said = [", ".join(f"{name} {list(axes)}" for name, axes in each.items()) for each in (left, right)]
        raise BertkitError(f"{a} says {said[0]}, and {b} {said[1]}: only what says the same can be compared")
    if first.labels != second.labels:
        raise BertkitError(
            f"the labels of {a} are {', '.join(first.labels)}, and those of {b} {', '.join(second.labels)}: both must "
            "be the same, in the same order"
        )


def _require_same_tokens(text: Given, left: Mapping[str, Array], right: Mapping[str, Array]) -> None:
    for name in left:
        if left[name].shape != right[name].shape:
            raise BertkitError(
                f"they read {str(text)[:60]!r} as {len(left[name])} and {len(right[name])} tokens: their tokenizers or "
                "their limits are not the same"
            )


def _cosine(a: Array, b: Array) -> float:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b / lengths) if lengths != 0 else float(np.array_equal(a, b))


# what is decided ─────────────────────────────────────────────────────────────────────────────────────────────────────

Decide = Callable[[Mapping[str, Array], Speaker], list[str]]
"""what is said of a text -> what follows from it, in words"""


def _likeliest(said: Mapping[str, Array], speaker: Speaker) -> list[str]:
    """The best label of the text, or of each token."""
    return [speaker.labels[place] for place in np.atleast_1d(said[LOGITS].argmax(-1))]


def _each(said: Mapping[str, Array], speaker: Speaker) -> list[str]:
    """Yes or no for each label."""
    return [f"{'' if value > 0 else 'not '}{label}" for label, value in zip(speaker.labels, said[LOGITS], strict=True)]


def _span(said: Mapping[str, Array], speaker: Speaker) -> list[str]:
    """The tokens where it is likeliest that an answer starts and ends."""
    return ["-".join(str(values.argmax()) for values in said.values())]


def _words(said: Mapping[str, Array], speaker: Speaker) -> list[str]:
    known = len(speaker.tokenizer)
    return [speaker.tokenizer.token(int(place)) for place in said[LOGITS][:, :known].argmax(-1)]


def _follows(said: Mapping[str, Array], speaker: Speaker) -> list[str]:
    return ["follows" if said[LOGITS].argmax() == 0 else "does not follow"]


def _replaced(said: Mapping[str, Array], speaker: Speaker) -> list[str]:
    return ["replaced" if value > 0 else "original" for value in said[LOGITS]]


DECISIONS: dict[str, Decide] = {
    **dict.fromkeys(("Classify", "Tag", "Chain"), _likeliest),
    "MultiLabel": _each,
    "Span": _span,
    "Mlm": _words,
    "NextSentence": _follows,
    "Detect": _replaced,
}
"""by the head's class; numbers, scores of options and vectors decide nothing by themselves"""


# texts ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read(data: Path, sources: Sequence[str | os.PathLike[str]], single: bool) -> list[Given]:
    """The texts or pairs of a file's rows, or its lines; pairs one after the other where texts are read alone."""
    layouts = (layout_beside(find(source)) for source in sources)
    layout = next((found for found in layouts if found), None) or layout_of(data)
    if layout is None:
        return list(lines_of(data))
    rows = islice(_fields(layout.items(data, stop)), MOST)
    return [text for fields in rows for text in fields] if single else list(rows)


def _fields(items: Iterable[Item]) -> Iterator[tuple[str, ...]]:
    for item in items:
        match item:
            case Texts():
                yield item.fields
            case Words():
                yield (" ".join(item.words),)
            case Question():
                yield item.question, item.context
            case Options():
                yield from item.pairs
