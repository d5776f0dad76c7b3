"""Embeddings: the sum of a token's, a segment's and, where there is one, a position's vector, normalised.

The tables may be narrower than the network (factorised embeddings): a projection then widens their sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.parts.dropout import drop
from bertkit.parts.init import Embedding, Linear, draw
from bertkit.parts.positions import Learned, Positions
from bertkit.spec import Count, Positive, Rate, Spec


@dataclass(frozen=True)
class Embed(Spec):
    """Tables of `vocabulary` and `segments` rows and one of positions, each `width` wide."""

    vocabulary: Count
    width: Count
    positions: Positions = field(default_factory=Learned)
    segments: Count = 2
    dropout: Rate = 0.1
    epsilon: Positive = 1e-12

    def build(self, width: int) -> EmbedModule:
        return EmbedModule(self, width)


class EmbedModule(nn.Module):
    """widen(dropout(norm(token + position + segment)))."""

    def __init__(self, spec: Embed, width: int) -> None:
        super().__init__()
        self.spec = spec
        self.tokens = Embedding(spec.vocabulary, spec.width)
        self.positions = spec.positions.build(spec.width)
        self.segments = Embedding(spec.segments, spec.width)
        self.norm = nn.LayerNorm(spec.width, eps=spec.epsilon)
        self.widen = nn.Identity() if spec.width == width else Linear(spec.width, width)

    def forward(self, batch: Batch) -> Tensor:
        ids = batch.tokens["ids"]  # [...]
        # summed in Google's order, so that rounding is theirs to the last bit
        kinds = self.segments(batch.tokens["segments"]) if self.spec.segments > 1 else self.segments.weight[0]
        x = self.tokens(ids) + kinds  # [..., E]
        x = self.positions(x, batch.layout)  # [..., E]
        dropout = self.spec.dropout if self.training else 0.0
        out: Tensor = self.widen(drop(self.norm(x), dropout))  # [..., W]
        return out

    def grow(self, vocabulary: int, spread: float) -> None:
        """Rows for new tokens, drawn like those of a new model; the old rows stay bit for bit."""
        old = self.tokens.weight
        new = Embedding(vocabulary - len(old), old.shape[1], device=old.device, dtype=old.dtype)
        draw(new, spread)
        table = torch.cat([old.data, new.weight.data])
        self.tokens.weight = nn.Parameter(table, requires_grad=old.requires_grad)
        self.tokens.num_embeddings = vocabulary
