"""Where in a text is the answer to a question? SQuAD 1.1 and 2.0, CMRC.

Contexts of any length are read in windows that overlap. A question may have no answer (2.0): then the score of the
window's first token is compared with that of the best span, and a threshold decides, which is tuned on the development
set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self, cast

from bertkit.batch import Example
from bertkit.decode import Answer as Span
from bertkit.decode import answers
from bertkit.errors import BertkitError, look_up
from bertkit.evaluate import cmrc, spans
from bertkit.objectives.objective import Objective
from bertkit.objectives.spans import SpanQuestion
from bertkit.runtime.passage import Text
from bertkit.runtime.stream import example
from bertkit.spec import Count
from bertkit.tasks.item import Item, Question
from bertkit.tasks.task import Answer, Asked, Lesson, Reader, Scorer, Scores, Task, required
from bertkit.text import Tokenizer
from bertkit.text.reading import Reading
from bertkit.text.stitch import LONGEST_ANSWER
from bertkit.text.truncate import Chunk, Policy

MEASURES = {"squad": spans.best, "cmrc": cmrc.best}
KEPT = 64
"""contexts whose tokens are remembered: several questions in a row are about one"""


@dataclass(frozen=True)
class Found(Answer):
    """The best answers in the context, best first, and what speaks against all of them."""

    text: str
    """what is said: the best answer, or nothing"""
    best: tuple[Span, ...]
    nothing: float
    """the score of no answer, above that of the best one"""

    def told(self) -> dict[str, Any]:
        several = [{"text": one.text, "score": one.score, "start": one.start, "end": one.end} for one in self.best]
        return {"answer": self.text, "nothing": self.nothing, "best": several}

    @property
    def short(self) -> str:
        return self.text


@dataclass(frozen=True)
class QuestionAnswering(Task):
    """A span of the context for each question."""

    empty: bool = False
    """whether a question may have no answer, as in SQuAD 2.0"""
    threshold: float = 0.0
    """from which `nothing` on none is given"""
    longest: Count = LONGEST_ANSWER
    """tokens of an answer"""
    top: Count = 20
    """answers that are told"""
    stride: Count = 128
    """how far apart windows begin"""
    measure: str = "squad"
    """how answers are compared: squad, or cmrc, which counts Chinese characters"""

    def __post_init__(self) -> None:
        super().__post_init__()
        look_up("measure", self.measure, MEASURES)

    @property
    def main(self) -> str:
        return "f1"

    @property
    def policy(self) -> Policy:
        """Windows of the context, each after the whole question."""
        return Chunk(stride=self.stride)

    @property
    def tunes(self) -> bool:
        return self.empty

    @property
    def objective(self) -> Objective:
        return SpanQuestion()

    def require(self, item: Item) -> None:
        question = cast(Question, item)
        if not question.question.strip() or not question.context.strip():
            raise BertkitError(f"{item.where}: the question or its context is empty. Write it, or take it out")
        if question.answers is None or (not question.answers and not self.empty):
            raise BertkitError(
                f"{item.where}: question {question.id} has no answers. Give them, or take it out; where questions may "
                "have none, as in SQuAD 2.0: --task squad2"
            )

    def lessons(self, items: Sequence[Item], reader: Reader) -> Iterator[Lesson]:
        contexts = lru_cache(KEPT)(lambda text: Text.of([text], reader.tokenizer))
        for one in cast(Sequence[Question], items):
            (question,) = reader.tokenizer.ids_of_many([one.question], special_tokens=False)
            context = contexts(one.context)
            if not context.ids[0]:
                raise BertkitError(f"{one.where}: no token is left of the context of question {one.id}")
            for reading in reader.read([question, context.ids[0]], one):
                first, last = _ends(one, context, reading)
                tokens = example(reading.ids, reading.segments).tokens
                yield [Example(tokens, labels={"start": first, "end": last})]

    def answers(self, asked: Asked, items: Iterable[Item]) -> Iterator[Found]:
        read = _texts(items, asked.model.tokenizer)
        for passage in asked.model.passages(read, "span", asked.policy, asked.cut):
            best = tuple(answers(cast(Text, passage.fields), passage, self.top, self.longest))
            yield self.decided(Found("", best, passage.nothing() - best[0].score if best else 0.0))
            asked.done()

    def decided(self, answer: Found) -> Found:
        none = not answer.best or (self.empty and answer.nothing > self.threshold)
        return replace(answer, text="" if none else answer.best[0].text)

    def tuned(self, answered: Iterable[tuple[Item, Found]]) -> Self:
        if not self.empty:
            return self
        pairs = [(cast(Question, item), answer) for item, answer in answered]
        asked = [_asked(item) for item, _ in pairs]
        found = {item.id: answer.best[0].text if answer.best else "" for item, answer in pairs}
        best = spans.threshold(asked, found, {item.id: answer.nothing for item, answer in pairs})
        return replace(self, threshold=best.at)

    def scorer(self) -> Scorer:
        return SpanScorer(MEASURES[self.measure])

    def item(self, given: Mapping[str, Any] | str, number: int, tokenizer: Tokenizer) -> Item:
        """A question and a context, with a tab between them, or by these names."""
        names = "question and context, with a tab between them or as an object"
        if isinstance(given, str):
            question, tab, context = given.partition("\t")
            if not tab:
                raise BertkitError(f"input {number} has no tab: this task wants {names}")
            given = {"question": question, "context": context}
        question, context = (required(given, name, number, names) for name in ("question", "context"))
        return Question(Path("input"), number, str(given.get("id", number)), question, context)


def _texts(items: Iterable[Item], tokenizer: Tokenizer) -> Iterator[Text]:
    contexts = lru_cache(KEPT)(lambda text: Text.of([text], tokenizer))
    for item in cast(Iterable[Question], items):
        (question,) = tokenizer.ids_of_many([item.question], special_tokens=False)
        context = contexts(item.context)
        yield Text([question, context.ids[0]], context.text, context.encoding)


def _ends(item: Question, context: Text, reading: Reading) -> tuple[int, int]:
    """Where the first answer begins and ends in a window; its first token where the window does not hold all of it."""
    text, start = next((answer for answer in item.answers or () if answer.start >= 0), ("", 0))
    if not text:
        return 0, 0
    stop = start + len(text)
    offsets = context.encoding.offsets
    inside = [place for place, (left, right) in enumerate(offsets) if left < stop and right > start]
    (window,) = reading.window[1] or ((0, 0),)
    if not inside or inside[0] < window[0] or inside[-1] >= window[1]:
        return 0, 0
    return reading.starts[1] + inside[0] - window[0], reading.starts[1] + inside[-1] - window[0]


class SpanScorer(Scorer):
    """Exact match and F1 as SQuAD's script counts them, percent; with the kinds of 2.0 where there are both."""

    def __init__(self, best: Callable[[str, Sequence[str]], spans.Fit] = spans.best) -> None:
        self._best = best
        self._sums = {True: [0.0, 0.0, 0], False: [0.0, 0.0, 0]}

    def add(self, item: Item, answer: Found) -> None:
        asked = _asked(cast(Question, item))
        fit = self._best(answer.text, asked.answers)
        sums = self._sums[bool(asked.answers)]
        for place, value in enumerate((fit.exact, fit.f1, 1)):
            sums[place] += value

    def scores(self) -> Scores:
        (*able, some), (*unable, none) = self._sums[True], self._sums[False]
        total = max(some + none, 1)
        found = {name: 100 * (able[at] + unable[at]) / total for at, name in enumerate(("exact", "f1"))}
        if some and none:
            found |= {"has_answer_f1": 100 * able[1] / some, "no_answer_f1": 100 * unable[1] / none}
        return found


def _asked(item: Question) -> spans.Question:
    texts = tuple(answer.text for answer in item.answers or ())
    return spans.Question(item.id, tuple(text for text in texts if spans.normalized(text)) or texts)
