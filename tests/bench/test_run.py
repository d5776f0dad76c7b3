"""What a run prints, and what it knows of the machine."""

from __future__ import annotations

import doctest
import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch.utils.flop_counter import FlopCounterMode

import bertkit
from bench import corpus, forward, machine, measure, peer, pipe, pretrain, prose, run, share, texts
from bench.measure import Amount, AtMost, Bar, Case, Row, Speed, Weight
from bench.pipe import Array
from bench.run import as_json, main, speed_as_json, to_markdown, weight_as_json, workloads
from bertkit.text import Tokenizer

GOOD = Row(
    "query", "slow", 1.5, (1.4, 1.6), 0.002, 0.003, 1e8, 1e-7, 1.0, 8, Bar(1.3), {"slow": "2.1"}
)  # fmt: skip
LATE = Row("query", "missing", bar=Bar(1.3), reason="not built yet: make bench-install")


def test_a_row_tells_ratio_spread_and_the_share_of_the_peak() -> None:
    told = as_json(GOOD, peak=1e11)
    assert told | {"case": "query", "peer": "slow", "ratio": 1.5, "spread": [1.4, 1.6], "reached": True} == told
    assert (told["share"], told["peer_share"]) == (0.5, 0.333)  # 1e8 operations in 2 and 3 ms of 1e11 a second
    assert json.loads(json.dumps(told)) == told


def test_an_absent_peer_is_a_row_with_its_reason() -> None:
    told = as_json(LATE, peak=1e11)
    assert (told["ratio"], told["spread"], told["reached"]) == (None, None, None)
    assert told["reason"] == "not built yet: make bench-install"


def test_the_table() -> None:
    about = machine.description(2) | {
        "bertkit": "0",
        "gemm_gflops": {"1": 80.0, "2": 150.0},
        "gemm_gops_int8": 300.0,
        "others_cores": 0.0,
    }
    slow = Row("fixed", "quick", 0.9, (0.8, 0.95), 0.003, 0.002, 1e8, 1e-7, 1.0, 8, Bar(1.0, within_spread=True))
    told = [as_json(row, 1e11) for row in (GOOD, slow, LATE)]
    shown = to_markdown({"workload": "w", "machine": about, "rows": told, "speeds": []})
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert "| slow (slow 2.1) | 1.50 | 1.40–1.60 | 2.0 | 3.0 | 50%, peer 33% | 1.000000 | ≥ 1.3: reached |" in shown
    assert "≥ 1 within spread: **not reached**" in shown
    assert "| none: not built yet: make bench-install |" in shown
    assert "80 on 1, 150 on 2 threads" in shown


READ = Row(
    "tokenize", "slow", 3.0, (2.5, 3.5), 1.25, 3.75, 0.0, 0.0, None, 8, Bar(2.5), {}, amount=Amount(15, "MB")
)  # fmt: skip
MADE = Speed("assemble", "tokens", 6.5e6, (6.1e6, 6.9e6), 8, Bar(5e6))


def test_a_row_without_operations_tells_amounts_in_a_second() -> None:
    told = as_json(READ, peak=1e11)
    assert (told["speed"], told["peer_speed"], told["unit"]) == (12.0, 4.0, "MB")
    assert not {"share", "peer_share"} & set(told)
    assert json.loads(json.dumps(told)) == told


def test_the_table_without_operations_and_the_one_of_speeds() -> None:
    about = machine.description(2) | {
        "bertkit": "0",
        "gemm_gflops": {"2": 150.0},
        "gemm_gops_int8": 300.0,
        "others_cores": 0.0,
    }
    slow = Speed("words", "tokens", 1.5e6, (1.4e6, 1.6e6), 8, Bar(2e6))
    lost = Speed("none", "tokens", reason="it ended")
    speeds = [speed_as_json(speed) for speed in (MADE, slow, lost)]
    shown = to_markdown({"workload": "w", "machine": about, "rows": [as_json(READ, 1e11)], "speeds": speeds})
    assert "| peer, ms | in a second | answers | bar |" in shown
    assert "| slow | 3.00 | 2.50–3.50 | 1,250.0 | 3,750.0 | 12 MB, peer 4 | equal | ≥ 2.5: reached |" in shown
    assert "| assemble | 6.5 M tokens/s | 6.1 M–6.9 M | ≥ 5 M tokens/s: reached |" in shown
    assert "| words | 1.5 M tokens/s | 1.4 M–1.6 M | ≥ 2 M tokens/s: **not reached** |" in shown
    assert "| none | none: it ended |  |  |" in shown


LEARNED = Row(
    "mini", "slow", 3.0, (2.5, 3.5), 0.5, 1.5, 2e10, 2e-6, 1.0, 8, Bar(2.7), {}, amount=Amount(4096, "tokens")
)  # fmt: skip
HELD = Weight("memory", "slow", 0.4, (0.39, 0.41), 800_000_000, 2_000_000_000, 1_100_000_000, 2_200_000_000, 3)


