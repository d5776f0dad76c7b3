"""A crew: worker processes that are given pieces and answer with facts.

Each is a Python of its own at the other end of a pipe, so that nothing of the caller is imported again, and a worker
whose boss was killed reads the end of its pipe and goes. A message is a line of JSON, followed by so many bytes.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import IO, Any

from bertkit.errors import BertkitError

Message = dict[str, Any]

ENVIRONMENT = {
    "TOKENIZERS_PARALLELISM": "false",  # each has a core of its own
    "MALLOC_MMAP_THRESHOLD_": "1000000",  # glibc gives whole texts back when they are done, and keeps small arrays
}


class Crew(AbstractContextManager["Crew"]):
    """So many workers, each running `python -m MODULE`, told `settings` and some bytes first.

    `run` gives every job to the next worker that is free and yields the answers as they come.
    """

    def __init__(self, module: str, settings: Message, data: bytes, count: int) -> None:
        self._module, self._settings, self._data, self._count = module, settings, data, count
        self._workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Crew:
        for _ in range(self._count):
            worker = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **ENVIRONMENT},
            )
            self._workers.append(worker)
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers:
            worker.kill()  # what a worker writes appears whole or not at all
        for worker in self._workers:
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):  # what it was still to be told
                    pipe.close()

    def run(self, jobs: Iterator[tuple[Message, bytes]]) -> Iterator[Message]:
        """The answers to all jobs, in no order; an error of a worker is raised here.

        An error of `jobs` itself is raised when all that was given out before is done.
        """
        rest = _Held(jobs)
        with selectors.DefaultSelector() as busy:
            for worker in self._workers:
                self._tell(worker, self._settings, self._data)
                self._next(worker, rest, busy)
            while busy.get_map():
                for key, _ in busy.select():
                    worker = key.data
                    answer = self._hear(worker)
                    busy.unregister(key.fileobj)
                    self._next(worker, rest, busy)
                    yield answer
        if rest.error:
            raise rest.error

    def _next(
        self, worker: subprocess.Popen[bytes], jobs: Iterator[tuple[Message, bytes]], busy: selectors.BaseSelector
    ) -> None:
        job = next(jobs, None)
        if job is not None:
            self._tell(worker, *job)
            assert worker.stdout is not None
            busy.register(worker.stdout, selectors.EVENT_READ, worker)

    def _tell(self, worker: subprocess.Popen[bytes], message: Message, data: bytes = b"") -> None:
        assert worker.stdin is not None
        try:
            send(worker.stdin, message, data)
        except BrokenPipeError:
            raise _lost(worker) from None

    def _hear(self, worker: subprocess.Popen[bytes]) -> Message:
        assert worker.stdout is not None
        received = receive(worker.stdout)
        if received is None:
            raise _lost(worker)
        answer, _ = received
        if "error" in answer:
            raise BertkitError(answer["error"])
        return answer


class _Held(Iterator[tuple[Message, bytes]]):
    """Jobs that end where making the next one fails; the error is kept."""

    def __init__(self, jobs: Iterator[tuple[Message, bytes]]) -> None:
        self._jobs = jobs
        self.error: Exception | None = None

    def __next__(self) -> tuple[Message, bytes]:
        try:
            return next(self._jobs)
        except StopIteration:
            raise
        except Exception as error:
            self.error = error
            raise StopIteration from None


def _lost(worker: subprocess.Popen[bytes]) -> BertkitError:
    code = worker.wait()
    if code == -signal.SIGKILL:
        how = "was killed, most likely because memory ran out: take fewer --workers"
    else:
        how = f"ended with exit code {code}; what it said stands above"
    return BertkitError(f"a worker process {how}. What is finished is kept: the same command goes on from there")


def send(pipe: IO[bytes], message: Message, data: bytes = b"") -> None:
    """Write a message and its bytes."""
    pipe.write(json.dumps({**message, "bytes": len(data)}).encode() + b"\n")
    pipe.write(data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[Message, bytes] | None:
    """The next message and its bytes; None at the end of the pipe."""
    line = pipe.readline()
    if not line.endswith(b"\n"):
        return None
    message: Message = json.loads(line)
    count = message.pop("bytes")
    data = pipe.read(count)
    return (message, data) if len(data) == count else None
