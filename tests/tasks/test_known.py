"""GLUE's files as they come: published numbers of rows and labels; and what its server wants back."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

import bertkit
from bertkit.errors import BertkitError
from bertkit.tasks.finetuned import Finetuned
from bertkit.tasks.item import Texts
from bertkit.tasks.known import KNOWN, known
from bertkit.tasks.plan import Wish, plan
from bertkit.tasks.regression import number_of
from bertkit.tasks.submission import submit
from bertkit.tasks.unpacked import reading
from bertkit.text import Tokenizer
from tests.tasks import teaching

COUNTS = {
    "cola": (8551, 1043, 1063),
    "sst2": (67349, 872, 1821),
    "mrpc": (3668, 408, 1725),
    "stsb": (5749, 1500, 1379),
    "qnli": (None, 5463, 5463),
    "rte": (2490, 277, 3000),
    "wnli": (635, 71, 146),
    "ax": (None, None, 1104),
}
"""rows of train, dev, test (https://huggingface.co/datasets/nyu-mll/glue); None where the file is not there"""
COMMONEST = {"cola": ("1", 721), "sst2": ("1", 444), "mrpc": ("1", 279), "rte": ("entailment", 146), "wnli": ("0", 40)}
"""of the dev sets, as published baselines of one answer for all have it: 69.1, 50.9, 68.4, 52.7, 56.3 percent"""


def items(shared: Path, name: str, split: str) -> list[Texts]:
    path = known(name).file(shared / "data" / "GLUE", split)
    if path is None:
        pytest.skip(f"needs ../shared/data/GLUE/{known(name).title}; not found")
    return [item for item in known(name).layout.items(path) if isinstance(item, Texts)]


@pytest.mark.parametrize(
    ("name", "split", "count"),
    [
        (name, split, count)
        for name, counts in COUNTS.items()
        for split, count in zip(("train", "dev", "test"), counts, strict=True)
        if count is not None
    ],
)
def test_published_counts(shared: Path, name: str, split: str, count: int) -> None:
    found = items(shared, name, split)
    assert len(found) == count
    assert {len(item.fields) for item in found} == {1 if name in ("cola", "sst2") else 2}
    if split == "test":
        assert {item.label for item in found} == {None}
        assert [item.id for item in found] == [str(place) for place in range(count)]
        return
    task = known(name).task
    assert task is not None
    for item in found:
        task.require(item)
    if split == "dev" and name in COMMONEST:
        assert Counter(item.label for item in found).most_common(1) == [COMMONEST[name]]


def test_scores_of_sts_b_are_numbers_from_0_to_5(shared: Path) -> None:
    numbers = [number_of(item) for item in items(shared, "stsb", "dev")]
    assert (min(numbers), max(numbers), round(sum(numbers) / len(numbers), 2)) == (0.0, 5.0, 2.36)


def untaught(name: str) -> Finetuned:
    """A model for a task of GLUE, with random weights."""
    task = known(name).task
    assert task is not None
    tokenizer = Tokenizer.from_vocabulary(teaching.VOCABULARY)
    model = bertkit.create("bert-tiny", tokenizer, task.objective.heads, seed=0)
    model.limit = 16
    return Finetuned(model, task, known(name).layout, task.policy)


def shortened(shared: Path, home: Path, name: str, rows: int) -> Path:
    """The folder of a task with the beginning of its test set."""
    path = known(name).file(shared / "data" / "GLUE", "test")
    if path is None:
        pytest.skip(f"needs ../shared/data/GLUE/{known(name).title}; not found")
    folder = home / known(name).title
    folder.mkdir()
    with reading(path) as file:
        (folder / known(name).files["test"][0]).write_text("".join(islice(file, rows + 1)))
    return folder


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cola", {"0", "1"}),
        ("mrpc", {"0", "1"}),
        ("qnli", {"entailment", "not_entailment"}),
        ("rte", {"entailment", "not_entailment"}),
    ],
)
def test_submission(shared: Path, tmp_path: Path, name: str, words: set[str]) -> None:
    folder, made = shortened(shared, tmp_path, name, 60), untaught(name)
    (written,) = submit(made, folder, tmp_path / "out")
    assert written == tmp_path / "out" / f"{known(name).title}.tsv"
    header, *rows = [line.split("\t") for line in written.read_text().splitlines()]
    assert header == ["index", "prediction"]
    assert [index for index, _ in rows] == [str(place) for place in range(60)]
    assert {prediction for _, prediction in rows} <= words
    answers = made.predict([item.fields if len(item.fields) > 1 else item.fields[0] for item in texts(folder, name)])
    assert [prediction for _, prediction in rows] == [answer.label for answer in answers]


