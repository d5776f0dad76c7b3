"""What datasets mean: tables, their columns, labels, heads, and what answers are."""

import importlib
import pkgutil


def learn_parts() -> None:
    """Import every file here, so that all tasks and layouts are known by name: in recipes, beside models."""
    for found in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{found.name}")
