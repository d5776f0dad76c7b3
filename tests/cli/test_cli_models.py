"""`bertkit info` and `bertkit fill`, the names of models, and the help of all commands."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

import bertkit
from bertkit.model import Model
from bertkit.spec import to_json
from tests.cli.running import Bertkit

COMMANDS = ["info", "tokenize", "lengths", "embed", "fill", "convert", "doctor"]


def test_info_for_a_program(run: Bertkit, tiny: Path, model: Model) -> None:
    facts = json.loads(run("info", tiny, "--json").out)
    assert facts == {
        "model": str(tiny),
        "directory": str(tiny),
        "family": "bert",
        "heads": ["mlm"],
        "loading": "took encoder, mlm; left none; made new none",
        "layers": 2,
        "width": 128,
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "vocabulary": len(model.tokenizer),
        "lowercase": True,
        "longest_text": 512,
        "pool": "mean",
        "dense": [],
        "normalize": False,
        "vector_width": 128,
        "prompts": [],
        "default_prompt": "none",
        "spec": to_json(model.network.spec),
    }


def test_info_for_a_reader_on_a_narrow_terminal(
    run: Bertkit, tiny: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    ran = run("info", tiny)
    assert (
        f"directory\n                {tiny}\n" in ran.out or f"directory       {tiny}\n" in ran.out
    )  # whole, to be copied
    parameters = sum(parameter.numel() for parameter in model.network.parameters())
    assert f"parameters      {parameters:,}\n" in ran.out
    assert "lowercase       yes\n" in ran.out
    assert "loading         took encoder, mlm; left\n                none; made new none\n" in ran.out


def test_info_lists_sizes_and_weights(run: Bertkit) -> None:
    facts = json.loads(run("info", "--json").out)
    assert facts["bertkit"] == bertkit.__version__
    assert "bert-base" in facts["sizes_to_make_new"]
    assert facts["weights_here"] == bertkit.list_models(pretrained=True)
    assert "bertkit embed" in run("info").out


def test_fill_for_a_program(run: Bertkit, tiny: Path, model: Model) -> None:
    text = "the [MASK] sat on [MASK]."
    masks = json.loads(run("fill", tiny, text, "--top", "3", "--json").out)
    assert masks == [[asdict(guess) for guess in guesses] for guesses in model.fill(text, 3)]
    assert [len(guesses) for guesses in masks] == [3, 3]


def test_fill_for_a_reader(run: Bertkit, tiny: Path, model: Model) -> None:
    text = "the [MASK] sat on [red]."
    lines = run("fill", tiny, text, "--top", "2").out.splitlines()
    for line, guess in zip(lines, model.fill(text, 2)[0], strict=True):
        assert line.split(maxsplit=2) == [f"{guess.score:.2%}", guess.token, guess.text]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["info", "no-such-dir/"], "there is no directory no-such-dir/"),
        (["info", "notes.txt"], "notes.txt is a file; give the directory it lies in"),
        (["info", "hollow"], "hollow"),
        (["tokenize", "hollow", "a cat"], "hollow has neither tokenizer.json nor vocab.txt"),
        (["embed", "hollow", "a cat"], "config.json is missing"),
        (["embed", "bert-base", "a cat"], "'bert-base' is a size, without weights"),
        (["fill", "TINY", "the cat"], "there is no [MASK] in 'the cat'"),
    ],
)
def test_refused(
    run: Bertkit, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hollow").mkdir()
    Path("notes.txt").touch()
    ran = run(*(tiny if argument == "TINY" else argument for argument in arguments))
    errors = [line for line in ran.err.splitlines() if not line.endswith("made new none")]
    assert (ran.code, ran.out) == (1, "")
    assert len(errors) == 1
    assert errors[0].startswith("bertkit: error: ")
    assert said in errors[0]


def test_model_without_the_head(run: Bertkit) -> None:
    ran = run("fill", "minilm", "the [MASK]")
    assert ran.code == 1
    assert "no 'mlm' head. Its heads: pooler" in ran.err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run: Bertkit, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ran = run(command, "--help")
    assert ran.code == 0
    assert f"Example: bertkit {command} " in ran.out
    assert "--json" in ran.out


def test_help_says_the_defaults_that_a_model_decides(run: Bertkit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "if not given, the model's own" in run("embed", "--help").out


def test_help_of_all(run: Bertkit) -> None:
    ran = run("--help")
    assert all(command in ran.out for command in COMMANDS)
    assert run("--version").out == f"bertkit {bertkit.__version__}\n"


def test_misspelt_command_and_option(run: Bertkit) -> None:
    wrong = run("tokenise", "minilm", "x")
    assert (wrong.code, wrong.out) == (2, "")
    assert "Did you mean 'tokenize'?" in wrong.err
    assert run("fill", "minilm", "[MASK]", "--top", "0").code == 2
