"""The machine of a run: what it is, how fast it multiplies matrices, and who else is using it."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from bertkit.machine import processor
from bertkit.runtime.engines.onednn import OneDnn, PackedLinear

SIDE = 1024
"""rows and columns of the matrices that measure the peak: large enough to hide the start, small enough for the cache"""


def description(threads: int) -> dict[str, str | int]:
    """What a reader needs to place the numbers; no names of hosts, no paths."""
    return {
        "cpu": processor(),
        "cores": os.cpu_count() or 0,
        "threads": threads,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def peak(threads: int, precision: str = "fp32", seconds: float = 0.4) -> float:
    """The most operations per second that any of torch's products of matrices reaches within some time."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        products, best = [made() for made in _PRODUCTS[precision]], float("inf")
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for product in products:
                begun = time.perf_counter()
                product()
                best = min(best, time.perf_counter() - begun)
    finally:
        torch.set_num_threads(before)
    return 2 * SIDE**3 / best


def _floats() -> Callable[[], object]:
    """By the library that torch was built with: on x86 mostly MKL."""
    one, other, out = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE), torch.empty(SIDE, SIDE)
    return lambda: torch.mm(one, other, out=out)


def _packed() -> Callable[[], object]:
    """By oneDNN, of a matrix that was packed before."""
    if OneDnn.absence():
        return _floats()
    one, linear = torch.rand(SIDE, SIDE), PackedLinear(torch.nn.Linear(SIDE, SIDE).requires_grad_(False))
    return lambda: linear(one)


def _integers() -> Callable[[], object]:
    """Bytes by bytes, whose sums are scaled to bytes again."""
    warnings.filterwarnings("ignore", message="torch.quantize_per_tensor")  # in whose place torch has nothing yet
    one = torch.quantize_per_tensor(torch.rand(SIDE, SIDE), 1 / 255, 0, torch.quint8)
    other = torch.quantize_per_tensor(torch.rand(SIDE, SIDE), 1 / 127, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(other, None)
    return lambda: torch.ops.quantized.linear(one, packed, 1.0, 0)


_PRODUCTS = {"fp32": (_floats, _packed), "int8": (_integers,)}


@dataclass(frozen=True)
class Usage:
    """Processor time so far: of all processes, and of ours; in seconds."""

    moment: float
    all: float
    ours: float

    @classmethod
    def now(cls) -> Usage | None:
        """None where the system does not tell (it has no /proc)."""
        tick = os.sysconf("SC_CLK_TCK")
        try:
            user, nice, system, _, _, irq, softirq, *stolen = map(
                int, Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
            )
            ours = sum(map(_ticks, Path("/proc").glob("[0-9]*/stat")))
        except OSError:
            return None
        busy = user + nice + system + irq + softirq + sum(stolen[:1])  # stolen: another guest had the core
        return cls(time.monotonic(), busy / tick, ours / tick)


def _ticks(stat: Path) -> int:
    """Of a process in our group, with the children it has waited for; 0 for any other, and for one that has gone."""
    try:
        fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) if int(fields[2]) == os.getpgrp() else 0


def others(before: Usage | None, after: Usage | None) -> float:
    """How many cores others used on average between two moments; 0 where the system does not tell.

    >>> others(Usage(moment=10, all=50, ours=7), Usage(moment=20, all=65, ours=20))
    0.2
    """
    if before is None or after is None or after.moment <= before.moment:
        return 0.0
    return max(0.0, ((after.all - before.all) - (after.ours - before.ours)) / (after.moment - before.moment))
