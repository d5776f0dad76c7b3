"""Fine-tuning: every kind of task is learned, kept, opened by transformers, and goes on after a stop to the bit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import bertkit
from bertkit.batch import collate
from bertkit.errors import BertkitError
from bertkit.runtime.stream import example
from bertkit.tasks.finetune import finetune
from bertkit.tasks.finetuned import Finetuned
from bertkit.tasks.item import Item, Texts
from bertkit.train.recipe import to_toml
from bertkit.train.run import StoppedError
from tests.tasks import teaching

LEARNED = {
    "classification": ("accuracy", 0.95),
    "pairs": ("accuracy", 0.95),
    "multilabel": ("micro_f1", 0.95),
    "regression": ("pearson", 0.9),
    "tagging": ("f1", 0.95),
    "answering": ("f1", 95.0),
    "answering_or_not": ("f1", 90.0),
    "choice": ("accuracy", 0.95),
}
CLASSES = {
    "tagging": transformers.AutoModelForTokenClassification,
    "answering": transformers.AutoModelForQuestionAnswering,
    "answering_or_not": transformers.AutoModelForQuestionAnswering,
    "choice": transformers.AutoModelForMultipleChoice,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return teaching.tiny(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def learned(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory in which a task was learned, once; the run is `run` in it."""

    @cache
    def learn(name: str) -> Path:
        home = tmp_path_factory.mktemp(name)
        finetune(teaching.tuning(home, model, name))
        return home

    return learn


