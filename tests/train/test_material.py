"""What a run is made of: raw texts, another model's weights, and what comes beside the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import bertkit
from bertkit.corpus import build
from bertkit.corpus.build import Options
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.repeats import repeated
from bertkit.corpus.source import embedded
from bertkit.errors import BertkitError
from bertkit.text import Tokenizer
from bertkit.train.pretrain import pretrain
from tests.train.running import made, told

SHORT = ["train.steps=2", 'train.phases=[{inputs={part="SegmentPairs",length=24},rows=4}]', "train.evaluate_every=1"]


def test_raw_texts_become_vocabulary_corpus_and_model(home: Path) -> None:
    run, said = home / "texts", list[str]()
    texts = f'data.texts=["{home / "text.txt"}"]'
    texts = [texts, "data.corpus=", "data.vocabulary=60", "data.held_out=0.1", "train.schedule.warmup=1"]
    plan = made(home, f"output={run}", *texts, *SHORT)
    pretrain(plan, say=said.append)
    assert [line.split()[0] for line in said] == ["learning", "building"]
    model = bertkit.load(run / "model")
    assert 5 < len(model.tokenizer) <= 60
    assert model.tokenizer.fingerprint == Tokenizer.load(run / "vocabulary").fingerprint
    assert [line["step"] for line in told(run) if line["kind"] == "held-out"] == [0, 1, 2]
    before = (run / "model" / "model.safetensors").read_bytes()
    said.clear()
    pretrain(plan, say=said.append)
    assert not said, "what is there is not made again"
    assert (run / "model" / "model.safetensors").read_bytes() == before


def test_another_corpus_in_the_same_place_is_refused(home: Path, tmp_path: Path) -> None:
    tokenizer = Corpus(home / "corpus").tokenizer
    for text in ("The cat sat on a mat.\nThe dog runs fast.\n\n", "A dog sat.\nA cat runs on a slow mat.\n\n"):
        build.build([embedded("text", text.encode() * 9)], tokenizer, tmp_path / "corpus", overwrite=True)
        plan = made(home, f"output={tmp_path / 'run'}", f"data.corpus={tmp_path / 'corpus'}", *SHORT)
        if text.startswith("The"):
            pretrain(plan)
    with pytest.raises(BertkitError, match=r"is another corpus than the one that .* began with"):
        pretrain(plan)


def test_the_best_exam_s_network_is_kept(home: Path, whole: Path) -> None:
    exams = {
        line["step"]: sum(line["losses"].values())
        for line in told(whole)
        if line["kind"] == "held-out" and line["step"]
    }
    assert min(exams, key=lambda step: exams[step]) == 12, "it learns to the end"
    assert (whole / "best" / "model.safetensors").read_bytes() == (whole / "model" / "model.safetensors").read_bytes()
    run = home / "worse"
    rate = ["train.optimizer.rate=0.01", "train.schedule={part='Constant',warmup=0}"]  # so high that it does harm
    pretrain(made(home, f"output={run}", *SHORT, *rate, "train.steps=4"))
    exams = {line["step"]: sum(line["losses"].values()) for line in told(run) if line["kind"] == "held-out"}
    best = min((step for step in exams if step), key=lambda step: exams[step])
    assert best < 4
    short = home / "no-worse"
    pretrain(made(home, f"output={short}", *SHORT, *rate, f"train.steps={best}"))
    assert (run / "best" / "model.safetensors").read_bytes() == (short / "model" / "model.safetensors").read_bytes()


def test_learning_goes_on_from_a_model_that_is_there(home: Path, whole: Path) -> None:
    run = home / "further"
    pretrain(made(home, f"output={run}", f"model.weights={whole / 'model'}", *SHORT))
    start, end = ([line for line in told(where) if line["kind"] == "held-out"] for where in (run, whole))
    ended = pytest.approx(end[-1]["losses"], rel=1e-6)  # its exam has other small batches
    assert start[0]["losses"] == ended, "it begins with what the other ended with"
    with pytest.raises(BertkitError, match="tokenizer"):
        pretrain(made(home, f"output={home / 'other'}", "model.weights=minilm", *SHORT))


def test_tensorboard_shows_the_journal(home: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = home / "board"
    pretrain(made(home, f"output={run}", *SHORT, "train.tensorboard=true"))
    shown = events.EventAccumulator(str(run / "tensorboard"))
    shown.Reload()
    steps = [line for line in told(run) if line["kind"] == "step"]
    for name in ("losses/mlm", "right/next", "norm", "rate"):
        table, _, last = name.rpartition("/")
        wanted = [(line["step"], (line[table] if table else line)[last]) for line in steps]
        found = [(event.step, event.value) for event in shown.Scalars(name)]
        assert found == [(step, pytest.approx(value)) for step, value in wanted], name
    assert [event.step for event in shown.Scalars("held-out/losses/mlm")] == [0, 1, 2]


def test_a_run_says_what_it_was_made_with(whole: Path, home: Path) -> None:
    facts = json.loads((whole / "facts.json").read_text())
    corpus = Corpus(home / "corpus")
    assert facts["corpus"]["fingerprint"] == corpus.fingerprint
    assert facts["tokenizer"] == corpus.tokenizer.fingerprint
    assert (facts["torch"], facts["precision"], facts["processes"]) == (torch.__version__, "float32", 1)


def test_sentences_that_were_said_before(home: Path, tmp_path: Path) -> None:
    tokenizer = Corpus(home / "corpus").tokenizer
    long = "the cat sat on a mat the dog runs fast"
    texts = [f"{long} {word}.\nThe cat.\n" for word in ("house", "slow", "play")]
    text = "\n".join([*texts, texts[0], texts[0]])
    build.build([embedded("text", text.encode())], tokenizer, tmp_path / "corpus", Options())
    assert repeated(Corpus(tmp_path / "corpus")) == pytest.approx(2 / 5), "short ones do not count"
