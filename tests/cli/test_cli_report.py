"""`bertkit report` and `bertkit checkpoint verify`: what is written, what is said, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from torch import nn

from bertkit.train import checkpoint
from tests.cli.running import Bertkit


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A run with two checkpoints of a very small network."""
    path = tmp_path / "first"
    path.mkdir()
    (path / "recipe.toml").write_text("output = 'first'\n[train]\nsteps = 40\n", encoding="utf-8")
    line = {"kind": "step", "step": 10, "losses": {"mlm": 8.25}, "right": {"mlm": 0.125}, "norm": 2.0}
    (path / "log.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    network = nn.Linear(2, 2)
    for step in (10, 20):
        checkpoint.save(path, step, dict(network.named_parameters()), {}, {"place": [0, step]})
    return path


def test_report(run: Bertkit, directory: Path, tmp_path: Path) -> None:
    for _ in range(2):  # a run at work is looked at again and again
        ran = run("report", directory)
        assert (ran.code, ran.out) == (0, "")
        assert ran.err == f"bertkit: wrote {directory / 'report.html'}. Next: open it in a browser\n"
    assert "learned from: 8.25 at 10 steps" in (directory / "report.html").read_text(encoding="utf-8")
    other = tmp_path / "other.html"
    assert run("report", directory, "--output", other).code == 0
    assert other.read_bytes() == (directory / "report.html").read_bytes()
    assert "exists" in run("report", directory, "--output", other).err
    assert run("report", directory, "--output", other, "--overwrite").code == 0


def test_report_of_something_else(run: Bertkit, tmp_path: Path, directory: Path) -> None:
    ran = run("report", tmp_path)
    assert ran.code == 1
    assert f"is no run: it has no log.jsonl and no recipe.toml. Runs in it: {directory}" in ran.err
    assert not (tmp_path / "report.html").exists()


def verify(run: Bertkit, directory: Path) -> tuple[int, list[list[str]], str]:
    ran = run("checkpoint", "verify", directory)
    return ran.code, [line.split(maxsplit=3) for line in ran.out.splitlines()], ran.err


def test_verify(run: Bertkit, directory: Path) -> None:
    code, rows, said = verify(run, directory)
    assert code == 0
    assert rows == [["step", "size", "state"], ["10", "0.0", "MB", "whole"], ["20", "0.0", "MB", "whole"]]
    assert said == f"bertkit: the run would go on from step 20. Next: bertkit pretrain {directory / 'recipe.toml'}\n"


def test_verify_says_what_a_resume_does(run: Bertkit, directory: Path) -> None:
    """A newest one that is cut short: exit code 1, and the one that is taken."""
    weights = directory / "checkpoints" / "step-00000020" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    code, rows, said = verify(run, directory)
    assert code == 1
    assert rows[1][3] == "whole"
    assert rows[2][3].startswith("'weights.safetensors' has ")
    assert "would go on from step 10." in said
    taken = checkpoint.last(directory)
    assert taken is not None
    assert taken.step == 10
    found = json.loads(run("checkpoint", "verify", directory, "--json").out)
    assert found["resume"] == 10
    assert [one["whole"] for one in found["checkpoints"]] == [True, False]
    assert all(one["bytes"] > 100 for one in found["checkpoints"])


def test_verify_an_older_one_that_is_damaged(run: Bertkit, directory: Path) -> None:
    """It is named, but a run goes on from the newest, which is whole."""
    (directory / "checkpoints" / "step-00000010" / "state.json").write_text("{}")
    code, rows, said = verify(run, directory)
    assert code == 0
    assert rows[1][3].startswith("'state.json' has ")
    assert "would go on from step 20." in said


def test_verify_where_none_is_whole(run: Bertkit, directory: Path) -> None:
    for step in (10, 20):
        (directory / "checkpoints" / f"step-{step:08d}" / "optimizer.safetensors").unlink()
    code, rows, said = verify(run, directory)
    assert code == 1
    assert "is missing" in rows[1][3]
    assert "none is whole: the run would begin at step 0 again" in said
    assert checkpoint.last(directory) is None


def test_verify_without_checkpoints(run: Bertkit, directory: Path, tmp_path: Path) -> None:
    (directory / "checkpoints").rename(tmp_path / "moved")
    code, _, said = verify(run, directory)
    assert code == 1
    assert "has no checkpoints: the same command begins at step 0, unless the run is finished" in said
    assert "does not exist" in verify(run, tmp_path / "nowhere")[2]
