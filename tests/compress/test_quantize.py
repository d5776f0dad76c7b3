"""int8 models: stored in whole numbers, opened like others, and kept only if they pass both gates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import bertkit
from bertkit.compress import quantize as module
from bertkit.compress.quantize import REPORT, Line, Verdict, quantize
from bertkit.errors import BertkitError
from bertkit.runtime import tune
from bertkit.runtime.engines import ENGINES
from bertkit.runtime.engines.engine import INT8, Setup
from bertkit.runtime.tune import Measured, Trial
from bertkit.text import Tokenizer
from bertkit.weights.int8 import Quantization

TEXTS = ["the cat sat on a mat .", "a dog runs fast", "slow house , playing !", "猫 坐", "the dog", ""]

needs_int8 = pytest.mark.skipif(
    bool(ENGINES["ctranslate2"].absence() or ENGINES["onnx"].absence()), reason="needs bertkit[engines]"
)


@pytest.fixture
def tiny(tokenizer: Tokenizer, tmp_path: Path) -> Path:
    model = bertkit.create("bert-tiny", tokenizer, seed=0)
    torch.manual_seed(0)
    for name, parameter in model.network.named_parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.1)
        elif name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.02)
    return model.save(tmp_path / "tiny")


@pytest.fixture(autouse=True)
def speeds(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Seconds by precision, as if they had been measured."""
    seconds = {"fp32": 2.0, "int8": 1.0}

    def measured(network: object, precision: str = "fp32") -> Measured:
        engines = ("torch",) if precision == "fp32" else ("ctranslate2", "onnx")
        trials = [Trial(Setup(name, precision), seconds[precision], 1.0) for name in engines]
        return Measured(tuple(trials), 1000)

    monkeypatch.setattr(tune, "remembered", measured)
    monkeypatch.setattr(tune, "side_by_side", lambda network, *setups: [seconds[setup.precision] for setup in setups])
    return seconds


@needs_int8
def test_what_is_kept_is_smaller_and_opens_like_any_other(tiny: Path, tmp_path: Path) -> None:
    verdict = quantize(tiny, tmp_path / "int8")
    assert verdict.refusals == ()
    assert verdict.path == tmp_path / "int8"
    assert verdict.measure == "mean cosine"
    assert verdict.before.score == pytest.approx(1.0, abs=1e-6)
    assert 0.99 < verdict.after.score < 1
    assert verdict.after.megabytes < 0.4 * verdict.before.megabytes
    stored = load_file(tmp_path / "int8" / "model.safetensors")
    matrix = stored["encoder.layer.0.intermediate.dense.weight"]
    assert matrix.dtype == torch.int8
    assert matrix.abs().amax(1).gt(63).all()  # a number of 127, or two neighbours of 128 together
    assert json.loads((tmp_path / "int8" / REPORT).read_text())["after"]["engine"] == verdict.after.engine
    opened = bertkit.load(tmp_path / "int8")
    assert opened.runner.bulk.precision == INT8
    before = bertkit.load(tiny).embed(TEXTS, normalize=True)
    for engine in ("auto", "onnx", "torch"):
        found = opened.use(engine).embed(TEXTS, normalize=True)
        assert (found * before).sum(1).min() > 0.98, engine


@needs_int8
def test_what_was_saved_in_int8_is_saved_again_as_it_is(tiny: Path, tmp_path: Path) -> None:
    quantize(tiny, tmp_path / "int8")
    again = bertkit.load(tmp_path / "int8").save(tmp_path / "again")
    first, second = (load_file(path / "model.safetensors") for path in (tmp_path / "int8", again))
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]) or name.endswith("_scale"), name
        assert torch.allclose(value.float(), second[name].float(), rtol=1e-6), name


@needs_int8
def test_a_slower_or_worse_model_is_not_kept_but_by_force(tiny: Path, tmp_path: Path, speeds: dict[str, float]) -> None:
    speeds["int8"] = 4.0
    verdict = quantize(tiny, tmp_path / "int8")
    assert verdict.refusals == ("it is slower here: 0.50 times the speed of fp32",)
    assert verdict.path is None
    assert not (tmp_path / "int8").exists()
    speeds["int8"] = 1.0
    worse = quantize(tiny, tmp_path / "int8", loss=1e-9)
    assert len(worse.refusals) == 1
    assert worse.refusals[0].startswith("it loses 0.")
    assert not (tmp_path / "int8").exists()
    assert worse.kept_in_fp32  # the gate asked for it, and even that was not enough
    assert quantize(tiny, tmp_path / "int8", loss=1e-9, force=True).path == tmp_path / "int8"


@needs_int8
def test_matrices_stay_in_fp32_when_the_gate_asks(tiny: Path, tmp_path: Path) -> None:
    verdict = quantize(tiny, tmp_path / "some", loss=1e-9, force=True)
    assert verdict.after.score > quantize(tiny, tmp_path / "all").after.score
    stored = load_file(tmp_path / "some" / "model.safetensors")
    assert verdict.kept_in_fp32
    assert "onnx" in verdict.after.engine
    floats = {name for name, value in stored.items() if value.dim() == 2 and value.dtype == torch.float32}
    assert any(".layer." in name for name in floats)
    kept = Quantization.of(json.loads((tmp_path / "some" / "config.json").read_text()))
    assert kept is not None
    assert kept.kept == verdict.kept_in_fp32
    assert bertkit.load(tmp_path / "some").runner.bulk.kept == verdict.kept_in_fp32


