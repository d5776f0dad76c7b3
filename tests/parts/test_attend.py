"""Attention: every path computes the formula, with and without padding, positions and probes."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from bertkit.batch import Batch, Block, Packed, Padded
from bertkit.parts.attend import attend
from bertkit.parts.place import Place
from bertkit.parts.tape import Tape

LENGTHS = [6, 6, 4, 1]  # longest first, so that rows keep their order when packed
HEADS, HEAD = 2, 4


class Toy(Place):
    """Uses all three hooks: turns queries and keys, prefers near keys, mixes in a vector per distance."""

    scores = True
    mixes = True

    def rotate(self, q: Tensor, k: Tensor, block: Block) -> tuple[Tensor, Tensor]:
        turn = torch.cos(torch.arange(block.length))[:, None]
        return q * turn, k * turn

    def score(self, q: Tensor, k: Tensor, block: Block) -> Tensor:
        steps = torch.arange(block.length)
        return q.sum(-1, keepdim=True) * -(steps[:, None] - steps).abs() * 0.3

    def mix(self, probabilities: Tensor, block: Block) -> Tensor:
        steps = torch.arange(block.length)
        vectors = torch.sin((steps[:, None] - steps)[..., None] * torch.arange(1, HEAD + 1))  # [Q, K, H]
        return torch.einsum("bnqk,qkh->bnqh", probabilities, vectors)


class ToyScore(Toy):
    mixes = False


def formula(q: Tensor, k: Tensor, v: Tensor, place: Place) -> Tensor:
    """One sequence [length, N, H], straight from the paper."""
    block = Block(1, len(q))
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))  # [1, N, length, H]
    q, k = place.rotate(q, k, block)
    scores = q @ k.transpose(-1, -2) / math.sqrt(HEAD)
    if place.scores:
        scores = scores + place.score(q / math.sqrt(HEAD), k, block)
    probabilities = scores.softmax(-1)
    out = probabilities @ v
    if place.mixes:
        out = out + place.mix(probabilities, block)
    return out[0].transpose(0, 1)


def sequences() -> list[list[Tensor]]:
    torch.manual_seed(0)
    return [[torch.randn(length, HEADS, HEAD, requires_grad=True) for _ in range(3)] for length in LENGTHS]


def lay(rows: list[Tensor], layout: type) -> Tensor:
    return (
        torch.cat(rows)
        if layout is Packed
        else torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=9)
    )


@pytest.mark.parametrize("record", [False, True], ids=["fused", "eager"])
@pytest.mark.parametrize("layout", [Padded, Packed])
@pytest.mark.parametrize("place", [Place(), ToyScore(), Toy()], ids=["plain", "score", "mix"])
def test_all_paths_compute_the_formula_and_its_gradient(place: Place, layout: type, record: bool) -> None:
    expected_rows = sequences()
    expected = torch.cat([formula(*row, place) for row in expected_rows])
    expected.square().sum().backward()

    rows = sequences()
    made, order, _ = layout.of(LENGTHS)
    assert order == [0, 1, 2, 3]
    tape = Tape(Batch({}, made, torch.tensor(order))) if record else None
    q, k, v = (lay([row[i] for row in rows], layout) for i in range(3))
    out = attend(q, k, v, made, place, tape=tape)
    got = out if layout is Packed else torch.cat([out[i, :length] for i, length in enumerate(LENGTHS)])
    torch.testing.assert_close(got, expected, rtol=0, atol=2e-6)
    got.square().sum().backward()
    for row, reference in zip(rows, expected_rows, strict=True):
        for x, y in zip(row, reference, strict=True):
            torch.testing.assert_close(x.grad, y.grad, rtol=0, atol=1e-5)


@pytest.mark.parametrize("record", [False, True], ids=["fused", "eager"])
def test_a_query_that_sees_nothing_gives_zero(record: bool) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, HEADS, HEAD)
    layout = Padded(2, 3, torch.tensor([[True, True, False], [False, False, False]]))
    tape = Tape(Batch({}, layout, torch.arange(2))) if record else None
    out = attend(q, k, v, layout, Place(), tape=tape)
    assert not out[1].any()
    assert out[0].all()
    assert not out.isnan().any()


@pytest.mark.parametrize("record", [False, True], ids=["fused", "eager"])
@pytest.mark.parametrize("layout", [Padded, Packed])
def test_dropout_removes_its_share_and_scales_the_rest(layout: type, record: bool) -> None:
    """With equal keys and values of 1 the output is the sum of the kept probabilities: its mean is 1."""
    torch.manual_seed(0)
    made, order, _ = layout.of([50] * 40 + [30] * 10)
    ones = torch.ones(*made.shape, HEADS, HEAD)
    tape = Tape(Batch({}, made, torch.tensor(order))) if record else None
    out = attend(ones, ones, ones, made, Place(), dropout=0.25, tape=tape)
    real = made.to_padded(out)[:40, :50]  # the rows of 50 keys
    assert real.mean().item() == pytest.approx(1, abs=0.01)
    # each of 50 keys is kept with chance 3/4 and then weighs 4/3: variance p(1-p)/p² / 50
    assert real[..., 0].var().item() == pytest.approx(0.25 / 0.75 / 50, rel=0.1)
