"""How the work of a run is done. What is learned stays the same but for rounding.

float32 is what the paper has. Fewer bits are for machines that multiply them faster: GPUs, and CPUs with AMX or
AVX512-BF16. Where a machine does not, float32 is taken, and said.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from bertkit.errors import look_up
from bertkit.parts.network import NetworkModule
from bertkit.spec import Spec

log = logging.getLogger("bertkit")

WITHOUT_AMX = "AVX512_CORE_BF16"
"""what torch's library may be told by ONEDNN_MAX_CPU_ISA, for machines whose AMX does not work"""
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class _OnePrecision:
    def check(self, value: str, where: str) -> None:
        look_up(where, value, PRECISIONS)


@dataclass(frozen=True)
class Compute(Spec):
    """Settings that may differ from one machine to the next."""

    precision: Annotated[str, _OnePrecision()] = "float32"
    """of multiplications: float32, bfloat16, float16; weights and sums stay float32"""
    recompute: bool = False
    """keep the input of each layer only, and compute the rest again for the gradient: less memory, a third more time"""
    compile: bool = False
    """let torch compile the layers, which takes minutes at first; of use on a GPU"""
    shard: bool = False
    """several processes keep a part of the weights each (FSDP2), for networks that one cannot hold"""

    def equip(self, network: NetworkModule) -> None:
        """Make a network compute so."""
        network.encoder.recompute = self.recompute
        if self.compile:
            for block in (*network.encoder.attentions, *network.encoder.feeds):
                block.compile(dynamic=True)


class Precision:
    """How many bits multiplications have, and how gradients survive them."""

    def __init__(self, name: str = "float32", device: torch.device | str = "cpu") -> None:
        self.kind, self._device = PRECISIONS[name], torch.device(device).type
        # small gradients are 0 in float16, unless the loss is made large for a while
        self._scaler = torch.amp.GradScaler(self._device, enabled=self.kind is torch.float16)

    @classmethod
    def on(cls, device: torch.device, name: str) -> Precision:
        """The precision of that name if the device has it, else float32."""
        if name != "float32" and not _has(device, name):
            log.warning("this %s does not multiply %s faster: float32 is taken", device.type.upper(), name)
            name = "float32"
        return cls(name, device)

    def multiplying(self) -> AbstractContextManager[Any]:
        """Multiplications herein have these bits."""
        return nullcontext() if self.kind is torch.float32 else torch.autocast(self._device, self.kind)

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a loss to what is there."""
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]

    def step(self, optimizer: torch.optim.Optimizer, parameters: Iterable[nn.Parameter], clip: float) -> Tensor:
        """Clip, and take a step; the length of the gradient before. One that overflowed float16 is left out, and 0."""
        self._scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(parameters, clip)
        self._scaler.step(optimizer)
        self._scaler.update()
        return norm.nan_to_num(0.0, 0.0) if self._scaler.is_enabled() else norm

    @property
    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        return self._scaler.state_dict()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on as `state` says."""
        if state:
            self._scaler.load_state_dict(dict(state))


def _has(device: torch.device, name: str) -> bool:
    if device.type == "cuda":
        return name == "float16" or torch.cuda.is_bf16_supported(including_emulation=False)
    told: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    claims = name == "bfloat16" and any(told.get(one, False) for one in ("amx_bf16", "avx512_bf16"))
    return claims and survives(name)


@cache
def survives(name: str) -> bool:
    """Whether a CPU lives through a product in this precision, which another process tries.

    Some virtual machines claim instructions for matrices (AMX) that end whoever uses them.
    """
    program = f"import torch; x = torch.ones(64, 64, dtype=torch.{name}); x @ x"
    tried = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)  # noqa: S603 - ours
    if tried.returncode:
        log.warning("this CPU claims to multiply %s, and dies of it; ONEDNN_MAX_CPU_ISA=%s may help", name, WITHOUT_AMX)
    return not tried.returncode
