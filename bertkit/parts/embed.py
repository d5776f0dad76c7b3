"""Embeddings: the sum of a token's, a position's and a segment's vector, normalised.

The tables may be narrower than the network (factorised embeddings): a projection then widens their sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.errors import BertkitError
from bertkit.parts.dropout import drop
from bertkit.parts.init import Embedding, Linear, draw
from bertkit.spec import Count, Positive, Rate, Spec


@dataclass(frozen=True)
class Embed(Spec):
    """Tables of `vocabulary`, `positions` and `segments` rows, each `width` wide."""

    vocabulary: Count
    width: Count
    positions: Count = 512
    """the longest sequence"""
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
        self.positions = Embedding(spec.positions, spec.width)
        self.segments = Embedding(spec.segments, spec.width)
        self.norm = nn.LayerNorm(spec.width, eps=spec.epsilon)
        self.widen = nn.Identity() if spec.width == width else Linear(spec.width, width)

    def forward(self, batch: Batch) -> Tensor:
        if batch.layout.longest > self.spec.positions:
            raise BertkitError(
                f"a sequence of {batch.layout.longest} tokens is longer than the {self.spec.positions} this model has "
                "positions for: shorten it, or split it into several"
            )
        ids = batch.tokens["ids"]  # [...]
        places = self.positions(batch.layout.positions(ids.device))  # [L, E] or [T, E]
        # summed in Google's order, so that rounding is theirs to the last bit
        x = self.tokens(ids) + self.segments(batch.tokens["segments"]) + places  # [..., E]
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
