"""Entities are those that seqeval and CoNLL's script find, whatever the tags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.errors import BertkitError
from bertkit.evaluate.entities import Counts, entities, score

tags = st.sampled_from(["O", *(f"{part}-{kind}" for part in "BIES" for kind in ("PER", "LOC"))])


@given(rows=st.lists(st.lists(st.tuples(tags, tags), max_size=12), min_size=1, max_size=6))
def test_counts_are_those_of_seqeval(rows: list[list[tuple[str, str]]]) -> None:
    labeling = pytest.importorskip("seqeval.metrics.sequence_labeling", reason="needs seqeval; not installed")
    metrics = pytest.importorskip("seqeval.metrics")
    true, found = ([[pair[side] for pair in row] for row in rows] for side in (0, 1))
    for row in (*true, *found):
        assert [tuple(one) for one in entities(row)] == [(kind, a, b + 1) for kind, a, b in labeling.get_entities(row)]
    all_of_them = score(true, found)[""]
    if all_of_them.found + all_of_them.true:
        assert all_of_them.f1 == pytest.approx(metrics.f1_score(true, found))
        assert all_of_them.precision == pytest.approx(metrics.precision_score(true, found, zero_division=0))
        assert all_of_them.recall == pytest.approx(metrics.recall_score(true, found, zero_division=0))


def test_schemes() -> None:
    assert entities(["I-PER", "I-PER", "B-PER", "O"]) == [("PER", 0, 2), ("PER", 2, 3)]  # IOB1
    assert entities(["B-ORG", "M-ORG", "E-ORG", "S-PER", "M-LOC", "O"]) == [("ORG", 0, 3), ("PER", 3, 4), ("LOC", 4, 5)]
    assert score([["B-PER", "O"]], [["B-LOC", "O"]]) == {"": (0, 1, 1), "LOC": (0, 1, 0), "PER": (0, 0, 1)}
    assert Counts(0, 0, 0).f1 == 0


def test_errors() -> None:
    with pytest.raises(BertkitError, match="'X-PER' is no tag"):
        entities(["X-PER"])
    with pytest.raises(BertkitError, match="sentence 1 has 2 tags, and 1 were given"):
        score([["O"], ["O", "O"]], [["O"], ["O"]])
