"""A column: an array that grows at its end."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

SPARE = 8
"""places behind the last value that there always are"""


class Column:
    """It has its room from the beginning, so that memory does not run out later, and takes more where it must.

    >>> column = Column(np.int32, room=100)
    >>> column.extend(np.array([5, 6]))
    >>> column[:], len(column), column.take(np.array([1, 0, 9]))
    (array([5, 6], dtype=int32), 2, array([6, 5, 6], dtype=int32))
    """

    def __init__(self, dtype: Any, room: int) -> None:
        self._array, self._size = np.full(room, 0, dtype), 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, at: Any) -> Array:
        found: Array = self._array[: self._size][at]
        return found

    def take(self, at: Array) -> Array:
        """The values at these places; beyond the last one it is the last."""
        return self._array[: self._size].take(at, mode="clip")

    def all(self) -> Array:
        """The values and the room behind them, which is SPARE or more; it is a view."""
        return self._array

    def extend(self, values: Array) -> None:
        """Put values behind the last one."""
        size = self._size + len(values)
        if size + SPARE > len(self._array):
            self._array = np.concatenate([self[:], np.zeros(max(size, self._size) + SPARE, self._array.dtype)])
        self._array[self._size : size] = values
        self._size = size

    def replace(self, values: Array) -> None:
        """Take other values in their place."""
        self._size = 0
        self.extend(values)
