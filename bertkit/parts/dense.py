"""Dense: a matrix and a bend on finished vectors, which sentence-transformers puts between pooling and scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertkit.errors import look_up
from bertkit.parts import feed
from bertkit.spec import Count, Spec


def _same(x: Tensor) -> Tensor:
    return x


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": _same,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "elu": F.elu,
    "leaky_relu": F.leaky_relu,
    "mish": F.mish,
    "softplus": F.softplus,
    **feed.ACTIVATIONS,
}


@dataclass(frozen=True)
class Dense(Spec):
    """Vectors `before` wide become vectors `after` wide; `residual` adds what went in, through a matrix if need be."""

    before: Count
    after: Count
    bias: bool = True
    activation: str = "tanh"
    residual: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        look_up("activation", self.activation, ACTIVATIONS)

    def build(self) -> DenseModule:
        return DenseModule(self)


class DenseModule(nn.Module):
    """[B, before] -> [B, after]: bend(linear(x)), and the way around it."""

    def __init__(self, spec: Dense) -> None:
        super().__init__()
        self.spec = spec
        self.linear = nn.Linear(spec.before, spec.after, bias=spec.bias)
        self.bend = ACTIVATIONS[spec.activation]
        through = spec.residual and spec.before != spec.after
        self.residual = nn.Linear(spec.before, spec.after, bias=False) if through else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out = self.bend(self.linear(x))  # [B, after]
        return out + self.residual(x) if self.spec.residual else out
