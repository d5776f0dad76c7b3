"""Scores of prediction files, whoever made them, as the official scripts count.

squad   {id: text} for questions (SQuAD 1.1 and 2.0, CMRC 2018)
glue    a label or a number for each row of one of GLUE's tasks
ner     words with tags, in two files or in one as conlleval reads it
sts     a number for each pair of sentences
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import bertkit
from bertkit.errors import BertkitError, look_up
from bertkit.evaluate import cmrc, entities, spans
from bertkit.evaluate.correlation import Paired
from bertkit.evaluate.fingerprint import FilesFingerprint, digest
from bertkit.tasks import conll
from bertkit.tasks import squad as questions
from bertkit.tasks.columns import LABEL, NAMES, SCORE
from bertkit.tasks.item import Texts, Words
from bertkit.tasks.node import Node, is_json, nodes
from bertkit.tasks.predictions import Said, few, finite, in_order, said_in
from bertkit.tasks.table import kind_of, opened
from bertkit.tasks.unpacked import reading

if TYPE_CHECKING:  # it needs torch, and only glue needs it
    from bertkit.tasks.task import Answer, Task

Measure = Literal["squad", "cmrc"]
GLUE = ("cola", "sst2", "mrpc", "qqp", "stsb", "stsb-5way", "mnli", "qnli", "rte", "wnli")
ORIGINAL = (7, 9)
"""columns in a row of STS-B as it was before GLUE, of which the fifth is the score"""


@dataclass(frozen=True)
class Scored:
    """What predictions are worth."""

    task: str
    scores: Mapping[str, float]
    rows: int
    fingerprint: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    """counts behind the scores"""
    notes: tuple[str, ...] = ()
    """what somebody must know who reads the scores"""

    def told(self) -> dict[str, Any]:
        """For a program to read."""
        told = {"task": self.task, "scores": dict(self.scores), "rows": self.rows, **self.details}
        return told | {"notes": list(self.notes), "fingerprint": dict(self.fingerprint)}


def _scored(
    task: Mapping[str, Any],
    scores: Mapping[str, float],
    rows: int,
    data: Path,
    predictions: Path,
    details: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Scored:
    mark = FilesFingerprint(digest(data), digest(predictions), rows, task, tuple(scores), bertkit.__version__)
    return Scored(str(task["name"]), scores, rows, mark.told(), details or {}, tuple(notes))


def _require(*paths: Path) -> None:
    """Say at once, and in the same words, which file is not there."""
    for path in paths:
        if not path.is_file():
            there = sorted(each.name for each in path.parent.iterdir()) if path.parent.is_dir() else []
            raise BertkitError(f"there is no file {path}. In {path.parent} are: {', '.join(there[:10]) or 'none'}")


# questions


def squad(data: Path, predictions: Path, measure: Measure = "squad", no_answer: Path | None = None) -> Scored:
    """The scores of {id: text}, under the names of the official scripts, percent.

    `no_answer` is {id: score of no answer}: then it is also told above which one it is best to give none.
    """
    _require(data, predictions, *([no_answer] if no_answer else []))
    second = questions.second(data)
    if no_answer and (measure == "cmrc" or not second):
        why = "CMRC's measure knows no such questions" if second else f"in {data} all questions have an answer"
        raise BertkitError(f"--no-answer {no_answer} is for questions that may have no answer, but {why}: leave it out")
    asked = _asked(data, second)
    found = {id: node.text() for id, node in _by_id(predictions, "text", "answer")}
    ids = {one.id for one in asked}
    unknown = [id for id in found if id not in ids]
    if len(unknown) == len(found):
        raise BertkitError(
            f"{predictions} has no prediction for any question of {data}: its ids are {few(unknown)}; those of the "
            f"data are {few([one.id for one in asked])}. Is it for another set?"
        )
    spanned = cmrc.score(asked, found) if measure == "cmrc" else spans.score(asked, found, second)
    scores = {"exact": spanned.exact, "f1": spanned.f1}
    if measure == "cmrc":
        scores["average"] = (spanned.exact + spanned.f1) / 2
    kinds = {"HasAns": spanned.answerable, "NoAns": spanned.unanswerable}
    for name, kind in kinds.items():
        scores |= {f"{name}_exact": kind.exact, f"{name}_f1": kind.f1} if kind else {}
    totals = {f"{name}_total": kind.total for name, kind in kinds.items() if kind}
    if no_answer:
        scores |= _thresholds(asked, found, no_answer)
    details = {"total": spanned.total, **totals, "missing": len(spanned.missing), "unknown": len(unknown)}
    notes = _strangers(spanned.missing, unknown, len(asked))
    task = {"name": "squad", "measure": measure, "no_answer": digest(no_answer) if no_answer else None}
    return _scored(task, scores, spanned.total, data, predictions, details, notes)


def _asked(data: Path, second: bool) -> list[spans.Question]:
    found: dict[str, spans.Question] = {}
    for item in questions.questions(data):
        if item.answers is None:
            raise BertkitError(
                f"{item.where} has no answers, and a score needs the true ones: give a set that has them"
            )
        if item.id in found:
            raise BertkitError(
                f"{item.where} has the id {item.id!r}, which stands above it already: ids tell rows apart"
            )
        texts = (answer.text for answer in item.answers)
        kept = tuple(text for text in texts if not second or spans.normalized(text))  # as the official script does
        found[item.id] = spans.Question(item.id, kept)
    return list(found.values())


def _by_id(path: Path, value: str, name: str) -> list[tuple[str, Node]]:
    """What an object in a JSON file holds, or what the lines of `bertkit predict --json` have under `name`."""
    found = list(nodes(path)) if is_json(path) else []
    if found and all(isinstance(node.value, dict) and {"id", name} <= node.value.keys() for node in found):
        return [(node.need("id").name(), node.need(name)) for node in found]
    if len(found) != 1:
        raise BertkitError(f"{path} is not one JSON object: it must be {{id: {value}}} for all questions")
    return found[0].inside()


def _strangers(missing: Sequence[str], unknown: Sequence[str], asked: int) -> list[str]:
    """What is said about questions without predictions, and predictions without questions."""
    notes = []
    if missing:
        notes.append(f"{len(missing):,} of {asked:,} questions have no prediction and count as wrong: {few(missing)}")
    if unknown:
        notes.append(f"{len(unknown):,} predictions are for no question of the data and are left out: {few(unknown)}")
    return notes


def _thresholds(asked: Sequence[spans.Question], found: Mapping[str, str], path: Path) -> dict[str, float]:
    nothing = {id: finite(node.value, node.where) for id, node in _by_id(path, "score of no answer", "nothing")}
    missing = [one.id for one in asked if one.id not in nothing]
    if missing:
        raise BertkitError(f"{path} has no score for {len(missing):,} of {len(asked):,} questions: {few(missing)}")
    scores: dict[str, float] = {}
    for by in ("exact", "f1"):
        best = spans.threshold(asked, found, nothing, by)
        scores |= {f"best_{by}": best.score, f"best_{by}_thresh": best.at}
    return scores


# labels and numbers


def _counted(count: Callable[[], Mapping[str, float]], predictions: Path) -> Mapping[str, float]:
    """Scores, of which all must be numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores = count()
    if not all(map(math.isfinite, scores.values())):
        raise BertkitError(
            f"{predictions}: predictions or true scores are all the same number, or too large to reckon with, so there "
            "is no correlation. Is it the right column?"
        )
    return scores