def test_a_row_with_operations_and_an_amount_tells_both() -> None:
    about = machine.description(2) | {
        "bertkit": "0",
        "gemm_gflops": {"2": 100.0},
        "gemm_gops_int8": 300.0,
        "others_cores": 0.0,
    }
    told = as_json(LEARNED, peak=1e11)
    assert (told["speed"], told["peer_speed"], told["share"], told["peer_share"]) == (8192, 2731, 0.4, 0.133)
    shown = to_markdown({"workload": "w", "machine": about, "rows": [told], "speeds": []})
    assert "| in a second, of GEMM peak | answers | bar |" in shown
    assert "| 8,190 tokens, peer 2,730; 40%, peer 13% | within 2e-06 | ≥ 2.7: reached |" in shown


def test_the_table_of_memory() -> None:
    about = machine.description(2) | {
        "bertkit": "0",
        "gemm_gflops": {"2": 100.0},
        "gemm_gops_int8": 300.0,
        "others_cores": 0.0,
    }
    lost = Weight("memory", "late", bar=AtMost(0.5), reason="it ended")
    told = [weight_as_json(row) for row in (replace(HELD, bar=AtMost(0.5)), replace(HELD, bar=AtMost(0.3)), lost)]
    assert json.loads(json.dumps(told)) == told
    shown = to_markdown({"workload": "w", "machine": about, "rows": [], "speeds": [], "memory": told})
    assert "| memory | slow | 0.40 | 0.39–0.41 | 800 | 2,000 | 1,100, peer 2,200: 0.50 | ≤ 0.5: reached |" in shown
    assert "≤ 0.3: **not reached** |" in shown
    assert "| memory | late | none: it ended |  |  |  |  | ≤ 0.5 |" in shown
    rows = [line for line in shown.splitlines() if line.startswith(("| memory", "| case | peer | of"))]
    assert len({row.count("|") for row in rows}) == 1


def test_the_machine_is_described_without_its_name() -> None:
    told = machine.description(2)
    assert told["torch"] == torch.__version__
    assert told["cpu"]
    assert not platform.node() or platform.node() not in json.dumps(told)


def test_the_peak_is_a_speed_and_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    assert 1e9 < machine.peak(1, seconds=0.05) < 1e13
    assert torch.get_num_threads() == before


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs /proc, to see what others do")
def test_the_work_of_our_processes_is_ours() -> None:
    before = machine.Usage.now()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True)
    after = machine.Usage.now()
    assert before is not None
    assert after is not None
    assert after.ours - before.ours > 0.45
    assert after.all - before.all > 0.45
    assert machine.others(machine.Usage(0, 10, 4), machine.Usage(10, 30, 19)) == 0.5


def test_contestants_live_for_one_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lives: list[str] = []

    class Watched(peer.Peer):
        def open(self, job: str, arguments: dict[str, Any], array: Array | None = None) -> Array:
            lives.append(f"{self.name} begins {job}")
            return super().open(job, arguments, array)

        def close(self) -> None:
            lives.append(f"{self.name} ends")
            super().close()

    def cases(quick: bool) -> Iterator[Case]:
        for job in ("running", "prepared"):
            yield Case(job, job, {}, ("peer",), 24.0, np.arange(6.0))

    monkeypatch.setattr(peer, "HOME", tmp_path)
    monkeypatch.setattr(peer, "Peer", Watched)
    monkeypatch.setattr(peer, "names", lambda: ["bertkit", "peer"])
    monkeypatch.setattr(peer, "command", lambda name: [sys.executable, "-m", "tests.bench.sums"])
    monkeypatch.setattr(machine, "peak", lambda threads, kind: 1e11)
    workload = ModuleType("sums")
    vars(workload)["cases"] = cases
    told = run.run("sums", workload, quick=True, console=Console(quiet=True))
    assert [row["rounds"] for row in told["rows"]] == [2, 2]
    assert lives == [
        *("bertkit begins running", "peer begins running", "peer ends", "bertkit ends"),
        *("bertkit begins prepared", "peer begins prepared", "peer ends", "bertkit ends"),
    ]


def test_an_unknown_workload_is_told_what_exists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backward"]) == 1
    assert "forward" in capsys.readouterr().err


@pytest.mark.usefixtures("without_shared")
def test_every_case_names_contestants_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "HOME", tmp_path)
    for workload in workloads().values():
        found = list(workload.cases(quick=True))
        assert len({case.name for case in found}) == len(found) > 0
        for case in found:
            assert {*case.peers, "bertkit"} <= set(peer.names())
            assert set(case.bars) <= {*case.peers, "bertkit"}
            assert case.flops > 0 or (case.amount is not None and case.amount.count > 0)


def test_operations_are_those_that_torch_counts(tokenizer: Tokenizer) -> None:
    model = bertkit.create("bert-tiny", tokenizer, seed=0)
    with FlopCounterMode(display=False) as counter:
        model.record("the cat sat on a mat")  # [CLS], six words, [SEP]; it multiplies the scores out
    assert forward.flops([8], layers=2, width=128, inner=512) == counter.get_total_flops()


@pytest.mark.parametrize("module", [corpus, forward, machine, measure, pipe, pretrain, prose, run, share, texts])
def test_examples_in_the_bench_are_true(module: ModuleType) -> None:
    done = doctest.testmod(module)
    assert done.attempted > 0
    assert done.failed == 0
