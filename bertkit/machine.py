"""What this process may use of the machine: cores and memory, as affinity and control groups leave them.

A container sees all cores and all memory of its host; what it may use stands in the files of its control group, in
one of two versions. Limits of the groups above it hold as well.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def cores(root: Path = ROOT) -> int:
    """How many cores this process may keep busy."""
    known = getattr(os, "sched_getaffinity", None)
    seen = len(known(0)) if known else os.cpu_count() or 1
    shares = [math.ceil(quota / period) for quota, period in _quotas(root) if quota > 0 and period > 0]
    return max(1, min([seen, *shares]))


def processor(root: Path = ROOT) -> str:
    """The processor by its name, as far as the system tells."""
    named = (line.partition(":")[2].strip() for line in _lines(root / "proc" / "cpuinfo") if "model name" in line)
    return next(named, platform.processor() or platform.machine())


def instructions(root: Path = ROOT) -> frozenset[str]:
    """The processor's own names for what it can do beyond the usual (avx2, avx512_vnni), as far as the system tells."""
    told = (
        line.partition(":")[2] for line in _lines(root / "proc" / "cpuinfo") if line.startswith(("flags", "Features"))
    )
    return frozenset(next(told, "").split())


def memory(root: Path = ROOT) -> tuple[int, int] | None:
    """Bytes in all and bytes that are free to take; None where the system does not say."""
    told = _meminfo(root / "proc" / "meminfo")
    if told is None:
        return None
    total, free = told
    for group in _groups(root, "memory"):
        limit = _number(group / "memory.max") or _number(group / "memory.limit_in_bytes")
        if limit is None:
            continue
        used = _number(group / "memory.current") or _number(group / "memory.usage_in_bytes") or 0
        total, free = min(total, limit), min(free, max(limit - used + _cache(group / "memory.stat"), 0))
    return total, free


def _quotas(root: Path) -> Iterator[tuple[int, int]]:
    """Microseconds of work allowed in each period of so many microseconds."""
    for group in _groups(root, "cpu"):
        words = _words(group / "cpu.max")  # the second version: quota or max, then period
        if len(words) == 2 and all(word.isdigit() for word in words):
            yield int(words[0]), int(words[1])
        quota, period = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
        if quota and period:
            yield quota, period


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The directories of this process's control group and of those above it."""
    home = root / "sys" / "fs" / "cgroup"
    for line in _lines(root / "proc" / "self" / "cgroup"):
        _, names, path = [*line.split(":", 2), "", ""][:3]
        if names and controller not in names.split(","):
            continue
        base = home / names if names else home
        group = Path(os.path.normpath(base / path.lstrip("/")))
        yield from (place for place in (group, *group.parents) if place.is_relative_to(base))


def _meminfo(path: Path) -> tuple[int, int] | None:
    if not path.is_file():
        if not {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= os.sysconf_names.keys():
            return None
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return total, total
    table = {words[0]: int(words[1]) * 1024 for line in _lines(path) if len(words := line.split()) > 1}
    total = table.get("MemTotal:", 0)
    return total, table.get("MemAvailable:", total)


def _cache(path: Path) -> int:
    """Bytes counted as used that the system gives back when asked: files nobody reads."""
    table = dict(line.split(" ", 1) for line in _lines(path) if " " in line)
    found = table.get("total_inactive_file", table.get("inactive_file", "0"))
    return int(found) if found.isdigit() else 0


def _number(path: Path) -> int | None:
    words = _words(path)
    return int(words[0]) if words and words[0].isdigit() else None


def _words(path: Path) -> list[str]:
    return [word for line in _lines(path) for word in line.split()]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
