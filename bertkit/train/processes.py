"""Several processes that learn together: `torchrun --nproc-per-node 2 -m bertkit pretrain …`.

Each reads its share of every step; gradients are averaged by torch's DistributedDataParallel, and the first process
alone writes. The transport is gloo on a CPU and nccl on GPUs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.distributed as distributed


class Member(NamedTuple):
    """One of them."""

    rank: int = 0
    world: int = 1

    @property
    def leads(self) -> bool:
        """Whether it writes."""
        return self.rank == 0

    def any(self, said: bool) -> bool:
        """Whether one of them says so; all hear the same."""
        if self.world == 1:
            return said
        told = torch.tensor([float(said)])
        distributed.all_reduce(told)
        return bool(told > 0)

    def wait(self) -> None:
        """Until all are here."""
        if self.world > 1:
            distributed.barrier()


@contextmanager
def joined() -> Iterator[Member]:
    """The group that torchrun started, or this process alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Member()
        return
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield Member(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()
