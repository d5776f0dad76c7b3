"""How new weights are drawn: BERT's truncated normal."""

from __future__ import annotations

from torch import nn

SPREAD = 0.02


def draw(module: nn.Module, spread: float = SPREAD) -> None:
    """Draw every matrix of a module from a normal cut off at two deviations; biases 0, norms 1.

    Tensors that are not there yet (on the meta device) stay as they are: they are about to be loaded.
    """
    for part in module.modules():
        if isinstance(part, nn.LayerNorm):
            part.reset_parameters()
        elif isinstance(part, (nn.Linear, nn.Embedding)) and not part.weight.is_meta:
            nn.init.trunc_normal_(part.weight, std=spread, a=-2 * spread, b=2 * spread)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
