"""Attention itself: softmax(q·kᵀ / √H)·v for every block of a layout. The one place that chooses a kernel.

Letters: B rows of the block · N heads · Q, K its length as queries and as keys · H head width · `...` as in batch.py.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from bertkit.batch import Block, Layout
from bertkit.parts.dropout import drop
from bertkit.parts.place import Place
from bertkit.parts.tape import Tape


def attend(
    q: Tensor, k: Tensor, v: Tensor, layout: Layout, place: Place, dropout: float = 0.0, tape: Tape | None = None
) -> Tensor:
    """Mix the values [..., N, H] of each sequence; returns [..., N, H].

    Probabilities are spelled out where a tape records them or the place needs them, otherwise torch's fused kernel
    runs. All paths agree, and a query that sees no key gives 0 on each of them.
    """
    slow = dropout > 0 and q.is_cpu  # torch's fused kernel has no dropout there, and its other one draws slowly
    kernel = _eager if tape is not None or place.mixes or slow else _fused
    mixed = []
    for block, *rows in zip(layout.blocks, layout.split(q), layout.split(k), layout.split(v), strict=True):
        queries, keys, values = (x.transpose(1, 2) for x in rows)  # [B, N, Q, H]
        queries, keys = place.rotate(queries, keys, block)
        out = kernel(queries, keys, values, block, place, dropout, tape)  # [B, N, Q, H]
        mixed.append(out.transpose(1, 2))  # [B, Q, N, H]
    return layout.join(mixed)


def _fused(q: Tensor, k: Tensor, v: Tensor, block: Block, place: Place, dropout: float, tape: Tape | None) -> Tensor:
    mask = block.mask
    if place.scores:
        bias = place.score(q / math.sqrt(q.shape[-1]), k, block)  # [B, N, Q, K]
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    return F.scaled_dot_product_attention(q, k, v, mask, dropout)


def _eager(q: Tensor, k: Tensor, v: Tensor, block: Block, place: Place, dropout: float, tape: Tape | None) -> Tensor:
    q = q / math.sqrt(q.shape[-1])
    scores = q @ k.transpose(-1, -2)  # [B, N, Q, K]
    if place.scores:
        scores = scores + place.score(q, k, block)
    if block.mask is not None:
        scores = scores.masked_fill(~block.mask, -torch.inf)
    probabilities = scores.softmax(-1)
    if block.mask is not None:  # softmax over nothing is NaN; it should mix nothing
        probabilities = probabilities.masked_fill(~block.mask, 0.0)
    if tape is not None:
        tape.attention(q * math.sqrt(q.shape[-1]), k, probabilities)
    kept = drop(probabilities, dropout)
    out = kept @ v  # [B, N, Q, H]
    return out + place.mix(kept, block) if place.mixes else out
