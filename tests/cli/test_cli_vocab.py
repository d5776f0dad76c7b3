"""`bertkit vocab train`: what is shown, what a program gets, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit.text import Tokenizer
from tests.cli.running import Bertkit


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    documents = (f"The cat {number % 50} sat on the mat, 猫{'坐' * (number % 2)}。" for number in range(3000))
    path.write_text("\n\n".join(documents), encoding="utf-8")
    return path


def test_shown(run: Bertkit, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run("vocab", "train", file, "-o", tmp_path / "v", "--size", 60, "--special", "[NAME]", "--held-out", 0.1)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0] == "kind          wordpiece, lower-cased"
    assert lines[1].startswith("tokens        60: 6 special, ")
    assert lines[2].startswith("learned from  ")
    assert any(line.startswith("How words are spelled in held-out text (") for line in lines)
    table = [line.split() for line in lines[5:11]]
    assert table[0] == ["script", "words", "one", "token", "tokens", "per", "word", "unknown"]
    assert [row[0] for row in table[1:]] == ["Latin", "punctuation", "Han", "digits", "all"]
    assert {row[-1] for row in table[1:]} == {"0.000%"}
    assert f"wrote {tmp_path / 'v'}. Next: bertkit tokenize" in ran.err
    assert Tokenizer.load(tmp_path / "v").encode("The [NAME]").ids[2] == 5
    assert "the" in run("tokenize", tmp_path / "v", "The cat").out


def test_json(run: Bertkit, file: Path, tmp_path: Path) -> None:
    ran = run("vocab", "train", file, "-o", tmp_path / "v", "--size", 300, "--kind", "bpe", "--json", "--unused", 3)
    found = json.loads(ran.out)
    assert (found["kind"], found["size"], found["options"]["unused"]) == ("bpe", 300, 3)
    assert found["tokens"] == {"special": 5, "unused": 3, "characters": 256, "learned": 36}
    assert found["coverage"]["unknown"] == 0
    assert set(found["coverage"]["scripts"]) >= {"Latin", "Han", "digits", "punctuation"}
    assert sorted(path.name for path in (tmp_path / "v").iterdir() if path.suffix != ".md") == [
        "bertkit-manifest.json",
        "merges.txt",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.json",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.txt"], "nowhere.txt: there is no such file"),
        ([], "give files, folders or patterns"),
        (["empty.txt"], "the corpus is empty: there is no word in empty.txt"),
        (
            ["a.txt", "--size", "8"],
            "--size 8 is too small: 5 special and unused tokens and 5 single characters need 10",
        ),
        (["a.txt", "--max-ram", "lots"], "--max-ram 'lots' is no size"),
        (["a.txt", "--held-out", "2"], "--held-out is 2.0: give a share of the documents from 0 to 0.5"),
        (["bad.txt"], "bad.txt, line 2: is not UTF-8"),
    ],
)
def test_refused(
    run: Bertkit,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").touch()
    Path("a.txt").write_text("cat cat")
    Path("bad.txt").write_bytes(b"cat\ncaf\xe9\n")
    ran = run("vocab", "train", "-o", "v", *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("bertkit: error: ")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_what_cannot_be_read_is_named(run: Bertkit, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"cat\ncaf\xe9\ncat\n")
    ran = run("vocab", "train", tmp_path / "bad.txt", "-o", tmp_path / "v", "--on-error", "skip", "--json")
    assert ran.code == 0
    assert "bad.txt, line 2: is not UTF-8" in ran.err
    found = json.loads(ran.out)
    assert (found["words"], found["skipped"]) == (2, 1)