def texts(folder: Path, name: str) -> list[Texts]:
    return [item for item in known(name).layout.items(folder / "test.tsv") if isinstance(item, Texts)]


@pytest.mark.parametrize("name", ["stsb", "stsb-5way"])
def test_submission_of_numbers(shared: Path, tmp_path: Path, name: str) -> None:
    (written,) = submit(untaught(name), shortened(shared, tmp_path, name, 40) / "test.tsv", tmp_path / "out")
    header, *rows = [line.split("\t") for line in written.read_text().splitlines()]
    assert (written.name, header, len(rows)) == ("STS-B.tsv", ["index", "prediction"], 40)
    assert all(0.0 <= float(number) <= 5.0 for _, number in rows)


MNLI = "index\tpromptID\tpairID\tgenre\tsentence1\tsentence2\n"


def test_submissions_of_mnli_are_three(tmp_path: Path) -> None:
    for name, rows in {"test_matched.tsv": 3, "test_mismatched.tsv": 4}.items():
        (tmp_path / "MNLI").mkdir(exist_ok=True)
        lines = "".join(f"{row}\t1\t1n\tfiction\tThe cat sat.\tIt was {row}.\n" for row in range(rows))
        (tmp_path / "MNLI" / name).write_text(MNLI + lines)
    (tmp_path / "diagnostic").mkdir()
    lines = "".join(f"{row}\tThe cat sat.\tIt was {row}.\n" for row in range(5))
    (tmp_path / "diagnostic" / "diagnostic.tsv").write_text("index\tsentence1\tsentence2\n" + lines)
    written = submit(untaught("mnli"), tmp_path, tmp_path / "out")
    told = {path.name: [line.split("\t") for line in path.read_text().splitlines()] for path in written}
    assert {name: len(rows) for name, rows in told.items()} == {"MNLI-m.tsv": 4, "MNLI-mm.tsv": 5, "AX.tsv": 6}
    found = {prediction for rows in told.values() for _, prediction in rows[1:]}
    assert found <= {"contradiction", "entailment", "neutral"}


def test_submission_of_another_task(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("x")
    with pytest.raises(BertkitError, match=r"has no test set of what this model learned \(MRPC\)"):
        submit(untaught("mrpc"), tmp_path / "dev.tsv", tmp_path / "out")


def test_a_folder_of_glue_is_enough(shared: Path) -> None:
    folder = shared / "data" / "GLUE"
    if KNOWN["rte"].file(folder, "train") is None:
        pytest.skip("needs ../shared/data/GLUE/RTE; not found")
    said = list[str]()
    tuning = plan(Wish("minilm", "run", task="rte", data=str(folder)), said.append)
    assert (Path(tuning.train).name, Path(tuning.dev).name, tuning.limit) == ("train.tsv.gz", "dev.tsv", 128)
    assert said == [f"{tuning.train}: RTE; Classification with 2 labels: entailment, not_entailment"]
    with pytest.raises(BertkitError, match=r"has no train set of QQP: it would be called train.tsv"):
        plan(Wish("minilm", "run", task="qqp", data=str(folder)), said.append)


def test_xnli_as_it_comes(tmp_path: Path) -> None:
    """The translated training set has no column of languages, and spells one label in its own way."""
    (tmp_path / "multinli.train.zh.tsv").write_text(
        "premise\thypo\tlabel\n下雨\t地湿\tentailment\n下雨\t天晴\tcontradictory\n"
    )
    rows = ["language\tgold_label\tsentence1\tsentence2", "zh\tneutral\t下雨\t周一", "fr\tneutral\tIl pleut\tLundi"]
    (tmp_path / "xnli.dev.tsv").write_text("\n".join(rows) + "\n")
    xnli = KNOWN["xnli"]
    train, dev = (list(xnli.layout.items(xnli.required(tmp_path, split))) for split in ("train", "dev"))
    assert [(item.fields, item.label) for item in train] == [
        (("下雨", "地湿"), "entailment"),
        (("下雨", "天晴"), "contradiction"),
    ]
    assert [item.fields for item in dev] == [("下雨", "周一")], "the Chinese rows"
