"""Schedules: the learning rate of each step, as a share of the highest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from bertkit.spec import Bounds, Rate, Spec

Steps = Annotated[int, Bounds(0, 2**40)]


@dataclass(frozen=True)
class Schedule(Spec):
    """The base of all schedules."""

    def share(self, step: int, steps: int) -> float:
        """The share for step `step` (from 0) of `steps`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Warmed(Schedule):
    """Schedules that go up in even steps first, from 0."""

    warmup: Steps = 10_000

    def share(self, step: int, steps: int) -> float:
        return step / self.warmup if step < self.warmup else self.after(step, steps)

    def after(self, step: int, steps: int) -> float:
        """The share of a step after the warm-up."""
        raise NotImplementedError


@dataclass(frozen=True)
class Constant(Warmed):
    """Up, then level.

    >>> [Constant(warmup=4).share(step, 10) for step in (0, 1, 4, 9)]
    [0.0, 0.25, 1.0, 1.0]
    """

    def after(self, step: int, steps: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Linear(Warmed):
    """Up, then down in even steps to 0: BERT's.

    >>> [Linear(warmup=4).share(step, 10) for step in (0, 1, 4, 7, 10)]
    [0.0, 0.25, 1.0, 0.5, 0.0]
    """

    def after(self, step: int, steps: int) -> float:
        return (steps - step) / (steps - self.warmup) if step < steps else 0.0


@dataclass(frozen=True)
class Cosine(Warmed):
    """Up, then down along half a wave to 0.

    >>> [round(Cosine(warmup=4).share(step, 12), 2) for step in (0, 4, 6, 8, 12)]
    [0.0, 1.0, 0.85, 0.5, 0.0]
    """

    def after(self, step: int, steps: int) -> float:
        done = (step - self.warmup) / (steps - self.warmup) if step < steps else 1.0
        return 0.5 + 0.5 * math.cos(math.pi * done)


@dataclass(frozen=True)
class Slanted(Schedule):
    """ULMFiT's slanted triangle (https://arxiv.org/abs/1801.06146): a share `cut` of all steps up, the rest down.

    >>> [round(Slanted().share(step, 100), 3) for step in (0, 5, 10, 55, 100)]
    [0.031, 0.516, 1.0, 0.516, 0.031]
    """

    cut: Rate = 0.1
    ratio: Annotated[float, Bounds(1)] = 32.0
    """how many times lower the lowest rate is"""

    def share(self, step: int, steps: int) -> float:
        top = max(1, math.floor(steps * self.cut))
        # the paper counts the way down from `cut` as well, and so falls below its lowest rate where `top` was rounded
        done = step / top if step < top else (steps - step) / (steps - top) if step < steps else 0.0
        return (1 + done * (self.ratio - 1)) / self.ratio
