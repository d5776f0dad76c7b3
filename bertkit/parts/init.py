"""How new weights are drawn: BERT's truncated normal, once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SPREAD = 0.02


class Linear(nn.Linear):
    """torch's, but not drawn when made: `draw` does it, or weights are about to be loaded."""

    def reset_parameters(self) -> None:
        pass


class Embedding(nn.Embedding):
    """torch's, but not drawn when made: `draw` does it, or weights are about to be loaded."""

    def reset_parameters(self) -> None:
        pass


def draw(module: nn.Module, spread: float = SPREAD) -> None:
    """Draw every matrix of a module from a normal cut off at two deviations; biases 0, norms 1.

    Matrices that are only described (on the meta device) are left alone.
    """
    for part in module.modules():
        if isinstance(part, (Linear, Embedding)) and not part.weight.is_meta:
            _truncated_normal(part.weight.data.view(-1), spread)
        if isinstance(part, Linear) and not part.bias.is_meta:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.LayerNorm):
            part.reset_parameters()


def _truncated_normal(values: Tensor, spread: float) -> None:
    """Draw again what falls beyond two deviations, as TensorFlow does; several times faster than torch's inversion."""
    values.normal_(0, spread)
    beyond = (values.abs() > 2 * spread).nonzero().squeeze(1)
    while len(beyond):
        values[beyond] = torch.empty(len(beyond), dtype=values.dtype, device=values.device).normal_(0, spread)
        beyond = beyond[values[beyond].abs() > 2 * spread]
