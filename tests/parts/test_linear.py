"""A few rows are multiplied in shares, with the same numbers as many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F

from bertkit.parts.init import FEW_ROWS, SHARES, Linear, draw


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("rows", [1, 11, FEW_ROWS, FEW_ROWS + 1])
@pytest.mark.parametrize("outputs", [SHARES, 12, 13, 384])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shares_equal_the_whole(rows: int, outputs: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layer = Linear(40, outputs, dtype=dtype)
    draw(layer, 0.5)
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(2 * rows, 40, dtype=dtype)[::2]  # not contiguous
    wanted = F.linear(x, layer.weight, layer.bias)
    for context in (torch.no_grad(), torch.inference_mode()):
        with context:
            torch.testing.assert_close(layer(x), wanted, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-12)


def test_shares_are_taken_where_they_help(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(Linear, "_in_shares", lambda self, x: taken.append(len(x)) or x.new_zeros(len(x), 8))
    layer = Linear(4, 8)
    layer(torch.zeros(3, 4))
    assert taken == [], "gradients are wanted"
    with torch.no_grad():
        layer(torch.zeros(3, 4))
        layer(torch.zeros(FEW_ROWS + 1, 4))
        layer(torch.zeros(2, 3, 4))
        torch.set_num_threads(1)
        layer(torch.zeros(3, 4))
    assert taken == [3]


def test_gradients_are_torchs() -> None:
    layer = Linear(4, 8)
    draw(layer)
    layer(torch.ones(3, 4)).sum().backward()
    assert torch.equal(layer.weight.grad, torch.full((8, 4), 3.0))
