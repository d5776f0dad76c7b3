"""Surprise: the cross-entropy of right answers, with the gradient written where the logits were.

Logits over a vocabulary are the largest tensor of a training step. torch's cross-entropy keeps log-probabilities beside
them and makes a gradient of the same size; here one tensor serves as all three, and how many answers were right comes
with it.

Letters: M answers · V choices.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable


def surprise(logits: Tensor, true: Tensor) -> tuple[Tensor, Tensor]:
    """The sum over rows [M, V] of -log p(true), and how many have their largest logit at true [M]; both are [].

    The logits are used up, and so is their gradient: nothing else may read them, and backward runs once. Those of half
    precision are widened first.

    >>> logits = torch.tensor([[0.0, 1.0], [3.0, 1.0]])
    >>> loss, right = surprise(logits, torch.tensor([1, 1]))
    >>> round(float(loss), 4), int(right)
    (2.4402, 1)
    """
    wide = torch.promote_types(logits.dtype, torch.float32)
    loss, right = _Surprise.apply(logits.to(wide), true)  # type: ignore[no-untyped-call]
    return loss, right


class _Surprise(Function):
    @staticmethod
    def forward(context: Any, logits: Tensor, true: Tensor) -> tuple[Tensor, Tensor]:
        most, asked = logits.amax(-1), logits.gather(-1, true[:, None]).squeeze(-1)  # [M], [M]
        odds = logits.detach().sub_(most[:, None]).exp_()  # [M, V], written over the logits
        total = odds.sum(-1)  # [M]
        context.save_for_backward(true, total)
        context.odds = odds  # torch would keep it from being written over again
        right = (asked == most).sum()
        context.mark_non_differentiable(right)
        return (most - asked + total.log()).sum(), right

    @staticmethod
    @once_differentiable
    def backward(context: Any, scale: Tensor, _: Tensor) -> tuple[Tensor, None]:
        odds, context.odds = context.odds, None
        assert odds is not None, "the gradient was written over what it is made of: run backward once"
        true, total = context.saved_tensors
        change: Tensor = odds.mul_((scale / total)[:, None])  # [M, V]
        return change.scatter_add_(-1, true[:, None], -scale.expand(len(true), 1)), None
