"""`bertkit finetune`, `evaluate` and `predict`: what is printed, what is said, and the exit codes."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from bertkit.cli.pretrain import Display
from bertkit.runtime.ledger import Ledger
from bertkit.tasks.finetune import finetune
from tests.cli.running import Bertkit
from tests.tasks import teaching


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return teaching.tiny(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def learned(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder with train, dev and `run`, in which a task was learned for a moment."""

    @cache
    def learn(name: str) -> Path:
        home = tmp_path_factory.mktemp(name)
        finetune(teaching.tuning(home, small, name, epochs=3.0 if name == "classification" else 0.2))
        return home

    return learn


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def error(err: str) -> str:
    """The one message that a command ended with."""
    (found,) = [line for line in err.splitlines() if line.startswith("bertkit: error: ")]
    assert "Traceback" not in err
    return found.removeprefix("bertkit: error: ")


QUICK = ("--epochs", "0.2", "--batch", "8", "--length", "16")


# finetune ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_table_is_enough(run: Bertkit, small: Path, tmp_path: Path) -> None:
    train, _ = teaching.written(tmp_path, "classification")
    ran = run("finetune", "--model", small, "--train", train, "--output", tmp_path / "run", *QUICK)
    assert ran.code == 0
    said = ran.err.splitlines()
    assert said[0] == (
        f"bertkit: {train}: text '2', label '1' (by what stands in them); Classification with 2 labels: bad, good"
    )
    assert said[1] == (f"bertkit: 144 rows of {train} to learn from, 16 held out for exams (10%, evenly over labels)")
    *scores, last = ran.out.splitlines()
    assert [line.split()[0] for line in scores] == ["accuracy", "macro_f1"]
    assert last == f"wrote {tmp_path / 'run' / 'model'}. Next: bertkit predict {tmp_path / 'run'} --input -"

    again = run("finetune", "--model", small, "--train", train, "--output", tmp_path / "run", *QUICK, "--json")
    told = json.loads(again.out)
    assert "is finished already" in again.err
    assert list(told["scores"]) == ["accuracy", "macro_f1"]
    assert [f"{name} {told['shown'][name]}" for name in told["scores"]] == scores

    other = run("finetune", "--model", small, "--train", train, "--output", tmp_path / "run", *QUICK, "--seed", "1")
    assert other.code == 1
    assert error(other.err) == (
        f"{tmp_path / 'run'} holds a run with other settings: seed is 0 there and 1 here. Repeat these, or give "
        "another --output"
    )


def test_folds_and_seeds(run: Bertkit, small: Path, tmp_path: Path) -> None:
    train, _ = teaching.written(tmp_path, "classification")
    common = ("finetune", "--model", small, "--train", train, *QUICK, "--json")
    told = json.loads(run(*common, "--output", tmp_path / "folds", "--folds", 3).out)
    values = told["scores"]["accuracy"]["runs"]
    assert len(values) == 3
    assert told["scores"]["accuracy"]["mean"] == pytest.approx(sum(values) / 3)
    assert json.loads((tmp_path / "folds" / "repeats.json").read_text()) == told
    told = json.loads(run(*common, "--output", tmp_path / "seeds", "--seeds", 2).out)
    assert len(told["scores"]["accuracy"]["runs"]) == 2
    assert Path(told["model"]).parent.name in ("seed-0", "seed-1")
    ran = run("predict", tmp_path / "seeds", "a cat")
    assert error(ran.err) == (
        f"{tmp_path / 'seeds'} holds several runs: give one of {tmp_path / 'seeds' / 'seed-0'}, "
        f"{tmp_path / 'seeds' / 'seed-1'}"
    )


def test_an_interrupt_saves_and_the_same_command_goes_on(
    run: Bertkit, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, _ = teaching.written(tmp_path, "classification")
    common = ("finetune", "--model", small, "--train", train, "--rate", "1e-3", *QUICK)
    assert run(*common, "--output", tmp_path / "whole").code == 0
    tell = Display.tell

    def interrupted(self: Display, told: Any) -> None:
        tell(self, told)
        if told.step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Display, "tell", interrupted)
    ran = run(*common, "--output", tmp_path / "run")
    assert (ran.code, ran.out) == (130, "")
    assert ran.err.splitlines()[-1] == "bertkit: stopped after step 2, which is saved. The same command goes on"
    ran = run("predict", tmp_path / "run", "a cat")
    assert "has no model yet" in error(ran.err)
    assert run(*common, "--output", tmp_path / "run").code == 0
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("run", "whole")]
    assert weights[0] == weights[1]


