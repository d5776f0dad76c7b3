"""Dropout: the rate and the scale are right, and torch's seed decides."""

from __future__ import annotations

import pytest
import torch

from bertkit.parts.dropout import drop, factors


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
def test_the_rate_is_met_and_the_mean_stays(rate: float) -> None:
    torch.manual_seed(0)
    count = 4_000_000
    made = factors(torch.empty(count), rate)
    dropped = int((made == 0).sum())
    assert abs(dropped - rate * count) < 4 * (count * rate * (1 - rate)) ** 0.5  # four deviations
    kept = made[made > 0]
    assert torch.allclose(kept, torch.tensor(1 / (1 - rate)), rtol=1e-4)
    assert float(made.double().mean()) == pytest.approx(1, abs=4 * (rate / (1 - rate) / count) ** 0.5)


def test_neighbours_know_nothing_of_each_other() -> None:
    torch.manual_seed(1)
    kept = (factors(torch.empty(4_000_000), 0.5) > 0).double() * 2 - 1
    for apart in (1, 2, 3, 4, 8, 64):
        assert abs(float((kept[apart:] * kept[:-apart]).mean())) < 4 / len(kept) ** 0.5, apart


def test_the_seed_decides_and_calls_differ() -> None:
    x = torch.ones(1000)
    torch.manual_seed(3)
    first, second = drop(x, 0.5), drop(x, 0.5)
    torch.manual_seed(3)
    assert torch.equal(first, drop(x, 0.5))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (2, 3, 7)])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_any_shape_and_type(shape: tuple[int, ...], kind: torch.dtype) -> None:
    made = drop(torch.ones(shape, dtype=kind), 0.5)
    assert made.shape == shape
    assert made.dtype == kind
    assert set(made.flatten().tolist()) <= {0.0, 2.0}


def test_gradients_pass_where_values_stay() -> None:
    torch.manual_seed(0)
    x = torch.randn(50, requires_grad=True)
    out = drop(x, 0.3)
    out.sum().backward()
    assert torch.equal(x.grad == 0, out == 0)
    assert len(set(x.grad.tolist())) == 2, "0 and the factor"
    assert drop(x, 0.0) is x
