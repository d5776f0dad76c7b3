"""The workload `corpus`: its texts, the baseline in the manner of Google, and answers that agree."""

from __future__ import annotations

import random
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import corpus, peer, prose
from bench.child import Fresh
from bench.corpus import LENGTH, rectangle
from bench.peers import bertkit as ours
from bench.peers import google
from bench.peers import transformers as theirs
from bench.pipe import Array
from bench.share import Shares, share
from bertkit.corpus import build, source
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.inputs import FullSentences
from bertkit.text import Tokenizer
from bertkit.weights.find import find

TEXT = (
    "The Café's owner—Mr. O'Neill—paid $1,234.56 (in 1999).\nShe didn't go; naïve, wasn't it?\u00a0Well…\n\n"
    "Unaffable 北京 winters: −40°C!\nZoë said:\t“So long.”\n\nAn article about Ångström's units\u200b and x\u0301.\n"
    "Antidisestablishmentarianism, " + "q" * 101 + " and 😀.\n\nThe last one.\nIt ends here."
)


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "HOME", tmp_path)
    for name in ("bertkit", "google"):
        monkeypatch.setattr(f"bench.peers.{name}.HOME", tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path / "text.txt"


def reference(text: str) -> list[int]:
    return Tokenizer.load(find("minilm")).encode(text, special_tokens=False).ids


def answer(fresh: Fresh) -> Array:
    with fresh.made() as given:
        return fresh.answer(fresh.call(given))


def test_google_s_tokens_are_those_of_the_reference(text: Path) -> None:
    assert answer(google.shards(str(find("minilm")), str(text))).tolist() == reference(TEXT)


def test_google_s_instances_are_pairs_with_masks() -> None:
    documents = [[[f"d{number}", f"w{line}", "x"] * 8 for line in range(30)] for number in range(6)]
    draw = random.Random(0)
    made = [list(google._instances(documents, number, ["random"], draw)) for number in range(6)]
    shares: list[float] = []
    for number, instances in enumerate(made):
        for instance in instances:
            _check(instance, number)
            shares.append(len(instance["places"]) / len(instance["tokens"]))
    pairs = list(chain.from_iterable(made))
    assert 0.35 < np.mean([instance["other"] for instance in pairs]) < 0.65
    assert 0.13 < np.mean(shares) < 0.17
    assert max(len(instance["tokens"]) for instance in pairs) == google.LENGTH


def _check(instance: dict[str, Any], number: int) -> None:
    tokens = list(instance["tokens"])
    assert len(tokens) == len(instance["segments"]) <= google.LENGTH
    for place, label in zip(instance["places"], instance["labels"], strict=True):
        tokens[place] = label
    middle = tokens.index("[SEP]")
    assert (tokens[0], tokens[-1], tokens.count("[SEP]")) == ("[CLS]", "[SEP]", 2)
    assert sum(instance["segments"]) == len(tokens) - middle - 1
    first = {token for token in tokens[1:middle] if token[0] == "d"}
    second = {token for token in tokens[middle + 1 :] if token[0] == "d"}
    assert first <= {f"d{number}"}
    assert instance["other"] == (f"d{number}" not in second) or not second


def test_shares_of_a_text_are_its_documents_once_each() -> None:
    documents = [f"{number} " * (number % 7 + 1) for number in range(50)]
    for count in (1, 2, 3):
        parts = [share(documents, number, count) for number in range(count)]
        assert list(chain.from_iterable(parts)) == documents
        sizes = [sum(map(len, part)) for part in parts]
        assert max(sizes) - min(sizes) < 40


def test_two_processes_give_the_ids_of_one_text_each_time(text: Path, tmp_path: Path) -> None:
    before = tmp_path / "before.txt"
    before.write_text("Units of winters.\n\nThe owner said so.", encoding="utf-8")
    shares = Shares(str(find("minilm")), str(text), str(before), 2)
    for _ in range(2):
        with shares.renewed() as renewed:
            assert np.concatenate(renewed.read()).tolist() == reference(TEXT)


def test_bertkit_s_shards_and_masks_give_the_text_back(tmp_path: Path, documents: list[str]) -> None:
    model, documents = find("minilm"), prose.taken(documents, 0.1)
    path = prose.file("text", documents)
    assert answer(ours.shards(str(model), str(path))).tolist() == reference("\n\n".join(documents))

    build.build(source.files([str(path)]), Tokenizer.load(model), tmp_path / "made")
    flat = Examples(Corpus(tmp_path / "made"), FullSentences(LENGTH)).read(0, range(8))
    array = rectangle(flat.ids, flat.starts, LENGTH)
    for words in (False, True):
        for contestant in (ours, theirs):
            assemble = contestant.assemble(str(model), str(tmp_path / "made"), words, array)
            np.testing.assert_array_equal(answer(assemble), array)


@pytest.mark.usefixtures("without_shared")
def test_text_that_passes_before_has_none_that_is_timed() -> None:
    cold, warm, *_ = corpus.cases(quick=True)
    assert "python-docs" in cold.name
    assert not cold.bars
    timed, before = (set(Path(warm.arguments[which]).read_text().split("\n\n")) for which in ("text", "before"))
    assert timed
    assert before
    assert not timed & before
    assert cold.amount is not None
    assert cold.amount.count == pytest.approx(len(Path(cold.arguments["text"]).read_bytes()) / 1e6, rel=0.01)


def test_the_same_real_text_in_every_run(shared: Path) -> None:
    if not prose.SHARED.is_dir():
        pytest.skip("needs ../shared/data; not found")
    found, again = prose.prose(), prose.prose()
    assert found == again
    assert found.name == prose.REAL
    assert prose.size(found.documents) > corpus.TEXT
    assert not any("\n\n" in document or not document for document in [*found.documents, *found.others])