def journal(run: Path, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


@pytest.mark.parametrize("name", LEARNED)
def test_a_task_is_learned_and_kept(name: str, learned: Callable[[str], Path]) -> None:
    home = learned(name)
    run, (measure, least) = home / "run", LEARNED[name]
    exams = journal(run, "exam")
    best = max(exam["scores"][measure] for exam in exams)
    assert best >= least, exams
    assert len(exams) == teaching.EPOCHS.get(name, 6), "one after each epoch"

    opened = Finetuned.load(run)
    result = opened.evaluate(next(home.glob("dev.*")))
    assert result.scores[measure] == pytest.approx(best, abs=1e-9), "the network of the best exam is kept"
    assert result.rows == 40
    assert not list((run / "checkpoints").glob("*")), "a finished run keeps none"
    assert _same_logits(run / "model", name, opened)


def _same_logits(made: Path, name: str, opened: Finetuned) -> bool:
    theirs = CLASSES.get(name, transformers.AutoModelForSequenceClassification).from_pretrained(made).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(made)
    read = tokenizer("he was happy in rome .", "red and up .", return_tensors="pt")
    given = {key: value[None] for key, value in read.items()} if name == "choice" else dict(read)
    with torch.no_grad():
        out = theirs(**given)
    batch = collate([example(read["input_ids"][0].tolist(), read["token_type_ids"][0].tolist())])
    network = opened.model.network.eval()
    (head,) = (name for name in network.spec.heads if name != "pooler")
    with torch.no_grad():
        ours = network.logits(head, network(batch), batch.layout)
    expected = torch.stack([out.start_logits, out.end_logits], -1)[0] if head == "span" else out.logits
    assert torch.allclose(ours.flatten(), expected.flatten(), atol=1e-5)
    labels = getattr(opened.task, "labels", None)
    return labels is None or [theirs.config.id2label[place] for place in range(len(labels))] == list(labels)


def test_a_chain_of_tags(model: Path, tmp_path: Path) -> None:
    finetune(teaching.tuning(tmp_path, model, "tagging", chain=True))
    opened = Finetuned.load(tmp_path / "run")
    assert opened.task.chain
    assert opened.evaluate(tmp_path / "dev.txt").scores["f1"] >= 0.95
    (answer,) = opened.predict(["then anna boris ran"])
    assert [(one.kind, one.start, one.stop) for one in answer.entities] == [("PER", 1, 3)]
    assert answer.told()["entities"][0]["start"] == 5
    assert [word.label for word in opened.model.tag("then anna boris ran")] == list(answer.tags), "by the same path"


def test_answers(learned: Callable[[str], Path]) -> None:
    names = ("classification", "answering_or_not", "choice", "multilabel")
    answer = {name: Finetuned.load(learned(name) / "run").predict for name in names}
    happy, sad = answer["classification"](["she was lovely", "he was ugly"])
    assert (happy.label, sad.label) == ("good", "bad")
    assert happy.score == pytest.approx(happy.scores["good"])
    assert sum(happy.scores.values()) == pytest.approx(1.0)
    context = "the dog sat on a mat in rome and then it ran"
    there, nowhere = answer["answering_or_not"]([("where is it ?", context), ("where is it ?", "the dog sat on a mat")])
    assert (there.text, there.best[0].start, nowhere.text) == ("rome", context.index("rome"), "")
    (chosen,) = answer["choice"]([{"text": "the cat .", "choices": ["no it was", "and no", "it was yes"]}])
    assert chosen.choice == 2
    (several,) = answer["multilabel"](["the red house and blue mat"])
    assert several.labels == ("blue", "red")


def test_it_goes_on_where_it_was_to_the_bit(model: Path, tmp_path: Path) -> None:
    """Stopped at any step, with dropout on and a best network from before the stop."""
    weights = {}
    for at in (0, 7, 33):
        home = tmp_path / str(at)
        home.mkdir()
        tuning = teaching.tuning(home, model, "classification", epochs=3.0)
        if at:

            def stop(told: Any, at: int = at) -> None:
                if told.step == at:
                    os.kill(os.getpid(), signal.SIGTERM)

            with pytest.raises(StoppedError, match=f"stopped after step {at}"):
                finetune(tuning, stop)
        made = finetune(tuning)
        weights[at] = (made / "model.safetensors").read_bytes()
        lines = [(home / "run" / "log.jsonl").read_text().replace(str(home), "")]
        told = [json.loads(line) for line in lines[0].splitlines()]
        weights[at] += json.dumps([line["losses"] for line in told if line["kind"] == "step"]).encode()
    assert weights[0] == weights[7] == weights[33]


def test_a_finished_run_is_left_alone(model: Path, tmp_path: Path) -> None:
    tuning = teaching.tuning(tmp_path, model, "classification", epochs=1.0)
    made, said, steps = finetune(tuning), list[str](), list[Any]()
    before = (made / "model.safetensors").stat().st_mtime_ns
    assert finetune(tuning, steps.append, said.append) == made
    assert not steps
    assert "is finished already" in said[0]
    assert (made / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(BertkitError, match=r"holds a run with other settings: rows is 8 there and 4 here"):
        finetune(teaching.tuning(tmp_path, model, "classification", epochs=1.0, rows=4))


def test_it_ends_when_nothing_becomes_better(model: Path, tmp_path: Path) -> None:
    tuning = teaching.tuning(tmp_path, model, "classification", epochs=40.0, patience=2)
    finetune(tuning)
    exams = [exam["scores"]["accuracy"] for exam in journal(tmp_path / "run", "exam")]
    assert len(exams) < 40
    assert exams.index(max(exams)) == len(exams) - 3, "two exams without a better one"


def test_another_file_under_the_same_name_is_refused(model: Path, tmp_path: Path) -> None:
    tuning = teaching.tuning(tmp_path, model, "classification", epochs=2.0)

    def stop(told: Any) -> None:
        raise StoppedError("here")

    with pytest.raises(StoppedError):
        finetune(tuning, stop)
    train = Path(tuning.train)
    train.write_text(train.read_text() + "good\tshe was warm\n")
    with pytest.raises(BertkitError, match=r"is another file than the one that .* began with"):
        finetune(tuning)


class Seen(Texts):
    """One whose end can be watched."""


def test_an_exam_holds_no_more_than_a_window(model: Path, tmp_path: Path) -> None:
    """Rows are let go when they are answered, whatever their number."""
    made = Finetuned.load(finetune(teaching.tuning(tmp_path, model, "classification", epochs=1.0)))
    alive, most = set[int](), 0

    def items() -> Iterator[Item]:
        nonlocal most
        for number in range(20_000):
            item = Seen(Path("many"), number, ("she was warm",), "good")
            weakref.finalize(item, alive.discard, number)
            alive.add(number)
            most = max(most, len(alive))
            yield item
            del item

    assert made.examine(items()).rows == 20_000
    assert most <= 4200, "a window of 4,096, and what is on its way"


def test_classifier(model: Path) -> None:
    texts = ["she was happy", "he was sad", "a lovely cat", "an ugly dog", "warm", "cold"] * 8
    labels = [True, False] * 24
    learned = bertkit.Classifier(str(model), epochs=6, batch=8, rate=1e-3).fit(texts, labels)
    assert learned.classes_.tolist() == [False, True]
    assert learned.predict(["a happy dog", "it was cold"]).tolist() == [True, False]
    assert learned.score(texts, labels) == 1.0
    chances = learned.predict_proba(["a happy dog"])
    assert chances.shape == (1, 2)
    assert chances.sum() == pytest.approx(1.0)
    assert np.argmax(chances) == 1
    from sklearn.base import clone

    assert clone(learned).get_params() == learned.get_params()
    with pytest.raises(BertkitError, match="call fit"):
        clone(learned).predict(["x"])
    with pytest.raises(BertkitError, match="2 texts and 1 labels"):
        learned.fit(["a", "b"], [1])


def test_killed_it_goes_on_and_ends_the_same(model: Path, tmp_path: Path) -> None:
    """kill -9 at two moments, with a checkpoint as often as can be; the same command then ends with the same bytes."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for home in (whole, killed):
        home.mkdir()
    tuning = teaching.tuning(killed, model, "tagging", epochs=4.0, checkpoint_minutes=1e-9, log_every=1)
    finetune(teaching.tuning(whole, model, "tagging", epochs=4.0, log_every=1))
    (killed / "tuning.toml").write_text(to_toml(tuning))
    command = [sys.executable, "-m", "bertkit", "finetune", "--recipe", str(killed / "tuning.toml")]
    for step in (5, 40):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and _steps(killed / "run") < step:
                time.sleep(0.01)
            process.kill()
        assert _steps(killed / "run") < 80, "it was killed before its end"
    finetune(tuning)
    for name in ("model.safetensors", "config.json"):
        assert (killed / "run" / "model" / name).read_bytes() == (whole / "run" / "model" / name).read_bytes()
    losses = [[line["losses"] for line in journal(home / "run", "step")] for home in (whole, killed)]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 80


def _steps(run: Path) -> int:
    lines = (run / "log.jsonl").read_bytes().splitlines() if (run / "log.jsonl").is_file() else []
    return sum(line.startswith(b'{"kind": "step"') for line in lines)
