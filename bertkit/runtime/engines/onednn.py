"""oneDNN: torch's operators on matrices that lie in memory as its products read them.

Who multiplies by a matrix cuts it into pieces that fit the processor first, in every product anew; here that is done
once, when the engine is built.
"""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from bertkit.batch import Batch, Packed
from bertkit.parts.encoder import Encoder, EncoderModule
from bertkit.parts.network import NetworkModule
from bertkit.runtime.engines.engine import FP32, Engine, Setup


class OneDnn(Engine):
    """The encoder with other matrices. Tables, norms and biases are the network's own where these have 32 bits."""

    name, package = "onednn", "torch"
    precisions = (FP32,)
    tokens = Engine.tokens | {FP32: 512}  # 2 % faster than with twice as many, on Zen 5
    layout = Packed
    divides = False

    def __init__(self, network: NetworkModule, setup: Setup) -> None:
        super().__init__(network, setup)
        self._encoder = _packed(network.encoder)

    @classmethod
    def refusal(cls, encoder: Encoder) -> str:
        return ""

    @classmethod
    def absence(cls) -> str:
        there = all(hasattr(torch.ops.mkldnn, product) for product in ("_reorder_linear_weight", "_linear_pointwise"))
        return "" if there else "this torch was built without oneDNN"

    def hidden(self, batch: Batch) -> Tensor:
        out: Tensor = self._encoder(batch)
        return out


class PackedLinear(nn.Module):
    """x·Wᵀ + b, [T, I] -> [T, O]."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.bias = linear.bias  # [O]
        self._matrix = torch.ops.mkldnn._reorder_linear_weight(linear.weight)  # [O, I], in oneDNN's order

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._matrix, self.bias, "none", [], "")
        return out


def _packed(encoder: EncoderModule) -> EncoderModule:
    own = {id(each): nn.Parameter(each.detach().float(), requires_grad=False) for each in encoder.parameters()}
    copy = deepcopy(encoder, own).eval()
    for part in list(copy.modules()):
        for name, child in part.named_children():
            if isinstance(child, nn.Linear):
                setattr(part, name, PackedLinear(child))
    return copy
