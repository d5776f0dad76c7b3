"""One file per paper. A file that defines `FAMILY` is found, listed and tested by being here."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from bertkit.errors import BertkitError, unknown
from bertkit.family.contract import Family
from bertkit.parts.encoder import Encoder


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


def sizes() -> list[str]:
    """Every network that can be made new, as family-size.

    >>> sizes()
    ['bert-base', 'bert-large', 'bert-medium', 'bert-mini', 'bert-small', 'bert-tiny']
    """
    return sorted(f"{family.model_type}-{size}" for family in families().values() for size in family.sizes)


def encoder(name: str, vocabulary: int) -> Encoder:
    """The encoder behind a name such as `bert-mini`, for a vocabulary of so many tokens."""
    if name not in sizes():
        raise unknown("model", name, sizes())
    model_type, _, size = name.rpartition("-")
    return families()[model_type].sizes[size](vocabulary)
