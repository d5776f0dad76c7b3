"""Recipes: all that decides a run, in one TOML file.

`read` takes the file and changes such as `train.steps=60`. A recipe that `extends` another, named by its path from
there, says only what differs. Unknown keys are errors that say what exists. The resolved recipe is written into the
run, and gives the same run again.
"""

from __future__ import annotations

import dataclasses
import tomllib
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from bertkit import objectives
from bertkit.corpus.inputs import Inputs
from bertkit.errors import BertkitError, about, look_up, unknown
from bertkit.objectives.masked_lm import MaskedLm
from bertkit.objectives.objective import Objective, SelfSupervised, Sum
from bertkit.objectives.pairs import Nsp
from bertkit.parts.init import SPREAD
from bertkit.spec import Bounds, Count, Positive, Rate, Spec, to_json
from bertkit.text.files import read_text
from bertkit.train.compute import Compute
from bertkit.train.material import Data
from bertkit.train.optimizer import Adam, Optimizer
from bertkit.train.schedule import Linear, Schedule

objectives.learn_parts()

Kind = TypeVar("Kind", bound=Spec)
Seed = Annotated[int, Bounds(0, 2**63)]
Many = Annotated[int, Bounds(1, 2**40)]
Some = Annotated[int, Bounds(0, 2**40)]


@dataclass(frozen=True)
class Start(Spec):
    """What learning begins with."""

    size: str = "bert-tiny"
    """of a new network: a name of `bertkit.list_models(pretrained=False)`"""
    weights: str = ""
    """of an existing one instead: a directory, an alias or a name, to go on with another text"""
    dropout: Rate = 0.1
    """of a new network, on hidden states and attention"""
    spread: Positive = SPREAD
    """deviation of a new network's weights: BERT's 0.02 is for 768 wide; narrow ones learn sooner with 0.5 / √width"""
    neighbours: Some = 0
    """how near tokens stand that count as company: a new network's token vectors begin near those of tokens with the
    same company in the corpus; 0: at random"""


@dataclass(frozen=True)
class Phase(Spec):
    """Some of the steps, with inputs of one kind and length."""

    inputs: Inputs
    share: Positive = 1.0
    """how many of the steps, in proportion to the other phases"""
    rows: Count = 256
    """examples of a step"""
    micro: Count = 32
    """examples that are in memory at once"""


@dataclass(frozen=True)
class Train(Spec):
    """How."""

    steps: Many
    phases: tuple[Phase, ...]
    optimizer: Optimizer = field(default_factory=Adam)
    schedule: Schedule = field(default_factory=Linear)
    clip: Annotated[float, Bounds(0)] = 1.0
    """the longest gradient; 0: as long as it is"""
    checkpoint_every: Many = 1000
    keep_last: Count = 2
    log_every: Many = 10
    evaluate_every: Some = 0
    """steps from one exam on held-out text to the next; 0: only at the beginning and the end"""
    questions: Count = 256
    """examples of an exam"""
    keep_best: bool = True
    """whether the network of the best exam is kept in RUN/best; there is one where `evaluate_every` says so"""
    tensorboard: bool = False
    """whether the curves are written for TensorBoard as well"""
    copies: Some = 0
    """epochs after which the same examples with the same masks come again, as in Google's files; 0: never"""


@dataclass(frozen=True)
class Recipe(Spec):
    """A whole run."""

    output: str
    data: Data
    train: Train
    model: Start = field(default_factory=Start)
    objective: tuple[SelfSupervised, ...] = (Nsp(), MaskedLm())
    compute: Compute = field(default_factory=Compute)
    seed: Seed = 0

    @property
    def learned(self) -> Objective:
        """The objectives as one."""
        return self.objective[0] if len(self.objective) == 1 else Sum(self.objective)


def read(path: Path, changes: Sequence[str] = ()) -> Recipe:
    """The recipe of a file, with changes such as `train.steps=60` or `output=runs/first`."""
    return read_as(Recipe, path, changes)


def read_as(kind: type[Kind], path: Path, changes: Sequence[str] = ()) -> Kind:
    """As `read`, of a recipe of any kind."""
    data = _extended(path, ())
    for change in changes:
        _change(data, change)
    with about(path):
        recipe: Kind = _made(data, kind, "")
    return recipe


def _extended(path: Path, before: tuple[Path, ...]) -> dict[str, Any]:
    """The keys of a file, upon those of the file that it extends."""
    try:
        data = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise BertkitError(f"{path} is not TOML: {error}") from None
    base = data.pop("extends", None)
    if base is None:
        return data
    if not isinstance(base, str) or not (path.parent / base).is_file():
        raise BertkitError(f"{path} extends {base!r}, and there is no such file beside it: give a path from there")
    if path.resolve() in before:
        raise BertkitError(f"{path} extends itself, by way of {before[-1].name}: take one of the two away")
    return _upon(_extended(path.parent / base, (*before, path.resolve())), data)


