"""What somebody's file is about: found by its columns and what stands in them, said, and open to correction."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from bertkit.errors import BertkitError, unknown
from bertkit.tasks.answering import QuestionAnswering
from bertkit.tasks.choosing import MultipleChoice
from bertkit.tasks.classification import Classification
from bertkit.tasks.columns import NAMES, Columns, chosen
from bertkit.tasks.item import Item, Question, Texts, Words
from bertkit.tasks.layout import Layout, OptionsLayout, QuestionsLayout, Refuse, TableLayout, WordsLayout
from bertkit.tasks.multilabel import MultiLabels, split
from bertkit.tasks.node import Node, is_json, nodes
from bertkit.tasks.regression import Regression
from bertkit.tasks.table import Table, kind_of, missing, opened
from bertkit.tasks.tagging import Tagging
from bertkit.tasks.task import Task
from bertkit.tasks.unpacked import reading

KINDS = ("classification", "regression", "multilabel", "tagging", "answering", "choice")
SEPARATOR = "|"
SEEN = 200
"""lines that are looked at"""
MOST = 1000
"""labels"""
OPTIONS = {"ending0", "choice0", "choices", "options", "endings", "warrant0", "questions"}
"""columns that only questions with options have"""
TAGS = {"tags", "ner_tags", "labels"}
_DECIMAL, _WHOLE = re.compile(r"[+-]?\d*\.?\d+(e[+-]?\d+)?"), re.compile(r"[+-]?\d+(\.0*)?")
_NAME = re.compile(r"#?[^\W\d][\w#-]*( [\w#-]+)?")
FEW = 8
"""rows from which on a single label among them is told"""
_TAG = re.compile(r"O|[BIMES]-\S+")


@dataclass(frozen=True)
class Guess:
    """How a file is read, what is asked of it, and the reason."""

    layout: Layout
    kind: str
    why: str


def guess(path: Path, named: Mapping[str, str], kind: str = "", only: tuple[str, ...] = ()) -> Guess:
    """What a file is; `named` columns and a `kind` are believed."""
    if kind and kind not in KINDS:
        raise unknown("task", kind, KINDS)
    if not path.exists():
        raise missing(path)
    if not named and not kind:
        kind = _by_form(path)
    match kind:
        case "tagging":
            entities = _are_entities(path)
            return Guess(WordsLayout(entities), kind, "words with tags" if entities else "words with kinds")
        case "answering":
            return Guess(QuestionsLayout(), kind, "questions about contexts")
        case "choice":
            return Guess(OptionsLayout(), kind, "questions with options")
    table = opened(path, (*NAMES, *(name for name in named.values() if not name.isdecimal())))
    columns = chosen(table, named)
    if names := _header(table, columns):
        table = opened(path, names)
        columns = replace(chosen(table, named), why="by what stands in them; its first row is taken for a header")
    label = columns.label or columns.score
    if label is None:
        raise _without_label(table)
    layout = TableLayout((columns.text,), (columns.pair,) if columns.pair else (), (label,), only=only)
    kind = kind or ("regression" if columns.score else _by_labels(layout, path))
    return Guess(layout, kind, str(columns))


def _header(table: Table, columns: Columns) -> tuple[str, ...]:
    """The first row, where it can only be a header that nobody knows: short names, and a label that no row has."""
    label = columns.label
    rows = list(islice(table.rows(lambda error: None), SEEN)) if not table.header and label else []
    if len(rows) < FEW or label is None:
        return ()
    first = tuple(str(rows[0].values[name]).strip() for name in table.columns)
    counts = Counter(str(row.values[label]).strip() for row in rows)
    rare = counts.pop(str(rows[0].values[label]).strip()) == 1 and min(counts.values(), default=0) > 1
    return first if rare and all(map(_NAME.fullmatch, first)) and len(set(first)) == len(first) else ()


def _without_label(table: Table) -> BertkitError:
    if len(table.columns) == 1:
        return BertkitError(
            f"{table.path} has only one column, {table.shown}, and no labels: put a tab or a comma between text and "
            "label"
        )
    return BertkitError(
        f"{table.path} has no column of labels among {table.shown}: name it with --label COLUMN, or with --score "
        "COLUMN where it holds numbers"
    )


def _by_form(path: Path) -> str:
    """tagging, answering or choice, where a file's form says so; empty for any other table."""
    if path.is_dir():  # RACE; what else is a folder is no dataset by itself
        texts = path.rglob("*.txt")
        if not any(map(is_json, islice(texts, 1))):
            raise missing(path)
        return "choice"
    if kind_of(path) == "parquet" or is_json(path):
        return _by_object(next(nodes(path), None))
    with reading(path) as file:
        text = "".join(islice(file, SEEN))
    if not kind_of(path) and _is_conll(text):
        return "tagging"
    first = opened(path, (*NAMES, *OPTIONS))
    return _by_object(Node(dict.fromkeys(first.columns), path, 1)) if first.header else ""


