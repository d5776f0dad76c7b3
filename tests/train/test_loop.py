"""A step: small batches add up to the large one, and dropout belongs to the step."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor

import bertkit
from bertkit.corpus.examples import Examples
from bertkit.objectives.learner import Learner
from bertkit.objectives.masked_lm import MaskedLm
from bertkit.objectives.pairs import Nsp
from bertkit.parts.network import NetworkModule
from bertkit.train import loop
from bertkit.train.feed import Place, Reading, Request, portions
from bertkit.train.loop import Learned

OBJECTIVE = Nsp() + MaskedLm()


def network(examples: Examples, training: bool) -> NetworkModule:
    tokenizer = examples.corpus.tokenizer
    heads = OBJECTIVE.heads
    return bertkit.create("bert-tiny", tokenizer, heads, seed=0).network.train(training)


class Keep(torch.optim.Optimizer):
    """Takes no step; keeps the gradient."""

    def __init__(self, made: NetworkModule) -> None:
        super().__init__(made.parameters(), {"lr": 0.0})
        self.kept: dict[str, Tensor] = {}
        self._names = dict(made.named_parameters())

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        self.kept = {name: value.grad.clone() for name, value in self._names.items() if value.grad is not None}


def gradient(
    examples: Examples, cuts: list[int], training: bool = False, number: int = 0, kind: torch.dtype = torch.float32
) -> tuple[dict[str, Tensor], Learned]:
    """Of one step whose batches are cut at these examples."""
    made, reading = network(examples, training).to(kind), Reading(examples, OBJECTIVE)
    batches = [reading[Request(0, first, stop)] for first, stop in pairwise(cuts)]
    kept = Keep(made)
    learned = loop.step(Learner(made, OBJECTIVE), OBJECTIVE, batches, kept, clip=1e9, seed=0, number=number)
    return kept.kept, learned


@pytest.mark.parametrize("cuts", [[0, 6, 12], [0, 1, 2, 12], list(range(13))])
def test_small_batches_add_up_to_the_large_one(examples: Examples, cuts: list[int]) -> None:
    (large, whole), (small, parts) = gradient(examples, [0, 12]), gradient(examples, cuts)
    apart = torch.cat([(small[name] - value).flatten() for name, value in large.items()])
    assert apart.norm() <= 1e-6 * whole.norm
    assert parts.losses == pytest.approx(whole.losses, rel=1e-6)
    assert parts.norm == pytest.approx(whole.norm, rel=1e-6)
    assert (parts.right, parts.tokens) == (whole.right, whole.tokens)


def test_nothing_but_rounding_tells_small_batches_from_a_large_one(examples: Examples) -> None:
    large, _ = gradient(examples, [0, 12], kind=torch.float64)
    small, _ = gradient(examples, list(range(13)), kind=torch.float64)
    for name, value in large.items():
        assert (small[name] - value).norm() <= 1e-13 * value.norm(), name


def test_dropout_is_the_step_s_own(examples: Examples) -> None:
    torch.manual_seed(1)
    first, _ = gradient(examples, [0, 4, 8], training=True, number=3)
    torch.manual_seed(2)
    again, _ = gradient(examples, [0, 4, 8], training=True, number=3)
    other, _ = gradient(examples, [0, 4, 8], training=True, number=4)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_portions_have_every_example_once_and_go_on_from_any_place(examples: Examples) -> None:
    count = examples.count(0)
    steps = portions(examples, Place(), rows=7, micro=3)
    taken = [next(steps) for _ in range(2 * count // 7 + 1)]
    read = [(ask.epoch, at) for portion in taken for ask in portion.requests for at in range(ask.first, ask.stop)]
    both = [(epoch, at) for epoch in (0, 1, 2) for at in range(examples.count(epoch))]
    assert read == both[: len(read)]
    assert all(ask.stop - ask.first <= 3 for portion in taken for ask in portion.requests)
    assert all(sum(ask.stop - ask.first for ask in portion.requests) == 7 for portion in taken)
    for place in (1, 5, len(taken) - 2):
        assert next(portions(examples, taken[place].after, rows=7, micro=3)) == taken[place + 1]


@pytest.mark.parametrize("world", [2, 3])
def test_processes_share_a_portion(examples: Examples, world: int) -> None:
    alone = next(portions(examples, Place(), rows=8, micro=8)).requests
    shares = [next(portions(examples, Place(), 8, 8, rank, world)).requests for rank in range(world)]
    read = [at for share in shares for ask in share for at in range(ask.first, ask.stop)]
    assert read == list(range(alone[0].first, alone[0].stop))
