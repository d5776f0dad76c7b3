"""Nodes of JSON files in all their forms, and of tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.tasks import node
from bertkit.tasks.node import nodes

OBJECTS = [{"n": number, "text": "猫 \n" * number} for number in range(50)]


@pytest.mark.parametrize("block", [1, 7, 2**16])
@pytest.mark.parametrize("indent", [None, 2])
def test_objects_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int, block: int) -> None:
    monkeypatch.setattr(node, "BLOCK", block)
    path = tmp_path / "x.json"
    texts = [json.dumps(one, indent=indent, ensure_ascii=False) for one in OBJECTS]
    path.write_text("\n".join(texts) + "\n\n", encoding="utf-8")
    found = list(nodes(path))
    assert [one.value for one in found] == OBJECTS
    assert [one.row for one in found] == [1 + number * (4 if indent else 1) for number in range(50)]


def test_a_list_and_a_table_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "list").write_text(json.dumps([{"text": "a"}, {"text": "b"}]))
    (tmp_path / "x.csv").write_text("text\na\nb\n")
    assert [(one.row, one.value) for one in nodes(tmp_path / "list")] == [(1, {"text": "a"}), (2, {"text": "b"})]
    assert [(one.row, one.value) for one in nodes(tmp_path / "x.csv", ["text"])] == [
        (2, {"text": "a"}),
        (3, {"text": "b"}),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"b": \n', r"x\.json, row 2 is not JSON: Expecting value \(line 3\)"),
        ('{"a": "1\n' + " " * 200_000, r"x\.json, row 1 is not JSON: Invalid control character"),
        ('{"a": "1' + " " * 200_000, r"x\.json, row 1 is not JSON: Unterminated string"),
        ('{"a": 1},\n{"b": 2}\n', r"x\.json, row 1 is not JSON: Expecting value"),
        ("[" * 100_000, r"x\.json, row 1 is not JSON that can be read: maximum recursion"),
        ("text\n", r"x\.json, row 1 is not JSON"),
    ],
)
def test_what_is_no_json(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(BertkitError, match=message):
        list(nodes(tmp_path / "x.json"))


def test_a_fault_is_told_before_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'{"a": 1}\n{"b": 2\n' + b'{"c": 3}\n' * 100_000 + b"\xff")
    with pytest.raises(BertkitError, match=r"x\.jsonl, row 2 is not JSON: Expecting ',' delimiter \(line 3\)"):
        list(nodes(tmp_path / "x.jsonl"))


def test_places(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"data": [{"title": "a"}, {"title": [3]}]}')
    top = next(nodes(tmp_path / "x.json"))
    with pytest.raises(BertkitError, match=r"x\.json, row 1, data\[1\]\.title is \[3\], but must be a text"):
        top.need("data").each()[1].need("title").text()
    with pytest.raises(BertkitError, match=r"data\[0\]\.title is 'a', but must be a whole number"):
        top.need("data").each()[0].need("title").number()
    with pytest.raises(BertkitError, match=r"row 1 has no 'body' or 'text': it has data"):
        top.need("body", "text")
    with pytest.raises(BertkitError, match=r"there is no file .*y\.json"):
        list(nodes(tmp_path / "y.json"))
