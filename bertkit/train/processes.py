"""Several processes that learn together: `torchrun --nproc-per-node 2 -m bertkit pretrain …`.

Each reads its share of every step, and the first one alone writes. Gradients are averaged by torch: each process has
the whole network (DistributedDataParallel), or a part of every matrix (`fully_shard`, FSDP2). The transport is gloo on
CPUs and nccl on GPUs.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

import torch
import torch.distributed as distributed
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from bertkit.objectives.learner import Learner


class Member(NamedTuple):
    """One of them."""

    rank: int = 0
    world: int = 1
    device: torch.device = torch.device("cpu")

    @property
    def leads(self) -> bool:
        """Whether it writes."""
        return self.rank == 0

    def any(self, said: bool) -> bool:
        """Whether one of them says so; all hear the same."""
        return bool(self.sum(torch.tensor([float(said)])) > 0)

    def sum(self, values: Tensor) -> Tensor:
        """Of the values of all, on the CPU."""
        if self.world == 1:
            return values.cpu()
        values = values.to(self.device)
        distributed.all_reduce(values)
        return values.cpu()

    def wait(self) -> None:
        """Until all are here."""
        if self.world > 1:
            distributed.barrier()


@contextmanager
def joined() -> Iterator[Member]:
    """The group that torchrun started, or this process alone; on a GPU where there is one."""
    here = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", here) if torch.cuda.is_available() else torch.device("cpu")
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Member(device=device)
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Member(distributed.get_rank(), distributed.get_world_size(), device)
    finally:
        distributed.destroy_process_group()
        _let_go()


def _let_go() -> None:
    """End the group's threads: one that drops a tensor when Python is ending takes the process with it (SIGABRT).

    The last who holds the group ends them. Networks in parts do, and meshes, which stay in torch's caches for ever.
    """
    for mesh in [each for each in gc.get_objects() if isinstance(each, DeviceMesh)]:
        getattr(mesh, "_pg_registry", {}).clear()
    gc.collect()


def shard(learner: Learner, member: Member) -> None:
    """Leave each process a part of every matrix; a block is whole only while it computes."""
    mesh = init_device_mesh(member.device.type, (member.world,))
    for network in learner.networks.values():
        for block in (*network.encoder.attentions, *network.encoder.feeds):
            fully_shard(block, mesh=mesh)
    fully_shard(learner, mesh=mesh)  # tables and heads, which the loss needs after encoders are done, or networks share


@contextmanager
def keeping(learner: nn.Module, more: bool) -> Iterator[None]:
    """Gradients stay where they are while there is more to add to them."""
    if isinstance(learner, DistributedDataParallel):
        with learner.no_sync() if more else nullcontext():
            yield
        return
    for module in learner.modules():
        if isinstance(module, FSDPModule):
            module.set_requires_gradient_sync(not more, recurse=False)
    yield


def whole(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the CPU, none of them in parts. All processes take part."""
    return {
        name: (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach().contiguous().cpu()
        for name, tensor in tensors.items()
    }


def put(given: Tensor, place: Tensor) -> None:
    """Copy a whole tensor to where another is, or to the part of it that this process has."""
    with torch.no_grad():
        if isinstance(place, DTensor):
            given = distribute_tensor(given.to(place.device), place.device_mesh, place.placements)
        place.copy_(given)
