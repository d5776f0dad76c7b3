"""Questions about texts: SQuAD 1.1 and 2.0 (https://arxiv.org/abs/1606.05250, https://arxiv.org/abs/1806.03822),
CMRC 2018 (https://arxiv.org/abs/1810.07366), and tables with the columns question, context and answers.

    {"data": [{"title": …, "paragraphs": [{"context": …, "qas": [{"id": …, "question": …, "answers": [
        {"text": …, "answer_start": …}], "is_impossible": …}]}]}]}

Each of data, paragraphs and qas may be left out, which makes a list of paragraphs or of rows, as Hugging Face has them.
An answer must stand in its context. Some files count characters otherwise than we do: then the nearest place is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bertkit.errors import BertkitError
from bertkit.tasks.item import Answer, Question
from bertkit.tasks.node import Node, nodes

NAMES = ("question", "context", "answers")
NOWHERE = -1
"""where an answer begins that the context does not hold in these words, as CMRC 2018 says of some"""
FAKE = "FAKE_ANSWER"
"""how answers begin that only fill their place in a test set of CMRC 2018"""

_FLAGS = {"true": True, "false": False, "1": True, "0": False}


class _Asked(NamedTuple):
    """A question in a file."""

    row: int
    node: Node
    context: Node
    title: str
    flat: bool
    """whether it is a row by itself: there, no answers mean that there is none; in a paragraph, that none is told"""


def questions(path: Path) -> Iterator[Question]:
    """The questions of a file, in its order."""
    empty = True
    for asked in _asked(path):
        empty = False
        yield _question(asked, path)
    if empty:
        raise BertkitError(f"{path} has no questions: it must have question, context and answers, as SQuAD has them")


def second(path: Path) -> bool:
    """Whether questions may have no answer, as in SQuAD 2.0."""
    return any(
        asked.node.get("is_impossible") is not None or (asked.flat and _question(asked, path).answers == ())
        for asked in _asked(path)
    )


def _asked(path: Path) -> Iterator[_Asked]:
    number = 0
    for top in nodes(path, NAMES):
        for article in _inside(top, "data"):
            for paragraph in _inside(article, "paragraphs"):
                context = paragraph.need("context", "context_text")
                title = _name(article, "title") or _name(paragraph, "title")
                for question in _inside(paragraph, "qas"):
                    number += 1
                    row, flat = number if question.place else top.row, question is paragraph
                    group = title if flat else title or _name(paragraph, "id", "context_id")
                    yield _Asked(row, question, context, group, flat)


def _inside(node: Node, name: str) -> list[Node]:
    """The list in an object, or the object alone where it has none."""
    found = node.get(name)
    return [node] if found is None else found.each()


def _name(node: Node, *names: str) -> str:
    found = node.get(*names)
    return "" if found is None else found.name()


def _question(asked: _Asked, path: Path) -> Question:
    context = asked.context.text()
    id = _name(asked.node, "id", "query_id") or str(asked.row)
    answers = _answers(asked, id, context)
    return Question(
        path, asked.row, id, asked.node.need("question", "query_text").text(), context, answers, asked.title
    )


def _answers(asked: _Asked, id: str, context: str) -> tuple[Answer, ...] | None:
    """All that are right, () where there is none, None where it is not told."""
    impossible, node = asked.node.get("is_impossible"), asked.node.get("answers")
    if impossible is not None and _flag(impossible):
        return ()
    if node is None or node.value == "":
        return None
    given = list(_listed(node))
    if not given and impossible is not None:
        raise node.error(
            f'is empty, but the question {id!r} is said to have an answer: write it, or "is_impossible": true'
        )
    if not given:
        return () if asked.flat else None
    if all(text.startswith(FAKE) and start == NOWHERE for text, start in given):
        return None
    found = tuple(_placed(text, start, context, id, node) for text, start in given)
    if all(answer.start == NOWHERE for answer in found):
        raise _lost(found[0].text, id, node)
    return found


def _flag(node: Node) -> bool:
    flag = _FLAGS.get(str(node.value).lower()) if isinstance(node.value, bool | int | str) else None
    if flag is None:
        raise node.error("must be true or false")
    return flag


def _listed(node: Node) -> Iterator[tuple[str, int]]:
    """Answers and where they begin: from a list of texts or of objects, or from an object of lists."""
    node = node.unpacked()
    if isinstance(node.value, str):
        yield node.text(), NOWHERE
    elif isinstance(node.value, list):
        for one in node.each():
            yield (one.text(), NOWHERE) if isinstance(one.value, str) else (one.need("text").text(), _start(one))
    elif isinstance(node.need("text").value, str):
        yield node.need("text").text(), _start(node)
    else:
        texts, starts = node.need("text").each(), node.get("answer_start")
        places = [NOWHERE] * len(texts) if starts is None else [start.number() for start in starts.each()]
        if len(texts) != len(places):
            raise node.error(f"has {len(texts)} texts, but {len(places)} places in answer_start")
        for text, place in zip(texts, places, strict=True):
            yield text.text(), place


def _start(node: Node) -> int:
    start = node.get("answer_start")
    return NOWHERE if start is None else start.number()


def _placed(text: str, start: int, context: str, id: str, node: Node) -> Answer:
    if not text.strip():
        raise node.error(f'has an empty text for the question {id!r}: take it out, or write "is_impossible": true')
    if start >= 0 and context.startswith(text, start):
        return Answer(text, start)
    after = context.find(text, max(start, 0))
    before = context.rfind(text, 0, start + len(text)) if start > 0 else NOWHERE
    found = [place for place in (before, after) if place >= 0]
    if not found and start >= 0:
        raise _lost(text, id, node)
    return Answer(text, min(found, key=lambda place: abs(place - start), default=NOWHERE))


def _lost(text: str, id: str, node: Node) -> BertkitError:
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    return BertkitError(
        f"{node.where}: {shown!r}, an answer to the question {id!r}, does not stand in its context: write it as it "
        "stands there, letter by letter, or take the question out"
    )
