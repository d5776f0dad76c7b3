"""Schedules are transformers' and ULMFiT's at every step, and stay where they ended."""

from __future__ import annotations

import math

import pytest
import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_linear_schedule_with_warmup,
)

from bertkit.errors import BertkitError
from bertkit.spec import from_json, to_json
from bertkit.train.schedule import Constant, Cosine, Linear, Schedule, Slanted


def shares(schedule: LambdaLR, steps: int) -> list[float]:
    """What transformers multiplies the rate of each step with."""
    (share,) = schedule.lr_lambdas
    return [share(step) for step in range(steps)]


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)


@pytest.mark.parametrize(("warmup", "steps"), [(0, 40), (1, 40), (10, 40), (40, 40), (60, 40), (0, 1), (3, 1)])
def test_equal_to_transformers(warmup: int, steps: int) -> None:
    """Where warm-up is longer than the run, the rate is still on its way up when the run ends."""
    constant = get_constant_schedule_with_warmup(optimizer(), warmup)
    linear = get_linear_schedule_with_warmup(optimizer(), warmup, steps)
    cosine = get_cosine_schedule_with_warmup(optimizer(), warmup, steps)
    for ours, theirs in ((Constant(warmup), constant), (Linear(warmup), linear), (Cosine(warmup), cosine)):
        got = [ours.share(step, steps) for step in range(steps)]
        assert got == pytest.approx(shares(theirs, steps), rel=1e-12, abs=1e-15), ours
        assert max(got) <= 1


@pytest.mark.parametrize(
    ("schedule", "end"), [(Linear(4), 0.0), (Cosine(4), 0.0), (Constant(4), 1.0), (Slanted(), 1 / 32)]
)
def test_after_its_last_step_a_schedule_stays(schedule: Schedule, end: float) -> None:
    """transformers' cosine would come up again."""
    assert [schedule.share(step, 50) for step in (50, 51, 75, 5000)] == [end] * 4


@pytest.mark.parametrize("kind", [Linear, Cosine])
def test_a_warm_up_that_is_never_over_does_not_jump(kind: type[Linear] | type[Cosine]) -> None:
    assert [kind(60).share(step, 40) for step in (39, 60, 61)] == [39 / 60, 0.0, 0.0]
    assert kind(40).share(40, 40) == 0.0


def ulmfit(step: int, steps: int, cut_frac: float, ratio: float) -> float:
    """Howard and Ruder's equation 3, as a share of the highest rate."""
    cut = math.floor(steps * cut_frac)
    p = step / cut if step < cut else 1 - (step - cut) / (cut * (1 / cut_frac - 1))
    return (1 + p * (ratio - 1)) / ratio


@pytest.mark.parametrize(
    ("steps", "cut", "ratio"), [(100, 0.1, 32.0), (640, 0.25, 8.0), (16, 0.5, 1.0), (10, 0.1, 100.0)]
)
def test_slanted_is_ulmfits(steps: int, cut: float, ratio: float) -> None:
    schedule = Slanted(cut, ratio)
    for step in range(steps + 1):
        assert schedule.share(step, steps) == pytest.approx(ulmfit(step, steps, cut, ratio), rel=1e-12)
    assert schedule.share(int(steps * cut), steps) == 1.0


@pytest.mark.parametrize("steps", [1, 3, 9, 105, 109])
def test_slanted_reaches_its_ends_for_any_number_of_steps(steps: int) -> None:
    got = [Slanted().share(step, steps) for step in range(steps + 1)]
    top = max(1, steps // 10)
    assert got[top] == (1.0 if steps > 1 else 1 / 32)
    assert got[0] == got[-1] == 1 / 32
    assert got == sorted(got[: top + 1]) + sorted(got[top + 1 :], reverse=True)


def test_specs_check_themselves_and_go_to_json_and_back() -> None:
    for schedule in (Constant(5), Linear(), Cosine(7), Slanted(0.2, 4.0)):
        assert from_json(to_json(schedule)) == schedule
    with pytest.raises(BertkitError, match=r"Linear.warmup is -1: it must be at least 0"):
        Linear(-1)
    with pytest.raises(BertkitError, match=r"Slanted.ratio is 0.5: it must be at least 1"):
        Slanted(ratio=0.5)
