"""`bertkit lengths`: what is drawn, what a program gets, and what is refused."""

import io
import json
import sys
from pathlib import Path

import pytest

from bertkit.model import Model
from bertkit.text.truncate import Cut
from tests.cli.running import Bertkit


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """20 texts: lengths 3 (ten times), 7 (nine times), and 30, [CLS] and [SEP] included."""
    path = tmp_path / "texts.txt"
    path.write_text("cat\n" * 10 + "the cat sat on mat\n" * 9 + "dog " * 28 + "\n", encoding="utf-8")
    return path


def test_drawn(run: Bertkit, tiny: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    ran = run("lengths", file, "--model", tiny, "--limit", 16)
    assert (ran.code, ran.err) == (0, "")
    title, bars = ran.out.split("  3-4 │")
    assert " ".join(title.split()) == f"Tokens per text in {file}, with [CLS] and [SEP], by the tokenizer of {tiny}"
    lines = ["", *f"  3-4 │{bars}".splitlines()]
    assert lines[1:9] == [
        "  3-4 │████████████████████████████ 10   50.0%",
        "  5-6 │                              0    0.0%",
        "  7-8 │█████████████████████████▎    9   45.0%  ← proposed 8",
        " 9-10 │                              0    0.0%",
        "11-12 │                              0    0.0%",
        "13-14 │                              0    0.0%",
        "15-16 │                              0    0.0%  ← limit 16",
        "17-18 │                              0    0.0%",
    ]
    assert max(map(len, lines[1:15])) == 60
    assert lines[14] == "29-30 │██▊                           1    5.0%"
    said = " ".join(ran.out.split())
    assert "Proposed sequence length: 8 tokens keep 95.0 % of the texts whole, and 73.5 % of all tokens." in said
    table = ran.out.partition("At 16 tokens, the limit:\n")[2].splitlines()[:6]
    assert table == [
        "policy     texts cut  share  tokens lost   share  chunks",
        "error              0  0.00%            0   0.00%       0  refuses 1 text",
        "head               1  5.00%           14  16.87%       0",
        "tail               1  5.00%           14  16.87%       0",
        "head+tail          1  5.00%           14  16.87%       0",
        "chunk              0  0.00%            0   0.00%       2  of 1 text",
    ]


def test_json(run: Bertkit, tiny: Path, model: Model, file: Path) -> None:
    ran = run("lengths", file, "-m", tiny, "--json")
    found = json.loads(ran.out)
    assert found["lengths"] == {"3": 10, "7": 9, "30": 1}
    assert (found["texts"], found["tokens"], found["longest"], found["limit"]) == (20, 123, 30, model.limit)
    assert found["percentiles"] == {"50": 3, "90": 7, "95": 7, "99": 30}
    assert (found["proposal"]["length"], found["proposal"]["fits"]) == (8, 0.95)
    at_limit = [row for row in found["policies"] if row["limit"] == model.limit]
    assert [row["policy"] for row in at_limit] == ["error", "head", "tail", "head+tail", "chunk"]
    assert all(row["cut_texts"] == row["refused_texts"] == row["chunks"] == 0 for row in at_limit)


def test_fields(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("7\tcat\tdog dog dog dog\n8\tcat cat cat\tdog\n", encoding="utf-8")
    arguments = ("lengths", tmp_path / "pairs.tsv", "-m", tiny, "--json", "--limit", 7, "--budgets")
    found = json.loads(run(*arguments, "2,2", "--fields", "2,3").out)
    assert (found["fields"], found["lengths"]) == (2, {"7": 1, "8": 1})
    rows = {row["policy"]: row for row in found["policies"]}
    assert rows["longest-first"]["cut_tokens"] == 1
    assert (rows["budgets 2,2"]["cut_texts"], rows["budgets 2,2"]["cut_tokens"]) == (2, 3)
    found = json.loads(run(*arguments, "9,9,9", "--tsv").out)
    assert (found["fields"], found["lengths"]) == (3, {"9": 1, "10": 1})


def test_standard_input_and_ascii(run: Bertkit, tiny: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    monkeypatch.setattr("bertkit.cli.drawing.is_plain", lambda: True)
    ran = run("lengths", "-", "--model", tiny)
    assert ran.code == 0
    assert ran.out.startswith("Tokens per text in standard input")
    assert ran.out.isascii()
    assert "<- proposed 8" in ran.out


def test_page(run: Bertkit, tiny: Path, file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = run("lengths", file, "-m", tiny, "--html", page)
    assert ran.code == 0
    assert f"wrote {page}" in ran.err
    html = page.read_text(encoding="utf-8")
    assert "<title>7 tokens per text: 9 texts (45.0%)</title>" in html
    assert "proposed length 8" in html
    ran = run("lengths", file, "-m", tiny, "--html", page)
    assert (ran.code, ran.out) == (1, "")
    assert "exists. Give another name, or add --overwrite" in ran.err
    assert run("lengths", file, "-m", tiny, "--html", page, "--overwrite").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.txt"], "missing.txt: there is no such file"),
        (["."], ". is a directory"),
        (["empty.txt"], "empty.txt holds no texts"),
        (["latin.txt"], "latin.txt, line 2 is not UTF-8"),
        (["ragged.tsv", "--tsv"], "line 2 has 1 columns where line 1 has 2"),
        (["ragged.tsv", "--fields", "2"], "line 2 has 1 columns, and --fields asks for column 2"),
        (["ragged.tsv", "--fields", "0"], "--fields '0' is not a row of whole numbers"),
        (["ragged.tsv", "--budgets", "9,9"], "input 1 has 1 fields where 2 are asked for"),
        (["ragged.tsv", "--budgets", "a"], "write it like --budgets 50,200,200"),
        (["ragged.tsv", "--keep", "0"], "--keep 0 is no share of the texts in per cents: give per cents above 1"),
        (["ragged.tsv", "--keep", "0.95"], "did you mean --keep 95?"),
        (["wide.tsv", "--tsv", "--limit", "5"], "a limit of 5 tokens leaves no room for 9 fields"),
        (["ragged.tsv", "--html", "page.txt"], "must end in .html"),
        (["ragged.tsv", "--model", "nowhere/at all"], "--model DIR"),
    ],
)
def test_refused(
    run: Bertkit, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").touch()
    Path("latin.txt").write_bytes(b"a\ncaf\xe9\n")
    Path("ragged.tsv").write_text("a\tb\nc\n")
    Path("wide.tsv").write_text("\t" * 8 + "\n")
    ran = run("lengths", "--model", tiny, *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("bertkit: error: ")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_columns_and_headers_are_not_counted_unseen(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("sentence\tlabel\n" + "the cat sat\t1\n" * 30)
    ran = run("lengths", table, "-m", tiny, "--json")
    assert "every line has tabs" in ran.err
    assert json.loads(ran.out)["texts"] == 31
    ran = run("lengths", table, "-m", tiny, "--fields", "1", "--header", "--json")
    assert ran.err == ""
    assert json.loads(ran.out)["lengths"] == {"5": 30}
    (tmp_path / "a.json").write_text('{"a": 1}\n')
    assert "looks like JSON" in run("lengths", tmp_path / "a.json", "-m", tiny).err


def test_the_default_prompt_is_counted(run: Bertkit, model: Model, tmp_path: Path) -> None:
    import bertkit

    prompted = bertkit.Model(model.network, model.tokenizer)
    prompted.prompts, prompted.default_prompt, prompted.limit = {"query": "the cat: "}, "query", 16
    prompted.save(tmp_path / "prompted")
    file = tmp_path / "texts.txt"
    file.write_text("dog\n" + "dog " * 12 + "\n")
    found = json.loads(run("lengths", file, "-m", tmp_path / "prompted", "--json").out)
    before = len(model.tokenizer.encode("the cat: ", special_tokens=False))
    assert (found["prompt"], found["lengths"]) == ("the cat: ", {str(before + 3): 1, str(before + 14): 1})
    cut = Cut()
    prompted.embed(["dog", "dog " * 12], cut=cut)
    (head,) = [row for row in found["policies"] if row["policy"] == "head" and row["limit"] == 16]
    assert (head["cut_texts"], head["cut_tokens"]) == (cut.texts, cut.tokens) == (1, before + 14 - 16)


def test_next_is_only_said_where_it_works(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "vocab.txt").write_bytes((tiny / "vocab.txt").read_bytes())
    file = tmp_path / "texts.txt"
    file.write_text("cat dog\n")
    assert "Next: model = bertkit.load" in run("lengths", file, "-m", tiny).out
    assert "Next:" not in run("lengths", file, "-m", tmp_path / "words").out
    file.write_text("cat " * 600 + "\n")
    assert "Next:" not in run("lengths", file, "-m", tiny, "--limit", 1000).out
    file.write_text("\n\n")
    assert "Next:" not in run("lengths", file, "-m", tiny).out
