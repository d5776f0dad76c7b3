"""Matrices of 8-bit whole numbers with a scale for each row: how quantised weights lie in a file.

`X.weight` (int8 [rows, columns]) times `X.weight_scale` (float32 [rows] or [rows, 1]) is the matrix. Processors without
an instruction for it (VNNI) add the products of two neighbours in 16 bits, each with a byte of up to 255, and cut off
what is beyond: so neighbours of one sign are at most 128 together, and every sum is exact, everywhere. Each row has a
number of ±127 or such a pair, so that whoever quantises the matrix again in this way gets the same whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bertkit.errors import BertkitError

SCALE = "_scale"
MOST, PAIR = 127, 128
"""the largest number, and the largest two neighbours of one sign together"""
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


def is_table(name: str) -> bool:
    """Whether a parameter is looked up, by our name for it."""
    return name.startswith("encoder.embed.tokens.")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def quantized(matrix: Tensor, multiplied: bool = True) -> tuple[Tensor, Tensor]:
    """Whole numbers [rows, columns] and the scale of each row; a row of zeros stays one.

    A table of embeddings is looked up, not `multiplied`, so that its neighbours may be as large as they like.

    >>> whole, scale = quantized(torch.tensor([[0.5, -1.27], [0.5, 0.5], [0.0, 0.0]]))
    >>> whole.tolist(), [round(value, 4) for value in scale.tolist()]
    ([[50, -127], [64, 64], [0, 0]], [0.01, 0.0078, 1.0])
    """
    matrix = matrix.detach().float()
    together, at = (_together(matrix) * multiplied).max(1)  # [rows]: the largest pair of each, and where it is
    scale = torch.maximum(matrix.abs().amax(1) / MOST, together / PAIR)
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    whole = (matrix / scale[:, None]).round().clamp(-MOST, MOST)
    # the pair that decides is all of its 128, also where its halves were both rounded down
    rows, first = torch.arange(len(whole)), 2 * at
    missing = (together / PAIR >= scale) & (_together(whole)[rows, at] == PAIR - 1)
    whole[rows, first] += missing * whole[rows, first].sign()
    return whole.to(torch.int8), scale


def _together(matrix: Tensor) -> Tensor:
    """Of every two neighbours in a row the larger sum of one sign, [rows, pairs]."""
    even = torch.nn.functional.pad(matrix, (0, matrix.shape[1] % 2))
    pairs = even.view(len(even), -1, 2)  # [rows, pairs, 2]
    return torch.maximum(pairs.clamp(min=0).sum(-1), (-pairs).clamp(min=0).sum(-1))


def restored(whole: Tensor, scale: Tensor) -> Tensor:
    """The matrix as float32."""
    return whole.float() * scale.float().view(-1, *[1] * (whole.dim() - 1))
