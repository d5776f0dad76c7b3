"""Lanes: batches side by side, each on a core of its own.

Cores that share one matrix product wait for each other at its end, hundreds of times in a forward pass. Each with a
batch of its own they never wait.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain, islice
from threading import Barrier
from typing import TypeVar

import torch

from bertkit.batch import Batch

Result = TypeVar("Result")
LEAST = 4
"""as many of the smallest groups hold the tokens of a whole one: smaller ones would cost more than they spare"""
CHEAP = 16
"""tokens of padding that cost less than another batch: for a batch that is small waits for the network's weights"""


@dataclass(frozen=True)
class Lanes:
    """`count` batches at a time, each of about `tokens` tokens at most, with `padding` at most."""

    count: int = 1
    tokens: int = 2048
    padding: float = math.inf
    """tokens; as many as there are, where it costs nothing"""

    @property
    def alone(self) -> bool:
        """Whether each text has a batch of its own, computed the same way whatever comes before and after it."""
        return self.tokens == 1

    @classmethod
    def on(cls, device: torch.device) -> Lanes:
        """One for each of torch's threads on a CPU; other devices share the work of one batch themselves."""
        return cls(torch.get_num_threads(), 1024) if device.type == "cpu" else cls()

    def groups(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Indices of texts, longest first, in groups of about `tokens` tokens, and of fewer towards the end.

        A lane that is free takes the next group. As no group holds more than a lane's part of what is left, none is
        still at work for long when the others find nothing more. A text is never cut: a group may be larger by a part
        of its last text. What fits into one group is one, unless it would hold too much padding.

        >>> list(Lanes(2, tokens=9).groups([3, 9, 4, 2]))
        [[1], [2, 0], [3]]
        >>> list(Lanes(2, tokens=1).groups([3, 9, 4, 2]))
        [[1], [2], [0], [3]]
        >>> list(Lanes(padding=2).groups([3, 9, 4, 2]))
        [[1], [2, 0], [3]]
        """
        left = sum(lengths)
        size = left if left <= self.tokens else self._share(left)
        group: list[int] = []
        held = 0
        for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
            padding = lengths[group[0]] * (len(group) + 1) - held - lengths[index] if group else 0
            if group and (held >= size or padding > self.padding):
                yield group
                left -= held
                group, held, size = [], 0, self._share(left)
            group.append(index)
            held += lengths[index]
        if group:
            yield group

    def _share(self, left: int) -> float:
        """Tokens of the next group, where so many are left."""
        return min(self.tokens, max(left / self.count, self.tokens / LEAST))

    def map(self, function: Callable[[Batch], Result], batches: Iterable[Batch]) -> Generator[Result, None, None]:
        """The function of each batch, in order; a single batch has all cores. A few batches are read ahead."""
        rest = iter(batches)
        first = list(islice(rest, self.count))
        if not first or (len(first) < 2 and not self.alone):
            yield from map(function, chain(first, rest))
            return
        _keep_freed_memory()
        threads, meeting = torch.get_num_threads(), Barrier(len(first))
        pool = ThreadPoolExecutor(len(first), "lane")
        ahead: deque[Future[Result]] = deque()
        try:
            for lane in [pool.submit(_alone, meeting) for _ in first]:
                lane.result()
            torch.set_num_threads(threads)  # threads that others start meanwhile take the number told last
            for batch in chain(first, rest):
                ahead.append(pool.submit(function, batch))
                if len(ahead) > 2 * self.count:
                    yield ahead[0].result()
                    ahead.popleft()
            while ahead:
                yield ahead[0].result()
                ahead.popleft()
        finally:
            meeting.abort()
            pool.shutdown(wait=False, cancel_futures=True)
            _finish([batch for batch in ahead if not batch.cancelled()])
            pool.shutdown()


def _finish(running: Collection[Future[Result]]) -> None:
    """Wait for batches under way, also for one who presses Ctrl-C again: a process that ends meanwhile is aborted.

    Python 3.11 takes a thread for ended when the wait for it is interrupted, so it is the batches that are waited for.
    """
    try:
        wait(running)
    except KeyboardInterrupt:
        _finish(running)
        raise


def _keep_freed_memory() -> None:
    """Let the C library learn that blocks of up to 32 MB come and go: it stops handing them back to the system.

    Otherwise every layer of every batch gets its pages anew, zeroed one by one. glibc learns from the largest block
    ever freed; this one is never touched, so it takes no memory, and other C libraries ignore it.
    """
    torch.empty(32 * 2**20 - 2**16, dtype=torch.uint8)


def _alone(meeting: Barrier) -> None:
    """Give this thread one core. Lanes wait for each other, so that every one of them comes here."""
    torch.get_num_threads()  # a thread takes the process's number when it is first asked for: before ours, not after
    torch.set_num_threads(1)
    meeting.wait()
