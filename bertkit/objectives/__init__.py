"""What is learned: each objective changes examples (NumPy, no torch) and asks something about them."""

import importlib
import pkgutil


def learn_parts() -> None:
    """Import every file here, so that all of its parts are known by name: in recipes, in JSON."""
    for found in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{found.name}")
