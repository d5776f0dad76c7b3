"""Two processes learn what one does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from bertkit.train.pretrain import pretrain
from tests.train.running import made, told

PHASES = '[{inputs={part="SegmentPairs",length=24},rows=8,micro=3}]'
STEPS = ["train.steps=20", "train.checkpoint_every=1", "train.keep_last=100"]
CHANGES = [*STEPS, "model.dropout=0.0", f"train.phases={PHASES}"]
PROGRAM = """
import atexit, os
from pathlib import Path
from bertkit.cli import main

@atexit.register
def look():
    names = [(task / "comm").read_text() for task in Path("/proc/self/task").glob("*")]
    if any("gloo" in name for name in names):
        os._exit(3)  # one of them may end the process by SIGABRT from here on

main()
"""


@pytest.fixture(scope="module")
def one(home: Path) -> Path:
    """What a single process learns."""
    pretrain(made(home, f"output={home / 'one'}", *CHANGES))
    return home / "one"


@pytest.mark.parametrize("compute", ["compute.shard=false", "compute.shard=true"])
def test_losses_and_steps_are_those_of_one_process(home: Path, one: Path, compute: str) -> None:
    run = home / compute
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "program.py"]
    (home / "program.py").write_text(PROGRAM)
    arguments = ["pretrain", "recipe.toml", f"data.corpus={home / 'corpus'}", f"output={run}", *CHANGES, compute]
    done = subprocess.run([*command, *arguments], cwd=home, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left, right = ([line for line in told(where) if line["kind"] == "step"] for where in (one, run))
    assert [line["tokens"] for line in left] == [line["tokens"] for line in right]
    for alone, together in zip(left, right, strict=True):
        assert together["losses"] == pytest.approx(alone["losses"], abs=1e-5), alone["step"]
    first = [where / "checkpoints" / "step-00000001" / "optimizer.safetensors" for where in (one, run)]
    alone, together = map(load_file, first)  # after one step Adam's mean is a tenth of the gradient
    names = [name for name in alone if name.endswith("/exp_avg")]
    gradient = torch.cat([alone[name].flatten() for name in names])
    apart = torch.cat([(alone[name] - together[name]).flatten() for name in names])
    assert len(names) > 30
    assert apart.norm() <= 1e-6 * gradient.norm()
    exams = [[line["losses"] for line in told(where) if line["kind"] == "held-out"] for where in (one, run)]
    assert exams[1] == [pytest.approx(losses, abs=1e-5) for losses in exams[0]]
    whole, parts = (load_file(where / "model" / "model.safetensors") for where in (one, run))
    assert {name: value.shape for name, value in parts.items()} == {name: value.shape for name, value in whole.items()}
    assert all((parts[name] - value).abs().max() < 1e-4 for name, value in whole.items())
