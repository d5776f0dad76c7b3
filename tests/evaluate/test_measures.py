"""Measures are those of scikit-learn and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from bertkit.errors import BertkitError
from bertkit.evaluate import correlation
from bertkit.evaluate.confusion import Confusion
from bertkit.evaluate.labelsets import LabelSets

labelled = st.integers(2, 60).flatmap(
    lambda size: st.tuples(*(st.lists(st.integers(0, 3), min_size=size, max_size=size) for _ in range(2)))
)
numbered = st.integers(2, 60).flatmap(
    lambda size: st.tuples(*(st.lists(st.integers(-5, 5), min_size=size, max_size=size) for _ in range(2)))
)


@given(rows=labelled)
def test_labels(rows: tuple[list[int], list[int]]) -> None:
    true, found = map(np.array, rows)
    table = Confusion.of(true, found)
    assert table.accuracy() == pytest.approx(metrics.accuracy_score(true, found))
    assert table.matthews() == pytest.approx(metrics.matthews_corrcoef(true, found), abs=1e-12)
    assert table.macro_f1() == pytest.approx(metrics.f1_score(true, found, average="macro"))
    if len(table.table) > 1:
        assert table.f1() == pytest.approx(metrics.f1_score(true == 1, found == 1, zero_division=0))


sets = st.integers(1, 40).flatmap(
    lambda size: st.tuples(
        *(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=size, max_size=size) for _ in range(2))
    )
)


@given(rows=sets)
def test_sets_of_labels(rows: tuple[list[list[bool]], list[list[bool]]]) -> None:
    true, found = map(np.array, rows)
    counted = LabelSets(4)
    for left, right in zip(true, found, strict=True):
        counted.add(left, right)
    assert counted.micro_f1() == pytest.approx(metrics.f1_score(true, found, average="micro", zero_division=0))
    assert counted.macro_f1() == pytest.approx(metrics.f1_score(true, found, average="macro", zero_division=0))
    assert counted.exact() == pytest.approx(metrics.accuracy_score(true, found))


@given(rows=numbered)
def test_numbers(rows: tuple[list[int], list[int]]) -> None:
    true, found = (np.array(row) / 3 for row in rows)
    for ours, theirs in ((correlation.pearson, stats.pearsonr), (correlation.spearman, stats.spearmanr)):
        if len(set(rows[0])) > 1 and len(set(rows[1])) > 1:
            assert ours(true, found) == pytest.approx(theirs(true, found).statistic, abs=1e-9)
        else:
            assert np.isnan(ours(true, found))


def test_one_row_is_no_correlation() -> None:
    with pytest.raises(BertkitError, match="two rows or more; here is one"):
        correlation.pearson(np.array([1.0]), np.array([2.0]))
