"""`bertkit tokenize`, and how all commands read texts."""

import io
import json
import sys
from pathlib import Path

import pytest

from bertkit.model import Model
from tests.cli.running import Bertkit


def texts_read(run: Bertkit, tiny: Path, source: Path | str) -> list[str]:
    ran = run("tokenize", tiny, "--json", "--input", source)
    assert ran.code == 0, ran.err
    return [json.loads(line)["text"] for line in ran.out.splitlines()]


def test_json(run: Bertkit, tiny: Path, model: Model) -> None:
    ran = run("tokenize", tiny, "the 猫 played", "--pair", "a [b]dog", "--json")
    found = model.tokenizer.encode("the 猫 played", "a [b]dog")
    assert json.loads(ran.out) == {
        "text": "the 猫 played",
        "pair": "a [b]dog",
        "tokens": found.tokens,
        "ids": found.ids,
        "segments": found.segments,
        "words": found.words,
        "offsets": [list(offset) for offset in found.offsets],
    }
    assert "猫" in ran.out  # readable, not \\u732b


def test_table(run: Bertkit, tiny: Path) -> None:
    ran = run("tokenize", tiny, "[red]猫 played[/red]")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "[red]猫 played[/red]",
        "token  id  segment  word  offset  in the text",
        "[CLS]   2        0",
        "[      18        0     0     0:1  [",
        "red    22        0     1     1:4  red",
        "]      19        0     2     4:5  ]",
        "猫     33        0     3     5:6  猫",
        "play   12        0     4    7:11  play",
        "##ed   14        0     4   11:13  ed",
        "[      18        0     5   13:14  [",
        "/      20        0     6   14:15  /",
        "red    22        0     7   15:18  red",
        "]      19        0     8   18:19  ]",
        "[SEP]   3        0",
        "",
    ]


def test_without_special_tokens(run: Bertkit, tiny: Path) -> None:
    ran = run("tokenize", tiny, "the cat", "--no-special-tokens", "--json")
    assert json.loads(ran.out)["tokens"] == ["the", "cat"]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\n\n  \nb", ["a", "", "  ", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfthe cat\n\xef\xbb\xbfb", ["the cat", "\ufeffb"]),
        (b"a\0b\n", ["a\0b"]),
        ("😀\u2028[bold]\n".encode(), ["😀\u2028[bold]"]),
        (b"x" * 1_000_000, ["x" * 1_000_000]),
        (b"", []),
    ],
    ids=["plain", "blank", "crlf", "bom", "nul", "emoji", "megabyte", "empty"],
)
def test_lines_of_a_file(run: Bertkit, tiny: Path, tmp_path: Path, content: bytes, texts: list[str]) -> None:
    (tmp_path / "texts.txt").write_bytes(content)
    assert texts_read(run, tiny, tmp_path / "texts.txt") == texts


def test_lines_of_standard_input(run: Bertkit, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n")))
    assert texts_read(run, tiny, "-") == ["a", "b"]


def test_long_text_in_a_table(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("cat " * 20_000)
    lines = run("tokenize", tiny, "-i", tmp_path / "long.txt").out.splitlines()
    assert lines[0] == "cat " * 14 + "cat…"
    assert len(lines) == 2 + 20_002 + 1


def test_file_name_taken_as_a_text(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("the cat\n")
    ran = run("tokenize", tiny, tmp_path / "texts.txt", "--json")
    assert json.loads(ran.out)["text"] == str(tmp_path / "texts.txt")
    assert f"--input {tmp_path / 'texts.txt'}" in ran.err


def test_empty_file_is_said(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    ran = run("tokenize", tiny, "-i", tmp_path / "empty.txt")
    assert (ran.code, ran.out) == (0, "")
    assert "empty.txt holds no texts" in ran.err


FILES = {
    "latin.txt": b"a\ncaf\xe9\n",
    "utf16.txt": "the cat".encode("utf-16"),
    "texts.gz": b"\x1f\x8b\x08\x00",
    "texts.txt": b"a\n",
}


@pytest.mark.parametrize("command", ["tokenize", "embed"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no texts: write them after MODEL, or --input FILE"),
        (["a cat", "-i", "texts.txt"], "give texts or --input, not both"),
        (["-i", "missing.txt"], "--input missing.txt: there is no such file"),
        (["-i", "."], "--input . is a directory"),
        (["-i", "latin.txt", "--json"], "latin.txt, line 2 is not UTF-8 (byte 0xe9 at place 4): convert it first"),
        (["-i", "utf16.txt"], "iconv -f utf-16 -t utf-8 utf16.txt"),
        (["-i", "texts.gz"], "zcat texts.gz | …"),
        (["caf\udce9"], "lone surrogate"),
    ],
)
def test_refused_texts(
    run: Bertkit,
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    ran = run(command, tiny, *arguments)
    errors = [line for line in ran.err.splitlines() if not line.endswith("made new none")]
    assert ran.code == 1
    assert len(errors) == 1
    assert errors[0].startswith("bertkit: error: ")
    assert said in errors[0]