def test_a_recipe_repeats_a_run(run: Bertkit, learned: Callable[[str], Path], tmp_path: Path) -> None:
    recipe = learned("classification") / "run" / "recipe.toml"
    ran = run("finetune", "--recipe", recipe, "--output", tmp_path / "run", "epochs=0.1", "--rate", "1e-4", "--json")
    assert ran.code == 0
    again = (tmp_path / "run" / "recipe.toml").read_text()
    assert "epochs = 0.1" in again
    assert "rate = 0.0001" in again
    for option, value in (("--task", "mrpc"), ("--folds", "3"), ("--label", "x")):
        ran = run("finetune", "--recipe", recipe, option, value)
        assert error(ran.err).startswith(f"{option} does not go with --recipe")


def test_a_score_that_is_no_number(run: Bertkit, small: Path, tmp_path: Path) -> None:
    """Of equal numbers there is no correlation: a network is kept all the same, and JSON stays JSON."""
    train, dev = teaching.written(tmp_path, "regression")
    put(dev, "text\tscore\n" + "the cat\t1.5\n" * 9)
    common = ("--model", small, "--train", train, "--output", tmp_path / "run", *QUICK)
    ran = run("finetune", *common, "--held-out", "0.001")
    assert error(ran.err).startswith(f"{train}: 1 row is for exams, and pearson needs 2 or more: give --dev FILE")
    ran = run("finetune", *common, "--dev", dev, "--json")
    assert json.loads(ran.out, parse_constant=pytest.fail)["scores"]["pearson"]["runs"] == [None]
    assert run("predict", tmp_path / "run", "up up").code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--epochs", "0"], "--epochs 0: give a number above 0"),
        (["--rate", "-1"], "--rate -1: give a number above 0"),
        (["--held-out", "1"], "--held-out 1: give a share of all rows, such as 0.1; 0 holds out none"),
        (["--folds", "1"], "--folds 1: one part cannot take turns. Give 2 or more, such as --folds 5"),
        (["--folds", "161"], "too few for 161 folds"),
        (["--truncate", "tial"], "unknown truncate 'tial': did you mean 'tail'?"),
        (["--truncate", "error", "--length", "4"], "train.tsv, row 1: it has 7 tokens, and there is room for 2"),
        (["--crf"], "--crf is for tags"),
        (["--task", "sentiment"], "unknown task 'sentiment'"),
        (["--dev", "nope.tsv"], "there is no file nope.tsv"),
        (["rows=8"], "'rows=8' changes a recipe, and there is none: add --recipe FILE"),
        (["--recipe", "nope.toml"], "there is no recipe nope.toml"),
    ],
)
def test_refused(
    run: Bertkit, small: Path, tmp_path: Path, learned: Callable[[str], Path], options: list[str], said: str
) -> None:
    train = learned("classification") / "train.tsv"
    ran = run("finetune", "--model", small, "--train", train, "--output", tmp_path / "run", *options)
    assert (ran.code, ran.out) == (1, "")
    assert said in error(ran.err)


@pytest.mark.parametrize("option", ["--batch", "--length", "--seed"])
def test_numbers_out_of_bounds_are_usage_errors(run: Bertkit, option: str) -> None:
    ran = run("finetune", "--model", "minilm", "--train", "x", "--output", "y", option, "-1")
    assert ran.code == 2
    assert option in ran.err


def test_what_is_missing_is_said_with_an_example(run: Bertkit, tmp_path: Path) -> None:
    assert error(run("finetune").err).startswith("--model is missing. Example: bertkit finetune --model minilm")
    assert error(run("finetune", "--model", "minilm").err).startswith("--output is missing.")
    ran = run("finetune", "--model", "minilm", "--output", tmp_path / "run")
    assert error(ran.err).startswith("what shall be learned from? --train FILE, or --task NAME --data FOLDER")


