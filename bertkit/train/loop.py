"""One step of learning, in the order in which things happen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from bertkit.batch import Batch
from bertkit.corpus.chance import key
from bertkit.objectives.objective import Objective
from bertkit.train.compute import Precision
from bertkit.train.processes import Member, keeping, whole

_DROPOUT = 1
"""what chance is asked for"""


@dataclass(frozen=True)
class Learned:
    """What a step came to, over all small batches and processes."""

    losses: Mapping[str, float]
    """the mean of each question"""
    right: Mapping[str, float]
    """the share of right answers to each"""
    loss: float
    """their sum, each with its weight: what becomes smaller"""
    norm: float
    """the length of the gradient before it was clipped"""
    tokens: int


def step(
    learner: nn.Module,
    objective: Objective,
    batches: Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    clip: float,
    seed: int,
    number: int,
    member: Member = Member(),  # noqa: B008 - frozen
    precision: Precision | None = None,
) -> Learned:
    """Learn from the small batches of one step.

    Every question has one count for the whole step, so that the gradient is that of one large batch, however it was cut
    and shared among processes. Step `number` has dropout of its own, whatever happened before it.
    """
    precision = precision or Precision(device=member.device)
    counts = _added([objective.counts(batch) for batch in batches])
    names = sorted(counts)
    weights = {name: objective.weights.get(name, 1.0) for name in names}
    totals = member.sum(torch.tensor([counts[name] for name in names] + [sum(map(_tokens, batches))]))
    total = dict(zip(names, totals.tolist(), strict=False))

    sums = torch.zeros(2, len(names), dtype=torch.float64, device=member.device)  # losses and right answers
    for place, batch in enumerate(batches):
        torch.manual_seed(int(key(seed, _DROPOUT, number, place, member.rank)[0] >> 1))
        with keeping(learner, place + 1 < len(batches)):
            with precision.multiplying():
                asked = learner(batch.to(member.device))
                loss = sum(weights[name] * asked[name].loss / max(total[name], 1) for name in names)
            precision.backward(loss * member.world)  # processes take the mean of their gradients
        sums += torch.stack([torch.stack([asked[name][part].detach() for name in names]) for part in (0, 1)])

    norm = precision.step(optimizer, learner.parameters(), clip)
    optimizer.zero_grad(set_to_none=True)

    sums = member.sum(sums) / totals[: len(names)].clamp(min=1)
    losses, right = (dict(zip(names, row, strict=True)) for row in sums.tolist())
    loss = objective.weighed(losses)
    return Learned(losses, right, loss, float(whole({"norm": norm})["norm"]), int(totals[-1]))


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for table in counts:
        for name, count in table.items():
            found[name] = found.get(name, 0) + count
    return found


def _tokens(batch: Batch) -> int:
    return len(batch.layout.flat(batch.tokens["ids"]))
