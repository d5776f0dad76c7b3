"""Questions of which one of several options is right. Which layout a file has is seen from what stands in it:

SWAG     sent1, sent2, ending0 …, label          (sent1, "sent2 ending")          https://arxiv.org/abs/1808.05326
CODAH    7 columns without a header              (prompt, ending)                 https://arxiv.org/abs/1904.04365
ARCT     reason, claim, warrant0, warrant1       ("reason claim", warrant)        https://arxiv.org/abs/1708.01425
C3       [[lines, [questions], id], …]           (lines, "question choice")       https://arxiv.org/abs/1904.09679
RACE     article, questions, options, answers    (article, question with option)  https://arxiv.org/abs/1704.04683
tables   context, question, choices or choice0 … (context, "question choice")

What is right is a number from 0 on, a letter from A on, or the text of an option; -1, nothing or no column where it is
not told. In ARCT the reason goes before the claim, since it ends as a sentence does. In RACE an option goes where the
question has a gap (_), else behind it; RACE may be a folder with its .txt files, each of which is one object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bertkit.errors import BertkitError
from bertkit.tasks.item import Options
from bertkit.tasks.node import Node, nodes

CONTEXT = ("context", "article", "passage", "sent1", "startphrase", "prompt", "premise", "ctx")
QUESTION = ("question", "sent2")
CHOICES = ("choices", "options", "endings")
LABEL = ("label", "answer", "answerKey", "correctLabelW0orW1")
ID = ("id", "#id", "example_id")
NUMBERED = ("choice", "ending", "option", "warrant")
NAMES = (*CONTEXT, *QUESTION, *CHOICES, *LABEL, *(f"{name}{place}" for name in NUMBERED for place in (0, 1)))
"""words by which a first row is known as a header"""

_NUMBERED = re.compile(f"({'|'.join(NUMBERED)})_?([0-9]{{1,3}})", re.IGNORECASE)
_GAP = re.compile("_+")
_CODAH = ("category", "prompt", "ending0", "ending1", "ending2", "ending3", "label")


def options(path: Path) -> Iterator[Options]:
    """The questions of a file or of a folder, in order; of a folder, files by their names."""
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    if not files:
        raise BertkitError(f"{path} has no .txt files, as RACE has them; name the file that is meant")
    for file in files:
        yield from _of_file(file)


def _of_file(path: Path) -> Iterator[Options]:
    number = 0
    for node in nodes(path, NAMES):
        found: Iterable[Options]
        if isinstance(node.value, list):
            found = _dialogue(node, number)
        elif node.get("questions") is not None:
            found = _article(node, number)
        else:
            found = [_row(node)]
        for one in found:
            number += 1
            yield one
    if not number:
        raise BertkitError(f"{path} has no questions with options")


def _dialogue(node: Node, before: int) -> Iterator[Options]:
    """C3: a dialogue or a text in lines, its questions, and its id, which test sets leave out."""
    parts = node.each()
    if len(parts) not in (2, 3):
        raise node.error(f"has {len(parts)} parts, but must have lines, questions and perhaps an id, as C3 has them")
    context = "\n".join(line.text() for line in parts[0].each())
    name = parts[2].name() if len(parts) == 3 else ""
    for place, question in enumerate(parts[1].each(), 1):
        id = question.get("id")
        choices = _texts(question.need("choice"))
        asked = question.need("question").text()
        pairs = tuple((context, _joined(asked, choice)) for choice in choices)
        right = _by_text(question.get("answer"), choices)
        yield Options(node.path, before + place, pairs, right, id.name() if id else f"{name}-{place}" if name else "")


def _article(node: Node, before: int) -> Iterator[Options]:
    """RACE: an article with several questions, in lists side by side."""
    article, id, answers = node.need("article").text(), node.get("id"), node.get("answers")
    asked, sets = node.need("questions").each(), node.need("options").each()
    letters: Sequence[Node | None] = [None] * len(asked) if answers is None else answers.each()
    if not len(asked) == len(sets) == len(letters):
        raise node.error(f"has {len(asked)} questions, {len(sets)} sets of options and {len(letters)} answers")
    for place, (question, given, letter) in enumerate(zip(asked, sets, letters, strict=True), 1):
        choices = _texts(given)
        pairs = tuple((article, _filled(question.text(), choice)) for choice in choices)
        name = f"{id.name()}-{place}" if id else ""
        yield Options(node.path, before + place, pairs, _right(letter, choices), name)


def _row(node: Node) -> Options:
    """A row of a table, or an object of its own."""
    if "1" in node.value:
        node = _codah(node)
    choices, names = _choices(node), _names(node)
    if names is not None and len(names) != len(choices):
        raise node.error(f"has {len(choices)} choices, but {len(names)} names for them")
    label = node.get(*LABEL)
    right = _right(label, choices) if names is None else _by_text(label, names)
    id = node.get(*ID)
    return Options(node.path, node.row, _pairs(node, choices), right, "" if id is None else id.name())


def _codah(node: Node) -> Node:
    cells = tuple(node.value.values())
    if len(cells) != len(_CODAH) or len(str(cells[0])) > 1:
        raise node.error(
            f"has {len(cells)} columns that no header names: let the first row name them, such as context, question, "
            "choice0, choice1, label"
        )
    return node._replace(value=dict(zip(_CODAH, cells, strict=True)))


def _choices(node: Node) -> list[str]:
    listed = _listed(node)
    if listed is not None:
        return _texts(listed.need("text") if isinstance(listed.value, dict) else listed)
    numbered = {int(found[2]): found[0] for name in node.value if (found := _NUMBERED.fullmatch(str(name)))}
    first = min(numbered, default=0)
    if first > 1 or len(numbered) < 2 or max(numbered) - first + 1 != len(numbered):
        there = ", ".join(map(repr, node.value)) or "nothing"
        raise node.error(
            f"lacks choices: name them choices (a list), or choice0, choice1 and so on without a gap. It has {there}"
        )
    return [_filled_in(node.need(numbered[place])) for place in sorted(numbered)]


def _listed(node: Node) -> Node | None:
    """The choices in one column: a list, or as in ARC and CommonsenseQA an object of texts and their names."""
    found = node.get(*CHOICES)
    return None if found is None else found.unpacked()


def _names(node: Node) -> list[str] | None:
    listed = _listed(node)
    found = listed.get("label") if listed is not None and isinstance(listed.value, dict) else None
    return None if found is None else [each.text() for each in found.each()]


def _texts(node: Node) -> list[str]:
    found = [_filled_in(each) for each in node.each()]
    if len(found) < 2:
        raise node.error(f"has {len(found)} choices, but there must be two or more")
    return found


def _filled_in(node: Node) -> str:
    text = node.text()
    if not text.strip():
        raise node.error("is empty: every choice must have a text")
    return text


def _pairs(node: Node, choices: Sequence[str]) -> tuple[tuple[str, str], ...]:
    if (claim := node.get("claim")) is not None:
        first = _joined(node.need("reason").text(), claim.text())
        return tuple((first, choice) for choice in choices)
    context, question = node.get(*CONTEXT), node.get(*QUESTION)
    if context is None:
        first = node.need(*QUESTION, *CONTEXT).text()
        return tuple((first, choice) for choice in choices)
    asked = "" if question is None else question.text()
    join = _filled if context.place == "article" else _joined
    return tuple((context.text(), join(asked, choice)) for choice in choices)


def _joined(first: str, then: str) -> str:
    return f"{first} {then}" if first.strip() else then


def _filled(question: str, choice: str) -> str:
    """The option in the gap of the question, or behind it.

    >>> _filled("The cat _ on a mat.", "sat"), _filled("Who sat?", "The cat.")
    ('The cat sat on a mat.', 'Who sat? The cat.')
    """
    return _GAP.sub(lambda _: choice, question) if "_" in question else _joined(question, choice)


def _by_text(node: Node | None, choices: Sequence[str]) -> int | None:
    """Which choice a text is."""
    if node is None or node.value == "":
        return None
    text = node.text()
    if text not in choices:
        raise node.error(f"is {text!r}, which is none of the choices: {', '.join(map(repr, choices))}")
    return choices.index(text)


def _right(node: Node | None, choices: Sequence[str]) -> int | None:
    """Which choice a number, a letter or a text means."""
    if node is None:
        return None
    text = str(node.number()) if not isinstance(node.value, str) else node.text().strip()
    if text in ("", "-1"):
        return None
    if re.fullmatch(r"[0-9]{1,3}", text):
        place = int(text)
    elif re.fullmatch("[A-Z]", text):
        place = ord(text) - ord("A")
    else:
        place = choices.index(text) if text in choices else -1
    if not 0 <= place < len(choices):
        last = len(choices) - 1
        raise node.error(
            f"is {text!r}, but there are {len(choices)} choices: write the number of one, 0 to {last}, its letter "
            "(the first is A) or its text"
        )
    return place
