"""Scores of prediction files: those of scikit-learn, scipy and seqeval, and what is said of files that are wrong."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from scipy import stats
from seqeval import metrics as tagged
from sklearn import metrics

import bertkit
from bertkit.errors import BertkitError
from bertkit.evaluate.fingerprint import digest
from bertkit.tasks import conll, scoring
from bertkit.tasks.known import KNOWN
from tests.tasks.damage import damaged, read_or_refused


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def there(shared: Path, name: str) -> Path:
    path = shared / "data" / name
    if not path.is_file():
        pytest.skip(f"needs ../shared/data/{name}; not found")
    return path


# questions

FIRST = {"context": "Mia sleeps in Rome.", "qas": [{"id": "1", "question": "Who?", "answers": [{"text": "Mia"}]}]}
SECOND = {
    "context": "Mia sleeps in Rome.",
    "qas": [
        {"id": "1", "question": "Who?", "answers": [{"text": "Mia", "answer_start": 0}], "is_impossible": False},
        {"id": "2", "question": "Why?", "answers": [], "is_impossible": True},
        {"id": "3", "question": "Where?", "answers": [{"text": "Rome", "answer_start": 14}], "is_impossible": False},
        {"id": "4", "question": "When?", "answers": [], "is_impossible": True},
    ],
}
FLAT = [{"id": "1", "question": "Who?", "context": "Mia sleeps.", "answers": {"text": ["Mia"], "answer_start": [0]}}]
CHINESE = {"context": "他在北京的大学。", "qas": [{"id": "1", "question": "?", "answers": [{"text": "在北京的大学"}]}]}


def asked(path: Path, *paragraphs: Any) -> Path:
    return put(path, json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))


def said(path: Path, values: Any) -> Path:
    return put(path, json.dumps(values))


def test_questions(tmp_path: Path) -> None:
    data, found = asked(tmp_path / "dev.json", FIRST), said(tmp_path / "found.json", {"1": "the Mia"})
    scored = scoring.squad(data, found)
    assert (scored.scores, scored.rows, scored.notes) == ({"exact": 100.0, "f1": 100.0}, 1, ())
    assert scored.fingerprint == {
        "id": scored.fingerprint["id"],
        "data": digest(data),
        "predictions": digest(found),
        "rows": 1,
        "task": {"name": "squad", "measure": "squad", "no_answer": None},
        "measures": ("exact", "f1"),
        "bertkit": bertkit.__version__,
    }
    assert scoring.squad(said(tmp_path / "flat.json", FLAT), found).scores == scored.scores
    other = scoring.squad(data, said(tmp_path / "other.json", {"1": "Mia!"}))
    assert other.scores == scored.scores
    assert other.fingerprint["id"] != scored.fingerprint["id"]


def test_questions_without_answer_and_the_threshold(tmp_path: Path) -> None:
    data = asked(tmp_path / "dev.json", SECOND)
    found = said(tmp_path / "found.json", {"1": "Mia", "2": "Rome", "3": "Rome", "5": "x"})
    nothing = said(tmp_path / "nothing.json", {"1": 0.1, "2": 2.5, "3": 0.3, "4": 0.9})
    scored = scoring.squad(data, found, no_answer=nothing)
    halves = {"HasAns_exact": 100.0, "HasAns_f1": 100.0, "NoAns_exact": 0.0, "NoAns_f1": 0.0}
    best = {"best_exact": 100.0, "best_exact_thresh": 0.3, "best_f1": 100.0, "best_f1_thresh": 0.3}
    assert scored.scores == {"exact": 50.0, "f1": 50.0, **halves, **best}
    assert scored.details == {"total": 4, "HasAns_total": 2, "NoAns_total": 2, "missing": 1, "unknown": 1}
    assert scored.notes == (
        "1 of 4 questions have no prediction and count as wrong: '4'",
        "1 predictions are for no question of the data and are left out: '5'",
    )
    assert scored.fingerprint["task"]["no_answer"] == digest(nothing)


def test_the_measure_of_cmrc(tmp_path: Path) -> None:
    data, found = asked(tmp_path / "dev.json", CHINESE), said(tmp_path / "found.json", {"1": "北京大学"})
    scored = scoring.squad(data, found, "cmrc")
    assert scored.scores == {"exact": 0.0, "f1": pytest.approx(40.0), "average": pytest.approx(20.0)}
    assert scoring.squad(data, found).scores["f1"] == 0.0  # for SQuAD's a sentence is one word


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ('{"1": ["Mia"]}', "found.json, row 1, 1 is .'Mia'., but must be a text"),
        ("[]", "is not one JSON object"),
        ('{"1": "a"} {"2": "b"}', "is not one JSON object"),
        ("{1: 2}", "is not JSON"),
        ('{"9": "x"}', "no prediction for any question of .*: its ids are '9'; those of the data are '1'"),
        ("{}", "its ids are none"),
    ],
)
def test_predictions_that_are_no_answers(tmp_path: Path, found: str, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        scoring.squad(asked(tmp_path / "dev.json", FIRST), put(tmp_path / "found.json", found))


def test_questions_that_cannot_be_scored(tmp_path: Path) -> None:
    first, second = asked(tmp_path / "1.json", FIRST), asked(tmp_path / "2.json", SECOND)
    found, nothing = said(tmp_path / "found.json", {"1": "Mia"}), said(tmp_path / "nothing.json", {"1": 0.5, "2": 1})
    with pytest.raises(BertkitError, match=r"in .*1.json all questions have an answer: leave it out"):
        scoring.squad(first, found, no_answer=nothing)
    with pytest.raises(BertkitError, match="CMRC's measure knows no such questions"):
        scoring.squad(second, found, "cmrc", nothing)
    with pytest.raises(BertkitError, match="no score for 2 of 4 questions: '3', '4'"):
        scoring.squad(second, found, no_answer=nothing)
    with pytest.raises(BertkitError, match="row 1, 1: 'high' is no number"):
        scoring.squad(second, found, no_answer=said(tmp_path / "words.json", {"1": "high"}))
    with pytest.raises(BertkitError, match="row 2 has the id '1', which stands above it already"):
        scoring.squad(asked(tmp_path / "twice.json", FIRST, FIRST), found)
    untold = {"context": "Mia.", "qas": [{"id": "1", "question": "Who?"}]}
    with pytest.raises(BertkitError, match="row 1 has no answers, and a score needs the true ones"):
        scoring.squad(asked(tmp_path / "test.json", untold), found)
    with pytest.raises(BertkitError, match=r"there is no file .*nowhere.json. In .* are: 1.json, 2.json"):
        scoring.squad(first, tmp_path / "nowhere.json")


# labels and numbers

FILES = {
    "cola": "CoLA/dev.tsv",
    "sst2": "SST-2/dev.tsv",
    "mrpc": "MRPC/dev.tsv",
    "rte": "RTE/dev.tsv",
    "wnli": "WNLI/dev.tsv",
}


def truth(name: str, path: Path) -> list[str]:
    return [item.label for item in KNOWN[name].layout.items(path)]


def guessed(true: Sequence[str], labels: Sequence[str]) -> list[str]:
    chance = random.Random(0)
    return [label if chance.random() < 0.7 else chance.choice(labels) for label in true]


def expected(name: str, true: Sequence[str], found: Sequence[str]) -> dict[str, Any]:
    reference = {
        "accuracy": metrics.accuracy_score,
        "f1": lambda left, right: metrics.f1_score(left, right, pos_label="1"),
        "matthews": metrics.matthews_corrcoef,
    }
    return {name: pytest.approx(reference[name](true, found)) for name in KNOWN[name].task.measures}


@pytest.mark.parametrize("name", FILES)
def test_glue_with_labels(shared: Path, tmp_path: Path, name: str) -> None:
    data = there(shared, f"GLUE/{FILES[name]}")
    true = truth(name, data)
    found = guessed(true, KNOWN[name].task.labels)
    wanted = expected(name, true, found)
    rows = [f"{place}\t{label}" for place, label in enumerate(found)]
    files = [
        put(tmp_path / "found.tsv", "\n".join(["index\tprediction", *rows]) + "\n"),
        put(tmp_path / "bare.tsv", "\r\n".join(reversed(rows))),
        put(tmp_path / "found.txt", "\n".join(found) + "\n\n"),
        put(tmp_path / "found.jsonl", "\n".join(json.dumps({"label": label, "score": 0.9}) for label in found)),
    ]
    for path in files:
        scored = scoring.glue(name, data, path)
        assert (dict(scored.scores), scored.rows, scored.notes) == (wanted, len(true), ())


@pytest.mark.parametrize(("name", "folder"), [("mnli", "MNLI"), ("qqp", "QQP"), ("qnli", "QNLI")])
def test_glue_in_its_first_columns(shared: Path, tmp_path: Path, name: str, folder: str) -> None:
    home = shared / "data" / "GLUE-kshot" / folder / "16-13"
    data = next((path for path in sorted(home.glob("*")) if "train" in path.name), home)
    if not data.is_file():
        pytest.skip(f"needs ../shared/data/GLUE-kshot/{folder}; not found")
    true = truth(name, data)
    found = guessed(true, KNOWN[name].task.labels)
    scored = scoring.glue(name, data, put(tmp_path / "found.txt", "\n".join(found)))
    assert scored.scores == expected(name, true, found)


def test_stsb(shared: Path, tmp_path: Path) -> None:
    data = there(shared, "GLUE/STS-B/dev.tsv")
    true, chance = [float(label) for label in truth("stsb", data)], random.Random(0)
    found = [number + chance.gauss(0, 2) for number in true]
    lines = put(tmp_path / "found.txt", "\n".join(map(str, found)))
    wanted = {
        "pearson": pytest.approx(stats.pearsonr(true, found).statistic),
        "spearman": pytest.approx(stats.spearmanr(true, found).statistic),
    }
    assert scoring.glue("stsb", data, lines).scores == wanted
    bins = [[min(max(int(number), 0), 4) for number in numbers] for numbers in (true, found)]
    accuracy = pytest.approx(metrics.accuracy_score(*bins))
    assert scoring.glue("stsb-5way", data, lines).scores == {**wanted, "accuracy": accuracy}
    told = [{"score": number, "label": "0-1"} for number in found]  # the likeliest bin need not be that of the number
    objects = put(tmp_path / "found.jsonl", "\n".join(map(json.dumps, told)))
    accuracy = pytest.approx(metrics.accuracy_score(bins[0], [0] * len(found)))
    assert scoring.glue("stsb-5way", data, objects).scores == {**wanted, "accuracy": accuracy}


RTE = "index\tsentence1\tsentence2\tlabel\n5\ta\tb\tentailment\n7\tc\td\tnot_entailment\n9\te\tf\tentailment\n"
STSB = "index\tsentence1\tsentence2\tscore\n0\ta\tb\t1.0\n1\tc\td\t5.5\n"


def test_numbers_that_stand_for_labels(tmp_path: Path) -> None:
    data, found = put(tmp_path / "dev.tsv", RTE), put(tmp_path / "found.txt", "0\n1\n1\n")
    scored = scoring.glue("rte", data, found)
    assert scored.scores == {"accuracy": pytest.approx(2 / 3)}
    assert scored.notes == (
        "predictions are numbers, which are read so: 0 is entailment, 1 is not_entailment. Another order: "
        "--labels not_entailment,entailment",
    )
    other = scoring.glue("rte", data, found, ["not_entailment", "entailment"])
    assert other.scores == {"accuracy": pytest.approx(1 / 3)}
    assert other.notes == ("predictions are numbers, which are read so: 0 is not_entailment, 1 is entailment",)
    assert other.fingerprint["id"] != scored.fingerprint["id"]


def test_rows_by_their_own_ids(tmp_path: Path) -> None:
    data = put(tmp_path / "dev.tsv", RTE)
    found = put(tmp_path / "found.tsv", "index\tprediction\n9\tentailment\n7\tnot_entailment\n5\tnot_entailment\n")
    assert scoring.glue("rte", data, found).scores == {"accuracy": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("0\n1\n", "found.txt has 2 predictions, but .*dev.tsv has 3 rows"),
        ("0\n1\nentailment\n", "found.txt, row 1: '0' is no label of this task. The labels are: entailment, not_ent"),
        ("0\n1\n2\n", "row 1: '0' is no label .* or all predictions are numbers from 0 to 1"),
        ("0\n\n1\n", "found.txt, row 2 has 1 columns"),
        ("1\t0\t0\n" * 3, "row 1 has 3 columns"),
        ("0\t0\n1\n2\t0\n", "row 2 has 1 columns"),
        ("0\t0\n0\t0\n1\t0\n", "row 2 has the index 0, which stands above it already"),
        (
            "index\tprediction\n1\t0\n2\t0\n3\t0\n",
            "row 4 has the index 3, which no row of .* 0 to 2, or are called '5', ",
        ),
        ("", "has no predictions"),
        ("index\tprediction\n", "has no predictions"),
        ('{"score": 1}\n' * 3, "row 1 has no 'label': it has score"),
        ('{"label": [1]}\n' * 3, r"row 1, label is \[1\], but must be a label or a number"),
    ],
)
def test_predictions_that_do_not_fit(tmp_path: Path, found: str, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        scoring.glue("rte", put(tmp_path / "dev.tsv", RTE), put(tmp_path / "found.txt", found))


def test_data_that_does_not_fit(tmp_path: Path) -> None:
    found = put(tmp_path / "found.txt", "0\n1\n")
    with pytest.raises(BertkitError, match="unknown task of GLUE 'squad'"):
        scoring.glue("squad", found, found)
    test = put(tmp_path / "test.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n")
    with pytest.raises(BertkitError, match=r"test.tsv, row 2 has no label, and a score needs the true ones"):
        scoring.glue("rte", test, found)
    with pytest.raises(BertkitError, match=r"row 2 has the label 'entailment', but the labels of this task are: 0, 1"):
        scoring.glue("wnli", put(tmp_path / "rte.tsv", RTE), found)
    stsb = put(tmp_path / "stsb.tsv", STSB)
    with pytest.raises(BertkitError, match=r"row 3: 5.5 is not between 0 and 5"):
        scoring.glue("stsb-5way", stsb, found)
    with pytest.raises(BertkitError, match="the answers of this task are numbers; leave it out"):
        scoring.glue("stsb", stsb, found, ["a", "b"])
    with pytest.raises(BertkitError, match="--labels yes,no: give all labels of the task"):
        scoring.glue("rte", put(tmp_path / "rte.tsv", RTE), put(tmp_path / "3.txt", "0\n1\n0\n"), ["yes", "no"])
    for same in ("2\n2\n", "1e308\n-1e308\n"):
        with pytest.raises(BertkitError, match="so there is no correlation"):
            scoring.glue("stsb", stsb, put(tmp_path / "same.txt", same))


# words with tags

TRUE = "Mia NNP B-PER\nsleeps VBZ O\n\nRome NNP B-LOC\nwakes VBZ O\n"
FOUND = "Mia B-PER\nsleeps O\n\nRome B-PER\nwakes B-LOC\n"


def test_tags_in_two_files_and_in_one(tmp_path: Path) -> None:
    data, found = put(tmp_path / "true.txt", TRUE), put(tmp_path / "found.txt", FOUND)
    scored = scoring.ner(found, data)
    assert scored.scores == {"precision": pytest.approx(100 / 3), "recall": 50.0, "f1": pytest.approx(40.0)}
    person = {"precision": 50.0, "recall": 100.0, "f1": pytest.approx(200 / 3), "right": 1, "found": 2, "true": 1}
    place = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "right": 0, "found": 1, "true": 1}
    kinds = {"PER": person, "LOC": place}
    assert scored.details == {"words": 4, "right": 1, "found": 3, "true": 2, "kinds": kinds}
    pairs = zip(TRUE.splitlines(), FOUND.splitlines(), strict=True)
    both = put(
        tmp_path / "both.txt", "".join(f"{left} {right.split()[-1]}\n" if left else "\n" for left, right in pairs)
    )
    alone = scoring.ner(both)
    assert (alone.scores, alone.details) == (scored.scores, scored.details)
    assert alone.fingerprint["id"] != scoring.ner(both, both).fingerprint["id"]


def lines(words: Sequence[str], tags: Sequence[str]) -> str:
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)) + "\n"


def test_tags_are_counted_as_in_seqeval(shared: Path, tmp_path: Path) -> None:
    data = there(shared, "CoNLL-2003/eng.testb.gz")
    chance, tags = random.Random(0), ("B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-MISC", "O")
    rows = list(conll.sentences(data))[:1000]
    found = [[tag if chance.random() < 0.9 else chance.choice(tags) for tag in row.tags] for row in rows]
    true = put(tmp_path / "true.txt", "".join(lines(row.words, row.tags) for row in rows))
    said = put(tmp_path / "found.txt", "".join(lines(row.words, tags) for row, tags in zip(rows, found, strict=True)))
    report = tagged.classification_report([list(row.tags) for row in rows], found, output_dict=True, zero_division=0)
    scored = scoring.ner(said, true)
    whole = report["micro avg"]
    names = {"precision": "precision", "recall": "recall", "f1": "f1-score"}
    assert scored.scores == {ours: pytest.approx(100 * whole[theirs]) for ours, theirs in names.items()}
    for kind, counts in scored.details["kinds"].items():
        assert counts["true"] == report[kind]["support"]
        for ours, theirs in names.items():
            assert counts[ours] == pytest.approx(100 * report[kind][theirs])


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            "Mia O\nsleeps O\n\nRome O\nsings O\n",
            "word 2 of the sentence .*true.txt, row 4 is 'wakes', but .* is 'sings'",
        ),
        (
            "Mia O\nsleeps O\n\nRome O\n",
            "word 2 of the sentence .* is 'wakes', but .*row 4 it is the end of the sentence",
        ),
        ("Mia O\nsleeps O\n", "found.txt has 1 sentences, but .*true.txt has 2"),
        (TRUE + "\n\nx x O\n", "found.txt has 3 sentences, but .*true.txt has 2"),
        ("Mia\nsleeps\n\nRome\nwakes\n", "found.txt, row 1: the words have no tags"),
        ("Mia PER\nsleeps O\n", "the tag of word 1 is wrong: 'PER' is no tag"),
        ("Mia O\nsleeps\n", "row 2 has 1 columns, but the first has 2"),
    ],
)
def test_tags_that_do_not_fit(tmp_path: Path, found: str, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        scoring.ner(put(tmp_path / "found.txt", found), put(tmp_path / "true.txt", TRUE))


def test_one_file_with_tags_of_one_kind(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"no tags in column -2: .*else give --data FILE"):
        scoring.ner(put(tmp_path / "found.txt", FOUND))
    row = {"tokens": ["Mia"], "tags": ["B-PER"]}
    with pytest.raises(BertkitError, match="one row of tags for each sentence: give the true ones with --data FILE"):
        scoring.ner(put(tmp_path / "found.jsonl", json.dumps(row)))
    scored = scoring.ner(put(tmp_path / "chunks.txt", "Mia NNP B-NP B-PER\n"))
    assert scored.notes == ("true tags are of the kinds 'NP', predicted ones of 'PER': are these the right columns?",)


# pairs with numbers


def noisy(true: Sequence[float]) -> list[float]:
    chance = random.Random(0)
    return [number + chance.gauss(0, 1) for number in true]


def correlations(true: Sequence[float], found: Sequence[float]) -> dict[str, Any]:
    return {
        "pearson": pytest.approx(stats.pearsonr(true, found).statistic),
        "spearman": pytest.approx(stats.spearmanr(true, found).statistic),
    }


@pytest.mark.parametrize(
    ("name", "column", "header"),
    [
        ("GLUE/STS-B/dev.tsv", 9, 1),
        ("GLUE/STS-B/original/sts-test.tsv", 4, 0),
        ("Chinese-STS-B/sts-b-dev.txt", 2, 0),
        ("STS12-16/STS12-en-test/STS.gs.MSRpar.txt", 0, 0),
    ],
)
def test_similarities(shared: Path, tmp_path: Path, name: str, column: int, header: int) -> None:
    data = there(shared, name)
    rows = [line.split("\t") for line in data.read_text(encoding="utf-8").splitlines()[header:]]
    true = [float(row[column]) for row in rows]
    found = noisy(true)
    scored = scoring.sts(data, put(tmp_path / "found.txt", "\n".join(map(str, found))))
    assert (scored.scores, scored.rows) == (correlations(true, found), len(true))
    rows = [f"{place}\t{number}" for place, number in reversed(list(enumerate(found)))]
    again = scoring.sts(data, put(tmp_path / "found.tsv", "\n".join(["index\tprediction", *rows])))
    assert again.scores == scored.scores


def test_pairs_that_nobody_scored(shared: Path, tmp_path: Path) -> None:
    data = there(shared, "STS12-16/STS16-en-test/STS.gs.headlines.txt")
    rows = data.read_text(encoding="utf-8").splitlines()
    true = [float(row) for row in rows if row.strip()]
    found = noisy(true)
    numbers = iter(found)
    whole = [next(numbers) if row.strip() else 99.0 for row in rows]
    for predictions in (found, whole):
        scored = scoring.sts(data, put(tmp_path / "found.txt", "\n".join(map(str, predictions))))
        assert (scored.scores, scored.rows) == (correlations(true, found), len(true))
        assert scored.notes == (f"{len(rows) - len(true):,} of {len(rows):,} rows have no score and are left out",)
    with pytest.raises(
        BertkitError, match=f"has 3 predictions, but .* has 1,498 rows, of which {len(true)} have a score"
    ):
        scoring.sts(data, put(tmp_path / "few.txt", "1\n2\n3\n"))


def test_similarities_in_tables(tmp_path: Path) -> None:
    found = put(tmp_path / "found.txt", "1\n2\n4\n")
    wanted = correlations([0, 2, 3], [1, 2, 4])
    tables = {
        "a.jsonl": '{"sentence1": "a", "sentence2": "b", "label": 0}\n' + '{"label": 2}\n{"label": 3}\n',
        "b.csv": 'sentence1,sentence2,Score\n"a, b",c,0\nd,e,2\nf,g,3\n',
        "c.tsv": "0\ta\n2\tb\n3\tc\n",
    }
    for name, text in tables.items():
        assert scoring.sts(put(tmp_path / name, text), found).scores == wanted
    with pytest.raises(BertkitError, match="no column of scores: it has 1, 2"):
        scoring.sts(put(tmp_path / "d.tsv", "a\tb\nc\td\n"), found)
    with pytest.raises(BertkitError, match=r"gs.txt, row 2: 'x' is no number"):
        scoring.sts(put(tmp_path / "gs.txt", "1\nx\n2\n"), found)
    with pytest.raises(BertkitError, match=r"words.txt, row 3: 'four' is no number"):
        scoring.sts(put(tmp_path / "gs.txt", "1\n3\n2\n"), put(tmp_path / "words.txt", "1\n2\nfour\n"))
    with pytest.raises(BertkitError, match="row 2 has 3 columns, but STS-B has 7 or 9"):
        scoring.sts(put(tmp_path / "first.tsv", "g\tf\t2012\t1\t3.5\ta\tb\nx\ty\tz\n"), found)


# damaged files

SAMPLES = {
    "squad.json": json.dumps({"1": "Mia", "2": "", "3": "Rome", "4": ""}).encode(),
    "glue.txt": b"index\tprediction\n0\tentailment\n1\tentailment\n2\tnot_entailment\n",
    "glue.jsonl": b'{"label": "entailment"}\n' * 3,
    "ner.txt": FOUND.encode(),
    "sts.txt": b"1\n2\n4\n",
}


def score_beside(found: Path, home: Path) -> scoring.Scored:
    """Predictions, by the beginning of their file's name."""
    match found.name.split(".")[0]:
        case "squad":
            return scoring.squad(asked(home / "data.json", SECOND), found)
        case "glue":
            return scoring.glue("rte", put(home / "data.tsv", RTE), found)
        case "ner":
            return scoring.ner(found, put(home / "data.txt", TRUE))
        case _:
            return scoring.sts(put(home / "data.gs", "1\n2\n2.5\n"), found)


@settings(max_examples=60)
@given(case=damaged(SAMPLES))
def test_damaged_predictions(tmp_path_factory: pytest.TempPathFactory, case: tuple[str, bytes]) -> None:
    home = tmp_path_factory.getbasetemp()
    for scored in read_or_refused(lambda path: [score_beside(path, home)], home / case[0], case[1]):
        assert json.dumps(scored.told(), allow_nan=False)


def test_packed_predictions(tmp_path: Path) -> None:
    (tmp_path / "found.txt.gz").write_bytes(gzip.compress(b"0\n1\n0\n"))
    scored = scoring.glue("rte", put(tmp_path / "dev.tsv", RTE), tmp_path / "found.txt.gz")
    assert scored.scores == {"accuracy": 1.0}
