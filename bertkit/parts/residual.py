"""The way around a block: what went in is added to what came out."""

from __future__ import annotations

import torch
from torch import Tensor

from bertkit.parts.dropout import factors


def add(x: Tensor, out: Tensor, dropout: float = 0.0) -> Tensor:
    """x + dropout(out), [..., W]; written over `out` in inference mode, where nobody can want it again."""
    if dropout:
        return torch.addcmul(x, out, factors(out, dropout))
    return out.add_(x) if torch.is_inference_mode_enabled() and out.dtype == x.dtype else x + out
