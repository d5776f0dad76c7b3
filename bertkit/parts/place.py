"""Place: what positions do inside attention.

`prepare` runs once per batch; the three hooks then act on one block at a time, and only `attend` calls them. BERT adds
its positions to the embeddings, so `Unplaced` leaves attention alone; relative, rotary and tree positions override the
hooks they need.

Letters: B rows of the block · N heads · Q, K its length as queries and as keys · H head width.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from bertkit.batch import Batch, Block
from bertkit.spec import Spec


class Place(nn.Module):
    """Positions that attention does not see. Schemes that it does see derive from this and override hooks."""

    scores = False
    """Whether `score` adds to the logits."""
    mixes = False
    """Whether `mix` adds to the output, so that attention must keep its probabilities."""

    def prepare(self, batch: Batch) -> Place:
        """Tables for this batch, made once for its longest row and sliced by the hooks."""
        return self

    def rotate(self, q: Tensor, k: Tensor, block: Block) -> tuple[Tensor, Tensor]:
        """Queries and keys [B, N, Q, H] turned by their positions."""
        return q, k

    def score(self, q: Tensor, k: Tensor, block: Block) -> Tensor:
        """Added to the logits [B, N, Q, K]; `q` is already scaled. Asked only where `scores`."""
        raise NotImplementedError

    def mix(self, probabilities: Tensor, block: Block) -> Tensor:
        """Added to the output [B, N, Q, H]. Asked only where `mixes`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Placing(Spec):
    """The base of all position schemes that attention knows of."""

    def build(self) -> Place:
        raise NotImplementedError


@dataclass(frozen=True)
class Unplaced(Placing):
    """Attention does not see positions (BERT, RoBERTa, ALBERT, ELECTRA: they are in the embeddings)."""

    def build(self) -> Place:
        return Place()
