"""Which of several options? Each is a sequence of its own; the chances are the softmax over those of one question
(BERT's SWAG, https://arxiv.org/abs/1810.04805, section 4.4).

Letters: B rows · Q questions · K options of the question that has most.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bertkit.batch import Batch
from bertkit.objectives.objective import Asked, Objective
from bertkit.parts.heads import Choice, Head, Pooler
from bertkit.parts.network import NetworkModule
from bertkit.parts.surprise import surprise


@dataclass(frozen=True)
class ChoiceQuestion(Objective):
    """Of each row its `question` and its `option`, numbers from 0 on [B], and whether it is the `right` one [B]."""

    @property
    def heads(self) -> dict[str, Head]:
        return {"pooler": Pooler(), "choice": Choice()}

    def counts(self, batch: Batch) -> dict[str, int]:
        return {"choice": int(batch.labels["right"].sum())}

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        scores = network.logits("choice", hidden, batch.layout).squeeze(-1)  # [B]
        question, option, right = (batch.labels[name] for name in ("question", "option", "right"))  # [B] each
        questions = int(question.max()) + 1
        table = scores.new_full((questions, int(option.max()) + 1), -torch.inf)  # [Q, K]
        table = table.index_put((question, option), scores)
        true = question.new_zeros(questions)
        true[question[right > 0]] = option[right > 0]  # [Q]
        return {"choice": Asked(*surprise(table, true))}
