"""Which matrices suffer most from whole numbers: by how far their products are from what they were."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.compress.watching import watch
from bertkit.parts.init import Linear
from bertkit.parts.network import NetworkModule
from bertkit.weights import int8


@torch.no_grad()
def suffering(network: NetworkModule, batches: Iterable[Batch]) -> list[str]:
    """The names of the encoder's matrices, that of the worst first."""
    lost: dict[Linear, float] = {}
    whole: dict[Linear, float] = {}

    def see(module: nn.Module, given: tuple[Any, ...], out: Tensor) -> None:
        assert isinstance(module, Linear)
        rows = given[0].flatten(0, -2)
        rounded = F.linear(_rounded(rows), matrices[module], module.bias)
        lost[module] = lost.get(module, 0.0) + float((rounded - out.flatten(0, -2)).square().sum())
        whole[module] = whole.get(module, 0.0) + float((out - module.bias).square().sum())

    names = {module: name for name, module in network.named_modules() if isinstance(module, Linear)}
    inside = [module for module in names if names[module].startswith("encoder.")]
    matrices = {module: int8.restored(*int8.quantized(module.weight)) for module in inside}
    watch(network, batches, [module.register_forward_hook(see) for module in inside])
    return [names[module] for module in sorted(lost, key=lambda module: -lost[module] / max(whole[module], 1e-30))]


def _rounded(tokens: Tensor) -> Tensor:
    """As engines round them, each by its largest value, [T, W]."""
    scale = tokens.abs().amax(1, keepdim=True).clamp(min=1e-30) / int8.MOST
    return (tokens / scale).round() * scale
