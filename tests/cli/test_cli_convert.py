"""`bertkit convert`: what it prints, what it leaves on disk, what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

import bertkit
from bertkit.model import Model
from tests.cli.running import Bertkit


def test_for_a_reader(run: Bertkit, tiny: Path, model: Model, tmp_path: Path) -> None:
    ran = run("convert", tiny, tmp_path / "out", "--to", "sentence-transformers", "--pool", "cls", "--normalize")
    assert ran.code == 0
    assert "took                encoder, mlm\n" in ran.out
    assert "left                none\n" in ran.out
    assert "made new            pooling cls, normalize\n" in ran.out
    assert "parity hidden states 0.0e+00, mlm 0.0e+00, vectors 0.0e+00, weights 0.0e+00" in " ".join(ran.out.split())
    assert ran.err.splitlines()[-1].startswith(f"Next: sentence_transformers.SentenceTransformer('{tmp_path}/out')")
    again = bertkit.load(tmp_path / "out")
    assert np.array_equal(again.embed("the cat"), model.embed("the cat", pool="cls", normalize=True))


def test_for_a_program(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    ran = run("convert", tiny, tmp_path / "out", "--to", "tf", "--json")
    assert json.loads(ran.out) == {
        "source": str(tiny),
        "destination": str(tmp_path / "out"),
        "to": "tf",
        "took": ["encoder", "mlm"],
        "left": [],
        "made_new": [],
        "largest_difference": 0.0,
        "parity": {"hidden states": 0.0, "mlm": 0.0, "weights": 0.0},
    }
    assert (tmp_path / "out" / "bert_model.ckpt.index").is_file()
    assert ".tmp" not in ran.err, "the place where it grew is nobody's business"


def test_what_exists_is_replaced_when_asked(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    assert run("convert", tiny, tmp_path / "out", "--to", "hf").code == 0
    again = run("convert", tiny, tmp_path / "out", "--to", "tf")
    assert again.code == 1
    assert "exists and is not empty. Give another path, or overwrite=True (--overwrite)" in again.err
    assert run("convert", tiny, tmp_path / "out", "--to", "tf", "--overwrite").code == 0
    assert not (tmp_path / "out" / "config.json").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["TINY", "TINY", "--to", "tf"], 1, "is the source itself"),
        (["no-such-dir/", "out", "--to", "tf"], 1, "there is no directory no-such-dir/"),
        (["TINY", "out", "--to", "tf", "--pool", "cls"], 1, "tf files cannot"),
        (["TINY", "out", "--to", "onnx"], 2, "'hf', 'tf', 'sentence-transformers'"),
        (["TINY", "out"], 2, "--to"),
    ],
)
def test_refused(
    run: Bertkit,
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    ran = run("convert", *(tiny if argument == "TINY" else argument for argument in arguments))
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert list(tmp_path.iterdir()) == []
