"""Whole numbers whose products no processor cuts off."""

from __future__ import annotations

import pytest
import torch

from bertkit.weights import int8


@pytest.mark.parametrize("columns", [1, 2, 7, 384])
@pytest.mark.parametrize("spread", [1e-30, 1e-3, 1.0, 1e20])
def test_neighbours_fit_and_numbers_stay_when_they_are_quantised_again(columns: int, spread: float) -> None:
    torch.manual_seed(columns)
    matrix = torch.randn(300, columns).pow(3) * spread  # some rows with one large number, some with many
    matrix[0] = 0
    whole, scale = int8.quantized(matrix)
    numbers = torch.nn.functional.pad(whole.int(), (0, columns % 2)).view(300, -1, 2)  # [rows, pairs, 2]
    sums = torch.maximum(numbers.clamp(min=0).sum(-1), -numbers.clamp(max=0).sum(-1))
    assert whole.abs().max() <= 127
    assert sums.max() <= 128
    full = (whole.abs().amax(1) == 127) | (sums.amax(1) == 128)
    assert full[1:].all()
    assert not whole[0].any()
    exact = int8.restored(whole, scale)
    assert ((exact - matrix).abs() <= scale[:, None] * 1.001).all()  # half a step, or one where a pair is filled up
    again, scale_again = int8.quantized(exact)
    assert torch.equal(again, whole)
    torch.testing.assert_close(scale_again, scale, rtol=1e-6, atol=0)


def test_a_table_is_as_fine_as_bytes_can_be() -> None:
    table = torch.tensor([[1.0, 1.0, 0.5], [0.0, 0.0, 0.0]])
    whole, scale = int8.quantized(table, multiplied=False)
    assert whole.tolist() == [[127, 127, 64], [0, 0, 0]]
    assert scale.tolist() == [pytest.approx(1 / 127), 1.0]
