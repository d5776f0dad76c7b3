"""Cores and memory as containers see them: both versions of control groups, written out as files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bertkit import machine

HERE = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def system(root: Path, files: dict[str, str]) -> Path:
    told = {"proc/meminfo": "MemTotal: 8000000 kB\nMemFree: 1 kB\nMemAvailable: 6000000 kB\n"} | files
    for name, text in told.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_without_control_groups(tmp_path: Path) -> None:
    assert machine.cores(system(tmp_path, {})) == HERE
    assert machine.memory(tmp_path) == (8_000_000 * 1024, 6_000_000 * 1024)


def test_version_two_and_the_groups_above(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/pod/box\n",
        "sys/fs/cgroup/pod/box/cpu.max": "max 100000\n",
        "sys/fs/cgroup/pod/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/pod/box/memory.max": "2000000000\n",
        "sys/fs/cgroup/pod/box/memory.current": "900000000\n",
        "sys/fs/cgroup/pod/box/memory.stat": "anon 5\ninactive_file 300000000\n",
        "sys/fs/cgroup/pod/memory.max": "max\n",
    }
    assert machine.cores(system(tmp_path, files)) == 1
    assert machine.memory(tmp_path) == (2_000_000_000, 1_400_000_000)


def test_version_one(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/box\n3:cpuset:/\n1:cpu,cpuacct:/box\n",
        "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "100000\n",
        "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/box/memory.limit_in_bytes": "1000000000\n",
        "sys/fs/cgroup/memory/box/memory.usage_in_bytes": "1200000000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    assert machine.cores(system(tmp_path, files)) == 1
    assert machine.memory(tmp_path) == (1_000_000_000, 0)


@pytest.mark.parametrize("quota", ["-1", "0", "soon", ""])
def test_no_limit_is_no_limit(quota: str, tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "1:cpu:/../..\nnonsense\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": quota,
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    }
    assert machine.cores(system(tmp_path, files)) == HERE


def test_this_machine() -> None:
    assert 1 <= machine.cores() <= (os.cpu_count() or 1)
    total, free = machine.memory() or (0, 0)
    assert 0 < free <= total


def test_the_processor_and_what_it_can_do(tmp_path: Path) -> None:
    told = "processor\t: 0\nmodel name\t: Fast One\nflags\t\t: fpu avx2 avx512_vnni\n\nprocessor\t: 1\nflags\t\t: fpu\n"
    system(tmp_path, {"proc/cpuinfo": told})
    assert machine.processor(tmp_path) == "Fast One"
    assert machine.instructions(tmp_path) == {"fpu", "avx2", "avx512_vnni"}
    system(tmp_path, {"proc/cpuinfo": "Features\t: fp asimd\n"})
    assert machine.instructions(tmp_path) == {"fp", "asimd"}
    system(tmp_path, {"proc/cpuinfo": ""})
    assert machine.instructions(tmp_path) == set()
