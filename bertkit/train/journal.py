"""The journal of a run: a line of JSON for each thing that was measured, in the order of steps.

A run that goes on from a checkpoint first forgets what was written after it, so that none is told twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from bertkit import artifact

NAME = "log.jsonl"
NOTHING = -1
"""the step before the first: a journal up to it is empty"""


class Journal(AbstractContextManager["Journal"]):
    """Lines up to a step, and then new ones; each is on its way to the disk when it is written."""

    def __init__(self, path: Path, step: int) -> None:
        kept = [line for line in lines(path) if line.get("step", 0) <= step]
        with artifact.file(path, overwrite=True) as file:
            file.writelines(_line(line) for line in kept)
        self._file = path.open("ab")

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def write(self, kind: str, step: int, **values: Any) -> None:
        """Put a line at the end."""
        self._file.write(_line({"kind": kind, "step": step, **values}))
        self._file.flush()


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """All that is written, as far as it is whole."""
    if path.is_file():
        for line in path.read_bytes().splitlines():
            with suppress(ValueError):  # a kill may cut the last line short
                yield json.loads(line)


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode() + b"\n"
