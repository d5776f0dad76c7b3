"""Masked language model (BERT, https://arxiv.org/abs/1810.04805): name the tokens that were hidden.

Only masked positions reach the vocabulary, which is most of what a small network has to multiply.

Letters: M masked tokens · W width · V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from bertkit.batch import Batch
from bertkit.corpus.flat import Flat
from bertkit.objectives.mask import MARK, Mask, Vocabulary
from bertkit.objectives.objective import Asked, SelfSupervised
from bertkit.parts.heads import Head, Mlm
from bertkit.parts.network import NetworkModule
from bertkit.parts.surprise import surprise


@dataclass(frozen=True)
class MaskedLm(SelfSupervised):
    """Tokens that `mask` hides are to be named."""

    mask: Mask = field(default_factory=Mask)

    @property
    def lexicons(self) -> tuple[str, ...]:
        return self.mask.choose.lexicons

    @property
    def heads(self) -> dict[str, Head]:
        return {"mlm": Mlm()}

    def corrupt(self, flat: Flat, vocabulary: Vocabulary) -> Flat:
        return self.mask.corrupt(flat, vocabulary)

    def counts(self, batch: Batch) -> dict[str, int]:
        at, _ = batch.marks[MARK]
        return {MARK: len(at)}

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        at, true = batch.marks[MARK]  # [M], [M]
        masked = batch.layout.flat(hidden).index_select(0, at)  # [M, W]
        logits = network.logits("mlm", masked, batch.layout)  # [M, V]
        return {MARK: Asked(*surprise(logits, true))}
