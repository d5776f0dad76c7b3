"""Schemes of tags are told apart, and turned into IOB2 without a change of what they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.evaluate.entities import Entity, entities
from bertkit.tasks.tags import SCHEMES, Scheme, scheme, to_iob2, written

parts = st.sampled_from(["B", "I", "M", "E", "S"])
tags = st.one_of(st.just("O"), parts, st.builds("{}-{}".format, parts, st.sampled_from(["PER", "LOC", "a-b", "_"])))


@given(row=st.lists(tags, max_size=12))
def test_iob2_says_the_same(row: list[str]) -> None:
    turned = to_iob2(row)
    assert len(turned) == len(row)
    assert entities(turned) == entities(row)
    assert scheme([turned]) == "IOB2"
    assert to_iob2(turned) == turned


@given(row=st.lists(tags, max_size=12))
def test_every_scheme_says_the_same_and_is_known(row: list[str]) -> None:
    found = entities(row)
    for each in SCHEMES:
        turned = written(found, len(row), each)
        assert entities(turned) == found
        known = scheme([turned])
        assert known is not None
        assert written(found, len(row), known) == turned  # a row without such entities may be of several schemes


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("I-PER I-PER O I-LOC B-LOC", "IOB1"),
        ("B-PER I-PER O B-LOC B-LOC", "IOB2"),
        ("B-PER E-PER O S-LOC", "IOBES"),
        ("B-PER M-PER E-PER S-LOC", "BMES"),
        ("B M E S", "BMES"),
        ("O O", "IOB2"),
        ("B-PER I-LOC", None),
        ("B-PER O S-LOC", None),
        ("B-PER I-PER M-PER E-PER", None),
    ],
)
def test_schemes(row: str, expected: Scheme | None) -> None:
    assert scheme([row.split(), ["O"]]) == expected


def test_rows_decide_together() -> None:
    assert scheme([["B-PER"], ["I-PER"]]) is None
    assert scheme([]) == "IOB2"
    assert written([Entity("PER", 0, 1), Entity("PER", 1, 2)], 3, "IOB1") == ("I-PER", "B-PER", "O")
