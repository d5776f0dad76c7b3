"""CMRC 2018's scores, worked out by hand from what the official script does."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.evaluate import cmrc, spans
from bertkit.evaluate.spans import Question


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("北京", ["北", "京"]),
        ("《红楼梦》，共120回。", ["红", "楼", "梦", "共", "120", "回"]),
        ("NBA-2K", ["nba2k"]),  # a mark that is taken out leaves no gap
        ("A·B两人", ["ab", "两", "人"]),
        ("约3.5%", ["约", "3.5", "%"]),
        ("1,000米,", ["1,000", "米", ","]),
        ("New York City", ["new", "york", "city"]),
        ("(Mr. Smith.)", ["(", "mr.", "smith", ".", ")"]),
        ("it's what we don't", ["it", "'s", "what", "we", "do", "n't"]),
        ("wait...", ["wait", "..."]),
        ("…", ["…"]),  # the script's list has …… alone, which no character equals
        ("‘", ["‘"]),
        ("。！", []),
        ("", []),
    ],
)
def test_segments(text: str, segments: list[str]) -> None:
    assert cmrc.segments(text) == segments


def test_f1_counts_the_longest_run_alone() -> None:
    # 北京 is the run, of 4 segments found and 6 true: precision 2/4, recall 2/6, F1 0.4. SQuAD would count all four
    assert cmrc.fit("北京大学", "在北京的大学") == (0.0, pytest.approx(0.4))
    # 年10月 of 5 and 4 segments: 2 · 3 / 9
    assert cmrc.fit("2018年10月1", "年10月底") == (0.0, pytest.approx(6 / 9))
    assert cmrc.fit("范廷颂", "张三") == (0.0, 0.0)


def test_what_is_the_same() -> None:
    assert cmrc.fit(" 《论语》。", "论语") == (1.0, 1.0)
    assert cmrc.fit("BERT", "bert") == (1.0, 1.0)
    assert cmrc.fit("the cat", "cat") == (0.0, pytest.approx(2 / 3))  # articles count, as all words do
    assert cmrc.fit("New York", "NewYork") == (0.0, 0.0)
    assert cmrc.fit("a  b", "a b") == (0.0, 1.0)  # spaces count for the whole text alone
    assert cmrc.fit("。", "！") == (1.0, 0.0)  # as the script has it: no segment in common


def test_the_best_of_several_answers() -> None:
    assert cmrc.best("北京市", ("北京", "上海", "北京市朝阳区")) == (0.0, pytest.approx(0.8))
    assert cmrc.best("北京", ("上海", "北京。")) == (1.0, 1.0)
    assert cmrc.best("", ()) == (1.0, 1.0)
    assert cmrc.best("北京", ()) == (0.0, 0.0)


def test_scores_of_questions() -> None:
    asked = [
        Question("1", ("北京",)),
        Question("2", ("在北京的大学",)),
        Question("3", ("上海",)),
        Question("4", ("天",)),
    ]
    scored = cmrc.score(asked, {"1": "北京", "2": "北京大学", "3": "天津", "x": "?"})
    assert (scored.exact, scored.f1, scored.total, scored.missing) == (25.0, pytest.approx(35.0), 4, ("4",))
    assert cmrc.score(asked, {}) == spans.Spans(0.0, 0.0, 4, missing=("1", "2", "3", "4"))
    with pytest.raises(BertkitError, match="no question to score"):
        cmrc.score([], {})


def test_true_answers_are_right(shared: Path) -> None:
    path = shared / "data" / "CMRC2018" / "cmrc2018_dev.json.gz"
    if not path.is_file():
        pytest.skip("needs ../shared/data/CMRC2018; not found")
    asked, _ = spans.questions(json.loads(gzip.decompress(path.read_bytes())))
    some = asked[:800]
    scored = cmrc.score(some, {one.id: one.answers[-1] for one in some})
    assert (scored.exact, scored.f1, scored.missing) == (100.0, 100.0, ())
