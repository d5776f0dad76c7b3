"""Surprise is torch's cross-entropy, summed, with the count of right answers and one tensor in place of three."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bertkit.parts.surprise import surprise


def drawn(rows: int, choices: int, spread: float = 3.0, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    torch.manual_seed(rows + choices)
    logits, true = torch.randn(rows, choices, dtype=dtype) * spread, torch.randint(0, choices, (rows,))
    true[::3] = logits[::3].argmax(-1)  # some answers are right
    return logits, true


def ours(logits: Tensor, true: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Loss, right answers, and the gradient of scale·loss."""
    leaf = logits.clone().requires_grad_()
    loss, right = surprise(leaf * 1, true)  # logits are made by a head, never a leaf
    (loss * scale).backward()
    return loss.detach(), right, leaf.grad


def torchs(logits: Tensor, true: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    leaf = logits.clone().requires_grad_()
    loss = F.cross_entropy(leaf, true, reduction="sum")
    (loss * scale).backward()
    return loss.detach(), (logits.argmax(-1) == true).sum(), leaf.grad


@pytest.mark.parametrize(("rows", "choices"), [(1, 2), (32, 2), (50, 997), (7, 30_522)])
@pytest.mark.parametrize("scale", [1.0, 1 / 77])
def test_it_is_the_cross_entropy(rows: int, choices: int, scale: float) -> None:
    """Also against float64, where torch's own sums in float32 are further off than ours."""
    logits, true = drawn(rows, choices)
    (loss, right, gradient), theirs, exact = (
        ours(logits, true, scale),
        torchs(logits, true, scale),
        torchs(logits.double(), true, scale),
    )
    assert right == theirs[1]
    assert 0 < right < rows or rows == 1
    torch.testing.assert_close(loss, theirs[0], rtol=1e-6, atol=0)
    torch.testing.assert_close(loss.double(), exact[0], rtol=1e-6, atol=0)
    assert float((gradient - exact[2]).norm() / exact[2].norm()) <= 1e-6
    assert float((gradient - theirs[2]).norm() / theirs[2].norm()) <= 1e-6


def test_it_is_the_cross_entropy_in_float64() -> None:
    logits, true = drawn(20, 50, dtype=torch.float64)
    for got, expected in zip(ours(logits, true, 0.3), torchs(logits, true, 0.3), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-13, atol=1e-15)


class Again(torch.autograd.Function):
    """`surprise` of a clone, anew for every backward: gradcheck runs backward more than once."""

    @staticmethod
    def forward(context: Any, logits: Tensor, true: Tensor) -> Tensor:
        context.save_for_backward(logits, true)
        return surprise(logits.clone(), true)[0]

    @staticmethod
    def backward(context: Any, scale: Tensor) -> tuple[Tensor, None]:
        logits, true = context.saved_tensors
        with torch.enable_grad():
            leaf = logits.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(surprise(leaf.clone(), true)[0], leaf, scale)
        return gradient, None


def test_the_gradient_is_the_slope() -> None:
    logits, true = drawn(6, 9, dtype=torch.float64)
    assert gradcheck(lambda x: Again.apply(x, true), logits.requires_grad_())


def test_extreme_logits_stay_finite() -> None:
    logits = torch.tensor([[1e30, -1e30, 0.0], [-1e4, 1e4, 1e4], [-torch.inf, 2.0, 1.0], [88.0, 89.0, -200.0]])
    true = torch.tensor([0, 2, 1, 2])
    for got, expected in zip(ours(logits, true), torchs(logits, true), strict=True):
        assert torch.isfinite(got).all()
        if got.dtype == torch.float32:
            torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-7)
    assert ours(logits, true)[1] == 3, "the largest, or one of the largest"
    loss, _, gradient = ours(logits[:1], torch.tensor([1]))
    assert loss == 2e30
    assert gradient.tolist() == [[1.0, -1.0, 0.0]]
    large = torch.tensor([[1000.0, 990.0]])
    assert float(ours(large, torch.tensor([0]))[0]) == pytest.approx(4.5398899e-05, rel=1e-3), "not lost beside 1000"


def test_nothing_asked_costs_nothing_but_reaches_the_head() -> None:
    head = nn.Linear(4, 7)
    hidden = torch.randn(5, 4, requires_grad=True)
    loss, right = surprise(head(hidden[:0]), torch.empty(0, dtype=torch.int64))
    loss.backward()
    assert (loss.item(), right.item()) == (0.0, 0)
    for part in (hidden, *head.parameters()):
        assert part.grad is not None
        assert not part.grad.any()


def test_half_precision_is_widened() -> None:
    logits, true = drawn(40, 997)
    half = logits.bfloat16()
    loss, right, gradient = ours(half, true)
    expected = torchs(half.float(), true)
    assert (loss.dtype, gradient.dtype) == (torch.float32, torch.bfloat16)
    torch.testing.assert_close(loss, expected[0], rtol=1e-6, atol=0)
    assert right == expected[1]
    torch.testing.assert_close(gradient, expected[2].bfloat16(), rtol=1e-2, atol=1e-8)


class Sizes(TorchDispatchMode):
    """Where tensors of so many values lie that any operation gives, backward too."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.places = size, set[int]()

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        out = function(*arguments, **(named or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor) and tensor.numel() == self.size:
                self.places.add(tensor.untyped_storage().data_ptr())
        return out


def test_one_tensor_serves_as_logits_odds_and_gradient() -> None:
    x, weight, true = torch.randn(30, 8), torch.randn(500, 8, requires_grad=True), torch.randint(0, 500, (30,))
    made = []
    for loss_of in (lambda logits: surprise(logits, true)[0], lambda logits: F.cross_entropy(logits, true)):
        with Sizes(30 * 500) as sizes:
            loss_of(F.linear(x, weight)).backward()
        made.append(len(sizes.places))
    assert made[0] == 1 < made[1], "torch has log-probabilities and a gradient beside them"


def test_backward_runs_once() -> None:
    leaf = torch.randn(3, 4, requires_grad=True)
    loss, _ = surprise(leaf * 1, torch.tensor([0, 1, 2]))
    loss.backward(retain_graph=True)
    with pytest.raises(AssertionError, match="run backward once"):
        loss.backward()
    loss, _ = surprise(leaf * 1, torch.tensor([0, 1, 2]))
    (gradient,) = torch.autograd.grad(loss**2, leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
