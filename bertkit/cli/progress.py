"""A progress bar on standard error for long work; silent where nobody is looking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

Watch = Callable[[Iterable[str]], Iterator[str]]
Advance = Callable[[int], None]


@contextmanager
def counting(verb: str, source: str | None, prints: bool = False) -> Iterator[tuple[Watch, Advance]]:
    """A wrapper for the texts, and a function to tell how many are done.

    The total is estimated from the size of the file, since counting its lines would mean to read it twice. Work that
    `prints` its results shows no bar when they go to the same terminal.
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    size = Path(source).stat().st_size if source and Path(source).is_file() else None
    columns = (TextColumn(verb), MofNCompleteColumn(), TextColumn("texts"), TimeElapsedColumn(), TimeRemainingColumn())
    bar = Progress(
        *columns,
        console=Console(stderr=True),
        disable=not sys.stderr.isatty() or (prints and sys.stdout.isatty()),
        transient=True,
        redirect_stdout=False,  # rich would send it to the bar's console, which is standard error
    )
    with bar:
        task = bar.add_task(verb, total=None)

        def watched(texts: Iterable[str]) -> Iterator[str]:
            read = count = 0
            for text in texts:
                count += 1
                read += len(text.encode("utf-8", "replace")) + 1
                if size and count % 1024 == 0:
                    bar.update(task, total=max(count, round(size / read * count)))
                yield text
            bar.update(task, total=count)

        def advance(count: int) -> None:
            bar.advance(task, count)

        yield watched, advance


@contextmanager
def reading(verb: str, total: int) -> Iterator[Advance]:
    """A function to tell how many bytes of the sources were read in all."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn(verb), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True, redirect_stdout=False
    ) as bar:
        task = bar.add_task(verb, total=total)
        yield lambda read: bar.update(task, completed=read)
