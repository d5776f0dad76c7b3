"""Tables of all kinds give their rows, and say where something is wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.tasks import columns, table
from bertkit.tasks.columns import NAMES, Columns, chosen


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


ROWS = [("good", "A cat sat."), ("bad", 'He said "no", twice.'), ("good", "猫。")]


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("kind", ["tsv", "csv", "txt", "tsv.gz"])
def test_label_and_text_in_any_order(tmp_path: Path, kind: str, turned: bool, header: bool) -> None:
    rows = [("label", "text")] * header + ROWS * 3
    rows = [row[::-1] for row in rows] if turned else rows
    if kind == "csv":
        lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    else:
        lines = ["\t".join(row) for row in rows]
    path = put(tmp_path / f"x.{kind.removesuffix('.gz')}", "\n".join(lines) + "\n")
    if kind.endswith(".gz"):
        data = path.read_bytes()
        path = tmp_path / "x.tsv.gz"
        path.write_bytes(gzip.compress(data))
    opened = table.opened(path, NAMES)
    assert opened.header is header
    found = chosen(opened, {})
    read = [(row.values[found.label], row.values[found.text]) for row in opened.rows()]
    assert read == ROWS * 3
    assert [row.number for row in opened.rows()][:2] == ([2, 3] if header else [1, 2])


def test_json_lines_and_parquet(tmp_path: Path) -> None:
    objects = [{"label": label, "text": text} for label, text in ROWS]
    lines = put(tmp_path / "x.jsonl", "".join(json.dumps(one) + "\n" for one in objects))
    assert [row.values for row in table.opened(lines).rows()] == objects
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow; not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(objects), tmp_path / "x.parquet")
    opened = table.opened(tmp_path / "x.parquet")
    assert [row.values for row in opened.rows()] == objects
    assert chosen(opened, {}) == Columns("text", None, "label")


def test_lines_of_csv_that_go_on(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", 'text,label\n"one\ntwo",a\nthree,b\n')
    assert [(row.number, row.values["text"]) for row in table.opened(path, NAMES).rows()] == [
        (2, "one\ntwo"),
        (4, "three"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.tsv", "text\tlabel\na\tb\tc\n", r"x\.tsv, row 2 has 3 columns, but the first row has 2 \(text, label\)"),
        ("x.jsonl", '{"text": "a"}\nb\n', r"x\.jsonl, row 2 is not JSON"),
        ("x.jsonl", "[1]\n", r"x\.jsonl, row 1 is no JSON object"),
        ("x.csv", "", r"x\.csv has no rows"),
        ("x.parquet", "no", r"x\.parquet is no parquet file"),
    ],
)
def test_what_is_wrong_is_said_with_its_row(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = put(tmp_path / name, text)
    with pytest.raises(BertkitError, match=message):
        list(table.opened(path, NAMES).rows())


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(b"text\tlabel\n\xff\xfe\ta\n")
    with pytest.raises(BertkitError, match="is not UTF-8"):
        list(table.opened(tmp_path / "x.tsv", NAMES).rows())
    (tmp_path / "x.tsv.gz").write_bytes(gzip.compress(b"text\tlabel\n" * 1000)[:-20])
    with pytest.raises(BertkitError, match="cannot be read to its end"):
        list(table.opened(tmp_path / "x.tsv.gz", NAMES).rows())
    (tmp_path / "x.tsv.gz").write_bytes(gzip.compress(b"")[:10] + b"\xff" * 20)
    with pytest.raises(BertkitError, match=r"x\.tsv\.gz cannot be read to its end: .* invalid block type"):
        list(table.opened(tmp_path / "x.tsv.gz", NAMES).rows())
    with pytest.raises(BertkitError, match=r"there is no file .*y\.tsv\. In .* are: x\.tsv, x\.tsv\.gz"):
        table.opened(tmp_path / "y.tsv")


def test_a_csv_with_tabs(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", 'text\tlabel\n"no", he said\ta\n')
    assert [row.values for row in table.opened(path, NAMES).rows()] == [{"text": '"no", he said', "label": "a"}]


def test_a_parquet_file_that_is_damaged_inside(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow; not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({"text": ["cat"] * 1000}), path)
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\xff" * 40 + data[44:])
    with pytest.raises(BertkitError, match=r"x\.parquet cannot be read to its end"):
        list(table.opened(path).rows())


def test_columns_by_name_and_by_word(tmp_path: Path) -> None:
    path = put(tmp_path / "x.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta b\tc d\tyes\n1\te\tf\tno\n")
    opened = table.opened(path, NAMES)
    assert chosen(opened, {}) == Columns("sentence1", "sentence2", "label")
    assert chosen(opened, {"text": "sentence2"}).text == "sentence2"
    with pytest.raises(BertkitError, match="did you mean 'label'"):
        chosen(opened, {"label": "lable"})
    odd = put(tmp_path / "odd.tsv", "".join(f"w{n} x\ty{n}\tz{n} v\tq{n}\n" for n in range(9)))
    with pytest.raises(BertkitError, match="--text COLUMN --label COLUMN"):
        chosen(table.opened(odd, NAMES), {})


def test_labels_are_in_a_fixed_order(tmp_path: Path) -> None:
    opened = table.opened(put(tmp_path / "x.tsv", "text\tlabel\na\t10\nb\t2\nc\t10\n"), NAMES)
    assert columns.labels(opened.rows(), "label", opened) == ["2", "10"]
    one = table.opened(put(tmp_path / "one.tsv", "text\tlabel\na\tx\nb\tx\n"), NAMES)
    with pytest.raises(BertkitError, match="has only one label, 'x'"):
        columns.labels(one.rows(), "label", one)
    empty = table.opened(put(tmp_path / "empty.tsv", "text\tlabel\na\t \nb\tx\n"), NAMES)
    with pytest.raises(BertkitError, match=r"empty\.tsv, row 2 has no label"):
        columns.labels(empty.rows(), "label", empty)
