"""From what somebody types to a tuning and its sets: how files are understood, and which rows are held out."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.errors import BertkitError
from bertkit.tasks.answering import QuestionAnswering
from bertkit.tasks.classification import Classification
from bertkit.tasks.guess import guess, task_of
from bertkit.tasks.layout import QuestionsLayout, TableLayout, WordsLayout, stop
from bertkit.tasks.plan import Wish, plan
from bertkit.tasks.repeats import variants
from bertkit.tasks.sets import Rows, look_through, sets
from bertkit.tasks.split import folds, held_out
from bertkit.tasks.tuning import Tuning
from tests.tasks import teaching

# what a file is ──────────────────────────────────────────────────────────────────────────────────────────────────────

TOLD = {
    "classification": "text '2', label '1' (by what stands in them); Classification with 2 labels: bad, good",
    "pairs": "text 'sentence1', pair 'sentence2', label 'label' (by their names); Classification with 2 labels: other, "
    "same",
    "multilabel": "text 'text', label 'labels' (by their names); MultiLabels with 3 labels: blue, green, red",
    "regression": "text 'text', score 'score' (by their names); Regression",
    "tagging": "words with tags; Tagging with 5 labels: O, B-LOC, I-LOC, B-PER, I-PER",
    "answering": "questions about contexts; QuestionAnswering",
    "answering_or_not": "questions about contexts; QuestionAnswering",
    "choice": "questions with options; MultipleChoice",
}


@pytest.mark.parametrize("name", teaching.SETS)
def test_what_a_file_is_about_is_said(tmp_path: Path, name: str) -> None:
    train, _ = teaching.written(tmp_path, name)
    said = list[str]()
    tuning = plan(Wish("minilm", "run", train=str(train)), said.append)
    assert said == [f"{train}: {TOLD[name]}"]
    assert getattr(tuning.task, "empty", False) is (name == "answering_or_not")
    assert tuning.policy == tuning.task.policy


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def table(path: Path, header: str, *columns: Any) -> Path:
    rows = [header] if header else []
    rows += ["\t".join(map(str, row)) for row in zip(*columns, strict=True)]
    return put(path, "\n".join(rows) + "\n")


CATS = [f"the cat {number} sat" for number in range(40)]
KINDS = [("good", "bad")[number % 2] for number in range(40)]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["1", "2"], "classification"),
        (["0.0", "1.0"], "classification"),
        (["0.25", "1.5"], "regression"),
        (["a|b", "b", "a", "b|a"], "multilabel"),
        (["a|b", "c"], "classification"),  # a label with a bar in it
    ],
)
def test_kinds_by_labels(tmp_path: Path, labels: list[str], kind: str) -> None:
    path = table(tmp_path / "x.tsv", "text\tlabel", CATS, (labels * 40)[:40])
    assert guess(path, {}).kind == kind
    assert guess(path, {}, "classification").kind == "classification"


def test_columns_that_are_named(tmp_path: Path) -> None:
    path = table(tmp_path / "x.tsv", "stars\tbody", [1 + place % 5 for place in range(40)], CATS)
    found = guess(path, {"text": "body", "score": "stars"})
    assert (found.kind, found.layout) == ("regression", TableLayout(("body",), (), ("stars",)))
    assert guess(path, {"text": "body", "label": "stars"}).kind == "classification"
    with pytest.raises(BertkitError, match=r"unknown column of .*x\.tsv 'Stars': did you mean 'stars'"):
        guess(path, {"label": "Stars"})


def test_a_question_and_a_sentence_are_a_pair(tmp_path: Path) -> None:
    path = table(tmp_path / "x.tsv", "index\tquestion\tsentence\tlabel", range(40), CATS, CATS, KINDS)
    assert guess(path, {}).layout == TableLayout(("question",), ("sentence",), ("label",))
    assert guess(path, {"text": "sentence"}).layout == TableLayout(("sentence",), (), ("label",))


def test_columns_that_are_counted(tmp_path: Path) -> None:
    """Also where the first row has the same signs as the numbers of columns."""
    path = table(tmp_path / "x.tsv", "", [1 + place % 2 for place in range(40)], CATS)
    found = guess(path, {"text": "2", "label": "1"})
    assert found.layout == TableLayout(("2",), (), ("1",))
    assert task_of(found, path, stop) == Classification(("1", "2"))
    assert len(look_through(path, found.layout, task_of(found, path, stop)).rows()) == 40


def test_a_test_set_without_the_column_of_labels(tmp_path: Path) -> None:
    """Where columns are counted, texts move to the left."""
    train = table(tmp_path / "train.tsv", "", KINDS, CATS)
    layout = guess(train, {}).layout
    test = table(tmp_path / "test.tsv", "", CATS)
    assert [item.fields for item in layout.items(test)] == [(cat,) for cat in CATS]
    assert {item.label for item in layout.items(test)} == {None}
    header = table(tmp_path / "header.tsv", "label\ttext", KINDS, CATS)
    with pytest.raises(BertkitError, match=r"has no column '2'. It has: label, text; .*take the header off"):
        list(layout.items(header))
    with pytest.raises(BertkitError, match=r"has no column 'text'. It has: 1 \('good'\), 2 \('the cat 0 sat'\); call"):
        list(guess(header, {}).layout.items(train))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.csv", "text;label\na;b\nc;d\n", r"has only one column, 1 \('text;label'\), and no labels: put a tab or a"),
        ("x.txt", "a cat\na dog\n", r"has only one column, 1 \('a cat'\)"),
        ("x.tsv", "text\tlabel\n", r"has no rows with a label \(text 'text', label 'label'"),
        ("x.tsv", "text\tlabel\na\tx\nb\tx\n", r"has only the label 'x' .* --label COLUMN names another"),
        ("x.tsv", "text\tkind\na\tx\nb\ty\n", r"has no column of labels among text, kind: name it with --label COLUMN"),
        (
            "x.tsv",
            "text\tlabel\n" + "".join(f"a\tL{number}\n" for number in range(1001)),
            r"has 1,001 different labels, such as 'L0', 'L1', 'L10' .*--score COLUMN",
        ),
        (
            "x.tsv",
            "w x\ty\tz v\tq\nw x\tyy\tz v v\tqq\na\tb\tc\td\ne\tf\tg\th\n",
            r"the columns 1 \('w x'\), 2 \('y'\)",
        ),
        ("x.csv", "", "x.csv has no rows"),
        ("x.txt", "EU B-ORG\nrejects O\n\n" * 2 + "Peter\n", r"row 7 has 1 columns, but the first has 2"),
    ],
)
def test_files_that_are_not_understood(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = put(tmp_path / name, text)
    kind = "tagging" if "B-ORG" in text else ""
    with pytest.raises(BertkitError, match=message):
        task_of(guess(path, {}, kind), path, stop)


def test_a_folder_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    put(tmp_path / "train.tsv", "x")
    with pytest.raises(BertkitError, match=r"is a folder: give one of its files\. In .* are: train\.tsv"):
        plan(Wish("minilm", "run", train=str(tmp_path)), print)
    with pytest.raises(BertkitError, match=r"there is no file .*tran\.tsv\. In .* are: train\.tsv"):
        plan(Wish("minilm", "run", train=str(tmp_path / "tran.tsv")), print)
    with pytest.raises(BertkitError, match=r"there is no file .*x\.tsv, nor a folder .*nowhere"):
        plan(Wish("minilm", "run", train=str(tmp_path / "nowhere" / "x.tsv")), print)


def test_tags_that_are_no_entities(tmp_path: Path) -> None:
    path = put(tmp_path / "x.jsonl", '{"tokens": ["a", "cat"], "tags": ["DT", "NN"]}\n')
    found = guess(path, {})
    assert (found.layout, found.why) == (WordsLayout(entities=False), "words with kinds")
    assert task_of(found, path, stop).main == "accuracy"


def test_wishes_that_contradict_each_other(tmp_path: Path) -> None:
    train = str(table(tmp_path / "x.tsv", "text\tlabel", CATS, KINDS))
    wish = Wish("minilm", "run", train=train)
    for changed, message in [
        (replace(wish, task="mrcp"), "unknown task 'mrcp': did you mean 'mrpc'"),
        (replace(wish, data=str(tmp_path)), "give --data .* or --train .*, not both"),
        (replace(wish, train=""), "--train FILE, or --task NAME --data FOLDER"),
        (replace(wish, train="", data=str(tmp_path)), "needs --task, one of cola"),
        (replace(wish, chain=True), "--crf is for tags, and .* is learned as Classification"),
        (
            replace(wish, only=("language=zh",)),
            "--only language=zh: write it as COLUMN=VALUE, with one of the columns text, label",
        ),
        (replace(wish, settings={"folds": 3}, dev=train), "take turns in being held out: leave out dev"),
    ]:
        with pytest.raises(BertkitError, match=message):
            plan(changed, print)


def test_only_rows_with_a_value(tmp_path: Path) -> None:
    languages = ["zh" if place < 10 else "en" for place in range(40)]
    path = table(tmp_path / "x.tsv", "language\ttext\tlabel", languages, CATS, KINDS)
    tuning = plan(Wish("minilm", "run", train=str(path), only=("language=zh",)), print)
    assert [item.fields[0] for item in tuning.layout.items(path)] == CATS[:10]


# which rows are held out ─────────────────────────────────────────────────────────────────────────────────────────────

MANY = ["a"] * 61 + ["b"] * 27 + ["c"] * 12


def tuning(path: Path, **settings: Any) -> Tuning:
    return plan(Wish("minilm", "run", train=str(path), settings=settings), lambda said: None)


def places(rows: Rows | None) -> list[int]:
    assert rows is not None
    return [item.row for item in rows]


@pytest.mark.parametrize("share", [0.001, 0.1, 0.25, 0.3, 0.5, 0.9])
def test_a_part_is_held_out_evenly_over_labels(tmp_path: Path, share: float) -> None:
    labels = random.Random(0).sample(MANY, len(MANY))
    path = table(tmp_path / "x.tsv", "text\tlabel", [f"text {place}" for place in range(100)], labels)
    found = sets(tuning(path, held_out=share))
    train, dev = places(found.train), places(found.dev)
    assert sorted([*train, *dev]) == list(range(2, 102)), "each row once, on one side"
    assert len(dev) == max(round(100 * share), 1)
    held = Counter(labels[row - 2] for row in dev)
    for label, count in Counter(labels).items():
        assert abs(held[label] - count * share) < 1
    assert f"{len(dev)} held out for exams ({len(dev):.0f}%, evenly over labels)" in found.told
    assert places(sets(tuning(path, held_out=share)).dev) == dev, "the same again"
    if 0.1 <= share <= 0.5:
        assert places(sets(tuning(path, held_out=share, seed=1)).dev) == dev, "the same for every seed"


def test_folds_are_a_partition(tmp_path: Path) -> None:
    labels = random.Random(0).sample(MANY, len(MANY))
    path = table(tmp_path / "x.tsv", "text\tlabel", [f"text {place}" for place in range(100)], labels)
    several = variants(tuning(path, folds=3), seeds=2)
    assert list(several) == [f"fold-{fold}-seed-{seed}" for fold in (1, 2, 3) for seed in (0, 1)]
    held = {name: places(sets(one).dev) for name, one in several.items()}
    for name, one in several.items():
        assert sorted([*held[name], *places(sets(one).train)]) == list(range(2, 102))
    assert sorted(row for fold in (1, 2, 3) for row in held[f"fold-{fold}-seed-0"]) == list(range(2, 102))
    assert all(held[f"fold-{fold}-seed-0"] == held[f"fold-{fold}-seed-1"] for fold in (1, 2, 3)), "whatever the seed"
    assert {len(rows) for rows in held.values()} == {33, 34}
    with pytest.raises(BertkitError, match=r"has 100 rows, too few for 101 folds: give --folds 5"):
        sets(tuning(path, folds=101))


def test_a_label_that_is_never_learned_is_named(tmp_path: Path) -> None:
    path = table(tmp_path / "x.tsv", "text\tlabel", [f"text {place}" for place in range(5)], [*"aabb", "rare"])
    several = [sets(one).told for one in variants(tuning(path, folds=2), seeds=1).values()]
    assert ["never learned: 'rare' (give such labels more rows" in told for told in several].count(True) == 1


def test_articles_stay_together(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    teaching.answering(path, random.Random(0), 60)
    made = tuning(path, held_out=0.25)
    found = sets(made)
    titles = [{item.group for item in rows or ()} for rows in (found.train, found.dev)]
    assert (len(titles[0]), len(titles[1]), titles[0] & titles[1]) == (9, 3, set())
    assert found.told.endswith("15 held out for exams (25%, whole groups)")
    with pytest.raises(BertkitError, match=r"has 12 groups, too few for 20 folds"):
        sets(tuning(path, folds=20))


strata = st.lists(st.sampled_from("aaabbc"), min_size=1, max_size=60)


@given(strata, st.integers(2, 9), st.integers(0, 3))
def test_folds_are_even(kinds: list[str], count: int, seed: int) -> None:
    found = folds(kinds, [""] * len(kinds), count, seed)
    assert found.min() >= 0
    for some in (np.ones(len(kinds), bool), *(np.array([kind == one for one in kinds]) for kind in set(kinds))):
        sizes = np.bincount(found[some], minlength=count)
        assert len(sizes) == count
        assert sizes.max() - sizes.min() <= 1


@given(strata, st.floats(0.01, 0.99), st.integers(0, 3))
def test_shares_are_even(kinds: list[str], share: float, seed: int) -> None:
    found = held_out(kinds, [""] * len(kinds), share, seed)
    assert found.sum() >= 1
    for some in (np.ones(len(kinds), bool), *(np.array([kind == one for one in kinds]) for kind in set(kinds))):
        assert abs(found[some].sum() - some.sum() * share) < 1 + 1e-6


@given(st.lists(st.sampled_from(["", "x", "y", "z"]), min_size=1, max_size=40), st.integers(2, 5))
def test_groups_are_in_one_fold(groups: list[str], count: int) -> None:
    found = folds([""] * len(groups), groups, count, seed=0)
    for group in set(groups) - {""}:
        assert len({int(fold) for fold, one in zip(found, groups, strict=True) if one == group}) == 1


def test_rows_that_cannot_be_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = table(tmp_path / "x.tsv", "text\tlabel", [*CATS, "", " ", "a cat"], [*KINDS, "good", "bad", ""])
    for wrong, message in [(42, "a text is empty"), (44, "has no label")]:
        lines = path.read_text().splitlines()
        one = put(tmp_path / f"{wrong}.tsv", "\n".join([*lines[:41], lines[wrong - 1]]) + "\n")
        with pytest.raises(BertkitError, match=rf"{wrong}\.tsv, row 42:? {message}.*--on-error skip"):
            sets(tuning(one))
    found = sets(tuning(path, on_error="skip"))
    assert found.dev is not None
    assert len(found.train) + len(found.dev) == 40
    assert sorted([*places(found.train), *places(found.dev)]) == list(range(2, 42))
    assert caplog.messages[-1] == f"{path}: 3 rows are left out"


def test_a_label_that_only_the_development_set_has(tmp_path: Path) -> None:
    train = table(tmp_path / "train.tsv", "text\tlabel", CATS, KINDS)
    dev = table(tmp_path / "dev.tsv", "text\tlabel", [*CATS, "a cat"], [*KINDS, "middling"])
    made = replace(tuning(train), dev=str(dev))
    with pytest.raises(
        BertkitError, match=r"dev\.tsv, row 42 has the label 'middling', .* The labels are: bad, good\."
    ):
        sets(made)
    found = sets(replace(made, on_error="skip"))
    assert found.told == f"40 rows of {train} to learn from, 40 of {dev} for exams"


def test_nothing_is_held_out_where_that_is_wished(tmp_path: Path) -> None:
    path = table(tmp_path / "x.tsv", "text\tlabel", CATS, KINDS)
    found = sets(tuning(path, held_out=0.0))
    assert (len(found.train), found.dev) == (40, None)
    two = table(tmp_path / "two.tsv", "text\tlabel", ["a", "b"], ["x", "y"])
    assert len(sets(tuning(two)).train) == 1
    one = QuestionAnswering()
    put(
        tmp_path / "one.json",
        json.dumps([{"question": "who ?", "context": "a cat", "answers": {"text": ["cat"], "answer_start": [2]}}]),
    )
    made = Tuning("run", "minilm", one, QuestionsLayout(), str(tmp_path / "one.json"))
    with pytest.raises(BertkitError, match=r"has 1 rows, too few to hold out a part: give --dev FILE, or --held-out 0"):
        sets(made)


def test_prints_change_with_the_file(tmp_path: Path) -> None:
    path = table(tmp_path / "x.tsv", "text\tlabel", CATS, KINDS)
    found = sets(tuning(path))
    before = found.prints()
    path.write_text(path.read_text() + "a cat\tgood\n")
    assert list(before) == [str(path)]
    assert found.prints()[str(path)] != before[str(path)]


def test_a_header_of_unknown_names_is_taken(tmp_path: Path) -> None:
    """Short names in the first row, and a label there that no other row has."""
    path = table(tmp_path / "x.tsv", "kind\tbody", KINDS, CATS)
    found = guess(path, {})
    assert isinstance(found.layout, TableLayout)
    assert (found.layout.text, found.layout.label) == (("body",), ("kind",))
    assert "its first row is taken for a header" in found.why
    assert task_of(found, path, stop).labels == tuple(sorted(set(KINDS)))
    assert len(list(found.layout.items(path))) == len(CATS)
    rare = table(tmp_path / "rare.tsv", "rare\ta whole sentence about a cat", KINDS, CATS)
    assert len(list(guess(rare, {}).layout.items(rare))) == len(CATS) + 1, "a row with a label of its own stays a row"
