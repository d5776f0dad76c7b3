"""Work that another process does, so that nothing of it stays here: no memory, no threads."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from typing import Any


def elsewhere(work: Callable[..., None], *given: Any) -> None:
    """Do it, and wait for it."""
    process = get_context("spawn").Process(target=work, args=given)
    process.start()
    process.join()
    if process.exitcode:
        raise LookupError(f"{work.__name__} failed: its process ended with {process.exitcode}")
