"""`bertkit predict`: the answers of a fine-tuned model, line by line as they come."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertkit.cli.arguments import Input, Json, Texts, texts_from
from bertkit.cli.evaluate import Finetuned
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import one_line
from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.tasks.finetuned import Finetuned as Opened
    from bertkit.tasks.item import Item

EXAMPLE = "bertkit predict runs/mine 'a text'"
AHEAD = 512
"""lines that are answered together, if they are there already"""


def run(
    model: Finetuned,
    texts: Texts = None,
    source: Input = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file as it was learned from, with or without labels.")
    ] = None,
    submission: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="With --data: write GLUE's file for its test server there.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer for texts on the command line, for lines of a file or of standard input, or for a dataset.

    A line is a text; a pair has a tab between its texts, a question a tab before its context. Lines that begin with {
    are JSON with the task's own names: text, pair; question, context; words; text, choices. Each line is answered as
    soon as it is there. Printed are the answer, a tab and the text; with --json all that is known, a line each.
    """
    from bertkit.tasks.finetuned import Finetuned as Opened

    if data is not None:
        if texts or source:
            raise BertkitError("give texts, --input or --data: one of them")
        _of_data(Opened.load(model), data, submission, as_json)
        return
    if submission is not None:
        raise BertkitError("--submission needs --data, the folder or the test file of a GLUE task")
    lines = texts_from(texts, source, EXAMPLE)
    opened = Opened.load(model)
    count = 0
    for given in _as_they_come(lines):
        items, error = _until_wrong(opened.items(map(_asked, given), count + 1))
        for line, answer in zip(given, opened.answers(items), strict=False):
            typer.echo(to_json({"input": line, **answer.told()}) if as_json else f"{answer.short}\t{one_line(line)}")
        if error is not None:
            raise error
        count += len(given)


def _until_wrong(items: Iterator[Item]) -> tuple[list[Item], BertkitError | None]:
    """What can be answered, and what is wrong with the line after it."""
    found = []
    try:
        for item in items:
            found.append(item)  # noqa: PERF402 - those before an error are kept
    except BertkitError as error:
        return found, error
    return found, None


def _asked(line: str) -> str | Mapping[str, Any]:
    if not line.startswith("{"):
        return line
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return line
    return found if isinstance(found, dict) else line


def _as_they_come(lines: Iterator[str]) -> Iterator[list[str]]:
    """The lines that are there, at least one at a time: who types waits for nobody, and a file is read in bulk."""
    waiting: queue.Queue[str | BaseException | None] = queue.Queue(2 * AHEAD)

    def read() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except BaseException as error:
            waiting.put(error)

    threading.Thread(target=read, daemon=True).start()
    more = True
    while more:
        found, one = [], waiting.get()
        while isinstance(one, str):
            found.append(one)
            if len(found) == AHEAD or waiting.empty():
                break
            one = waiting.get()
        if found:
            yield found
        if isinstance(one, BaseException):
            raise one
        more = one is not None


def _of_data(opened: Opened, data: Path, submission: Path | None, as_json: bool) -> None:
    """Answers for a file in the layout that was learned from."""
    from collections import deque

    from bertkit.tasks.submission import submit
    from bertkit.tasks.texts import watched

    if submission is not None:
        for path in submit(opened, data, submission):
            typer.echo(f"bertkit: wrote {path}", err=True)
        return
    waiting: deque[Item] = deque()
    for answer in opened.answers(watched(opened.layout.items(data), waiting)):
        item = waiting.popleft()
        id = getattr(item, "id", "") or str(item.row)
        typer.echo(to_json({"id": id, **answer.told()}) if as_json else f"{id}\t{answer.short}")
