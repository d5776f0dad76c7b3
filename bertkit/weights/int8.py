"""Matrices of 8-bit whole numbers with a scale for each row: how quantised weights lie in a file.

`X.weight` (int8 [rows, columns]) times `X.weight_scale` (float32 [rows] or [rows, 1]) is the matrix. The largest number
of each row is ±127, so that whoever quantises the matrix again by its largest values gets the same whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bertkit.errors import BertkitError

SCALE = "_scale"
MOST = 127
CONFIG, METHOD = "quantization_config", "bertkit-int8"
_MATRICES = ("encoder.attentions.", "encoder.feeds.", "encoder.embed.tokens.", "encoder.embed.widen.")
"""where the parameters begin that are quantised; heads are small, and positions and segments too"""


@dataclass(frozen=True)
class Quantization:
    """How a network is quantised, as its config.json tells it."""

    engine: str
    """that was found to be fast and right enough"""
    kept: tuple[str, ...] = ()
    """matrices that stay as they are, by our names: encoder.feeds.3.down"""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Quantization | None:
        """None where a config tells of none, or of somebody else's."""
        told = config.get(CONFIG)
        if not isinstance(told, Mapping) or told.get("quant_method") != METHOD:
            return None
        kept = told.get("kept", [])
        if not isinstance(told.get("engine"), str) or not isinstance(kept, list) or not all(map(_is_text, kept)):
            raise BertkitError(f"{CONFIG} lacks its engine, or its list of what is kept: quantise the model again")
        return cls(told["engine"], tuple(kept))

    def told(self) -> dict[str, Any]:
        """As config.json has it."""
        return {"quant_method": METHOD, "engine": self.engine, "kept": list(self.kept)}

    def takes(self, name: str, value: Tensor) -> bool:
        """Whether a parameter is stored in whole numbers.

        >>> Quantization("onnx", ("encoder.feeds.0.up",)).takes("encoder.feeds.0.up.weight", torch.ones(2, 2))
        False
        """
        return value.dim() == 2 and name.startswith(_MATRICES) and name.removesuffix(".weight") not in self.kept


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def quantized(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Whole numbers and the scale of each row; a row of zeros stays one.

    >>> whole, scale = quantized(torch.tensor([[0.5, -1.27], [0.0, 0.0]]))
    >>> whole.tolist(), [round(value, 3) for value in scale.tolist()]
    ([[50, -127], [0, 0]], [0.01, 1.0])
    """
    most = matrix.detach().float().abs().amax(1)  # [rows]
    scale = torch.where(most > 0, most / MOST, torch.ones_like(most))
    return (matrix.detach().float() / scale[:, None]).round().clamp(-MOST, MOST).to(torch.int8), scale


def restored(whole: Tensor, scale: Tensor) -> Tensor:
    """The matrix as float32."""
    return whole.float() * scale.float().view(-1, *[1] * (whole.dim() - 1))
