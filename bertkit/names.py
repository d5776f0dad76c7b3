"""The engine of two-way weight-name tables: foreign weights are data.

A table maps our names to foreign ones. `{}` stands for a layer number. A tuple of foreign names means that ours is
theirs, one below the other (queries, keys and values in one matrix).

>>> names = Names({"layers.{}.qkv": ("block.{}.q", "block.{}.k", "block.{}.v"), "norm.weight": "norm.weight"})
>>> names.foreign("layers.3.qkv")
('block.3.q', 'block.3.k', 'block.3.v')
>>> names.own("block.3.k")
'layers.3.qkv'
>>> names.own("block.x.k") is None
True
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from bertkit.errors import BertkitError


@dataclass(frozen=True)
class Plan:
    """Where each of our parameters comes from, and the foreign names that nobody asked for."""

    sources: dict[str, tuple[str, ...]]
    left: tuple[str, ...]


@dataclass(frozen=True)
class Names:
    """Our name -> foreign name or names."""

    rows: Mapping[str, str | tuple[str, ...]]

    def foreign(self, own: str) -> tuple[str, ...]:
        """What foreign files call one of our parameters."""
        for pattern, theirs in self._ours:
            match = pattern.fullmatch(own)
            if match:
                return tuple(template.format(*match.groups()) for template in theirs)
        raise AssertionError(f"no row of the name table speaks of {own}")

    def own(self, foreign: str) -> str | None:
        """Our name for a foreign parameter, None where no row speaks of it."""
        for pattern, template in self._theirs:
            match = pattern.fullmatch(foreign)
            if match:
                return template.format(*match.groups())
        return None

    def plan(self, own: Iterable[str], foreign: Iterable[str], where: str) -> Plan:
        """Fill all of ours from foreign names. Total: what is missing, or meant for us without a place, fails."""
        present = dict.fromkeys(foreign)
        sources = {name: self.foreign(name) for name in own}
        missing = [name for names in sources.values() for name in names if name not in present]
        left = [name for name in present if self.own(name) not in sources]
        astray = [name for name in left if self.own(name) is not None]
        if missing:
            raise BertkitError(f"{where} lacks {_listed(missing)}.{_nearest(missing[0], left)}")
        if astray:
            raise BertkitError(
                f"{where} has {_listed(astray)}, for which the model of its config has no place: "
                "config and weights are not of the same model"
            )
        return Plan(sources, tuple(left))

    @cached_property
    def _ours(self) -> list[tuple[re.Pattern[str], tuple[str, ...]]]:
        return [(_pattern(ours), _tuple(theirs)) for ours, theirs in self.rows.items()]

    @cached_property
    def _theirs(self) -> list[tuple[re.Pattern[str], str]]:
        return [(_pattern(name), ours) for ours, theirs in self.rows.items() for name in _tuple(theirs)]


def _tuple(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _pattern(template: str) -> re.Pattern[str]:
    # at most six digits: layer numbers, not a way to name a billion layers; no leading zeros, so that names are unique
    return re.compile(re.escape(template).replace(r"\{\}", "(0|[1-9][0-9]{0,5})"))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _nearest(name: str, left: list[str]) -> str:
    near = difflib.get_close_matches(name, left[:2000], n=2)
    return f" Nearest that is there: {', '.join(near)}" if near else ""
