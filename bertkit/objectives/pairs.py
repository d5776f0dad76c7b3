"""Questions about pairs of segments, asked of the pooled vector.

Nsp     does B follow A? (BERT, https://arxiv.org/abs/1810.04805)
Sop     were A and B swapped? (ALBERT, https://arxiv.org/abs/1909.11942)

The pairs themselves are made with the inputs (`bertkit.corpus.inputs`): text of other documents is found there.

Letters: B pairs · W width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from bertkit.batch import Batch
from bertkit.corpus.flat import Flat
from bertkit.errors import BertkitError
from bertkit.objectives.mask import Vocabulary
from bertkit.objectives.objective import Asked, SelfSupervised
from bertkit.parts.heads import Head, NextSentence, Pooler
from bertkit.parts.network import NetworkModule
from bertkit.parts.surprise import surprise


@dataclass(frozen=True)
class PairQuestion(SelfSupervised):
    """Two answers, 0 and 1, for each pair."""

    label: ClassVar[str]
    """what the inputs call the answers"""
    inputs: ClassVar[str]
    """the inputs that know them"""

    @property
    def heads(self) -> dict[str, Head]:
        return {"pooler": Pooler(), "next_sentence": NextSentence()}

    def corrupt(self, flat: Flat, vocabulary: Vocabulary) -> Flat:
        if self.label not in flat.labels:
            there = ", ".join(flat.labels) or "none"
            raise BertkitError(
                f"{type(self).__name__} asks for the label {self.label!r}, but these inputs have {there}. "
                f"Take {self.inputs} as inputs, or leave {type(self).__name__} out"
            )
        return flat

    def counts(self, batch: Batch) -> dict[str, int]:
        return {self.label: len(batch.labels[self.label])}

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        logits = network.logits("next_sentence", hidden, batch.layout)  # [B, 2]
        return {self.label: Asked(*surprise(logits, batch.labels[self.label]))}


@dataclass(frozen=True)
class Nsp(PairQuestion):
    """Next-sentence prediction: 0 if B follows A, 1 if it is from another document."""

    label = "next"
    inputs = "SegmentPairs or SentencePairs"


@dataclass(frozen=True)
class Sop(PairQuestion):
    """Sentence-order prediction: 0 if A comes first in the text, 1 if they were swapped."""

    label = "order"
    inputs = "OrderPairs"
