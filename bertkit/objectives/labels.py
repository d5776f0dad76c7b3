"""Questions about a whole text or pair, asked of the pooled vector: what fine-tuning teaches (BERT,
https://arxiv.org/abs/1810.04805, section 4).

LabelQuestion     which of several labels?              cross-entropy
LabelsQuestion    which labels, each for itself?        binary cross-entropy
NumberQuestion    which number, such as a similarity?   squared error

Letters: B rows · C labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from bertkit.batch import Batch
from bertkit.objectives.objective import Asked, Objective
from bertkit.parts.heads import Classify, Head, MultiLabel, Pooler, Regress
from bertkit.parts.network import NetworkModule
from bertkit.parts.surprise import surprise

NEAR = 0.5
"""a number is right that is no further from the true one"""


@dataclass(frozen=True)
class LabelQuestion(Objective):
    """One of several labels; the true ones [B] are numbers of labels."""

    labels: tuple[str, ...]

    @property
    def heads(self) -> dict[str, Head]:
        return {"pooler": Pooler(), "classify": Classify(self.labels)}

    def counts(self, batch: Batch) -> dict[str, int]:
        return {"label": batch.layout.rows}

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        logits = network.logits("classify", hidden, batch.layout)  # [B, C]
        return {"label": Asked(*surprise(logits, batch.labels["label"]))}


@dataclass(frozen=True)
class LabelsQuestion(Objective):
    """Any number of labels; the true ones [B, C] are 1 where a label is there. Each label is an answer of its own."""

    labels: tuple[str, ...]

    @property
    def heads(self) -> dict[str, Head]:
        return {"pooler": Pooler(), "classify": MultiLabel(self.labels)}

    def counts(self, batch: Batch) -> dict[str, int]:
        return {"labels": batch.layout.rows * len(self.labels)}

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        logits = network.logits("classify", hidden, batch.layout)  # [B, C]
        true = batch.labels["labels"]  # [B, C]
        right = ((logits > 0) == (true > 0.5)).sum()
        return {"labels": Asked(F.binary_cross_entropy_with_logits(logits, true.to(logits), reduction="sum"), right)}


@dataclass(frozen=True)
class NumberQuestion(Objective):
    """A number [B]."""

    @property
    def heads(self) -> dict[str, Head]:
        return {"pooler": Pooler(), "regress": Regress()}

    def counts(self, batch: Batch) -> dict[str, int]:
        return {"number": batch.layout.rows}

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        found = network.logits("regress", hidden, batch.layout).squeeze(-1)  # [B]
        true = batch.labels["number"].to(found)  # [B]
        right = ((found - true).abs() <= NEAR).sum()
        return {"number": Asked(F.mse_loss(found, true, reduction="sum"), right)}
