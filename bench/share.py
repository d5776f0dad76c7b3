"""A text tokenised by several processes, each a share of it, as workers of a corpus do: `python -m bench.share`."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench.pipe import Array, receive, send
from bertkit.text import Tokenizer
from bertkit.text.bulk import Bulk


class Shares:
    """Processes that hold their share of a text, and have read their share of what comes `before` it."""

    def __init__(self, model: str, text: str, before: str, count: int) -> None:
        command = [sys.executable, "-m", "bench.share"]
        alone = {**os.environ, "TOKENIZERS_PARALLELISM": "false"} if count > 1 else dict(os.environ)  # a core each
        self._processes = [subprocess.Popen(command, stdin=-1, stdout=-1, env=alone) for _ in range(count)]
        told = {"model": model, "text": text, "before": before, "count": count}
        self._ask([{**told, "number": number} for number in range(count)])

    @contextmanager
    def renewed(self) -> Iterator[Shares]:
        """Tables as they were after what came before."""
        self._ask([{"do": "renew"}] * len(self._processes))
        yield self

    def read(self) -> list[Array]:
        """The ids of each share, with words and sentences marked on the other side of the pipe."""
        return self._ask([{"do": "read"}] * len(self._processes))

    def _ask(self, messages: list[dict[str, Any]]) -> list[Array]:
        for process, message in zip(self._processes, messages, strict=True):
            assert process.stdin is not None
            send(process.stdin, message)
        answers = []
        for process in self._processes:
            assert process.stdout is not None
            answers.append(receive(process.stdout)[1])
        return [answer for answer in answers if answer is not None]


def share(documents: list[str], number: int, count: int) -> list[str]:
    """Neighbouring documents, about as many characters in each share.

    >>> [share(["a", "bb", "c", "dddd", "ee"], number, 2) for number in (0, 1)]
    [['a', 'bb', 'c'], ['dddd', 'ee']]
    """
    ends = np.cumsum([len(document) for document in documents])
    bounds = np.searchsorted(ends, ends[-1] * np.arange(count + 1) / count)
    bounds[-1] = len(documents)
    return documents[bounds[number] : bounds[number + 1]]


def _own(path: str, told: dict[str, Any]) -> str:
    documents = Path(path).read_text(encoding="utf-8").split("\n\n")
    return "\n\n".join(share(documents, told["number"], told["count"]))


def main() -> None:
    """Do what comes over stdin until it closes, which is when the process that started this one ends."""
    pipe_in, pipe_out = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else may write into the pipe
    told, _ = receive(pipe_in)
    tokenizer = Tokenizer.load(told["model"])
    warm, text = Bulk(tokenizer), _own(told["text"], told)
    if told["before"]:
        warm.read(_own(told["before"], told))
    bulk = warm
    send(pipe_out, {})
    while True:
        try:
            message, _ = receive(pipe_in)
        except EOFError:
            return
        if message["do"] == "renew":
            bulk = copy.deepcopy(warm, {id(tokenizer): tokenizer})
            send(pipe_out, {})
        else:
            send(pipe_out, {}, bulk.read(text).ids)


if __name__ == "__main__":
    main()
