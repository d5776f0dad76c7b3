"""`bertkit doctor`: what it finds here, and what it says where something is broken."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
import transformers

from bertkit import doctor, machine
from bertkit.doctor import Finding
from bertkit.family import bert, family_of
from bertkit.parts.network import Network
from bertkit.weights import directory
from tests.cli.running import Bertkit
from tests.reference import in_order


def test_all_is_well_here(run: Bertkit) -> None:
    ran = run("doctor", "--json")
    found = {finding["check"]: finding for finding in json.loads(ran.out)}
    assert [name for name, finding in found.items() if finding["state"] == "fail"] == []
    assert ran.code == 0
    assert found["torch"]["found"].startswith(torch.__version__)
    assert found["engine torch"]["state"] == "ok"
    assert {"python", "bertkit", "numpy", "tokenizers", "safetensors", "threads", "memory", "disk", "models"} < set(
        found
    )
    assert "minilm" in found["models"]["found"]
    if "engine onnxruntime" in found and "not installed" in found["engine onnxruntime"]["found"]:
        assert found["engine onnxruntime"]["repair"] == "to have it: pip install 'bertkit[engines]'"


def test_for_a_reader(run: Bertkit, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = (
        lambda: iter([Finding("one", "ok", "fine")]),
        lambda: iter([Finding("another", "warn", "slow", "export FAST=1")]),
        lambda: iter([Finding("third", "fail", "broken", "pip install it")]),
    )
    monkeypatch.setattr(doctor, "CHECKS", checks)
    ran = run("doctor")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "ok    one      fine",
        "warn  another  slow",
        "               → export FAST=1",
        "fail  third    broken",
        "               → pip install it",
        "1 ok, 1 to look at, 1 failed",
    ]
    monkeypatch.setattr(doctor, "CHECKS", checks[:2])
    assert run("doctor").code == 0


def test_the_known_value_is_that_of_transformers() -> None:
    encoder, batch = doctor.probe()
    network = Network(bert.encoder("tiny", 50)).build()
    network.encoder.load_state_dict(encoder.state_dict())
    config = transformers.BertConfig(**family_of("bert").write(network.spec))
    theirs = transformers.BertModel(config, add_pooling_layer=False).eval()
    theirs.load_state_dict(directory.foreign(network, family_of("bert")))
    ids, segments = (in_order(batch, batch.tokens[name]) for name in ("ids", "segments"))
    mask = in_order(batch, torch.ones_like(batch.tokens["ids"]))
    with torch.no_grad():
        out = theirs(input_ids=ids, token_type_ids=segments, attention_mask=mask).last_hidden_state  # [2, 9, 128]
    assert mask.sum(1).tolist() == [5, 9]
    assert float(out[:, 0].sum()) == pytest.approx(doctor.KNOWN, abs=1e-4)


def test_a_broken_torch_is_a_finding_and_not_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch_cpu.so: cannot open shared object file')")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "bertkit", "doctor", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (ran.returncode, ran.stderr) == (1, "")
    found = {finding["check"]: finding for finding in json.loads(ran.stdout)}
    reason = "cannot be imported: ImportError: libtorch_cpu.so: cannot open shared object file"
    broken = Finding("torch", "fail", reason, "pip install --force-reinstall torch")
    assert found["torch"] == asdict(broken)
    assert [name for name, finding in found.items() if finding["state"] == "fail"] == ["torch"]
    assert {"numpy", "memory", "disk", "models"} < set(found), "all else is still examined"


def test_an_engine_that_computes_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.functional, "layer_norm", lambda x, *rest: x)
    (finding,) = [finding for finding in doctor._torch() if finding.check == "engine torch"]
    assert finding.state == "fail"
    assert f"not {doctor.KNOWN}" in finding.found


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert doctor._threads(4).state == "ok"
    many = doctor._threads(64)
    assert (many.state, many.repair) == ("warn", "export OMP_NUM_THREADS=4")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    few = doctor._threads(1)
    assert (few.state, few.repair) == ("ok", "to use all: export OMP_NUM_THREADS=4")


def test_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory", lambda: (10**9, 6 * 10**8))
    (finding,) = doctor._memory()
    assert finding.state == "warn"
    assert finding.found == (
        "0.6 GB free of 1.0; sizes that fit for inference: bert-tiny, bert-mini, bert-small, bert-medium"
    )
    assert doctor.sizes()["bert-base"] == 4 * 108_891_648, "the paper's 110 million, without the pooler"


def test_a_cache_that_cannot_hold_a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "not" / "yet"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    disk, offline = doctor._disk()
    assert disk.found.startswith(str(tmp_path / "not" / "yet"))
    assert offline.repair == "to fetch more: unset HF_HUB_OFFLINE"
    monkeypatch.setattr(doctor, "ROOM", 10**18)
    assert next(doctor._disk()).state == "warn"


def test_versions_that_are_too_old_or_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    required = {"serve": [("numpy", "999.1"), ("no-such-package", "1.0")], "zh": [("no-such-package", "1.0")]}
    monkeypatch.setattr(doctor, "_required", lambda extra: required.get(extra, []))
    serve, zh = (finding for finding in doctor._extras() if finding.check in ("extra serve", "extra zh"))
    assert (serve.state, serve.repair) == ("warn", "pip install --upgrade 'numpy>=999.1'")
    assert zh == Finding("extra zh", "ok", "no-such-package not installed; not needed", doctor._to_have("zh"))


def test_a_torch_that_is_too_old_is_said_before_the_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "12.1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert next(doctor._torch()).state == "warn"
    monkeypatch.setattr(doctor, "_required", lambda extra: [("torch", "99.0")])
    found = next(doctor._torch())
    assert (found.state, found.repair) == ("fail", "pip install --upgrade 'torch>=99.0'")
    assert "99.0 is needed, build for CUDA 12.1" in found.found


@pytest.mark.parametrize(
    ("there", "least", "enough"), [("2.6", "2.6.0", True), ("2.6.1", "2.6", True), ("2.5.9", "2.6.0", False)]
)
def test_versions_in_order(there: str, least: str, enough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.metadata, "version", lambda name: there)
    assert (doctor._version("x", least, "fail").state == "ok") is enough


def test_a_check_that_breaks_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def _odd() -> None:
        raise RuntimeError("no\nidea")

    monkeypatch.setattr(doctor, "CHECKS", (_odd,))
    assert doctor.examine() == [
        Finding("odd", "fail", "the check itself failed: RuntimeError: no", "report it, with this line")
    ]
