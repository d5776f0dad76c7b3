"""Pools against the plain formula over transformers-style hidden states."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bertkit.batch import Packed, Padded
from bertkit.errors import BertkitError
from bertkit.family import bert
from bertkit.parts.heads import Pooler
from bertkit.parts.network import Network
from bertkit.parts.pool import (
    POOLS,
    AfterPrompt,
    Cls,
    Concat,
    FirstLast,
    LastLayers,
    LastToken,
    Max,
    Mean,
    OneLayer,
    Pool,
    Pooled,
    SqrtMean,
    WeightedMean,
    named,
)
from tests.reference import in_order, inputs

LENGTHS = [5, 2, 9, 5]


@pytest.mark.parametrize("layout", [Padded, Packed])
@pytest.mark.parametrize(
    "pool",
    [
        *(*POOLS.values(), Mean(0), Cls(1), Max(-2), FirstLast(0), named("max+first-last+cls+last-4")),
        *(AfterPrompt(pool, 4) for pool in (Cls(), Mean(1), Max(), LastToken(), LastLayers(4), named("mean+cls"))),
    ],
    ids=str,
)
def test_pools_are_their_formula(pool: Pool, layout: type) -> None:
    torch.manual_seed(0)
    network = Network(bert.encoder("mini", 50), {"pooler": Pooler()}).build().eval()
    encoder = network.encoder
    batch = inputs(LENGTHS, 50).ours(layout)
    states = [in_order(batch, x) for x in encoder.steps(batch)]  # embeddings, then 4 layers

    def row(i: int) -> torch.Tensor:
        return formula(pool, [state[i, : LENGTHS[i]] for state in states])

    def formula(pool: Pool, x: list[torch.Tensor]) -> torch.Tensor:
        match pool:
            case Concat(pools):
                return torch.cat([formula(part, x) for part in pools])
            case AfterPrompt(inner, tokens):
                return formula(inner, [state[min(tokens, len(state) - 1) :] for state in x])
            case SqrtMean(layer):
                return x[layer].sum(0) / len(x[layer]) ** 0.5
            case WeightedMean(layer):
                return sum(n * row for n, row in enumerate(x[layer], start=1)) / sum(range(1, len(x[layer]) + 1))
            case LastToken(layer):
                return x[layer][-1]
            case Cls(layer):
                return x[layer][0]
            case Pooled():
                dense = network.heads["pooler"].dense
                return torch.tanh(dense.weight @ x[-1][0] + dense.bias)
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

    got = batch.restore(pool.build(network)(batch))
    assert got.shape[1] == pool.width(256)
    torch.testing.assert_close(got, torch.stack([row(i) for i in range(4)]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("pool", [pool for pool in POOLS.values() if isinstance(pool, OneLayer)], ids=str)
def test_the_pool_of_one_sequence_is_that_of_a_batch(pool: OneLayer) -> None:
    for length in (1, 2, 9):
        states = torch.randn(1, length, 16)
        alone = pool.of_one(states[0].numpy())
        np.testing.assert_allclose(alone[None], pool.reduce([states], Padded.of([length])[0]), rtol=0, atol=1e-6)


def test_the_weighted_sum_learns_its_shares() -> None:
    network = Network(bert.encoder("mini", 50), {}).build().eval()
    batch = inputs(LENGTHS, 50).ours(Packed)
    pool = LastLayers(3).build(network)
    assert list(pool.state_dict()) == ["weights"], "the network's weights are not the pool's"
    pool.weights.data = torch.tensor([0.0, 1.0, 2.0])
    *_, a, b, c = network.encoder.steps(batch)
    shares = torch.tensor([0.0, 1.0, 2.0]).softmax(0)
    expected = batch.layout.mean(shares[0] * a + shares[1] * b + shares[2] * c)
    got = pool(batch)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)
    got.square().sum().backward()
    assert pool.weights.grad.abs().min() > 0


def test_layers_that_are_not_there_and_unknown_names() -> None:
    network = Network(bert.encoder("tiny", 50), {}).build()
    batch = inputs(LENGTHS, 50).ours(Packed)
    for pool in (Mean(3), Mean(-4), LastLayers(4)):
        with pytest.raises(BertkitError, match="this model has 0 \\(its embeddings\\) to 2"):
            pool.build(network)(batch)
    with pytest.raises(BertkitError, match=r"no pooler, which the pool 'pooler' reads. Its heads: none"):
        named("pooler").build(network)
    with pytest.raises(BertkitError, match="unknown pool 'men': did you mean 'mean'"):
        named("men")


def whole(pool: Pool, chunks: list[torch.Tensor]) -> torch.Tensor:
    """A pool over all tokens of all chunks; where a pool has no such meaning, the mean of its vectors by tokens."""
    together = torch.cat(chunks)
    tokens = torch.tensor([float(len(chunk)) for chunk in chunks])
    match pool:
        case Concat(pools):
            return torch.cat([whole(part, chunks) for part in pools])
        case AfterPrompt(inner, skipped):
            return whole(inner, [chunk[skipped:] for chunk in chunks])
        case Mean():
            return together.mean(0)
        case Max():
            return together.amax(0)
        case SqrtMean():
            return together.sum(0) / len(together) ** 0.5
        case Cls():
            return (torch.stack([chunk[0] for chunk in chunks]) * tokens[:, None]).sum(0) / tokens.sum()
        case _:
            raise AssertionError(pool)


POOLED_WHOLE = ["mean", "max", "sqrt-mean", "cls", "mean+max", "max+cls+sqrt-mean"]


@pytest.mark.parametrize(
    "pool", [*map(named, POOLED_WHOLE), *(AfterPrompt(named(x), 2) for x in POOLED_WHOLE)], ids=str
)
def test_chunks_are_joined_to_what_all_their_tokens_give(pool: Pool) -> None:
    torch.manual_seed(0)
    chunks = [torch.randn(length, 6) for length in (7, 7, 4)]

    def vector(pool: Pool, chunk: torch.Tensor) -> torch.Tensor:
        match pool:
            case Concat(pools):
                return torch.cat([vector(part, chunk) for part in pools])
            case AfterPrompt(inner, skipped):
                return vector(inner, chunk[skipped:])
            case _:
                return pool.reduce([chunk[None]], Padded(1, len(chunk)))[0]

    made = torch.stack([vector(pool, chunk) for chunk in chunks])
    joined = pool.join(made, torch.tensor([len(chunk) for chunk in chunks]))
    torch.testing.assert_close(joined, whole(pool, chunks), rtol=0, atol=1e-6)
