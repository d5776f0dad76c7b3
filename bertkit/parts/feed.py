"""The feed-forward block: widen, bend, narrow, then the residual and its norm (post-norm, as in BERT)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertkit.errors import look_up
from bertkit.parts.init import Linear
from bertkit.parts.residual import add
from bertkit.spec import Count, Positive, Rate, Spec


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """Written over x in inference mode, where nobody can want x again: give it a tensor of your own."""
    if torch.is_inference_mode_enabled():
        written: Tensor = torch.ops.aten.gelu_(x, approximate=approximate)
        return written
    return F.gelu(x, approximate=approximate)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu,  # exact: what Hugging Face's checkpoints mean
    "gelu_tanh": partial(gelu, approximate="tanh"),  # what Google's code computes
    "relu": F.relu,
}


@dataclass(frozen=True)
class Feed(Spec):
    """A block that widens to `inner` and bends there."""

    inner: Count
    activation: str = "gelu"
    dropout: Rate = 0.1
    epsilon: Positive = 1e-12

    def __post_init__(self) -> None:
        super().__post_init__()
        look_up("activation", self.activation, ACTIVATIONS)

    def build(self, width: int) -> FeedModule:
        return FeedModule(self, width)


class FeedModule(nn.Module):
    """norm(x + dropout(down(bend(up(x)))))."""

    def __init__(self, spec: Feed, width: int) -> None:
        super().__init__()
        self.spec = spec
        self.up = Linear(width, spec.inner)
        self.down = Linear(spec.inner, width)
        self.bend = ACTIVATIONS[spec.activation]
        self.norm = nn.LayerNorm(width, eps=spec.epsilon)

    def forward(self, x: Tensor) -> Tensor:
        dropout = self.spec.dropout if self.training else 0.0
        out: Tensor = self.norm(add(x, self.down(self.bend(self.up(x))), dropout))
        return out