def glue(name: str, data: Path, predictions: Path, labels: Sequence[str] = ()) -> Scored:
    """The scores of one of GLUE's tasks, from 0 to 1.

    Predictions may be labels, or numbers that stand for them: in the order of `labels`, else in that of our table.
    """
    from bertkit.tasks.classification import Classification
    from bertkit.tasks.known import KNOWN

    known = look_up("task of GLUE", name, {each: KNOWN[each] for each in GLUE})
    _require(data, predictions)
    task = known.task
    assert task is not None  # GLUE's labels are known
    items = [item for item in known.layout.items(data) if isinstance(item, Texts)]
    for item in items:
        _require_true(item, task)
    key = "label" if isinstance(task, Classification) else "score"
    ids, rows = [item.id for item in items], [item.row for item in items]
    said = in_order(said_in(predictions, key), ids, data, predictions, rows)
    answers, notes = _answers(said, task, labels)
    scorer = task.scorer()
    for item, answer in zip(items, answers, strict=True):
        scorer.add(item, answer)
    scores = _counted(scorer.scores, predictions)
    chosen = {"name": name, "labels": list(labels) or None}
    return _scored(chosen, scores, len(items), data, predictions, notes=notes)


def _answers(said: Sequence[Said], task: Task, order: Sequence[str]) -> tuple[Sequence[Answer], list[str]]:
    """Predictions as the task's own answers, and what is to be said about them."""
    from bertkit.tasks.classification import Classification, Graded, Grades, Labelled
    from bertkit.tasks.regression import Number

    if isinstance(task, Classification):
        labels, notes = _labels(said, task.labels, order)
        return [Labelled(label, 1.0, {}) for label in labels], notes
    if order:
        raise BertkitError(f"--labels {','.join(order)}: the answers of this task are numbers; leave it out")
    numbers = [finite(one.value, one.where) for one in said]
    if isinstance(task, Grades):
        bins = [task.names[task.bin(min(max(number, task.low), task.high))] for number in numbers]
        bins = [one.label if one.label in task.names else bin for one, bin in zip(said, bins, strict=True)]
        return [Graded(number, bin, {}) for number, bin in zip(numbers, bins, strict=True)], []
    return [Number(number) for number in numbers], []


