"""The self-attention block: heads side by side, then the residual and its norm (post-norm, as in BERT)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from bertkit.batch import Layout
from bertkit.parts.attend import attend
from bertkit.parts.init import Linear
from bertkit.parts.place import Place
from bertkit.parts.residual import add
from bertkit.parts.tape import Tape
from bertkit.spec import Count, Positive, Rate, Spec


@dataclass(frozen=True)
class Attention(Spec):
    """`heads` heads of width `head`, whatever the width of the network: pruned blocks only have smaller numbers."""

    heads: Count
    head: Count
    dropout: Rate = 0.1
    """on the block's output"""
    look_dropout: Rate = 0.1
    """on the attention probabilities"""
    epsilon: Positive = 1e-12

    def build(self, width: int) -> AttentionModule:
        return AttentionModule(self, width)


class AttentionModule(nn.Module):
    """norm(x + dropout(out(attend(q, k, v)))). Queries, keys and values come from one matrix: one multiplication."""

    def __init__(self, spec: Attention, width: int) -> None:
        super().__init__()
        self.spec = spec
        inner = spec.heads * spec.head
        self.qkv = Linear(width, 3 * inner)
        self.out = Linear(inner, width)
        self.norm = nn.LayerNorm(width, eps=spec.epsilon)

    def forward(self, x: Tensor, layout: Layout, place: Place, tape: Tape | None = None) -> Tensor:
        fused = self.qkv(x)  # [..., 3·N·H]
        q, k, v = fused.view(*x.shape[:-1], 3, self.spec.heads, self.spec.head).unbind(-3)  # each [..., N, H]
        dropout, look_dropout = (self.spec.dropout, self.spec.look_dropout) if self.training else (0.0, 0.0)
        mixed = attend(q, k, v, layout, place, look_dropout, tape).flatten(-2)  # [..., N·H]
        out: Tensor = self.norm(add(x, self.out(mixed), dropout))
        return out
