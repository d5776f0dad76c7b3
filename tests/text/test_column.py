"""Columns: arrays that grow."""

from __future__ import annotations

import numpy as np

from bertkit.text.column import SPARE, Column


def test_a_column_grows() -> None:
    column, expected = Column(np.int32, 100), np.empty(0, np.int32)
    for size in (0, 1, 1000, 30, 5000, 1):
        values = np.arange(size, dtype=np.int32)
        column.extend(values)
        expected = np.append(expected, values)
        assert np.array_equal(column[:], expected)
        assert len(column.all()) >= len(column) + SPARE
    column.replace(expected[::2])
    assert np.array_equal(column[np.array([0, 3])], expected[[0, 6]])
    assert column.take(np.array([10**6])) == expected[::2][-1]