# evaluate ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_scores_carry_their_fingerprint(run: Bertkit, learned: Callable[[str], Path], tmp_path: Path) -> None:
    home = learned("classification")
    ran = run("evaluate", home / "run", "--data", home / "dev.tsv")
    shown = dict(line.rsplit(maxsplit=1) for line in ran.out.splitlines())
    told = json.loads(run("evaluate", home / "run" / "model", "--data", home / "dev.tsv", "--json").out)
    assert list(shown) == ["accuracy", "macro f1", "rows", "fingerprint"]
    assert shown["accuracy"] == f"{told['scores']['accuracy']:.4f}"
    assert told["scores"]["accuracy"] >= 0.9
    assert (told["main"], told["rows"]) == ("accuracy", 40)
    fingerprint = told["fingerprint"]
    assert fingerprint["id"] == shown["fingerprint"]
    assert fingerprint["task"]["labels"] == ["bad", "good"]
    assert fingerprint["limit"] == 40
    fewer = put(tmp_path / "dev.tsv", "".join((home / "dev.tsv").read_text().splitlines(keepends=True)[:9]))
    other = json.loads(run("evaluate", home / "run", "--data", fewer, "--json").out)["fingerprint"]
    assert {name for name in other if other[name] != fingerprint[name]} == {"id", "data", "rows"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("good\tshe was warm\nfine\ta cat\n", "x.tsv, row 2 has the label 'fine', which nothing is learned about. The"),
        ("good\tshe was warm\nbad\t \n", "x.tsv, row 2: a text is empty. Write it, or take the row out"),
        ("good\tshe was warm\nbad\n", "x.tsv, row 2 has 1 columns, but the first row has 2"),
        ("she was warm\na cat\n", "x.tsv, row 1 has no label"),
        ("label\ttext\ngood\ta cat\n", "x.tsv has no column '2'. It has: label, text; columns are counted here"),
        ("", "x.tsv has no rows"),
    ],
)
def test_files_that_cannot_be_scored(
    run: Bertkit, learned: Callable[[str], Path], tmp_path: Path, text: str, said: str
) -> None:
    path = put(tmp_path / "x.tsv", text)
    ran = run("evaluate", learned("classification") / "run", "--data", path)
    assert (ran.code, ran.out) == (1, "")
    assert said in error(ran.err)


def test_rows_are_left_out_and_said(run: Bertkit, learned: Callable[[str], Path], tmp_path: Path) -> None:
    path = put(tmp_path / "x.tsv", "good\tshe was warm\nfine\ta cat\nbad\tit was ugly\n")
    ran = run("evaluate", learned("classification") / "run", "--data", path, "--on-error", "skip")
    assert (ran.code, "rows         2" in ran.out) == (0, True)
    assert f"left out: {path}, row 2 has the label 'fine'" in ran.err
    assert f"bertkit: {path}: 1 rows are left out" in ran.err


def test_paths_without_a_model(run: Bertkit, small: Path, tmp_path: Path) -> None:
    data = put(tmp_path / "x.tsv", "good\ta cat\n")
    for path, said in ((tmp_path / "nope", "there is no "), (small, "holds no model that learned a task")):
        ran = run("evaluate", path, "--data", data)
        assert (ran.code, said in error(ran.err)) == (1, True)


# predict ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_texts_and_lines(run: Bertkit, learned: Callable[[str], Path], tmp_path: Path) -> None:
    made = learned("classification") / "run"
    texts = ["she was lovely", "he was ugly\tand cold", '{"text": "she was warm"}', ""]
    ran = run("predict", made, *texts)
    answers = [line.split("\t") for line in ran.out.splitlines()]
    assert [shown for _, shown in answers] == [text.replace("\t", "·") for text in texts]
    assert [label for label, _ in answers][:3] == ["good", "bad", "good"]
    path = put(tmp_path / "texts.txt", "\n".join(texts) + "\n")
    assert run("predict", made, "--input", path).out == ran.out
    lines = [json.loads(line) for line in run("predict", made, "--input", path, "--json").out.splitlines()]
    assert [line["input"] for line in lines] == texts
    assert all(line["score"] == max(line["scores"].values()) for line in lines)


