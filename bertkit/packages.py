"""Packages that may be missing, imported so that none of them reports to anybody."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

REPORTERS = {"openvino": "openvino_telemetry"}
"""packages that send a report when they are imported -> the one that sends it, without which they do not"""
REFUSALS = {"onnxruntime": "ORT_DISABLE_TELEMETRY"}
"""packages that number the machine when they are imported and report what they run -> the variable that forbids it"""


def load(name: str) -> Any:
    """The package; ImportError where it is not there, or whatever it raises.

    >>> load("json").loads("[1]")
    [1]
    """
    if name in REFUSALS:
        os.environ.setdefault(REFUSALS[name], "1")
    if name in REPORTERS and name not in sys.modules:
        with _hidden(REPORTERS[name]):
            return importlib.import_module(name)
    return importlib.import_module(name)


@contextmanager
def _hidden(name: str) -> Iterator[None]:
    """As if a package were not installed, for a while."""
    there = {key: module for key, module in sys.modules.items() if key.split(".")[0] == name}
    for key in there:
        del sys.modules[key]
    sys.modules[name] = None  # type: ignore[assignment] # how Python itself is told that there is none
    try:
        yield
    finally:
        del sys.modules[name]
        sys.modules.update(there)
