"""SQuAD's scores (https://arxiv.org/abs/1606.05250, https://arxiv.org/abs/1806.03822): exact match and F1 of answers.

Texts are compared without case, punctuation, articles and spare white space. An answer counts as well as it fits the
best of the true ones. A question that has no answer wants the empty text (SQuAD 2.0).

Letters: none; scores are percent.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bertkit.errors import BertkitError

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


class Question(NamedTuple):
    """A question and its true answers; none where it has no answer."""

    id: str
    answers: tuple[str, ...]


class Fit(NamedTuple):
    """How well an answer fits: 0 to 1."""

    exact: float
    f1: float


@dataclass(frozen=True)
class Spans:
    """The scores of all questions, and where some have no answer, of both kinds."""

    exact: float
    f1: float
    total: int
    answerable: Spans | None = None
    unanswerable: Spans | None = None
    missing: tuple[str, ...] = ()
    """questions without a prediction, which count as wrong"""


def normalized(text: str) -> str:
    """What is compared.

    >>> normalized("The  Cat's, mat ")
    'cats mat'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def fit(found: str, true: str) -> Fit:
    """Of one answer and one true one.

    >>> fit("the black cat", "a black dog")
    Fit(exact=0.0, f1=0.5)
    """
    left, right = normalized(found).split(), normalized(true).split()
    exact = float(left == right)
    if not left or not right:
        return Fit(exact, exact)
    same = sum((Counter(left) & Counter(right)).values())
    return Fit(exact, 2 * same / (len(left) + len(right)) if same else 0.0)


def best(found: str, answers: Sequence[str]) -> Fit:
    """Of one answer and all true ones, each score for itself; the empty text where there is none."""
    fits = [fit(found, answer) for answer in (answers or ("",))]
    return Fit(max(one.exact for one in fits), max(one.f1 for one in fits))


def questions(data: Any) -> tuple[list[Question], bool]:
    """The questions of SQuAD's JSON, and whether some may have no answer (version 2)."""
    found, second = [], False
    for id, answers, impossible in _walk(data):
        second = second or impossible is not None
        true = tuple(answer for answer in answers if normalized(answer)) if impossible is not None else tuple(answers)
        found.append(Question(id, true))
    return found, second


def _walk(data: Any) -> Iterator[tuple[str, list[str], bool | None]]:
    try:
        for article in data["data"]:
            for paragraph in article["paragraphs"]:
                for one in paragraph["qas"]:
                    yield str(one["id"]), [str(each["text"]) for each in one["answers"]], one.get("is_impossible")
    except (KeyError, TypeError) as error:
        raise BertkitError(
            f"this is not SQuAD's JSON ({error!r}): it has data, of which each has paragraphs with qas, of which each "
            "has id and answers"
        ) from None


def score(asked: Iterable[Question], found: Mapping[str, str], second: bool = False) -> Spans:
    """The scores of predictions by question id; `second` tells the kinds of SQuAD 2.0 apart."""
    rows = list(asked)
    if not rows:
        raise BertkitError("there is no question to score")
    fits = {one.id: best(found[one.id], one.answers) if one.id in found else Fit(0.0, 0.0) for one in rows}
    missing = tuple(one.id for one in rows if one.id not in found)
    whole = _mean(fits.values())
    if not second:
        return Spans(*whole, len(fits), missing=missing)
    kinds = [[fits[one.id] for one in rows if bool(one.answers) is has] for has in (True, False)]
    able, unable = (Spans(*_mean(kind), len(kind)) if kind else None for kind in kinds)
    return Spans(*whole, len(fits), able, unable, missing)


def _mean(fits: Iterable[Fit]) -> tuple[float, float]:
    rows = list(fits)
    return 100.0 * sum(one.exact for one in rows) / len(rows), 100.0 * sum(one.f1 for one in rows) / len(rows)


class Threshold(NamedTuple):
    """Above which chance of having no answer it is best to give none, and what that scores, percent."""

    at: float
    score: float


def threshold(
    asked: Sequence[Question], found: Mapping[str, str], nothing: Mapping[str, float], by: str = "f1"
) -> Threshold:
    """The best one on these questions, as the official script finds it: questions in order of `nothing`, the least
    first; each that is answered gains its score, or loses 1 if it has no answer and one was given."""
    gains = {one.id: getattr(best(found.get(one.id, ""), one.answers), by) for one in asked}
    now = top = float(sum(not one.answers for one in asked))
    at, has = 0.0, {one.id: bool(one.answers) for one in asked}
    for id in sorted(nothing, key=lambda id: nothing[id]):
        if id not in gains:
            continue
        now += gains[id] if has[id] else (-1.0 if found.get(id) else 0.0)
        if now > top:
            top, at = now, nothing[id]
    return Threshold(at, 100.0 * top / len(asked))