def _upon(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Sections go together key by key; whatever names a part, and all else, takes the place of the old.

    >>> _upon({"seed": 1, "train": {"steps": 5, "clip": 1.0}}, {"train": {"steps": 9}})
    {'seed': 1, 'train': {'steps': 9, 'clip': 1.0}}
    """
    made = dict(old)
    for name, value in new.items():
        both = isinstance(value, dict) and isinstance(old.get(name), dict) and "part" not in value
        made[name] = _upon(old[name], value) if both else value
    return made


def to_toml(recipe: Spec) -> str:
    """The recipe with every setting spelled out; `read` gives it back."""
    told = {name: value for name, value in to_json(recipe).items() if name != "part" and value is not None}
    flat = [f"{name} = {_toml(value)}" for name, value in told.items() if not _is_section(value)]
    sections = [
        "\n".join([f"[{name}]", *(f"{key} = {_toml(entry)}" for key, entry in _said(getattr(recipe, name), value))])
        for name, value in told.items()
        if _is_section(value)
    ]
    return "\n\n".join(["\n".join(flat), *sections]) + "\n"


def differences(old: Spec, new: Spec) -> list[str]:
    """What one says and the other does not, by the keys that change it."""
    before, after = (dict(_settings(to_json(recipe))) for recipe in (old, new))
    return [
        f"{name} is {before.get(name, 'not there')} there and {after.get(name, 'not there')} here"
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def _settings(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """All settings by their whole names; a list is one setting."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _settings(entry, f"{name}.{key}".lstrip("."))
    else:
        yield name.removesuffix(".part"), _toml(value)


def _said(section: Spec, value: dict[str, Any]) -> list[tuple[str, Any]]:
    """The keys of a section; its part is said where another could stand there."""
    alone = Spec in type(section).__bases__
    return [(key, entry) for key, entry in value.items() if entry is not None and not (alone and key == "part")]


def _is_section(value: Any) -> bool:
    return isinstance(value, dict)


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + "".join(_escaped(char) for char in value) + '"'
        case dict():
            return "{ " + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if char in '"\\' or ord(char) < 0x20 or ord(char) == 0x7F else char


def _change(data: dict[str, Any], change: str) -> None:
    name, given, value = change.partition("=")
    if not given or not name:
        raise BertkitError(f"{change!r} changes nothing: write section.key=value, such as train.steps=60")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value  # a plain word is a string
    *sections, last = name.split(".")
    for section in sections:
        data = data.setdefault(section, {})
        if not isinstance(data, dict):
            raise BertkitError(f"{change!r}: {section} is not a section")
    data[last] = parsed


def _made(data: Any, hint: Any, where: str, usual: Any = None) -> Any:
    """Plain values as what a field wants. A section need not name its part where only one can stand there, or where
    the `usual` one is meant."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _made(data, arguments[0], where)
    if origin in (typing.Union, types.UnionType):
        return _made(data, next(one for one in arguments if one is not type(None)), where)
    if origin is tuple and isinstance(data, list):
        return tuple(_made(entry, arguments[0], f"{where}[{place}]") for place, entry in enumerate(data))
    if not (isinstance(hint, type) and issubclass(hint, Spec) and isinstance(data, dict)):
        return data
    kind = _kind(data, hint, where, usual)
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = {one.name: one for one in dataclasses.fields(kind)}
    prefix = f"{where}." if where else ""
    for name in data:
        if name != "part" and name not in fields:
            raise unknown(f"key of {where or 'the recipe'}", name, fields)
    for name, one in fields.items():
        if name not in data and one.default is one.default_factory is dataclasses.MISSING:
            raise BertkitError(f"{prefix}{name} is missing: write it there, or add {prefix}{name}=… to the command")
    given = {name: one for name, one in fields.items() if name in data}
    made = {name: _made(data[name], hints[name], prefix + name, _usual(one)) for name, one in given.items()}
    return kind(**made)


def _kind(data: dict[str, Any], hint: type[Spec], where: str, usual: Any) -> type[Spec]:
    """The part that a section describes."""
    known = {name: one for name, one in Spec.known.items() if issubclass(one, hint) and not one.__subclasses__()}
    if "part" in data:
        return look_up(where, data["part"], known)
    if not hint.__subclasses__():
        return hint
    if isinstance(usual, hint):
        return type(usual)
    raise BertkitError(f"{where} does not say which part it is: add part = one of {', '.join(sorted(known))}")


def _usual(field: dataclasses.Field[Any]) -> Any:
    """What a field holds unless something else is given."""
    return field.default_factory() if callable(field.default_factory) else field.default
