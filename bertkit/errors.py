"""The one error a user meets: what was given, what exists, what to type next."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

Value = TypeVar("Value")


class BertkitError(ValueError):
    """Something from outside (an argument, a file, a name) cannot be used. The message says how to go on."""


def unknown(what: str, given: object, known: Iterable[str]) -> BertkitError:
    """The error for a name that is not in a table, with the nearest name and all that exist.

    >>> print(unknown("pool", "men", ["cls", "mean", "max"]))
    unknown pool 'men': did you mean 'mean'? Known: cls, max, mean
    """
    names = sorted(known)
    near = difflib.get_close_matches(str(given), names, n=1)
    hint = f" did you mean {near[0]!r}?" if near else ""
    return BertkitError(f"unknown {what} {given!r}:{hint} Known: {', '.join(names) or 'none'}")


def look_up(what: str, given: object, table: Mapping[str, Value]) -> Value:
    """What a table holds under a name from outside, which may be anything.

    >>> look_up("size", "tny", {"tiny": 2, "base": 12})
    Traceback (most recent call last):
    bertkit.errors.BertkitError: unknown size 'tny': did you mean 'tiny'? Known: base, tiny
    """
    if not isinstance(given, str) or given not in table:
        raise unknown(what, given, table)
    return table[given]


@contextlib.contextmanager
def about(where: object) -> Iterator[None]:
    """Put a file's name before the errors of code that does not know which file it reads.

    >>> with about("config.json"):
    ...     raise BertkitError("hidden_size is missing")
    Traceback (most recent call last):
    bertkit.errors.BertkitError: config.json: hidden_size is missing
    """
    try:
        yield
    except BertkitError as error:
        raise BertkitError(f"{where}: {error}") from None
