"""`bertkit export` and `bertkit parity`: what they print, what they leave on disk, what they refuse."""

import json
from pathlib import Path

import pytest

from bertkit.export.export import export
from bertkit.export.exported import Exported
from tests.cli.running import Bertkit
from tests.exporting import saved

pytest.importorskip("onnx", reason="needs onnx: pip install 'bertkit[engines]'")
pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'bertkit[engines]'")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, bert-classify, and an export of it, out."""
    place = tmp_path_factory.mktemp("exports")
    export(saved(place, "classify"), place / "out")
    return place


def test_for_a_reader(run: Bertkit, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ran = run("export", home / "bert-classify", "--to", "onnx", "--output", tmp_path / "out")
    assert ran.code == 0
    assert "outputs             logits [B, 3]\n" in ran.out
    assert "rows (0.0001 at most)\n" in ran.out
    assert ran.err.splitlines()[-1].startswith(f"Next: onnxruntime.InferenceSession('{tmp_path}/out/model.onnx'), or")
    (row,) = Exported.load(tmp_path / "out").rows(["the cat"])
    assert row["logits"].shape == (3,)


def test_side_by_side(run: Bertkit, home: Path) -> None:
    ran = run("parity", home / "bert-classify", home / "out", "--most", "1e-4")
    assert ran.code == 0
    assert "texts               40\n" in ran.out
    assert "changed answers     0 of 40\n" in ran.out
    told = json.loads(run("parity", home / "bert-classify", home / "out", "--json").out)
    assert told["largest_difference"] <= 1e-5
    assert (told["texts"], told["changed"], told["examples"]) == (40, 0, [])
    beyond = run("parity", home / "bert-classify", home / "out", "--most", "0")
    assert beyond.code == 1
    assert "and --most is 0" in beyond.err


def test_for_a_program(run: Bertkit, tmp_path: Path) -> None:
    told = json.loads(run("export", saved(tmp_path, "span"), "-o", tmp_path / "out", "--json").out)
    assert told["outputs"] == {"start_logits": ["B", "L"], "end_logits": ["B", "L"]}
    assert told["check"]["largest_difference"] <= 1e-4


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["SOURCE", "--to", "onnx", "-o", "SOURCE"], 1, "is the source itself"),
        (["SOURCE", "--to", "tflite", "-o", "out"], 2, "'onnx', 'openvino', 'torch-export'"),
        (["SOURCE", "--to", "onnx"], 2, "--output"),
        (["no-such-dir/", "-o", "out"], 1, "there is no directory no-such-dir/"),
        (["SOURCE", "-o", "out", "--head", "classifi"], 1, "did you mean 'classify'?"),
    ],
)
def test_refused(
    run: Bertkit,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    source = home / "bert-classify"
    ran = run("export", *(source if argument == "SOURCE" else argument for argument in arguments))
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert list(tmp_path.iterdir()) == []
