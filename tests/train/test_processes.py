"""Two processes learn what one does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from bertkit.train.run import pretrain
from tests.train.test_run import home, made, told  # noqa: F401 - a fixture

PHASES = '[{inputs={part="SegmentPairs",length=24},rows=8,micro=3}]'
STEPS = ["train.steps=20", "train.checkpoint_every=1", "train.keep_last=100"]
CHANGES = [*STEPS, "model.dropout=0.0", f"train.phases={PHASES}"]


def test_losses_and_steps_are_those_of_one_process(home: Path) -> None:  # noqa: F811
    pretrain(made(home, f"output={home / 'one'}", *CHANGES))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "-m", "bertkit"]
    arguments = ["pretrain", "recipe.toml", f"data.corpus={home / 'corpus'}", f"output={home / 'two'}", *CHANGES]
    subprocess.run([*command, *arguments], cwd=home, check=True, capture_output=True)
    one, two = ([line for line in told(home / name) if line["kind"] == "step"] for name in ("one", "two"))
    assert [line["tokens"] for line in one] == [line["tokens"] for line in two]
    for left, right in zip(one, two, strict=True):
        assert right["losses"] == pytest.approx(left["losses"], abs=1e-5), left["step"]
    first = [home / name / "checkpoints" / "step-00000001" / "optimizer.safetensors" for name in ("one", "two")]
    alone, together = map(load_file, first)  # after one step Adam's mean is a tenth of the gradient
    names = [name for name in alone if name.endswith("/exp_avg")]
    gradient = torch.cat([alone[name].flatten() for name in names])
    apart = torch.cat([(alone[name] - together[name]).flatten() for name in names])
    assert len(names) > 30
    assert apart.norm() <= 1e-6 * gradient.norm()
