"""A run: killed at any moment, it goes on and ends with the same weights to the bit."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

import bertkit
from bertkit.cli import main
from bertkit.errors import BertkitError
from bertkit.train import checkpoint, recipe
from bertkit.train.pretrain import pretrain
from bertkit.train.run import StoppedError, Told
from proofs import pretrain as killing
from tests.train.running import made, same, told


def test_it_says_what_it_did(home: Path, whole: Path) -> None:
    lines = told(whole)
    assert [line["step"] for line in lines if line["kind"] == "step"] == list(range(1, 13))
    assert [line["step"] for line in lines if line["kind"] == "held-out"] == [0, 5, 10, 12]
    first, last = (lines_of["losses"]["mlm"] for lines_of in (lines[1], lines[-2]))
    assert last < first, "it learns"
    assert [step for step, _ in checkpoint.steps(whole)] == [9, 12], "the last two"
    model = bertkit.load(whole / "model")
    assert set(model.network.spec.heads) == {"mlm", "pooler", "next_sentence"}
    assert recipe.read(whole / "recipe.toml") == made(home, f"output={whole}")
    from transformers import BertForPreTraining

    assert BertForPreTraining.from_pretrained(whole / "model").config.vocab_size == len(model.tokenizer)


def test_the_same_command_again_has_nothing_left_to_do(home: Path, whole: Path) -> None:
    before = (whole / "model" / "model.safetensors").read_bytes()
    steps: list[Told] = []
    pretrain(made(home, f"output={whole}"), steps.append)
    assert not steps
    assert (whole / "model" / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_that_read_ahead_change_nothing(home: Path, whole: Path, workers: int) -> None:
    run = home / f"workers-{workers}"
    pretrain(made(home, f"output={run}", f"data.workers={workers}"))
    same(run, whole)


def test_killed_anywhere_it_goes_on_and_ends_the_same() -> None:
    """Of `python -m proofs.run pretrain` a few kills: the proof compares weights, checkpoints and the journal."""
    done = killing.apart(5, seed=0, workers=(0, 2, 2, 0, 2))
    assert done["kills"] == done["workers=0"] + done["workers=2"] >= 5
    assert done["workers=2"] >= 2
    assert done["saving"] >= 1


def test_the_command_gives_the_same_run(home: Path, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = home / "commanded"
    arguments = [home / "recipe.toml", f"data.corpus={home / 'corpus'}", f"output={run}"]
    monkeypatch.setattr(sys, "argv", ["bertkit", "pretrain", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    same(run, whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_end_it_saves_and_goes_on_later(home: Path, whole: Path, number: int) -> None:
    run = home / f"stopped-{number}"
    plan = made(home, f"output={run}")

    def stop(told: Told) -> None:
        if told.step == 4:
            os.kill(os.getpid(), number)

    with pytest.raises(StoppedError, match=r"stopped after step 4, which is saved\. The same command goes on"):
        pretrain(plan, stop)
    assert checkpoint.last(run).step == 4
    pretrain(plan)
    assert (run / "model" / "model.safetensors").read_bytes() == (whole / "model" / "model.safetensors").read_bytes()


def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    home: Path, whole: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = home / "damaged"
    plan = made(home, f"output={run}")

    def stop(told: Told) -> None:
        if told.step == 7:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(StoppedError):
        pretrain(plan, stop)
    newest = run / "checkpoints" / "step-00000007" / "optimizer.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1000])
    pretrain(plan)
    assert "step-00000007" in caplog.text
    assert "An older checkpoint is taken" in caplog.text
    same(run, whole)


def test_another_recipe_does_not_touch_a_run(home: Path, whole: Path) -> None:
    with pytest.raises(BertkitError, match=r"holds a run of another recipe: seed is 0 there and 7 here\. Repeat that"):
        pretrain(made(home, f"output={whole}", "seed=7"))


def test_a_run_that_never_began_takes_another_recipe(home: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="is no corpus"):
        pretrain(made(home, f"output={tmp_path / 'run'}", "data.corpus=nowhere"))
    pretrain(made(home, f"output={tmp_path / 'run'}", "train.steps=1"))
    assert recipe.read(tmp_path / "run" / "recipe.toml").data.corpus == str(home / "corpus")


def test_a_warm_up_beyond_the_end_is_told(home: Path, tmp_path: Path) -> None:
    said: list[str] = []
    pretrain(made(home, f"output={tmp_path / 'run'}", "train.steps=2"), say=said.append)
    assert said == [
        "train.schedule.warmup is 4 of 2 steps: the rate never comes to its top. Shorter: train.schedule.warmup=1"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.stepz=3", "unknown key of train 'stepz': did you mean 'steps'"),
        ("trian.steps=3", "unknown key of the recipe 'trian': did you mean 'train'"),
        ("train.steps=0", "Train.steps is 0: it must be at least 1"),
        ("train.steps=many", "Train.steps is 'many': it must be a whole number"),
        ("model.size=bert-tinny", "unknown model 'bert-tinny': did you mean 'bert-tiny'"),
        ("objective=[{part='Nspp'}]", "unknown objective.* 'Nspp': did you mean 'Nsp'"),
        ("output", "'output' changes nothing: write section.key=value"),
        ("objective=[{part='Sop'}]", "Take OrderPairs as inputs, or leave Sop out"),
    ],
)
def test_bad_recipes_are_told(home: Path, tmp_path: Path, change: str, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        pretrain(made(home, f"output={tmp_path / 'run'}", change))
