"""Where an answer begins and ends in a text (BERT's SQuAD, https://arxiv.org/abs/1810.04805, section 4.2).

Every token gets a score for either end; the chances of an end are the softmax over the tokens of its own sequence. A
sequence without the answer has both ends at its first token.

Letters: B rows · n rows of one length · L their length.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bertkit.batch import Batch
from bertkit.objectives.objective import Asked, Objective
from bertkit.parts.heads import Head, Span
from bertkit.parts.network import NetworkModule
from bertkit.parts.surprise import surprise

ENDS = ("start", "end")


@dataclass(frozen=True)
class SpanQuestion(Objective):
    """Both ends [B], as places in their own sequences; each counts half, as in Google's script."""

    @property
    def weights(self) -> dict[str, float]:
        return dict.fromkeys(ENDS, 0.5)

    @property
    def heads(self) -> dict[str, Head]:
        return {"span": Span()}

    def counts(self, batch: Batch) -> dict[str, int]:
        return dict.fromkeys(ENDS, batch.layout.rows)

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        blocks, scores = batch.layout.blocks, batch.layout.split(network.logits("span", hidden, batch.layout))
        found = {}
        for place, name in enumerate(ENDS):
            true = batch.labels[name].split_with_sizes([block.rows for block in blocks])  # [n] each
            asked = []
            for block, logits, at in zip(blocks, scores, true, strict=True):  # [n, L, 2]
                ends = logits[..., place]
                if block.mask is not None:
                    ends = ends.masked_fill(~block.mask[:, 0, 0], -torch.inf)
                asked.append(surprise(ends.clone(), at))  # both ends are views of one tensor, and it uses its own up
            losses, right = zip(*asked, strict=True)
            found[name] = Asked(torch.stack(losses).sum(), torch.stack(right).sum())
        return found
