"""`bertkit tune` and `--engine` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bertkit
from bertkit.cli import app
from bertkit.runtime import choose, tune
from bertkit.runtime.engines import ENGINES
from bertkit.text import Tokenizer


@pytest.fixture
def tiny(tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BERTKIT_CACHE", str(tmp_path / "cache"))
    for name in ("SECONDS", "PAUSE"):
        monkeypatch.setattr(tune, name, 0.0)
    return bertkit.create("bert-tiny", tokenizer, seed=0).save(tmp_path / "tiny")


def run(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_table_is_shown_and_remembered(tiny: Path) -> None:
    told = json.loads(run("tune", str(tiny), "--json"))
    assert {row["engine"].split()[0] for row in told["trials"]} == set(ENGINES)
    assert all(("tokens_per_second" in row) != ("reason" in row) for row in told["trials"])
    assert json.loads(run("tune", str(tiny), "--json")) == told
    shown = run("tune", str(tiny))
    assert f"many texts: {told['bulk']}" in shown
    assert f"a single one: {told['single']}" in shown


def test_engines_give_the_same_vectors(tiny: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat sat\na dog\nthe slow dog runs fast\n")
    found = {}
    for engine in ENGINES:
        if not ENGINES[engine].absence():
            output = tmp_path / f"{engine}.npy"
            run("embed", str(tiny), "--input", str(texts), "--output", str(output), "--engine", engine)
            found[engine] = np.load(output)
    for vectors in found.values():
        assert np.abs(vectors - found["torch"]).max() < 1e-5


def test_a_large_file_is_measured_for_once(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "MUCH", 100)
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat sat on a mat\n" * 20)
    for name, said in (("first", True), ("second", False)):
        words = ("embed", str(tiny), "--input", str(texts), "--output", str(tmp_path / f"{name}.npy"))
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        assert ("finding the fastest engine" in done.stderr) is said
    opened = bertkit.load(tiny)
    measured = tune.remembered(opened.network)
    assert measured is not None
    choice = measured.choice()
    assert choice is not None
    assert opened.runner.bulk == choice.bulk


def test_an_unknown_engine_is_told(tiny: Path) -> None:
    done = CliRunner().invoke(app, ["embed", str(tiny), "a cat", "--engine", "tensorrt"])
    assert done.exit_code == 1
    assert "unknown engine 'tensorrt'" in str(done.exception)
