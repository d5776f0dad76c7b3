"""Questions with options, of which one is right: every layout is seen from what stands in the file."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from bertkit.errors import BertkitError
from bertkit.tasks.choices import options
from bertkit.tasks.item import Options
from tests.tasks.damage import damaged, read_or_refused


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


SWAG = """,video-id,sent1,sent2,gold-source,ending0,ending1,ending2,label
0,v1,The cat wakes.,She,gold,"stretches, then yawns.",barks.,flies.,0
1,v2,It rains.,He,gold,swims.,takes an umbrella.,sleeps.,1
"""
CODAH = "o\tThe cat wakes. She\tyawns.\tbarks.\tflies.\treads.\t0\n\tIt rains. He\tswims.\truns.\teats.\thides.\t3\n"
ARCT = """#id\twarrant0\twarrant1\tcorrectLabelW0orW1\treason\tclaim
a1\tcats sleep\tcats hunt\t1\tMice hide.\tCats are good
"""
C3 = [
    [["女：猫呢?", "男：在睡。"], [{"question": "猫在做什么?", "choice": ["睡", "吃"], "answer": "睡"}], "7-1"],
    [
        ["猫。"],
        [{"question": "几?", "choice": ["1", "0", "2"], "answer": "0"}, {"question": "谁?", "choice": ["猫", "狗"]}],
        "8",
    ],
]
RACE = {
    "id": "high1.txt",
    "article": "The cat sat.",
    "questions": ["The cat _ .", "Who sat?"],
    "options": [["sat", "ran"], ["A dog.", "The cat."]],
    "answers": ["A", "B"],
}


def test_swag(tmp_path: Path) -> None:
    path = put(tmp_path / "train.csv", SWAG)
    pairs = tuple(("The cat wakes.", f"She {ending}") for ending in ("stretches, then yawns.", "barks.", "flies."))
    first, second = options(path)
    assert first == Options(path, 2, pairs, 0)
    assert (second.row, second.right) == (3, 1)
    lines = '{"startphrase": "It rains. He", "answer": 1, "choices": ["swims.", "sleeps."]}\n'
    (found,) = options(put(tmp_path / "swag.jsonl", lines))
    assert (found.pairs, found.right) == ((("It rains. He", "swims."), ("It rains. He", "sleeps.")), 1)


def test_codah(tmp_path: Path) -> None:
    path = put(tmp_path / "full_data.tsv", CODAH)
    first, second = options(path)
    pairs = tuple(("The cat wakes. She", ending) for ending in ("yawns.", "barks.", "flies.", "reads."))
    assert first == Options(path, 1, pairs, 0)
    assert (second.row, second.right) == (2, 3)


@pytest.mark.parametrize("name", ["train.txt", "train.csv"])
def test_arct(tmp_path: Path, name: str) -> None:
    path = put(tmp_path / name, ARCT)
    pairs = (("Mice hide. Cats are good", "cats sleep"), ("Mice hide. Cats are good", "cats hunt"))
    assert list(options(path)) == [Options(path, 2, pairs, 1, "a1")]
    only = put(tmp_path / "only-data.txt", ARCT.replace("correctLabelW0orW1\t", "").replace("\t1\t", "\t"))
    assert list(options(only)) == [Options(only, 2, pairs, None, "a1")]


def test_c3(tmp_path: Path) -> None:
    path = put(tmp_path / "dev.json", json.dumps(C3, indent=2))
    first, number, who = options(path)
    context = "女：猫呢?\n男：在睡。"
    assert first == Options(path, 1, ((context, "猫在做什么? 睡"), (context, "猫在做什么? 吃")), 0, "7-1-1")
    assert (number.right, number.id, len(number.pairs)) == (1, "8-1", 3)  # by its text, although it is a number
    assert (who.right, who.id, who.row) == (None, "8-2", 3)


def test_race(tmp_path: Path) -> None:
    folder = tmp_path / "high"
    folder.mkdir()
    put(folder / "2.txt", json.dumps({**RACE, "id": "high2.txt"}))
    path = put(folder / "1.txt", json.dumps(RACE, indent=1))
    found = list(options(tmp_path))
    assert found[:2] == [
        Options(path, 1, (("The cat sat.", "The cat sat ."), ("The cat sat.", "The cat ran .")), 0, "high1.txt-1"),
        Options(
            path, 2, (("The cat sat.", "Who sat? A dog."), ("The cat sat.", "Who sat? The cat.")), 1, "high1.txt-2"
        ),
    ]
    assert [one.id for one in found[2:]] == ["high2.txt-1", "high2.txt-2"]
    lines = put(tmp_path / "x.jsonl", f"{json.dumps(RACE)}\n{json.dumps({**RACE, 'answers': None})}\n")
    assert [(one.row, one.right) for one in options(lines)] == [(1, 0), (2, 1), (3, None), (4, None)]
    row = {"article": "A.", "question": "B _ C", "options": ["x", "y"], "answer": "B"}
    (one,) = options(put(tmp_path / "y.jsonl", json.dumps(row)))
    assert (one.pairs, one.right) == ((("A.", "B x C"), ("A.", "B y C")), 1)


CHOICES = {"text": ["x", "y", "z"], "label": ["A", "B", "C"]}


@pytest.mark.parametrize(
    ("row", "pairs", "right"),
    [
        ({"context": "c", "question": "q", "choices": ["x", "y"], "label": 1}, [("c", "q x"), ("c", "q y")], 1),
        ({"context": "c", "choices": ["x", "y"], "label": "y"}, [("c", "x"), ("c", "y")], 1),
        ({"question": "q", "choice0": "x", "choice1": "y", "label": "0"}, [("q", "x"), ("q", "y")], 0),
        ({"premise": "p", "choice1": "x", "choice2": "y", "label": -1}, [("p", "x"), ("p", "y")], None),
        ({"question": "q", "choices": CHOICES, "answerKey": "C"}, [("q", "x"), ("q", "y"), ("q", "z")], 2),
        ({"ctx": "c", "endings": ["x", "y"], "label": ""}, [("c", "x"), ("c", "y")], None),
        ({"ctx": "c", "endings": ["x", "y"]}, [("c", "x"), ("c", "y")], None),
    ],
)
def test_rows_of_tables(
    tmp_path: Path, row: dict[str, object], pairs: list[tuple[str, str]], right: int | None
) -> None:
    (found,) = options(put(tmp_path / "x.jsonl", json.dumps(row)))
    assert (list(found.pairs), found.right) == (pairs, right)
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow; not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "x.parquet")
    (found,) = options(tmp_path / "x.parquet")
    assert (list(found.pairs), found.right) == (pairs, right)


def test_a_list_in_a_cell(tmp_path: Path) -> None:
    (found,) = options(put(tmp_path / "x.tsv", 'context\tchoices\tlabel\nc\t["x", "y"]\tB\n'))
    assert (found.pairs, found.right) == ((("c", "x"), ("c", "y")), 1)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.csv", SWAG.replace(",1\n", ",3\n"), r"x\.csv, row 3, label is '3', but there are 3 choices: .* 0 to 2"),
        ("x.csv", SWAG.replace("barks.", ""), r"x\.csv, row 2, ending1 has no|x\.csv, row 2, ending1 is empty"),
        ("x.csv", SWAG.replace("ending1", "end"), r"x\.csv, row 2 lacks choices: .* It has .*'end', 'ending2'"),
        ("x.tsv", CODAH.replace("\t3\n", "\t4\n"), r"x\.tsv, row 2, label is '4', but there are 4 choices"),
        ("x.tsv", "a\tb\tc\n", r"x\.tsv, row 1 has 3 columns that no header names"),
        ("x.json", json.dumps([[["a"]]]), r"x\.json, row 1 has 1 parts, but must have lines, questions"),
        (
            "x.json",
            json.dumps(C3).replace('"answer": "0"', '"answer": "9"'),
            r"row 2, \[1\]\[0\]\.answer is '9', which is none",
        ),
        ("x.json", json.dumps({**RACE, "answers": ["A"]}), r"row 1 has 2 questions, 2 sets of options and 1 answers"),
        ("x.json", json.dumps({**RACE, "answers": ["A", "C"]}), r"answers\[1\] is 'C', but there are 2 choices"),
        ("x.json", json.dumps({**RACE, "options": [["x"], ["y"]]}), r"options\[0\] has 1 choices"),
        ("x.jsonl", '{"choices": ["x", "y"]}', r"row 1 has no 'question' or 'sent2' or 'context'"),
        ("x.jsonl", '{"question": "q", "choices": "x"}', r"choices is 'x', but must be a list"),
        (
            "x.jsonl",
            json.dumps({"question": "q", "choices": {**CHOICES, "label": ["A"]}}),
            r"row 1 has 3 choices, but 1 names for them",
        ),
        ("x.json", "[]", r"x\.json has no questions"),
        ("x.csv", "", r"x\.csv has no rows"),
    ],
)
def test_what_is_wrong_is_said_with_its_row(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        list(options(put(tmp_path / name, text)))


def test_folders_without_files(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"has no \.txt files"):
        list(options(tmp_path))
    with pytest.raises(BertkitError, match="there is no file"):
        list(options(tmp_path / "x.csv"))


COUNTS = {  # questions, those without a right answer
    "SWAG-sample/swag.jsonl": (500, 0),
    "SWAG-sample/train.csv": (91, 0),
    "SWAG-sample/test.csv": (7, 0),
    "CODAH/full_data.tsv.gz": (2776, 0),
    "CODAH/cv_split/fold_0/train.tsv": (1665, 0),
    "CODAH/cv_split/fold_0/dev.tsv": (556, 0),
    "CODAH/cv_split/fold_0/test.tsv": (555, 0),
    "ARCT/train-full.txt.gz": (1210, 0),
    "ARCT/train-w-swap-full.txt.gz": (2420, 0),
    "ARCT/dev-full.txt": (316, 0),
    "ARCT/dev-only-data.txt": (316, 316),
    "ARCT/test-full.txt": (444, 0),
    "ARCT/test-only-data.txt": (444, 444),
    "ARCT-adversarial/train-adv-negated.csv.gz": (2420, 0),
    "ARCT-adversarial/train-swapped.csv.gz": (2420, 0),
    "ARCT-adversarial/dev-adv-negated.csv": (632, 0),
    "ARCT-adversarial/test-adv-negated.csv": (888, 0),
    "C3/dev.json.gz": (3816, 0),
    "C3/test.json.gz": (3892, 3892),
}
CONTEXTS = {"C3/dev.json.gz": 2674, "C3/test.json.gz": 2672}


@pytest.mark.parametrize("name", COUNTS)
def test_published_counts(shared: Path, name: str) -> None:
    path = shared / "data" / name
    if not path.is_file():
        pytest.skip(f"needs ../shared/data/{name}; not found")
    found = list(options(path))
    assert (len(found), sum(one.right is None for one in found)) == COUNTS[name]
    if name in CONTEXTS:
        assert {len(one.pairs) for one in found} == {2, 3, 4}
        assert len(list(itertools.groupby(found, key=lambda one: one.pairs[0][0]))) == CONTEXTS[name]


SAMPLES = {
    "swag.csv": SWAG.encode(),
    "codah.tsv": CODAH.encode(),
    "arct.txt": ARCT.encode(),
    "c3.json": json.dumps(C3).encode(),
    "race.txt": json.dumps(RACE).encode(),
    "rows.json": json.dumps({"question": "q", "choices": CHOICES, "answerKey": "C"}).encode(),
}


@settings(max_examples=200)
@given(case=damaged(SAMPLES))
def test_damaged_files(tmp_path_factory: pytest.TempPathFactory, case: tuple[str, bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / case[0]
    for one in read_or_refused(options, path, case[1]):
        assert len(one.pairs) > 1
        assert one.right is None or 0 <= one.right < len(one.pairs)
