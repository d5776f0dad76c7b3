"""Inputs and weights that are not as they should be: each has one defined answer, from the library and the commands."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bertkit
from bertkit.cli import main
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.parts.heads import Mlm
from bertkit.tasks.answering import QuestionAnswering
from bertkit.tasks.choosing import MultipleChoice
from bertkit.tasks.classification import Classification
from bertkit.tasks.finetuned import Finetuned
from bertkit.tasks.layout import Layout, OptionsLayout, QuestionsLayout, TableLayout, WordsLayout
from bertkit.tasks.tagging import Tagging
from bertkit.tasks.task import Task
from bertkit.text import Tokenizer
from bertkit.text.truncate import Cut
from tests.conftest import ROOT
from tests.tasks import teaching

BIG = {
    "words": "the cat " * 2**17,
    "one word": "a" * 2**20,
    "spaces": " " * 2**20,
    "nulls": "\0" * 2**20,
    "accents": "e" + "\u0301" * 2**19,
}
"""a million characters and more"""
HALF = "cat \ud800"
LONG = 60
"""seconds of work that nothing here may take, on whatever machine"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return teaching.tiny(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(small: Path) -> Model:
    return bertkit.load(small)


TASKS: dict[str, tuple[Task, Layout]] = {
    "classification": (Classification(("bad", "good")), TableLayout(("text",))),
    "pairs": (Classification(("same", "other")), TableLayout(("text",), ("pair",))),
    "tagging": (Tagging(("O", "B-LOC", "I-LOC")), WordsLayout()),
    "answering": (QuestionAnswering(), QuestionsLayout()),
    "choice": (MultipleChoice(), OptionsLayout()),
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Finetuned]:
    """A model for a task, whose weights are chance."""

    @cache
    def learn(name: str) -> Finetuned:
        task, layout = TASKS[name]
        tokenizer = Tokenizer.from_vocabulary(teaching.VOCABULARY)
        made = bertkit.create("bert-tiny", tokenizer, task.objective.heads, seed=0)
        made.limit = 64
        home = tmp_path_factory.mktemp("task") / name
        return Finetuned.load(Finetuned(made, task, layout, task.policy).save(home, "card"))

    return learn


def asked(name: str, text: Any) -> Any:
    """What is asked of a task about a text."""
    match name:
        case "pairs":
            return ("a cat", text)
        case "answering":
            return ("where is it ?", text)
        case "choice":
            return {"text": "a cat", "choices": [text, "a dog"]}
    return text


# empty texts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_text_is_a_text(model: Model) -> None:
    """Its tokens are [CLS] and [SEP]; nothing is skipped, so rows stay beside their texts."""
    vectors = model.embed(["a cat", "", " \t", "a dog"])
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(vectors[1], vectors[2], atol=1e-6)
    np.testing.assert_allclose(vectors[3], model.embed("a dog"), atol=1e-5)
    assert model.embed([]).shape == (0, 128)


@pytest.mark.parametrize(
    ("name", "short"), [("classification", None), ("pairs", None), ("tagging", ""), ("answering", ""), ("choice", None)]
)
def test_an_empty_text_is_answered(learned: Callable[[str], Finetuned], name: str, short: str | None) -> None:
    empty, text = learned(name).predict([asked(name, ""), asked(name, "a cat")])
    assert short is None or empty.short == short
    assert json.dumps(empty.told(), allow_nan=False)
    assert text.short


# a megabyte ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", BIG)
def test_a_megabyte_is_cut_to_the_limit(model: Model, kind: str) -> None:
    cut, begun = Cut(), time.process_time()
    vectors = model.embed([BIG[kind], "a cat"], cut=cut)
    assert np.isfinite(vectors).all()
    assert (cut.texts, cut.tokens) == ((1, 2**18 - 510) if kind == "words" else (0, 0))
    assert time.process_time() - begun < LONG


@pytest.mark.parametrize("name", ["classification", "choice"])
def test_a_megabyte_is_judged(learned: Callable[[str], Finetuned], name: str) -> None:
    (answer,) = learned(name).predict([asked(name, BIG["words"])])
    assert json.dumps(answer.told(), allow_nan=False)