def _by_object(node: Node | None) -> str:
    """By the names in the first object; C3 is lists."""
    if node is None or not isinstance(node.value, dict):
        return "choice" if node is not None and isinstance(node.value, list) else ""
    names = {str(name).lower() for name in node.value}
    if names & OPTIONS:
        return "choice"
    if "paragraphs" in names or "data" in names or {"question", "context"} <= names:
        return "answering"
    spans = isinstance(node.value.get("label"), dict) and "text" in names
    return "tagging" if spans or ("tokens" in names and names & TAGS) else ""


def _are_entities(path: Path) -> bool:
    """Whether the first tags of a file are of a scheme of entities."""
    sentences = islice(WordsLayout(entities=False).items(path), SEEN)
    tags = {tag for item in sentences if isinstance(item, Words) for tag in item.tags or ()}
    return all(map(_TAG.fullmatch, tags))


def _is_conll(text: str) -> bool:
    """Whether every line that is not blank has a word, and a tag at its end."""
    rows = [line.split() for line in text.splitlines()]
    words = [row for row in rows if row]
    return len(words) > 1 and all(len(row) > 1 and _TAG.fullmatch(row[-1]) for row in words)


def _by_labels(layout: TableLayout, path: Path) -> str:
    """regression where labels are numbers with a point, multilabel where rows have several, else classification."""
    labels = {item.label for item in layout.items(path, lambda error: None) if isinstance(item, Texts) and item.label}
    if labels and all(map(_DECIMAL.fullmatch, labels)) and not all(map(_WHOLE.fullmatch, labels)):
        return "regression"
    parts = {part for label in labels for part in split(label, SEPARATOR)}
    return (
        "multilabel" if any(SEPARATOR in label for label in labels) and len(parts) < len(labels) else "classification"
    )


def task_of(found: Guess, path: Path, refuse: Refuse, chain: bool = False) -> Task:
    """The task, with the labels that a training set has."""
    items = found.layout.items(path, refuse)
    match found.kind:
        case "regression":
            return Regression()
        case "choice":
            return MultipleChoice()
        case "answering":
            questions = (item for item in items if isinstance(item, Question))
            return QuestionAnswering(empty=any(item.answers == () for item in questions))
        case "tagging":
            return Tagging(_tags(items, path), chain)
    several = found.kind == "multilabel"
    labels: set[str] = set()
    for item in items:
        if isinstance(item, Texts) and item.label and item.label.strip():
            labels |= set(split(item.label, SEPARATOR)) if several else {item.label.strip()}
    _require_labels(labels, path, found)
    return MultiLabels(in_order(labels)) if several else Classification(in_order(labels))


def _require_labels(labels: set[str], path: Path, found: Guess) -> None:
    if len(labels) < 2:
        only = f"only the label {next(iter(labels))!r}" if labels else "no rows with a label"
        raise BertkitError(
            f"{path} has {only} ({found.why}): two or more are needed to learn from. Is it the right column? --label "
            "COLUMN names another"
        )
    if len(labels) > MOST:
        some = ", ".join(repr(label[:30]) for label in sorted(labels)[:3])
        raise BertkitError(
            f"{path} has {len(labels):,} different labels, such as {some} ({found.why}): is it the right column? "
            "--label COLUMN names another; numbers are scores: --score COLUMN"
        )


def in_order(labels: set[str]) -> tuple[str, ...]:
    """Labels in a fixed order: numbers by size, words by the alphabet.

    >>> in_order({"10", "9"}), in_order({"b", "a"})
    (('9', '10'), ('a', 'b'))
    """
    numbers = all(label.lstrip("-").isdecimal() for label in labels)
    return tuple(sorted(labels, key=int) if numbers else sorted(labels))


def _tags(items: Iterable[Item], path: Path) -> tuple[str, ...]:
    """All tags of a file; where they say entities, B- and I- of each kind after O."""
    seen: dict[str, None] = {}
    for item in items:
        assert isinstance(item, Words)
        seen |= dict.fromkeys(item.tags or ())
    if len(seen) < 2:
        raise BertkitError(
            f"{path} has {'only the tag ' + next(iter(seen)) if seen else 'no tags'}: two or more are needed"
        )
    if not all(_TAG.fullmatch(tag) for tag in seen):
        return tuple(sorted(seen))
    kinds = sorted({tag.partition("-")[2] for tag in seen if tag != "O"})
    return ("O", *(f"{part}-{kind}" for kind in kinds for part in "BI"))
