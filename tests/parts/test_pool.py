"""Pools against the plain formula over transformers-style hidden states."""

from __future__ import annotations

import pytest
import torch

from bertkit.batch import Packed, Padded
from bertkit.errors import BertkitError
from bertkit.family import bert
from bertkit.parts.pool import POOLS, Cls, FirstLast, LastLayers, Max, Mean, Pool, named
from tests.reference import in_order, inputs

LENGTHS = [5, 2, 9, 5]


@pytest.mark.parametrize("layout", [Padded, Packed])
@pytest.mark.parametrize("pool", [*POOLS.values(), Mean(0), Cls(1), Max(-2), FirstLast(0)], ids=str)
def test_pools_are_their_formula(pool: Pool, layout: type) -> None:
    torch.manual_seed(0)
    encoder = bert.encoder("mini", 50).build().eval()
    batch = inputs(LENGTHS, 50).ours(layout)
    states = [in_order(batch, x) for x in encoder.steps(batch)]  # embeddings, then 4 layers

    def row(i: int) -> torch.Tensor:
        x = [state[i, : LENGTHS[i]] for state in states]
        match pool:
            case Cls(layer):
                return x[layer][0]
            case Mean(layer):
                return x[layer].mean(0)
            case Max(layer):
                return x[layer].max(0).values
            case FirstLast(first):
                return ((x[first] + x[-1]) / 2).mean(0)
            case LastLayers(4):
                return sum(x[-4:]).mean(0) / 4
            case _:
                raise AssertionError(pool)

    got = batch.restore(pool.build()(encoder, batch))
    torch.testing.assert_close(got, torch.stack([row(i) for i in range(4)]), rtol=0, atol=1e-6)


def test_the_weighted_sum_learns_its_shares() -> None:
    encoder = bert.encoder("mini", 50).build().eval()
    batch = inputs(LENGTHS, 50).ours(Packed)
    pool = LastLayers(3).build()
    pool.weights.data = torch.tensor([0.0, 1.0, 2.0])
    *_, a, b, c = encoder.steps(batch)
    shares = torch.tensor([0.0, 1.0, 2.0]).softmax(0)
    expected = batch.layout.mean(shares[0] * a + shares[1] * b + shares[2] * c)
    got = pool(encoder, batch)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)
    got.square().sum().backward()
    assert pool.weights.grad.abs().min() > 0


def test_layers_that_are_not_there_and_unknown_names() -> None:
    encoder = bert.encoder("tiny", 50).build()
    batch = inputs(LENGTHS, 50).ours(Packed)
    for pool in (Mean(3), Mean(-4), LastLayers(4)):
        with pytest.raises(BertkitError, match="this model has 0 \\(its embeddings\\) to 2"):
            pool.build()(encoder, batch)
    with pytest.raises(BertkitError, match="unknown pool 'men': did you mean 'mean'"):
        named("men")
