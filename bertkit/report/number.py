"""Numbers as a reader wants them: separators between thousands, no more digits than carry meaning."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TypeGuard

from bertkit.errors import BertkitError


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number of Python or NumPy; a truth value is not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def shown(value: object, form: str = "") -> str:
    """A value for a table or a label; `form` is a format specification for numbers, such as `.1%`.

    >>> shown(1234567), shown(0.123456), shown(2345.678), shown(0.987, ".0%"), shown(True), shown(None)
    ('1,234,567', '0.1235', '2,346', '99%', 'yes', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not is_number(value):
        return str(value)
    if math.isnan(value):
        return "–"
    if form or _is_whole(value):
        return format(value, form or ",")
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral)


def require_finite(what: str, values: Iterable[object]) -> list[float]:
    """The values as floats, or an error that names the first which no chart can show."""
    found = []
    for index, value in enumerate(values):
        if not is_number(value) or not math.isfinite(value):
            raise BertkitError(f"{what}[{index}] is {value!r}: a chart needs finite numbers; drop or replace it")
        found.append(float(value))
    return found
