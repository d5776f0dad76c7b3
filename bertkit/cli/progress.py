"""A progress bar on standard error for long work; silent where nobody is looking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

Watch = Callable[[Iterable[str], list[str] | None], Iterator[str]]


@contextmanager
def counting(verb: str, source: str | None) -> Iterator[tuple[Watch, Callable[[int], None]]]:
    """A wrapper for the texts (which may keep them as they pass) and a function that hears how many are done.

    The total is estimated from the size of the file, since counting its lines would mean to read it twice.
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    size = Path(source).stat().st_size if source and Path(source).is_file() else None
    columns = (TextColumn(verb), MofNCompleteColumn(), TextColumn("texts"), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task(verb, total=None)

        def watched(texts: Iterable[str], kept: list[str] | None) -> Iterator[str]:
            read = count = 0
            for text in texts:
                count += 1
                read += len(text.encode("utf-8", "replace")) + 1
                if size and count % 1024 == 0:
                    bar.update(task, total=max(count, round(size / read * count)))
                if kept is not None:
                    kept.append(text)
                yield text
            bar.update(task, total=count)

        def advance(count: int) -> None:
            bar.advance(task, count)

        yield watched, advance
