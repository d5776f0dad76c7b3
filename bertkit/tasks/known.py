"""Datasets that are known by name: what their files are called, how they are read, what is asked and how it is scored.

GLUE (https://arxiv.org/abs/1804.07461) is nine rows of this table, and its diagnostic set a tenth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bertkit.errors import BertkitError, look_up
from bertkit.tasks.answering import QuestionAnswering
from bertkit.tasks.choosing import MultipleChoice
from bertkit.tasks.classification import Classification, Grades
from bertkit.tasks.layout import Layout, OptionsLayout, QuestionsLayout, TableLayout, WordsLayout
from bertkit.tasks.regression import Regression
from bertkit.tasks.task import Task

SPLITS = ("train", "dev", "test")
TSV: Mapping[str, tuple[str, ...]] = {name: (f"{name}.tsv",) for name in SPLITS}


@dataclass(frozen=True)
class Known:
    """One dataset."""

    title: str
    """the folder that it comes in"""
    task: Task | None
    """None where labels depend on the files"""
    layout: Layout
    files: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: TSV)
    """split -> names that its file may have; each may end in .gz as well"""
    limit: int = 128
    """tokens, as in the papers"""
    submission: Mapping[str, str] = field(default_factory=dict)
    """test split -> the file that GLUE wants for it"""

    def file(self, folder: Path, split: str) -> Path | None:
        """The file of a split, in a folder or in the one of this dataset's name in it."""
        for home in (folder, folder / self.title):
            for name in self.files.get(split, ()):
                for path in (home / name, home / f"{name}.gz"):
                    if path.exists():
                        return path
        return None

    def required(self, folder: Path, split: str) -> Path:
        """As `file`, of a split that must be there."""
        found = self.file(folder, split)
        if found is None:
            there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
            names = " or ".join(self.files.get(split, ())) or "none"
            raise BertkitError(
                f"{folder} has no {split} set of {self.title}: it would be called {names} (or …gz). There: "
                f"{', '.join(there[:12]) or 'nothing'}. Other names: give --train FILE and --dev FILE"
            )
        return found


def _table(text: str, pair: str = "", label: str = "label") -> TableLayout:
    names = [tuple(name for name in given.split("/") if name) for given in (text, pair, label)]
    return TableLayout(*names)


def _labels(*labels: str, measures: tuple[str, ...] = ("accuracy",)) -> Classification:
    return Classification(labels, measures)


_YES = ("0", "1")
_ENTAILS = ("entailment", "not_entailment")
_NLI = ("contradiction", "entailment", "neutral")
_PAIR = _table("sentence1", "sentence2")
_MNLI = {
    "train": ("train.tsv",),
    "dev": ("dev_matched.tsv",),
    "dev_mismatched": ("dev_mismatched.tsv",),
    "test": ("test_matched.tsv",),
    "test_mismatched": ("test_mismatched.tsv",),
}
_SWAG = {"train": ("train.csv",), "dev": ("val.csv", "dev.csv"), "test": ("test.csv",)}
_ARCT = {"train": ("train-full.txt",), "dev": ("dev-full.txt",), "test": ("test-full.txt", "test-only-data.txt")}
_CONLL = {
    "train": ("eng.train", "train.txt", "train.conll"),
    "dev": ("eng.testa", "valid.txt", "dev.txt", "dev.conll"),
    "test": ("eng.testb", "test.txt", "test.conll"),
}
_XNLI_TABLE = replace(
    _table("sentence1/premise", "sentence2/hypo", "gold_label/label"),
    only=("language=zh",),
    alias=("contradictory=contradiction",),  # as the translated training set has it
)
_XNLI = {"train": ("multinli.train.zh.tsv",), "dev": ("xnli.dev.tsv",), "test": ("xnli.test.tsv",)}


def _json(*prefixes: str) -> dict[str, tuple[str, ...]]:
    return {split: tuple(prefix.format(split) for prefix in prefixes) for split in SPLITS}


def _glue(title: str, task: Task, layout: Layout, files: Mapping[str, tuple[str, ...]] = TSV) -> Known:
    return Known(title, task, layout, files, submission={"test": f"{title}.tsv"})


KNOWN: dict[str, Known] = {
    "cola": _glue("CoLA", _labels(*_YES, measures=("matthews", "accuracy")), _table("sentence/4", label="label/2")),
    "sst2": _glue("SST-2", _labels(*_YES), _table("sentence")),
    "mrpc": _glue("MRPC", _labels(*_YES, measures=("accuracy", "f1")), _table("#1 String", "#2 String", "Quality")),
    "qqp": _glue("QQP", _labels(*_YES, measures=("accuracy", "f1")), _table("question1", "question2", "is_duplicate")),
    "stsb": _glue("STS-B", Regression(), _table("sentence1", "sentence2", "score")),
    "stsb-5way": _glue("STS-B", Grades(), _table("sentence1", "sentence2", "score")),
    "mnli": Known(
        "MNLI",
        _labels(*_NLI),
        _table("sentence1", "sentence2", "gold_label/label"),
        _MNLI,
        submission={"test": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv"},
    ),
    "qnli": _glue("QNLI", _labels(*_ENTAILS), _table("question", "sentence")),
    "rte": _glue("RTE", _labels(*_ENTAILS), _PAIR),
    "wnli": _glue("WNLI", _labels(*_YES), _PAIR),
    "ax": Known("diagnostic", _labels(*_NLI), _PAIR, {"test": ("diagnostic.tsv",)}, submission={"test": "AX.tsv"}),
    "xnli": Known("XNLI", _labels(*_NLI), _XNLI_TABLE, _XNLI),
    "squad": Known("SQuAD1.1", QuestionAnswering(), QuestionsLayout(), _json("{}-v1.1.json", "{}.json"), 384),
    "squad2": Known(
        "SQuAD2.0", QuestionAnswering(empty=True), QuestionsLayout(), _json("{}-v2.0.json", "{}.json"), 384
    ),
    "cmrc": Known(
        "CMRC2018", QuestionAnswering(measure="cmrc"), QuestionsLayout(), _json("cmrc2018_{}.json", "{}.json"), 384
    ),
    "swag": Known("SWAG", MultipleChoice(), OptionsLayout(), _SWAG),
    "codah": Known("CODAH", MultipleChoice(), OptionsLayout()),
    "c3": Known("C3", MultipleChoice(), OptionsLayout(), _json("{}.json", "c3-m-{}.json", "c3-d-{}.json"), 512),
    "arct": Known("ARCT", MultipleChoice(), OptionsLayout(), _ARCT),
    "race": Known("RACE", MultipleChoice(), OptionsLayout(), {split: (split,) for split in SPLITS}, 512),
    "conll": Known("CoNLL-2003", None, WordsLayout(), _CONLL),
}


def known(name: str) -> Known:
    """A dataset by its name.

    >>> known("mrpc").task.main
    'accuracy'
    """
    return look_up("task", name, KNOWN)
