"""The type of the fixture `run`."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ran:
    """What a run of the command left behind."""

    code: int
    out: str
    err: str


Bertkit = Callable[..., Ran]
