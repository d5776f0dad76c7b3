"""One file per paper. A file that defines `FAMILY` is found, listed and tested by being here."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from bertkit.errors import BertkitError, look_up
from bertkit.family.contract import Family
from bertkit.parts.encoder import Encoder


class Size(NamedTuple):
    """A network that can be made new."""

    family: Family
    build: Callable[[int], Encoder]
    """the encoder for a vocabulary of so many tokens"""


@cache
def families() -> dict[str, Family]:
    """All families by their `model_type`."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    made = [module.FAMILY for module in modules if hasattr(module, "FAMILY")]
    return {family.model_type: family for family in made}


def family_of(model_type: object) -> Family:
    """The family behind a config's `model_type`."""
    if not isinstance(model_type, str) or model_type not in families():
        # no nearest name here: a config must not be edited to look like another model's
        raise BertkitError(f"model_type {model_type!r} is not supported; supported: {', '.join(families())}")
    return families()[model_type]


@cache
def sizes() -> dict[str, Size]:
    """Every network that can be made new, by family-size.

    >>> [name for name in sizes() if name.endswith("-mini")]
    ['albert-mini', 'bert-mini', 'electra-mini', 'nezha-mini', 'roberta-mini', 'xlm-roberta-mini']
    """
    every = [(one, size) for one in families().values() for size in one.sizes]
    return dict(sorted((f"{one.model_type}-{size}", Size(one, one.sizes[size])) for one, size in every))


def size_of(name: str) -> Size:
    """What a name such as `bert-mini` stands for."""
    return look_up("model", name, sizes())


def encoder(name: str, vocabulary: int) -> Encoder:
    """The encoder behind a name such as `bert-mini`, for a vocabulary of so many tokens."""
    return size_of(name).build(vocabulary)
