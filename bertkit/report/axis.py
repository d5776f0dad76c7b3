"""Scales: from values to places, with round ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`, and the round ones among them that get a label."""

    low: float
    high: float
    step: float

    def place(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high one.

        >>> Axis(0, 40, 10).place(30)
        0.75
        """
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """The multiples of the step on this axis.

        >>> Axis(3, 41, 10).ticks()
        [10, 20, 30, 40]
        """
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return [number * self.step for number in range(first, last + 1)]

    def label(self, tick: float) -> str:
        """The tick in words, with as many decimals as the step has.

        >>> Axis(0, 1, 0.25).label(0.5), Axis(0, 4000, 1000).label(2000), Axis(0, 1e-6, 2e-7).label(4e-7)
        ('0.50', '2,000', '4e-07')
        """
        if not 1e-5 <= self.step < 1e12:
            return f"{tick:.6g}"
        decimals = next(count for count in range(8) if abs(round(self.step, count) / self.step - 1) < 1e-6)
        return f"{tick:,.{decimals}f}"


def tight(low: float, high: float, whole: bool = False, most: int = 6) -> Axis:
    """An axis that ends where the values end; `whole` numbers get no ticks between them.

    >>> tight(0, 512).ticks()
    [0, 100, 200, 300, 400, 500]
    """
    low, high = _apart(low, high)
    return Axis(low, high, _step(high - low, most, whole))


def loose(low: float, high: float, whole: bool = False, most: int = 5) -> Axis:
    """An axis that ends at round values.

    >>> axis = loose(0, 8731)
    >>> axis.high, axis.step
    (10000, 2000)
    """
    low, high = _apart(low, high)
    step = _step(high - low, most, whole)
    return Axis(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step)


def _apart(low: float, high: float) -> tuple[float, float]:
    """One value alone has no extent: give it some."""
    if low < high:
        return low, high
    around = abs(low) / 2 or 1.0
    return (low - around, low + around) if low else (0.0, 1.0)


def _step(extent: float, most: int, whole: bool) -> float:
    """The smallest of 1, 2, 5, 10, … that gives at most so many steps.

    >>> _step(512, 6, False), _step(0.9, 5, False), _step(3, 6, False), _step(3, 6, True)
    (100, 0.2, 0.5, 1)
    """
    power = 10.0 ** math.floor(math.log10(extent / most))
    factor = next(factor for factor in (1, 2, 5, 10) if factor * power * most >= extent * (1 - 1e-9))
    step = factor * power
    return max(round(step), 1) if step >= 1 or whole else float(f"{step:.6g}")
