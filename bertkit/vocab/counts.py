"""Counts: how often each string occurs, exactly, in bounded memory.

Counts are Python's whole numbers, which do not overflow. What would not fit is written to a temporary file as a sorted
run, and the runs are merged when they are read, so that the counts do not depend on the memory.
"""

from __future__ import annotations

import heapq
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path

ENTRY = 150
"""bytes of an entry beside its string: the number, and its share of a table that has just grown"""
RUNS = 64
"""files that are merged at a time"""


class Counts(AbstractContextManager["Counts"]):
    """Strings without line breaks, and how often each was added. Use it in a `with` block: it may own files.

    >>> with Counts(memory=1000) as counts:
    ...     counts.add("a b a".split())
    ...     counts.add(["b"], 10**12)
    ...     list(counts)
    [('a', 2), ('b', 1000000000001)]
    """

    def __init__(self, memory: int) -> None:
        self.total = 0
        """all strings that were added, each as often as it was"""
        self._memory = memory
        self._held: Counter[str] = Counter()
        self._bytes = 0
        self._runs: list[Path] = []
        self._files = ExitStack()

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget everything."""
        self._held.clear()
        self._runs.clear()
        self._files.close()

    def add(self, strings: list[str], times: int = 1) -> None:
        """Count each of the strings so many times more."""
        held, before = self._held, len(self._held)
        if times == 1:
            held.update(strings)
        else:
            for string in strings:
                held[string] = held.get(string, 0) + times
        self.total += times * len(strings)
        grown = len(held) - before
        self._bytes += sum(map(sys.getsizeof, islice(reversed(held), grown))) + ENTRY * grown
        if self._bytes > self._memory:
            self._spill()

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Each string once with its count, in the order of strings."""
        if not self._runs:
            for string in sorted(self._held):  # pairs would take ten times the memory
                yield string, self._held[string]
            return
        self._spill()
        with ExitStack() as files:
            yield from _merged(self._runs, files)

    @property
    def spilled(self) -> int:
        """How many runs are on the disk."""
        return len(self._runs)

    def _spill(self) -> None:
        if self._held:
            self._write((string, self._held[string]) for string in sorted(self._held))
            self._held.clear()
            self._bytes = 0
        if len(self._runs) >= RUNS:
            with ExitStack() as files:
                old = list(self._runs)
                self._write(_merged(old, files))
            for path in old:
                path.unlink()
            del self._runs[:-1]

    def _write(self, items: Iterable[tuple[str, int]]) -> None:
        if not self._runs:
            self._folder = Path(self._files.enter_context(tempfile.TemporaryDirectory(prefix="bertkit-counts-")))
            self._written = 0
        path = self._folder / f"run-{self._written}"
        with path.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
            file.writelines(f"{count} {string}\n" for string, count in items)
        self._written += 1
        self._runs.append(path)


def _merged(runs: list[Path], files: ExitStack) -> Iterator[tuple[str, int]]:
    opened = (run.open(encoding="utf-8", errors="surrogatepass", newline="\n") for run in runs)
    lines = heapq.merge(*(_read(files.enter_context(file)) for file in opened))
    for string, same in groupby(lines, key=itemgetter(0)):
        yield string, sum(count for _, count in same)


def _read(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    for line in lines:
        count, _, string = line[:-1].partition(" ")
        yield string, int(count)
