"""SQuAD's scores are those of the official scripts, to all printed digits."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import BertkitError
from bertkit.evaluate import spans
from bertkit.evaluate.spans import Question


def opened(path: Path) -> Any:
    """JSON, gzipped or not."""
    if not path.is_file():
        pytest.skip(f"needs ../shared/data/{path.parent.name}/{path.name}; not found")
    return json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())


def only(folder: Path, part: str) -> Path:
    found = sorted(path for path in folder.glob("*") if part in path.name)
    return found[0] if found else folder / part


FIRST = {
    "BERT": (86.20624408703878, 92.19557978351145),
    "ogistic": (40.14191106906339, 50.98153647324461),
    "atch": (67.63481551561021, 76.75556184979695),
    "net": (82.46925260170293, 88.47785965423249),
}


def test_normal_forms() -> None:
    assert spans.normalized("The U.S.A., an  apple!") == "usa apple"
    assert spans.fit("", "") == (1.0, 1.0)
    assert spans.fit("the", "") == (1.0, 1.0)
    assert spans.fit("x", "") == (0.0, 0.0)
    assert spans.fit("black cat cat", "the cat") == (0.0, 0.5)
    assert spans.best("cat", ("dog", "the cat sat", "cat")) == (1.0, 1.0)


def test_kinds_of_questions_and_what_is_missing() -> None:
    asked = [Question("1", ("cat",)), Question("2", ()), Question("3", ("a dog",)), Question("4", ())]
    found = spans.score(asked, {"1": "The cat", "2": "", "4": "something"}, second=True)
    assert (found.exact, found.f1, found.total, found.missing) == (50.0, 50.0, 4, ("3",))
    assert (found.answerable.exact, found.unanswerable.exact) == (50.0, 50.0)
    with pytest.raises(BertkitError, match="not SQuAD's JSON"):
        spans.questions({"data": [{"paragraphs": [{"qas": [{"id": "1"}]}]}]})


def test_the_threshold_is_the_best_one() -> None:
    asked = [Question("1", ("cat",)), Question("2", ()), Question("3", ("dog",)), Question("4", ())]
    found, nothing = {"1": "cat", "2": "mouse", "3": "a dog", "4": "mouse"}, {"1": 0.1, "2": 0.8, "3": 0.4, "4": 0.6}
    assert spans.threshold(asked, found, nothing) == (0.4, 100.0)


@pytest.mark.parametrize("name", FIRST)
def test_published_predictions_of_version_1(shared: Path, name: str) -> None:
    asked, second = spans.questions(opened(shared / "data" / "SQuAD1.1" / "dev-v1.1.json.gz"))
    assert not second
    found = opened(only(shared / "data" / "SQuAD-model-predictions" / "1.1", name))
    scored = spans.score(asked, found)
    assert (scored.exact, scored.f1) == FIRST[name]


def test_published_predictions_of_version_2(shared: Path) -> None:
    asked, second = spans.questions(opened(shared / "data" / "SQuAD2.0" / "dev-v2.0.reconstructed.json.gz"))
    assert second
    home = shared / "data" / "SQuAD-model-predictions" / "v2.0"
    bert = spans.score(asked, opened(only(home, "BERT")), second)
    assert (bert.exact, bert.f1) == (78.74168280973637, 81.77528052374723)
    assert (bert.answerable.exact, bert.answerable.f1) == (74.10593792172739, 80.18183293833508)
    assert bert.unanswerable.exact == 83.36417157275021
    bidaf = spans.score(asked, opened(only(home, "BiDAF")), second)
    assert (bidaf.exact, bidaf.f1) == (65.70369746483618, 67.87648921451334)
