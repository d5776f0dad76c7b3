"""The contestant's side of the pipe: it opens a job, answers once, and then times itself as often as it is asked.

Time is taken here, around the calls alone, so that the pipe costs nobody anything.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import metadata
from itertools import cycle
from typing import Any

from bench.pipe import Array, receive, send

Call = Callable[[], Array]


@dataclass(frozen=True)
class Fresh:
    """A call that needs something new each time, such as an empty directory. `call` alone is timed."""

    made: Callable[[], AbstractContextManager[Any]]
    """what it needs, until it is done"""
    call: Callable[[Any], Any]
    answer: Callable[[Any], Array]
    """of what the call gave"""


def by_turns(call: Callable[[Any], Array], pieces: Sequence[Any]) -> Fresh:
    """A call that has the next piece each time, and the first one again after the last."""
    turns = cycle(pieces)
    return Fresh(lambda: nullcontext(next(turns)), call, lambda answer: answer)


Job = Callable[..., Call | Fresh]
"""The arguments of a case (and `array`, where it has one) to what is called again and again; opening is not timed."""


def serve(jobs: Mapping[str, Job], packages: Iterable[str]) -> None:
    """Do what comes over stdin until it closes. `packages` are those whose versions matter to a reader."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get between the frames
    versions = {name: metadata.version(name) for name in packages}
    call: Fresh | None = None
    while True:
        try:
            message, array = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if "job" in message:
                call = None  # the last model goes before the next one comes
                call = _open(jobs, message, array)
                seconds, answer = _answer(call)
                send(out, {"versions": versions, "seconds": seconds}, answer)
            else:
                assert call is not None, "no job is open"
                send(out, {"seconds": _seconds(call, message["calls"])})
        except Exception as error:  # whatever a library raises is the reason in the peer's row
            send(out, {"error": f"{type(error).__name__}: {error}"})


def _open(jobs: Mapping[str, Job], message: dict[str, Any], array: Array | None) -> Fresh:
    if message["job"] not in jobs:
        raise LookupError(f"it does not do {message['job']!r}, only {', '.join(jobs)}")
    given = message["arguments"] if array is None else {**message["arguments"], "array": array}
    call = jobs[message["job"]](**given)
    if isinstance(call, Fresh):
        return call
    return Fresh(nullcontext, lambda _: call(), lambda answer: answer)


def _answer(call: Fresh) -> tuple[float, Array]:
    """With the seconds of the call."""
    with call.made() as given:
        begun = time.perf_counter()
        found = call.call(given)
        return time.perf_counter() - begun, call.answer(found)


def _seconds(call: Fresh, calls: int) -> float:
    total = 0.0
    for _ in range(calls):
        with call.made() as given:
            begun = time.perf_counter()
            found = call.call(given)
            total += time.perf_counter() - begun
            del found  # which is not timed either
    return total / calls
