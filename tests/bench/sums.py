"""A contestant for the tests of the bench: it adds numbers up, and fails in each of the ways a real one does."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np

from bench.child import Call, Fresh, by_turns, serve
from bench.measure import weighed
from bench.pipe import Array


def running(array: Array, factor: float = 1.0, seconds: float = 0.0) -> Call:
    def call() -> Array:
        print("a library that talks on stdout")  # must not get between the frames
        time.sleep(seconds)
        return np.cumsum(array, axis=-1) * factor

    return call


def prepared(array: Array) -> Fresh:
    """Making ready and reading the answer take long, the call itself does not; each has numbers of its own."""

    @contextmanager
    def made() -> Iterator[list[Array]]:
        time.sleep(0.2)
        yield [array]

    def answer(found: Array) -> Array:
        time.sleep(0.2)
        return found

    return Fresh(made, lambda numbers: np.cumsum(numbers.pop(), axis=-1), answer)


def dealt(array: Array) -> Fresh:
    """A row in each call; the third takes long."""

    def call(row: Array) -> Array:
        time.sleep(0.2 if np.array_equal(row, array[2]) else 0)
        return np.cumsum(row)

    return by_turns(call, list(array))


def failing(array: Array) -> Call:
    raise RuntimeError("no adder\nis here")


def ending(array: Array) -> Call:
    print("adder: out of digits", file=sys.stderr, flush=True)
    os._exit(3)


def killed(array: Array) -> Call:
    print("adder: all is well", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def ending_later(array: Array) -> Call:
    answers = [np.cumsum(array, axis=-1)]
    return lambda: answers.pop() if answers else ending(array)()


def hanging(array: Array) -> Call:
    time.sleep(60)
    raise AssertionError


def hoarding(megabytes: int) -> Fresh:
    """Each call takes memory, and gives it back."""
    return Fresh(nullcontext, lambda _: np.ones(megabytes * 10**6, np.uint8).sum(), lambda total: total)


if __name__ == "__main__":
    jobs = {name: job for name, job in list(vars().items()) if getattr(job, "__module__", "") == __name__}
    serve({**jobs, "hoarding_memory": weighed(hoarding)}, ["numpy"])