def _require_true(item: Texts, task: Task) -> None:
    from bertkit.tasks.classification import Classification, Grades

    if item.label is None or not item.label.strip():
        raise BertkitError(f"{item.where} has no label, and a score needs the true ones: give a set that has them")
    if isinstance(task, Classification):
        if item.label.strip() not in task.labels:
            raise BertkitError(
                f"{item.where} has the label {item.label[:60]!r}, but the labels of this task are: "
                f"{', '.join(task.labels)}. Is it the file of another task?"
            )
        return
    number = finite(item.label, item.where)
    if isinstance(task, Grades) and not task.low <= number <= task.high:
        raise BertkitError(f"{item.where}: {number:g} is not between {task.low:g} and {task.high:g}")


def _labels(said: Sequence[Said], known: Sequence[str], order: Sequence[str]) -> tuple[list[str], list[str]]:
    """Labels that were predicted, and what is to be said about them."""
    if order and sorted(order) != sorted(known):
        raise BertkitError(f"--labels {','.join(order)}: give all labels of the task, each once: {', '.join(known)}")
    names = {str(number): label for number, label in enumerate(order or known)}
    if all(one.value in names for one in said) and (order or list(names) != list(known)):
        told = ", ".join(f"{number} is {label}" for number, label in names.items())
        advice = "" if order else f". Another order: --labels {','.join((*known[1:], known[0]))}"
        return [names[one.value] for one in said], [f"predictions are numbers, which are read so: {told}{advice}"]
    if all(one.value in known for one in said):
        return [one.value for one in said], []
    wrong = next((one for one in said if one.value not in known), said[0])
    raise BertkitError(
        f"{wrong.where}: {wrong.value[:60]!r} is no label of this task. The labels are: {', '.join(known)}"
        + ("" if known[0].isdecimal() else f"; or all predictions are numbers from 0 to {len(known) - 1}")
    )


# words with tags


def ner(predictions: Path, data: Path | None = None) -> Scored:
    """Precision, recall and F1 of whole entities, percent, and for each kind its counts, as conlleval has them.

    Without `data`, the last two columns of one file are the true and the predicted tags.
    """
    _require(predictions, *([data] if data else []))
    if data is None and conll.is_objects(predictions):
        raise BertkitError(f"{predictions} has one row of tags for each sentence: give the true ones with --data FILE")
    try:
        true = list(conll.sentences(data or predictions, conll.LAST if data else conll.LAST - 1))
    except BertkitError as error:
        hint = "" if data else ". Its last two columns must be true and predicted tags; else give --data FILE"
        raise BertkitError(f"{error}{hint}") from None
    found = list(conll.sentences(predictions))
    for left, right in zip_longest(true, found):
        if left is None or right is None:
            raise BertkitError(
                f"{predictions} has {len(found):,} sentences, but {data} has {len(true):,}: there must be as many, "
                "with an empty line after each"
            )
        _require_same(left, right)
    counts = entities.score([one.tags or () for one in true], [one.tags or () for one in found])
    kinds = {kind: _percent(one) | one._asdict() for kind, one in counts.items()}
    whole = kinds.pop("")
    scores = {name: whole[name] for name in ("precision", "recall", "f1")}
    details = {
        "words": sum(len(one.words) for one in true),
        **{name: whole[name] for name in ("right", "found", "true")},
        "kinds": kinds,
    }
    there, said = ([kind for kind, one in kinds.items() if one[side]] for side in ("true", "found"))
    alien = bool(there and said) and not set(there) & set(said)
    note = f"true tags are of the kinds {few(there)}, predicted ones of {few(said)}: are these the right columns?"
    task = {"name": "ner", "one_file": data is None}
    return _scored(task, scores, len(true), data or predictions, predictions, details, [note] if alien else [])