def test_a_long_text_is_tagged_to_its_end(learned: Callable[[str], Finetuned]) -> None:
    """Time grows with the text, not with its square: an eighth of a megabyte took five minutes once."""
    begun = time.process_time()
    (tags,) = learned("tagging").predict([BIG["words"][: 2**17]])
    assert len(tags.tags) == len(tags.spans) == 2**15
    assert tags.spans[-1] == (2**17 - 4, 2**17 - 1)
    assert time.process_time() - begun < LONG


def test_a_long_text_is_searched_for_an_answer(learned: Callable[[str], Finetuned]) -> None:
    begun = time.process_time()
    (found,) = learned("answering").predict([("where is it ?", BIG["words"][: 2**17])])
    assert found.best
    assert time.process_time() - begun < LONG


# what is no text ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("given", [None, 3, b"cat", float("nan"), ["cat"]])
def test_what_is_no_text_is_named_by_its_place(
    model: Model, learned: Callable[[str], Finetuned], given: object
) -> None:
    with pytest.raises(BertkitError, match=rf"^text 2 is .* \({type(given).__name__}\), not a str: drop it or convert"):
        model.embed(["a", "b", given])  # type: ignore[list-item]
    with pytest.raises(BertkitError, match=r"^input 3 is .*: give a str, a pair of them, or a dict"):
        learned("classification").predict(["a", "b", given])  # type: ignore[list-item]


@pytest.mark.parametrize("name", TASKS)
def test_none_inside_an_input_is_named_by_its_place(learned: Callable[[str], Finetuned], name: str) -> None:
    with pytest.raises(BertkitError, match=r"^input 2\b"):
        learned(name).predict([asked(name, "a cat"), asked(name, None)])


@pytest.mark.parametrize("texts", [None, b"a cat"])
def test_none_in_place_of_texts(model: Model, texts: Any) -> None:
    with pytest.raises(BertkitError, match=r"^texts is .*: give a list of str, or for one text a str"):
        model.embed(texts)


# half a character ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_half_a_character_is_named_by_its_place(model: Model) -> None:
    with pytest.raises(BertkitError, match=r"^texts\[1\] has a lone surrogate '\\ud800' at character 4, which is not"):
        model.embed(["a", HALF])
    with pytest.raises(BertkitError, match=r"^texts from number 256 on: texts\[44\] has a lone surrogate"):
        list(model.embed_stream(iter(["a"] * 300 + [HALF])))