def test_each_line_is_answered_when_it_is_there(
    run: Bertkit, learned: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader of the answers writes the next line only after it had the answer to the one before."""
    ours, theirs = os.pipe()
    answered, following = list[str](), [b"he was ugly\n", b'{"txt": 1}\n']
    echo = typer.echo

    def hear(text: str, err: bool = False) -> None:
        if err:
            echo(text, err=True)
        else:
            answered.append(text)
            os.write(theirs, following.pop(0))

    os.write(theirs, b"she was lovely\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(os.fdopen(ours, "rb", buffering=0)))
    monkeypatch.setattr(typer, "echo", hear)
    ran = run("predict", learned("classification") / "run", "--input", "-")
    os.close(theirs)
    assert [line.split("\t")[0] for line in answered] == ["good", "bad"]
    assert ran.code == 1
    assert error(ran.err) == "input 3: this model wants a line of text, or an object with text; it has txt"


def test_lines_that_are_not_utf8(run: Bertkit, learned: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"a cat\ncaf\xe9\n")
    ran = run("predict", learned("classification") / "run", "--input", tmp_path / "x.txt")
    assert ran.code == 1
    assert "line 2 is not UTF-8" in error(ran.err)


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("pairs", "a cat", "input 1: this model wants two texts with a tab between them, or an object with text and p"),
        ("pairs", '{"text": "a", "pair": 3}', "'pair' is 3"),
        (
            "classification",
            '{"text": "a", "pair": "b"}',
            "input 1 has a pair of texts, and this model learned from sin",
        ),
        ("classification", '{"text": 5}', "'text' is 5"),
        ("answering", "where is it ?", "input 1 has no tab: this task wants question and context"),
        ("choice", "a cat", "input 1 is a text alone: this task wants an object with text"),
        ("choice", '{"text": "a", "choices": ["b"]}', "input 1 has no choices, a list of two texts or more"),
        ("tagging", '{"words": []}', "input 1 has neither text nor words"),
    ],
)
def test_what_cannot_be_asked(run: Bertkit, learned: Callable[[str], Path], name: str, asked: str, said: str) -> None:
    ran = run("predict", learned(name) / "run", asked)
    assert (ran.code, ran.out) == (1, "")
    assert said in error(ran.err)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("pairs", "a cat\tno it was"),
        ("pairs", '{"sentence1": "a cat", "sentence2": "no it was"}'),
        ("pairs", '{"text": "a cat", "pair": "no it was"}'),
        ("answering", "where is it ?\tin rome"),
        ("answering", '{"question": "where is it ?", "context": "in rome"}'),
        ("choice", '{"text": "a", "choices": ["b", "c"]}'),
        ("tagging", "anna ran"),
        ("tagging", ""),
        ("tagging", '{"words": ["anna", "ran"]}'),
    ],
)
def test_what_can_be_asked(run: Bertkit, learned: Callable[[str], Path], name: str, asked: str) -> None:
    ran = run("predict", learned(name) / "run", asked, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["input"] == asked


def test_a_file_with_and_without_labels(run: Bertkit, learned: Callable[[str], Path], tmp_path: Path) -> None:
    home = learned("classification")
    ran = run("predict", home / "run", "--data", home / "dev.tsv")
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert [number for number, _ in lines] == [str(row) for row in range(1, 41)]
    true = [line.split("\t")[0] for line in (home / "dev.tsv").read_text().splitlines()]
    right = sum(label == one for (_, label), one in zip(lines, true, strict=True))
    told = json.loads(run("evaluate", home / "run", "--data", home / "dev.tsv", "--json").out)
    assert right / 40 == told["scores"]["accuracy"]
    texts = put(
        tmp_path / "test.tsv",
        "".join(line.split("\t")[1] + "\n" for line in (home / "dev.tsv").read_text().splitlines()),
    )
    assert run("predict", home / "run", "--data", texts).out == ran.out
    assert error(run("predict", home / "run", "a", "--data", texts).err) == "give texts, --input or --data: one of them"
    assert error(run("predict", home / "run", "--submission", tmp_path).err).startswith("--submission needs --data")


# predict --output ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["classification", "pairs", "tagging", "answering", "choice"])
def test_a_file_of_answers_is_what_is_printed(
    run: Bertkit, learned: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    home, output = learned(name), tmp_path / "answers.jsonl"
    data = next(home.glob("dev.*"))
    printed = run("predict", home / "run", "--data", data, "--json").out
    ran = run("predict", home / "run", "--data", data, "--output", output)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.splitlines()[-1] == (f"40 answers in {output}. Next: python -m json.tool --json-lines {output}")
    assert output.read_text() == printed
    assert list(tmp_path.iterdir()) == [output]


def test_lines_to_a_file_for_a_program(run: Bertkit, learned: Callable[[str], Path], tmp_path: Path) -> None:
    made, output = learned("classification") / "run", tmp_path / "answers.jsonl"
    texts = put(tmp_path / "texts.txt", 'she was lovely\n\n{"text": "猫 \u2028 was ugly"}\n' + "he " * 99 + "\n")
    ran = run("predict", made, "--input", texts, "-o", output, "--json")
    assert json.loads(ran.out) == {"answers": 4, "output": str(output)}
    assert "bertkit: 1 of 4 texts cut to 40 tokens (61 tokens lost)" in ran.err.splitlines()
    printed = run("predict", made, "--input", texts, "--json").out
    assert output.read_bytes().decode() == printed


@pytest.fixture
def interrupting(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ctrl-C after so many windows."""

    def after(windows: int) -> None:
        keep = Ledger.keep

        def kept(self: Ledger, **more: Any) -> None:
            keep(self, **more)
            if self.kept.windows == windows:
                monkeypatch.setattr(Ledger, "keep", keep)
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(Ledger, "keep", kept)
        monkeypatch.setattr(signal, "signal", lambda *_: None)

    return after


@pytest.mark.parametrize("name", ["classification", "tagging", "choice"])
def test_answers_are_gone_on_with(
    run: Bertkit, learned: Callable[[str], Path], tmp_path: Path, interrupting: Callable[[int], None], name: str
) -> None:
    made, (write, suffix) = learned(name) / "run", teaching.SETS[name]
    data, output, whole = tmp_path / f"data.{suffix}", tmp_path / "answers.jsonl", tmp_path / "whole.jsonl"
    write(data, random.Random(3), 900)
    assert run("predict", made, "--data", data, "-o", whole).code == 0
    for windows, kept in ((1, 256), (2, 768)):
        interrupting(windows)
        ran = run("predict", made, "--data", data, "-o", output)
        said = f"bertkit: stopped; {kept} answers are kept in {output}.part. The same command goes on"
        assert (ran.code, ran.err.splitlines()[-1]) == (130, said)
        assert not output.exists()
    moved = data.rename(tmp_path / f"moved.{suffix}")  # it is what it holds that counts
    ran = run("predict", made, "--data", moved, "-o", output)
    assert f"bertkit: going on after 768 answers that are kept in {output}.part" in ran.err.splitlines()
    assert output.read_bytes() == whole.read_bytes()
    assert set(tmp_path.iterdir()) == {moved, output, whole}


def test_answers_are_not_mixed(
    run: Bertkit, learned: Callable[[str], Path], tmp_path: Path, interrupting: Callable[[int], None]
) -> None:
    made, output = learned("classification") / "run", tmp_path / "answers.jsonl"
    lines = [f"he was {number % 7}" for number in range(300)]
    texts = put(tmp_path / "texts.tsv", "\n".join(lines))
    interrupting(1)
    assert run("predict", made, "--input", texts, "-o", output).code == 130
    ran = run("predict", made, "--data", texts, "-o", output)
    assert 'was made otherwise: asked is "lines" there and "data" here' in error(ran.err)
    other = changed(made.parent, tmp_path / "model", lambda told: told.update(limit=30))
    ran = run("predict", other, "--input", texts, "-o", output)
    assert error(ran.err) == (
        f"{output}.part holds 256 answers, and was made otherwise: limit is 40 there and 30 here. Repeat what was "
        "there to go on, or add --overwrite (overwrite=True) to begin anew"
    )
    put(texts, "\n".join([*lines[:290], '{"txt": 1}', *lines]))
    ran = run("predict", made, "--input", texts, "-o", output)
    assert error(ran.err) == (
        "input 291: this model wants a line of text, or an object with text; it has txt. 256 answers are kept in "
        f"{output}.part; the same command goes on after them"
    )
    put(texts, "\n".join(["other", *lines[1:]]))
    ran = run("predict", made, "--input", texts, "-o", output)
    assert "was made of other texts: the first 256 of the input are not the same now" in error(ran.err)
    assert run("predict", made, "--input", texts, "-o", output, "--overwrite").code == 0
    assert [json.loads(line)["input"] for line in output.read_text().splitlines()] == ["other", *lines[1:]]


def test_answers_of_nothing(run: Bertkit, learned: Callable[[str], Path], tmp_path: Path) -> None:
    ran = run("predict", learned("classification") / "run", "-i", put(tmp_path / "x", ""), "-o", tmp_path / "o.jsonl")
    assert (ran.code, (tmp_path / "o.jsonl").read_bytes()) == (0, b"")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "answers.json"], "--output answers.json must end in .jsonl, which has a JSON object on each line"),
        (["-o", "there.jsonl"], "--output there.jsonl exists. Give another name, or add --overwrite to replace it"),
        (["-o", "new.jsonl", "--submission", "x"], "--submission names its files itself: give it, or --output"),
    ],
)
def test_outputs_that_are_refused(
    run: Bertkit,
    learned: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.jsonl").write_text("precious")
    home = learned("classification")
    ran = run("predict", home / "run", "--data", home / "dev.tsv", *options)
    assert ran.code == 1
    assert said in error(ran.err)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("there.jsonl", "precious")]


