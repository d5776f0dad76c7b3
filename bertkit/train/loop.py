"""One step of learning, in the order in which things happen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
import torch.distributed as distributed
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from bertkit.batch import Batch
from bertkit.corpus.chance import key
from bertkit.objectives.objective import Objective

_DROPOUT = 1
"""what chance is asked for"""


@dataclass(frozen=True)
class Learned:
    """What a step came to, over all small batches and processes."""

    losses: Mapping[str, float]
    """the mean of each question"""
    right: Mapping[str, float]
    """the share of right answers to each"""
    norm: float
    """the length of the gradient before it was clipped"""
    tokens: int

    @property
    def loss(self) -> float:
        return sum(self.losses.values())


def step(
    learner: nn.Module,
    objective: Objective,
    batches: Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    clip: float,
    seed: int,
    number: int,
) -> Learned:
    """Learn from the small batches of one step.

    Every question has one count for the whole step, so that the gradient is that of one large batch, however it was cut
    and shared among processes. Step `number` has dropout of its own, whatever happened before it.
    """
    world, rank = (distributed.get_world_size(), distributed.get_rank()) if distributed.is_initialized() else (1, 0)
    counts = _added([objective.counts(batch) for batch in batches])
    names = sorted(counts)
    totals = _over_all(torch.tensor([counts[name] for name in names] + [sum(map(_tokens, batches))]))
    total = dict(zip(names, totals.tolist(), strict=False))

    sums = torch.zeros(2, len(names), dtype=torch.float64)  # losses and right answers
    for place, batch in enumerate(batches):
        torch.manual_seed(int(key(seed, _DROPOUT, number, place, rank)[0] >> 1))
        with _alone(learner, place + 1 < len(batches)):
            asked = learner(batch)
            loss = sum(asked[name].loss / max(total[name], 1) for name in names)
            (loss * world).backward()  # processes take the mean of their gradients
        sums += torch.tensor([[float(asked[name][part].detach()) for name in names] for part in (0, 1)])

    norm = nn.utils.clip_grad_norm_(learner.parameters(), clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)

    sums = _over_all(sums) / totals[: len(names)].clamp(min=1)
    losses, right = (dict(zip(names, row, strict=True)) for row in sums.tolist())
    return Learned(losses, right, float(norm), int(totals[-1]))


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for table in counts:
        for name, count in table.items():
            found[name] = found.get(name, 0) + count
    return found


def _tokens(batch: Batch) -> int:
    return len(batch.layout.flat(batch.tokens["ids"]))


def _over_all(values: Tensor) -> Tensor:
    """The sum over all processes."""
    if distributed.is_initialized():
        distributed.all_reduce(values)
    return values


def _alone(learner: nn.Module, more: bool) -> AbstractContextManager[None]:
    """Gradients travel between processes with the last small batch only."""
    if more and isinstance(learner, DistributedDataParallel):
        return learner.no_sync()
    return nullcontext()