@pytest.mark.parametrize("name", TASKS)
def test_half_a_character_is_named_by_its_input(learned: Callable[[str], Finetuned], name: str) -> None:
    with pytest.raises(BertkitError, match=r"^input 2 has a lone surrogate '\\ud800' at character 4, which is not a"):
        learned(name).predict([asked(name, "a cat"), asked(name, HALF)])


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """`bertkit ARGUMENTS...` in this process: exit code, output, messages."""

    def running(*arguments: object, given: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bertkit", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        with pytest.raises(SystemExit) as exit:
            main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return int(exit.value.code or 0), captured.out, captured.err

    return running


def test_bytes_that_are_no_text_on_the_command_line(small: Path) -> None:
    """The shell hands over any bytes; Python makes halves of characters of those that are not UTF-8."""
    arguments = [sys.executable, "-m", "bertkit", "embed", str(small), b"caf\xe9", "--json"]
    ran = subprocess.run(arguments, capture_output=True, cwd=ROOT)
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert b"Traceback" not in ran.stderr
    assert b"texts[0] has a lone surrogate '\\udce9' at character 3" in ran.stderr


def test_half_a_character_on_standard_input(command: Command, learned: Callable[[str], Finetuned]) -> None:
    """What came before the wrong line is answered."""
    lines = b'she was lovely\n{"text": "caf\\ud800"}\nhe was ugly\n'
    code, out, err = command("predict", learned("classification").path, "--input", "-", given=lines)
    assert (code, len(out.splitlines())) == (1, 1)
    assert "bertkit: error: input 2 has a lone surrogate '\\ud800' at character 3" in err


@pytest.mark.parametrize("verb", ["embed", "predict"])
def test_bytes_that_are_no_text_on_standard_input(
    command: Command, small: Path, learned: Callable[[str], Finetuned], verb: str
) -> None:
    opened = small if verb == "embed" else learned("classification").path
    code, _, err = command(verb, opened, "--input", "-", "--json", given=b"a cat\ncaf\xed\xa0\x80\n")
    assert code == 1
    assert "standard input, line 2 is not UTF-8 (byte 0xed at place 4)" in err


# weights that are no numbers ─────────────────────────────────────────────────────────────────────────────────────────


def spoiled(small: Path, name: str, value: float, home: Path) -> Path:
    """A saved model of which one value is no number."""
    made = bertkit.load(small)
    with torch.no_grad():
        made.network.get_parameter(name).view(-1)[5] = value
    return made.save(home / "spoiled")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_weight_that_is_no_number_is_named(small: Path, tmp_path: Path, value: float) -> None:
    path = spoiled(small, "encoder.feeds.1.down.weight", value, tmp_path)
    with pytest.raises(BertkitError) as raised:
        bertkit.load(path).embed(["a cat", "a dog"])
    assert str(raised.value) == (
        f"{path} answers with NaN or infinity: 1 of 65,536 values of its network.encoder.feeds.1.down.weight are not "
        "finite. Copy or download the model again, or take one from before they came about in training"
    )


@pytest.mark.parametrize("how", [{"pool": "max"}, {"pool": "cls", "normalize": True}, {"truncate": "chunk"}])
def test_no_pool_hides_it(small: Path, tmp_path: Path, how: dict[str, Any]) -> None:
    made = bertkit.load(spoiled(small, "encoder.embed.norm.weight", float("nan"), tmp_path))
    with pytest.raises(BertkitError, match=r"its network.encoder.embed.norm.weight are not finite"):
        made.embed(["a cat " * 300], **how)


def test_a_row_that_no_text_needs_harms_nobody(small: Path, tmp_path: Path, model: Model) -> None:
    cat = model.tokenizer.id("cat")
    made = bertkit.load(small)
    with torch.no_grad():
        made.network.encoder.embed.tokens.weight[cat] = float("nan")
    np.testing.assert_array_equal(made.embed(["a dog"]), model.embed(["a dog"]))
    with pytest.raises(BertkitError, match=r"128 of .* values of its network.encoder.embed.tokens.weight are not"):
        made.embed(["a dog", "a cat"])


def test_numbers_that_grow_out_of_bounds_are_told_from_weights(small: Path) -> None:
    made = bertkit.load(small)
    with torch.no_grad():
        made.network.encoder.feeds[1].norm.weight.fill_(3e38)
    with pytest.raises(BertkitError, match=r"its weights are finite, but .* The largest is 3e\+38, in network.encoder"):
        made.embed(["a cat"])


@pytest.mark.parametrize("name", TASKS)
def test_no_task_answers(learned: Callable[[str], Finetuned], name: str) -> None:
    made = Finetuned.load(learned(name).path or "")
    with torch.no_grad():
        next(made.model.network.heads[head_of(name)].parameters()).fill_(float("nan"))
    with pytest.raises(BertkitError, match=rf"^{made.path} answers with NaN or infinity: .* of its network.heads."):
        made.predict([asked(name, "a cat")])


def head_of(name: str) -> str:
    return {"tagging": "tag", "answering": "span", "choice": "choice"}.get(name, "classify")


def test_no_gap_is_filled(tokenizer: Tokenizer) -> None:
    made = bertkit.create("bert-tiny", tokenizer, {"mlm": Mlm()}, seed=0)
    with torch.no_grad():
        made.network.get_parameter("heads.mlm.bias")[0] = float("nan")
    with pytest.raises(BertkitError, match=r"^Model\(bert, .* values of its network.heads.mlm.bias are not finite"):
        made.fill("the [MASK] sat")


def test_commands_say_it_and_keep_nothing(command: Command, small: Path, tmp_path: Path) -> None:
    path = spoiled(small, "encoder.attentions.0.out.bias", float("nan"), tmp_path)
    code, _, err = command("embed", path, "a cat", "-o", tmp_path / "vectors.npy")
    assert code == 1
    (error,) = [line for line in err.splitlines() if "error" in line]
    assert error.startswith(f"bertkit: error: {path} answers with NaN or infinity: 1 of 128 values of its network.enc")
    assert list(tmp_path.iterdir()) == [path]
