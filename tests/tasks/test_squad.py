"""Questions of SQuAD, CMRC 2018 and tables, with answers that stand where they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from bertkit.errors import BertkitError
from bertkit.tasks import squad
from bertkit.tasks.item import Answer, Question
from tests.tasks.damage import damaged, read_or_refused

CONTEXT = "The cat sat on the mat. The dog sat beside the cat."


def asked(**more: Any) -> dict[str, Any]:
    return {"id": "q1", "question": "Who sat?", **more}


def put(folder: Path, *questions: dict[str, Any], name: str = "x.json") -> Path:
    paragraph = {"context": CONTEXT, "qas": list(questions)}
    path = folder / name
    path.write_text(json.dumps({"version": "1", "data": [{"title": "Cats", "paragraphs": [paragraph]}]}))
    return path


def test_answers_impossible_and_not_told(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        asked(
            answers=[{"text": "The cat", "answer_start": 0}, {"text": "cat", "answer_start": 4}], is_impossible=False
        ),
        asked(answers=[], is_impossible=True, plausible_answers=[{"text": "mat", "answer_start": 19}]),
        asked(answers=[]),
        asked(),
    )
    found = list(squad.questions(path))
    assert found[0] == Question(path, 1, "q1", "Who sat?", CONTEXT, (Answer("The cat", 0), Answer("cat", 4)), "Cats")
    assert [one.answers for one in found[1:]] == [(), None, None]
    assert [one.row for one in found] == [1, 2, 3, 4]
    assert {one.group for one in found} == {"Cats"}
    assert squad.second(path)
    assert not squad.second(put(tmp_path, asked(answers=["cat"])))


@pytest.mark.parametrize(("given", "place"), [(4, 4), (5, 4), (0, 4), (40, 47), (26, 47), (25, 4), (9999, 47), (-1, 4)])
def test_the_nearest_place_is_taken(tmp_path: Path, given: int, place: int) -> None:
    (found,) = squad.questions(put(tmp_path, asked(answers=[{"text": "cat", "answer_start": given}])))
    assert found.answers == (Answer("cat", place),)


def test_answers_that_stand_nowhere(tmp_path: Path) -> None:
    lost = {"text": "mouse", "answer_start": 3}
    with pytest.raises(
        BertkitError, match=r"qas\[0\]\.answers: 'mouse', an answer to the question 'q1', does not stand"
    ):
        list(squad.questions(put(tmp_path, asked(answers=[lost]))))
    with pytest.raises(BertkitError, match="'mouse', an answer to the question 'q1'"):
        list(squad.questions(put(tmp_path, asked(answers=[{**lost, "answer_start": -1}]))))
    # CMRC 2018 says -1 of answers that the context has in other words; one that it has must be there
    some = [{"text": "cat", "answer_start": 4}, {**lost, "answer_start": -1}]
    assert [one.answers for one in squad.questions(put(tmp_path, asked(answers=some)))] == [
        (Answer("cat", 4), Answer("mouse", squad.NOWHERE))
    ]
    fake = [{"text": f"FAKE_ANSWER_{number}", "answer_start": -1} for number in (1, 2)]
    assert [one.answers for one in squad.questions(put(tmp_path, asked(answers=fake)))] == [None]


def test_the_first_layout_of_cmrc(tmp_path: Path) -> None:
    question = {"query_text": "Who?", "query_id": "T1_Q0", "answers": ["cat", "The cat"]}
    (tmp_path / "x.json").write_text(json.dumps([{"context_id": "T1", "context_text": CONTEXT, "qas": [question]}]))
    (found,) = squad.questions(tmp_path / "x.json")
    assert (found.id, found.title, found.answers) == ("T1_Q0", "T1", (Answer("cat", 4), Answer("The cat", 0)))


ROWS = [
    asked(context=CONTEXT, title="Cats", answers={"text": ["mat", "dog"], "answer_start": [19, 28]}),
    asked(context=CONTEXT, title="Cats", answers={"text": [], "answer_start": []}),
]
TOLD = [(Answer("mat", 19), Answer("dog", 28)), ()]


def test_rows_of_hugging_face(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("\n\n".join(map(json.dumps, ROWS)))
    (tmp_path / "y.json").write_text(json.dumps({"data": ROWS}))
    (tmp_path / "z.json").write_text(json.dumps(ROWS))
    for name, rows in [("x.jsonl", [1, 3]), ("y.json", [1, 2]), ("z.json", [1, 2])]:
        found = list(squad.questions(tmp_path / name))
        assert [one.answers for one in found] == TOLD
        assert [one.row for one in found] == rows
        assert squad.second(tmp_path / name)
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow; not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "x.parquet")
    assert [one.answers for one in squad.questions(tmp_path / "x.parquet")] == TOLD


def test_rows_of_a_table(tmp_path: Path) -> None:
    lines = [
        "question\tcontext\tanswers",
        f"Who?\t{CONTEXT}\tcat",
        f"Who?\t{CONTEXT}\t",
        f'Who?\t{CONTEXT}\t["cat", "dog"]',
    ]
    (tmp_path / "x.tsv").write_text("\n".join(lines))
    found = list(squad.questions(tmp_path / "x.tsv"))
    assert [one.answers for one in found] == [(Answer("cat", 4),), None, (Answer("cat", 4), Answer("dog", 28))]
    assert [(one.row, one.id) for one in found] == [(2, "2"), (3, "3"), (4, "4")]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"id": "q1"}, r"x\.json, row 1, data\[0\]\.paragraphs\[0\]\.qas\[0\] has no 'question'"),
        (asked(answers=3), r"qas\[0\]\.answers is 3, but must be an object"),
        (asked(answers=[{"answer_start": 3}]), r"answers\[0\] has no 'text'"),
        (asked(answers=[{"text": "cat", "answer_start": "4"}]), r"answer_start is '4', but must be a whole number"),
        (asked(answers={"text": ["cat"], "answer_start": []}), r"has 1 texts, but 0 places"),
        (asked(answers=[], is_impossible=False), r"is empty, but the question 'q1' is said to have an answer"),
        (asked(answers=[" "]), r"has an empty text for the question 'q1'"),
        (asked(is_impossible="perhaps"), r"is_impossible must be true or false"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(tmp_path: Path, question: dict[str, Any], message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        list(squad.questions(put(tmp_path, question)))


@pytest.mark.parametrize("text", ["", "[]", '{"data": []}', "\n\n"])
def test_no_questions(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(BertkitError, match=r"x\.json has no questions"):
        list(squad.questions(tmp_path / "x.json"))


COUNTS = {
    "SQuAD1.1/dev-v1.1.json.gz": (10570, 0, 0, 48),
    "SQuAD2.0/dev-v2.0.reconstructed.json.gz": (11873, 5945, 0, 35),
    "SQuAD2.0-cs224n/dev-v2.0.json.gz": (6078, 3168, 0, 16),
    "SQuAD2.0-cs224n/test-v2.0.json.gz": (5915, 0, 5915, 20),
    "CMRC2018/cmrc2018_dev.json.gz": (3219, 0, 0, 848),
    "CMRC2018/cmrc2018_trial.json.gz": (1002, 0, 0, 256),
    "CMRC2018/uer_test.json.gz": (2000, 0, 2000, 470),
}


@pytest.mark.parametrize("name", COUNTS)
def test_published_counts(shared: Path, name: str) -> None:
    path = shared / "data" / name
    if not path.is_file():
        pytest.skip(f"needs ../shared/data/{name}; not found")
    found = list(squad.questions(path))
    impossible, untold = (sum(one.answers == told for one in found) for told in ((), None))
    assert (len(found), impossible, untold, len({one.group for one in found})) == COUNTS[name]
    assert squad.second(path) is bool(impossible)
    lost = sum(not stands(one) for one in found)
    assert lost == (174 if name.endswith("cmrc2018_dev.json.gz") else 0)


def stands(question: Question) -> bool:
    return all(question.context.startswith(text, start) and start >= 0 for text, start in question.answers or ())


SAMPLES = {
    "nested.json": json.dumps(
        {
            "data": [
                {
                    "title": "Cats",
                    "paragraphs": [
                        {
                            "context": CONTEXT,
                            "qas": [asked(answers=[{"text": "cat", "answer_start": 4}]), asked(is_impossible=True)],
                        }
                    ],
                }
            ]
        }
    ).encode(),
    "rows.json": json.dumps(ROWS).encode(),
    "rows.jsonl": "\n".join(map(json.dumps, ROWS)).encode(),
    "rows.csv": f'question,context,answers\nWho?,"{CONTEXT}",cat\n'.encode(),
}


@settings(max_examples=200)
@given(case=damaged(SAMPLES))
def test_damaged_files(tmp_path_factory: pytest.TempPathFactory, case: tuple[str, bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / case[0]
    for one in read_or_refused(squad.questions, path, case[1]):
        places = [start for text, start in one.answers or () if not one.context.startswith(text, start)]
        assert set(places) <= {squad.NOWHERE}