# a model directory that somebody changed ─────────────────────────────────────────────────────────────────────────────


def changed(home: Path, to: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    shutil.copytree(home / "run" / "model", to)
    (to / "bertkit-manifest.json").unlink()
    told = json.loads((to / "task.json").read_text())
    change(told)
    (to / "task.json").write_text(json.dumps(told))
    return to


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told.pop("limit"), "it lacks limit"),
        (lambda told: told.update(limit=10**9), "limit is 1000000000: this model takes from 3 to 512 tokens"),
        (lambda told: told.update(limit="many"), "limit is 'many': it must be a whole number"),
        (lambda told: told.update(limit=None), "limit is None: it must be a whole number"),
        (lambda told: told["task"].update(labels=["bad"]), "two labels or more"),
        (lambda told: told["task"].update(labels=["bad", "good", "x"]), "those of config.json are bad, good"),
        (lambda told: told["task"].update(labels=["good", "bad"]), "both must be the same, in the same order"),
        (lambda told: told["task"].update(labels=[0, 1]), "Classification.labels[0] is 0: it must be a str"),
        (lambda told: told["task"].update(measures=[]), "Classification.measures is empty"),
        (lambda told: told["task"].update(colour="red"), "unknown setting of Classification 'colour'"),
        (lambda told: told.update(task={"part": "Regression"}), "Regression needs a head 'regress'"),
        (lambda told: told.update(task=3), "task, layout or truncate is something else"),
        (lambda told: told.update(layout={"part": "WordsLayout"}), "Classification is read by TableLayout"),
        (lambda told: told["layout"].update(text=[]), "TableLayout.text is empty"),
    ],
)
def test_a_task_that_does_not_fit(
    run: Bertkit,
    learned: Callable[[str], Path],
    tmp_path: Path,
    change: Callable[[dict[str, Any]], object],
    said: str,
) -> None:
    home = learned("classification")
    ran = run("predict", changed(home, tmp_path / "model", change), "a cat")
    assert (ran.code, ran.out) == (1, "")
    assert error(ran.err).startswith(f"{tmp_path / 'model' / 'task.json'}: ")
    assert said in error(ran.err)


def test_a_task_that_was_cut_short(run: Bertkit, learned: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(learned("classification") / "run" / "model", tmp_path / "model")
    (tmp_path / "model" / "task.json").write_text('{"task": ')
    ran = run("predict", tmp_path / "model", "a cat")
    assert "'task.json' has 9 bytes where" in error(ran.err)
    (tmp_path / "model" / "bertkit-manifest.json").unlink()
    ran = run("predict", tmp_path / "model", "a cat")
    assert error(ran.err).startswith(f"{tmp_path / 'model' / 'task.json'} is not valid JSON (line 1, column 10")
