"""The journal's numbers for TensorBoard: `tensorboard --logdir RUN`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError

HOME = "tensorboard"


class Board(AbstractContextManager["Board"]):
    """Hears the lines of a journal; what was written after `step` by a run that was killed is taken back."""

    def __init__(self, run: Path, step: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise BertkitError(
                "train.tensorboard needs the package tensorboard: pip install 'bertkit[tensorboard]', or leave it out: "
                "bertkit report RUN shows the same curves"
            ) from None
        self._writer = SummaryWriter(str(run / HOME), purge_step=step + 1)

    def __exit__(self, *exception: object) -> None:
        self._writer.close()

    def hear(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        """Show a line's numbers: those of steps by their own names, those of other lines under their kind."""
        if kind in {"step", "held-out"}:
            for name, value in _numbers(values, "" if kind == "step" else f"{kind}/"):
                self._writer.add_scalar(name, value, step)


def _numbers(values: Mapping[str, Any], prefix: str) -> list[tuple[str, float]]:
    """Numbers by their names, tables first name first.

    >>> _numbers({"loss": 2.0, "right": {"mlm": 0.5}}, "held-out/")
    [('held-out/loss', 2.0), ('held-out/right/mlm', 0.5)]
    """
    found: list[tuple[str, float]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            found += _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):
            found.append((prefix + name, float(value)))
    return found
