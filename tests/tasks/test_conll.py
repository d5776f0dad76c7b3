"""Sentences with tags, from lines of words, from CLUENER's objects and from tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from bertkit.errors import BertkitError
from bertkit.evaluate.entities import entities
from bertkit.tasks import conll
from bertkit.tasks.conll import sentences
from bertkit.tasks.item import Words
from bertkit.tasks.tags import scheme, to_iob2
from tests.tasks.damage import damaged, read_or_refused


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


LINES = """-DOCSTART- -X- O O

Mia NNP I-NP I-PER
sleeps VBZ I-VP O

-DOCSTART- -X- O O

Rome NNP I-NP I-LOC

"""


@pytest.mark.parametrize("between", [" ", "   ", "\t", "\t\t", " \t "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_words_on_lines(tmp_path: Path, between: str, end: str) -> None:
    path = tmp_path / "eng.train"
    path.write_bytes(LINES.replace(" ", between).replace("\n", end).encode())
    expected = [Words(path, 3, ("Mia", "sleeps"), ("I-PER", "O")), Words(path, 8, ("Rome",), ("I-LOC",))]
    assert list(sentences(path)) == expected


def test_columns(tmp_path: Path) -> None:
    path = put(tmp_path / "x.txt", LINES.rstrip())
    assert [one.tags for one in sentences(path, column=1, entities=False)] == [("NNP", "VBZ"), ("NNP",)]
    assert [one.tags for one in sentences(path, column=-2)] == [("I-NP", "I-VP"), ("I-NP",)]
    with pytest.raises(BertkitError, match=r"x\.txt, row 3: the tag of word 1 is wrong: 'NNP' is no tag"):
        list(sentences(path, column=1))
    for column in (0, 4, -4, -9):
        with pytest.raises(BertkitError, match=rf"no tags in column {column}: it has columns 0 to 3"):
            list(sentences(path, column=column))


def test_words_without_tags(tmp_path: Path) -> None:
    path = put(tmp_path / "x", "Mia\nsleeps\n\n\n\nRome\n")
    assert list(sentences(path)) == [Words(path, 1, ("Mia", "sleeps")), Words(path, 6, ("Rome",))]
    with pytest.raises(BertkitError, match="no tags in column 1"):
        list(sentences(path, column=1))
    with pytest.raises(BertkitError, match="put a tab between a word and its tag"):
        list(sentences(put(tmp_path / "x.csv", "Mia,B-PER\n")))


def test_white_space_and_signs_that_are_words(tmp_path: Path) -> None:
    path = put(tmp_path / "x.txt", "{ O\n\u3000 O\n\u00a0\tB-X\n\u2028\tI-X\n")
    assert list(sentences(path)) == [Words(path, 1, ("{", "\u3000", "\u00a0", "\u2028"), ("O", "O", "B-X", "I-X"))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Mia B-PER\nsleeps\n", r"x\.txt, row 2 has 1 columns, but the first has 2"),
        ("Mia B-PER\n\n\tO\n", r"x\.txt, row 3 has 1 columns"),
        ("Mia B-PER\n\nRome X-LOC\n", r"x\.txt, row 3: the tag of word 1 is wrong: 'X-LOC' is no tag"),
        ("\n\n", r"x\.txt has no sentences"),
        ("-DOCSTART- O\n", r"x\.txt has no sentences"),
        ("", r"x\.txt has no sentences"),
    ],
)
def test_what_is_wrong_with_lines(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        list(sentences(put(tmp_path / "x.txt", text)))


def test_places_behind_characters(tmp_path: Path) -> None:
    path = put(tmp_path / "x.txt", "猫0\tB-PER\n咪1\tI-PER\n10\tO\n\n\ufffd\ufffd0\tO\n狗1\tO\n")
    assert [one.words for one in sentences(path)] == [("猫", "咪", "1"), ("\ufffd\ufffd", "狗")]
    sizes = put(tmp_path / "sizes.txt", "A4\tO\nA0\tO\n")  # not places: none begins with 4
    assert [one.words for one in sentences(sizes)] == [("A4", "A0")]
    long = put(tmp_path / "long.txt", "猫0\tO\n" * conll.SEEN + "猫\tO\n")
    with pytest.raises(BertkitError, match=r"long\.txt, row 1001: '猫' is no character with its place"):
        list(sentences(long))


SPANS = [
    {"text": "米娅在罗马", "label": {"name": {"米娅": [[0, 1]]}, "address": {"罗马": [[3, 4]]}}},
    {"text": "《罗马》", "label": {"address": {"罗马": [[1, 2]]}, "book": {"《罗马》": [[0, 3]]}}},
    {"id": 3, "text": "罗马"},
]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["x.json", "x"])
def test_texts_with_spans(tmp_path: Path, name: str, indent: int | None) -> None:
    text = "\n".join(json.dumps(one, indent=indent, ensure_ascii=False) for one in SPANS)
    found = list(sentences(put(tmp_path / name, text)))
    assert [one.words for one in found] == [tuple("米娅在罗马"), tuple("《罗马》"), tuple("罗马")]
    assert found[0].tags == ("B-name", "I-name", "O", "B-address", "I-address")
    assert found[1].tags == ("B-book", "I-book", "I-book", "I-book")  # the longest of those that overlap
    assert found[2].tags is None
    assert [one.row for one in found] == [number for number, line in enumerate(text.splitlines(), 1) if line[0] == "{"]


ROWS = [{"tokens": ["Mia", "sleeps"], "tags": ["B-PER", "O"]}, {"tokens": ["Rome"], "tags": ["B-LOC"]}]


@pytest.mark.parametrize("tags", ["tags", "ner_tags"])
def test_rows_of_tables(tmp_path: Path, tags: str) -> None:
    rows = [{"tokens": row["tokens"], tags: row["tags"]} for row in ROWS]
    expected = [(("Mia", "sleeps"), ("B-PER", "O")), (("Rome",), ("B-LOC",))]
    path = put(tmp_path / "x.jsonl", "\n".join(map(json.dumps, rows)))
    assert [(one.words, one.tags) for one in sentences(path)] == expected
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow; not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "x.parquet")
    assert [(one.words, one.tags) for one in sentences(tmp_path / "x.parquet")] == expected


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tokens": ["Mia", "sleeps"], "tags": ["O"]}, r"row 2 has 2 words, but 1 tags"),
        ({"tokens": ["Mia"], "tags": [3]}, r"row 2, tags\[0\] is 3: write tags by their names"),
        ({"tokens": ["Mia"], "tags": ["PER"]}, r"row 2: the tag of word 1 is wrong: 'PER' is no tag"),
        ({"tokens": "Mia", "tags": ["O"]}, r"row 2, tokens is 'Mia', but must be a list"),
        ({"tokens": []}, r"row 2 has no words"),
        ({"body": "x"}, r"row 2 has no 'text': it has body"),
        ({"text": ""}, r"row 2 has an empty text"),
        ({"text": "米娅", "label": {"name": {"米": [[1, 1]]}}}, r"label\.name\.米\[0\] is \[1, 1\], but must be where"),
        ({"text": "米娅", "label": {"name": {"米": [[0]]}}}, r"label\.name\.米\[0\] is \[0\], but must be where"),
        ({"text": "米娅", "label": {"name": {"娅": [[-1, -1]]}}}, r"is \[-1, -1\], but must be where"),
        ({"text": "米娅", "label": {"name": {"娅": [[1, 10**30]]}}}, r"but must be where '娅' begins and ends"),
        ({"text": "米娅", "label": {"na\ud800me": 3}}, r"label\.'na\\ud800me' is 3, but must be an object"),
        ({"text": "米娅", "label": ["name"]}, r"label is \['name'\], but must be an object"),
    ],
)
def test_what_is_wrong_with_rows(tmp_path: Path, row: dict[str, object], message: str) -> None:
    path = put(tmp_path / "x.jsonl", json.dumps(ROWS[0]) + "\n" + json.dumps(row))
    with pytest.raises(BertkitError, match=message):
        list(sentences(path))


COUNTS = {  # sentences, words, the scheme of the first 1000
    "CoNLL-2003/eng.train.gz": (14041, 203621, "IOB1"),
    "CoNLL-2003/eng.testa.gz": (3250, 51362, "IOB1"),
    "CoNLL-2003/eng.testb.gz": (3453, 46435, "IOB1"),
    "MSRA-NER/msra_test_bio.txt.gz": (3442, 172601, "IOB2"),
    "MSRA-NER/wwm-peopledaily/dev.txt.gz": (4631, 172601, None),  # long sentences are cut, also within entities
    "Weibo-NER/weiboNER_2nd_conll.train.gz": (1350, 73778, None),
    "Weibo-NER/weiboNER_2nd_conll.dev": (270, 14509, "IOB2"),
    "Weibo-NER/weiboNER_2nd_conll.test": (270, 14842, None),
    "CLUENER2020/train.json.gz": (10748, 401764, "IOB2"),
    "CLUENER2020/dev.json.gz": (1343, 50260, "IOB2"),
    "CLUENER2020/test.json.gz": (1345, 50972, "IOB2"),
}


def there(shared: Path, name: str) -> Path:
    path = shared / "data" / name
    if not path.is_file():
        pytest.skip(f"needs ../shared/data/{name}; not found")
    return path


@pytest.mark.parametrize("name", COUNTS)
def test_published_counts(shared: Path, name: str) -> None:
    found = list(sentences(there(shared, name)))
    rows = [one.tags for one in found if one.tags is not None]
    assert (len(found), sum(len(one.words) for one in found), scheme(rows[:1000])) == COUNTS[name]
    assert all(entities(to_iob2(row)) == entities(row) for row in rows[:200])
    if name.startswith("Weibo"):
        assert {len(word) for one in found for word in one.words if "\ufffd" not in word} == {1}


def test_published_count_of_a_long_file(shared: Path) -> None:
    found = sentences(there(shared, "MSRA-NER/wwm-peopledaily/train.txt.gz"))
    assert sum(len(one.words) for one in found) == 2169879


SAMPLES = {
    "lines.txt": LINES.encode(),
    "placed": "猫0\tB-PER\n咪1\tI-PER\n\n狗0\tO\n".encode(),
    "spans.json": json.dumps(SPANS[:2]).encode(),
    "spans.jsonl": "\n".join(json.dumps(one, ensure_ascii=False) for one in SPANS).encode(),
    "rows.json": json.dumps(ROWS).encode(),
}


@settings(max_examples=200)
@given(case=damaged(SAMPLES))
def test_damaged_files(tmp_path_factory: pytest.TempPathFactory, case: tuple[str, bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / case[0]
    for one in read_or_refused(sentences, path, case[1]):
        assert one.words
        assert one.tags is None or len(one.tags) == len(one.words)
        assert entities(to_iob2(one.tags or ())) == entities(one.tags or ())