def _require_same(left: Words, right: Words) -> None:
    for place, (ours, theirs) in enumerate(zip_longest(left.words, right.words), 1):
        if ours != theirs:
            told = ["the end of the sentence" if word is None else repr(word) for word in (ours, theirs)]
            raise BertkitError(
                f"word {place} of the sentence that begins at {left.where} is {told[0]}, but at {right.where} it is "
                f"{told[1]}: both files must have the same words, in the same sentences"
            )
    for one in (left, right):
        if one.tags is None:
            raise BertkitError(f"{one.where}: the words have no tags. Each line must have a word and its tag behind it")


def _percent(counts: entities.Counts) -> dict[str, float]:
    return {"precision": 100 * counts.precision, "recall": 100 * counts.recall, "f1": 100 * counts.f1}


# pairs with numbers


def sts(data: Path, predictions: Path) -> Scored:
    """Pearson's and Spearman's correlations of predicted numbers and true ones.

    Rows of SentEval's gs files may be empty: nobody scored these pairs. Predictions are for all rows, or for the rest.
    """
    _require(data, predictions)
    true = _true_scores(data)
    scored = [number for number in true if number is not None]
    said = said_in(predictions, "score")
    if len(said) == len(true) > len(scored):
        kept = zip(in_order(said, [""] * len(true), data, predictions), true, strict=True)
        said = [one for one, number in kept if number is not None]
    elif len(said) == len(scored):
        said = in_order(said, [""] * len(scored), data, predictions)
    else:
        left = f", of which {len(scored):,} have a score" if len(scored) < len(true) else ""
        raise BertkitError(f"{predictions} has {len(said):,} predictions, but {data} has {len(true):,} rows{left}")
    pairs = Paired()
    for number, one in zip(scored, said, strict=True):
        pairs.add(number, finite(one.value, one.where))
    scores = _counted(lambda: {"pearson": pairs.pearson(), "spearman": pairs.spearman()}, predictions)
    gap = len(true) - len(scored)
    notes = [f"{gap:,} of {len(true):,} rows have no score and are left out"] if gap else []
    return _scored({"name": "sts"}, scores, len(scored), data, predictions, notes=notes)


def _true_scores(path: Path) -> list[float | None]:
    """Of a gs file, of STS-B in its first form, or of a table."""
    if kind_of(path) not in ("jsonl", "parquet"):
        with reading(path) as file:
            rows = [line.strip("\r\n").split("\t") for line in file]
        first = next((cells for cells in rows if any(cells)), [""])
        place = 0 if len(first) == 1 else 4
        if len(first) in (1, *ORIGINAL) and _is_number(first[place]):
            return _column(path, rows, place)
    return _table_scores(path)


def _is_number(text: Any) -> bool:
    try:
        return math.isfinite(float(text))
    except (TypeError, ValueError, OverflowError):
        return False


def _column(path: Path, rows: Sequence[Sequence[str]], place: int) -> list[float | None]:
    found: list[float | None] = []
    for number, cells in enumerate(rows, 1):
        where = f"{path}, row {number}"
        if place and len(cells) not in ORIGINAL:
            raise BertkitError(f"{where} has {len(cells)} columns, but STS-B has 7 or 9, of which the fifth is a score")
        blank = place == 0 and not cells[0].strip()
        found.append(None if blank else finite(cells[place], where))
    return found


def _table_scores(path: Path) -> list[float | None]:
    table = opened(path, NAMES)
    rows = list(table.rows())
    if table.header:
        lower = {name.lower(): name for name in table.columns}
        column = next((lower[name] for name in (*SCORE, *LABEL) if name in lower), None)
    else:
        numbers = [name for name in table.columns if all(_is_number(row.values[name]) for row in rows)]
        column = numbers[-1] if numbers else None
    if column is None:
        raise BertkitError(
            f"{path} has no column of scores: it has {', '.join(table.columns)}. Call it score in a header, or put it "
            "last, with a number in each row"
        )
    return [finite(row.values.get(column), table.where(row)) for row in rows]
