"""Specs: frozen dataclasses that describe parts, to and from JSON.

Choosing a part is choosing a class. A part's settings are the fields of its own spec, checked when the spec is made, so
that no shared code asks which settings are valid together. `build(...)` on a spec makes the part.

>>> @dataclass(frozen=True)
... class Pixel(Spec):
...     size: Count
...     fade: Rate = 0.1
>>> to_json(Pixel(3))
{'part': 'Pixel', 'size': 3, 'fade': 0.1}
>>> from_json({"part": "Pixel", "size": 0})
Traceback (most recent call last):
bertkit.errors.BertkitError: Pixel.size is 0: it must be at least 1
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from bertkit.errors import BertkitError, look_up, unknown


@dataclass(frozen=True)
class Bounds:
    """The least value and the value that must not be reached."""

    least: float
    below: float = float("inf")

    def check(self, value: float, where: str) -> None:
        # written so that NaN fails as well
        if not value >= self.least:
            raise BertkitError(f"{where} is {value!r}: it must be at least {self.least:g}")
        if not value < self.below:
            raise BertkitError(f"{where} is {value!r}: it must be below {self.below:g}")


Count = Annotated[int, Bounds(1, 2**24)]
"""How many of something: heads, widths, rows of a table."""
Rate = Annotated[float, Bounds(0, 1)]
"""The share of values that dropout removes."""
Positive = Annotated[float, Bounds(1e-30)]
"""A size or spread above zero."""


@dataclass(frozen=True)
class Spec:
    """The base of all specs: checks its own fields and is known by its class name."""

    known: ClassVar[dict[str, type[Spec]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        assert cls.__name__ not in Spec.known, f"two specs are called {cls.__name__}"
        Spec.known[cls.__name__] = cls

    def __post_init__(self) -> None:
        for name, hint in _hints(self.__class__).items():
            _check(getattr(self, name), hint, f"{type(self).__name__}.{name}")


def to_json(value: Any) -> Any:
    """A spec as plain JSON values; the class name goes under `part`."""
    if isinstance(value, Spec):
        fields = {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"part": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    return value


def from_json(data: Any) -> Any:
    """The spec that `to_json` wrote. Unknown parts and keys fail with what exists."""
    if isinstance(data, list):
        return tuple(from_json(item) for item in data)
    if not isinstance(data, dict):
        return data
    if "part" not in data:
        return {key: from_json(item) for key, item in data.items()}
    kind = look_up("part", data["part"], Spec.known)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    given = {key: from_json(item) for key, item in data.items() if key != "part"}
    for key in given:
        if key not in fields:
            raise unknown(f"setting of {kind.__name__}", key, fields)
    for name, field in fields.items():
        if name not in given and field.default is field.default_factory is dataclasses.MISSING:
            raise BertkitError(f"{kind.__name__} lacks its setting {name!r}. Given: {', '.join(given) or 'none'}")
    return kind(**given)


def difference(ours: Any, theirs: Any, where: str = "") -> str:
    """Where two specs differ first, in words; empty where they do not.

    >>> from bertkit.parts.feed import Feed
    >>> difference({"feeds": (Feed(20), Feed(20))}, {"feeds": (Feed(20), Feed(24))})
    'feeds[1].inner is 20, not 24'
    >>> difference({"mlm": Feed(20)}, {})
    'mlm is Feed, not nothing'
    """
    if ours == theirs:
        return ""
    if isinstance(ours, Spec) and type(ours) is type(theirs):
        names = [field.name for field in dataclasses.fields(ours)]
        pairs = [(f"{where}.{name}", getattr(ours, name), getattr(theirs, name)) for name in names]
    elif isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        pairs = [(f"{where}.{key}", ours.get(key), theirs.get(key)) for key in dict.fromkeys((*ours, *theirs))]
    elif isinstance(ours, tuple) and isinstance(theirs, tuple) and len(ours) == len(theirs):
        pairs = [(f"{where}[{place}]", *pair) for place, pair in enumerate(zip(ours, theirs, strict=True))]
    else:
        verb = "counts" if isinstance(ours, tuple) and isinstance(theirs, tuple) else "is"
        return f"{where.removeprefix('.')} {verb} {_shown(ours)}, not {_shown(theirs)}"
    return next(filter(None, (difference(a, b, place) for place, a, b in pairs)))


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return str(len(value))
    return type(value).__name__ if isinstance(value, Spec) else "nothing" if value is None else repr(value)


def _hints(kind: type[Spec]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _check(value: Any, hint: Any, where: str) -> None:
    """Raise unless the value is of the annotated type and within its bounds."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        _check(value, arguments[0], where)
        for bounds in hint.__metadata__:
            bounds.check(value, where)
    elif origin is tuple:
        _expect(isinstance(value, tuple), value, "a list", where)
        inner = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        _expect(len(inner) == len(value), value, f"a list of {len(inner)}", where)
        for index, (item, item_hint) in enumerate(zip(value, inner, strict=True)):
            _check(item, item_hint, f"{where}[{index}]")
    elif origin in (dict, Mapping):
        _expect(isinstance(value, Mapping), value, "a table", where)
        for key, item in value.items():
            _check(item, arguments[1], f"{where}[{key!r}]")
    elif origin in (typing.Union, types.UnionType) and type(None) in arguments and len(arguments) == 2:
        if value is not None:
            _check(value, next(option for option in arguments if option is not type(None)), where)
    elif origin in (typing.Union, types.UnionType):
        plain = tuple(typing.get_origin(option) or option for option in arguments)
        _expect(isinstance(value, plain), value, " or ".join(option.__name__ for option in plain), where)
    elif hint is float:
        _expect(isinstance(value, (int, float)) and not isinstance(value, bool), value, "a number", where)
    elif hint is int:
        _expect(isinstance(value, int) and not isinstance(value, bool), value, "a whole number", where)
    else:
        _expect(isinstance(value, hint), value, f"a {hint.__name__}", where)


def _expect(right: bool, value: Any, wanted: str, where: str) -> None:
    if not right:
        shown = repr(value)
        raise BertkitError(f"{where} is {shown[:60]}{'…' * (len(shown) > 60)}: it must be {wanted}")