@needs_int8
def test_a_fine_tuned_model_is_judged_by_its_own_measure(tiny: Path, tmp_path: Path) -> None:
    rows = [(f"the {noun} sat", "cat" if noun == "cat" else "dog") for noun in ("cat", "dog") for _ in range(20)]
    learned = bertkit.Classifier(str(tiny), epochs=3).fit(*zip(*rows, strict=True))
    learned.save(tmp_path / "learned")
    data = tmp_path / "rows.tsv"
    data.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    verdict = quantize(tmp_path / "learned", tmp_path / "int8", data)
    assert verdict.measure == "accuracy"
    assert verdict.path is not None
    opened = bertkit.Finetuned.load(tmp_path / "int8")
    assert opened.evaluate(data).scores["accuracy"] == verdict.after.score
    assert [answer.label for answer in opened.predict(["the cat sat"])] == ["cat"]


@needs_int8
def test_a_sentence_encoder_is_judged_by_pairs_with_scores(tiny: Path, tmp_path: Path) -> None:
    pairs = [("the cat sat", "a cat sat", 5.0), ("the cat", "house", 0.5), ("dog runs", "dog runs fast", 4.0)]
    data = tmp_path / "pairs.tsv"
    lines = [f"{one}\t{two}\t{score}\n" for one, two, score in pairs * 4]
    data.write_text("sentence1\tsentence2\tscore\n" + "".join(lines))
    assert quantize(tiny, tmp_path / "int8", data, force=True).measure == "spearman of cosines"
    (tmp_path / "lines.txt").write_text("the cat sat\na dog\n")
    assert quantize(tiny, tmp_path / "other", tmp_path / "lines.txt").measure == "mean cosine"


def test_what_is_lost_is_a_share() -> None:
    def verdict(before: float, after: float) -> Verdict:
        lines = (Line("x", 1.0, 1.0, score, "torch") for score in (before, after))
        return Verdict("accuracy", *lines, (), ())

    assert verdict(0.8, 0.792).lost == pytest.approx(0.01)
    assert verdict(0.8, 0.9).lost < 0
    assert next(module._refusals(verdict(0.8, float("nan")), 0.01)).startswith("it loses nan%")


@needs_int8
def test_a_quantised_model_is_not_quantised_again(tiny: Path, tmp_path: Path) -> None:
    quantize(tiny, tmp_path / "int8")
    with pytest.raises(BertkitError, match="is quantised already: give the model that it was made from"):
        quantize(tmp_path / "int8", tmp_path / "again")


@needs_int8
def test_without_its_engine_it_is_computed_in_fp32(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    quantize(tiny, tmp_path / "int8")
    for kind in ENGINES.values():
        if kind.name != "torch":
            monkeypatch.setattr(kind, "absence", lambda: "it is not installed")
    opened = bertkit.load(tmp_path / "int8")
    assert "computed in fp32, for it is not installed" in caplog.text
    assert np.isfinite(opened.embed(TEXTS)).all()


@needs_int8
def test_who_learns_on_learns_in_fp32(tiny: Path, tmp_path: Path) -> None:
    quantize(tiny, tmp_path / "int8")
    learned = bertkit.Classifier(str(tmp_path / "int8"), epochs=1).fit(["the cat", "a dog"] * 4, ["a", "b"] * 4)
    learned.save(tmp_path / "learned")
    assert "quantization_config" not in json.loads((tmp_path / "learned" / "config.json").read_text())
    stored = load_file(tmp_path / "learned" / "model.safetensors")
    assert all(value.dtype == torch.float32 for value in stored.values())


@needs_int8
@pytest.mark.parametrize("damage", ["scales", "no scale", "config"])
def test_damaged_files_are_refused(tiny: Path, tmp_path: Path, damage: str) -> None:
    path = quantize(tiny, tmp_path / "int8").path
    assert path is not None
    (path / "bertkit-manifest.json").unlink()
    stored, name = load_file(path / "model.safetensors"), "encoder.layer.0.intermediate.dense.weight"
    config = json.loads((path / "config.json").read_text())
    match damage:
        case "scales":
            stored[f"{name}_scale"] = torch.ones(3)
        case "no scale":
            del stored[f"{name}_scale"]
        case "config":
            config["quantization_config"].pop("engine")
    save_file(stored, path / "model.safetensors", {"format": "pt"})
    (path / "config.json").write_text(json.dumps(config))
    wanted = {
        "scales": "but not as many scales",
        "no scale": "there is no .*weight_scale beside it",
        "config": "lacks its engine",
    }
    with pytest.raises(BertkitError, match=wanted[damage]):
        bertkit.load(path)
