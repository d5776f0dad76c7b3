"""`bertkit predict`: the answers of a fine-tuned model, line by line as they come."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertkit.cli import keeping
from bertkit.cli.arguments import Input, Json, Texts, texts_from
from bertkit.cli.engines import BatchInvariant, Engine, use
from bertkit.cli.evaluate import Finetuned
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import json_line, one_line
from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.runtime.ledger import Ledger
    from bertkit.tasks.finetuned import Finetuned as Opened
    from bertkit.tasks.item import Item

EXAMPLE = "bertkit predict runs/mine 'a text'"
ANSWERS = "answers"
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
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.jsonl", help="Write what --json prints to a file instead."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help=keeping.OVERWRITE)] = False,
    engine: Engine = "auto",
    batch_invariant: BatchInvariant = False,
    as_json: Json = False,
) -> None:
    """Answer for texts on the command line, for lines of a file or of standard input, or for a dataset.

    A line is a text; a pair has a tab between its texts, a question a tab before its context. Lines that begin with {
    are JSON with the task's own names: text, pair; question, context; words; text, choices. Each line is answered as
    soon as it is there. Printed are the answer, a tab and the text; with --json all that is known, a line each.

    With --output these lines go to a file, which appears when it is whole. Interrupted or killed, the same command goes
    on: until the file is whole, its lines are kept in FILE.jsonl.part.
    """
    opened = partial(_opened, model, engine, batch_invariant, data or source)
    if data is not None and (texts or source):
        raise BertkitError("give texts, --input or --data: one of them")
    if output is not None:
        if submission is not None:
            raise BertkitError("--submission names its files itself: give it, or --output")
        keeping.require_output(output, ".jsonl", "has a JSON object on each line", overwrite)
        lines = texts_from(texts, source, EXAMPLE) if data is None else iter(())
        with keeping.told_when_stopped(output, ANSWERS, overwrite):
            _to_file(opened(), lines, source, data, output, overwrite, as_json)
        return
    if data is not None:
        _of_data(opened(), data, submission, as_json)
        return
    if submission is not None:
        raise BertkitError("--submission needs --data, the folder or the test file of a GLUE task")
    lines = texts_from(texts, source, EXAMPLE)
    answerer, count = opened(), 0
    for given in _as_they_come(lines):
        items, error = _until_wrong(answerer.items(map(_asked, given), count + 1))
        for line, answer in zip(given, answerer.answers(items), strict=False):
            typer.echo(to_json({"input": line, **answer.told()}) if as_json else f"{answer.short}\t{one_line(line)}")
        if error is not None:
            raise error
        count += len(given)


def _opened(model: Path, engine: str, batch_invariant: bool, source: str | Path | None) -> Opened:
    from bertkit.tasks.finetuned import Finetuned as Opened

    found = Opened.load(model)
    use(found.model, engine, batch_invariant, source)
    return found


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
        id = _id(item)
        typer.echo(to_json({"id": id, **answer.told()}) if as_json else f"{id}\t{answer.short}")


def _to_file(
    opened: Opened,
    lines: Iterator[str],
    source: str | None,
    data: Path | None,
    output: Path,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Answers for lines, or for a dataset, in a file."""
    from bertkit.cli.progress import counting
    from bertkit.runtime.ledger import growing

    facts = {**opened.decides, "asked": "lines" if data is None else "data"}
    with (
        counting("answering", source) as (watched, advance),
        growing(output, facts, ANSWERS, overwrite=overwrite) as ledger,
    ):
        keeping.say_where_it_goes_on(ledger, ANSWERS)
        advance(ledger.kept.items)
        cut = keeping.cut_before(ledger, opened.model.limit)
        asked = _lines(opened, watched(lines), ledger) if data is None else _items(opened, data, ledger)
        count = ledger.kept.items
        for names, items in asked:
            for name, answer in zip(names, opened.answers(items, cut), strict=True):
                ledger.file.write(json_line({**name, **answer.told()}))
            advance(len(items))
            ledger.keep(cut=keeping.counts(cut))
            count += len(items)
    keeping.tell_cut(count, cut)
    if as_json:
        typer.echo(to_json({"answers": count, "output": str(output)}))
    else:
        told = f"{count:,} {'answer' if count == 1 else ANSWERS} in {output}"
        typer.echo(f"{told}. Next: python -m json.tool --json-lines {output}", err=True)


Named = tuple[list[dict[str, str]], "list[Item]"]
"""how the answers of a window are named, and what is asked"""


def _lines(opened: Opened, lines: Iterator[str], ledger: Ledger) -> Iterator[Named]:
    for window in ledger.windows(lines):
        yield [{"input": line} for line in window], list(opened.items(map(_asked, window), ledger.kept.items + 1))


def _items(opened: Opened, data: Path, ledger: Ledger) -> Iterator[Named]:
    from dataclasses import replace

    def told(item: Item) -> str:
        return repr(replace(item, path=Path()))  # wherever the file lies

    for window in ledger.windows(opened.layout.items(data), told):
        yield [{"id": _id(item)} for item in window], window


def _id(item: Item) -> str:
    return getattr(item, "id", "") or str(item.row)
