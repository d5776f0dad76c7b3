"""A table of true and found labels, and the measures that follow from it: those of GLUE
(https://arxiv.org/abs/1804.07461), and F1 over many labels. It has one size for any number of rows.

Letters: C labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Confusion:
    """How often each label was found where each was true.

    >>> table = Confusion(2)
    >>> for true, found in ((1, 1), (1, 0), (0, 0)):
    ...     table.add(true, found)
    >>> round(table.accuracy(), 4), round(table.f1(), 4), table.matthews()
    (0.6667, 0.6667, 0.5)
    """

    def __init__(self, labels: int) -> None:
        self.table = np.zeros((labels, labels), np.int64)  # [C, C]: true, found

    @classmethod
    def of(cls, true: Array, found: Array) -> Confusion:
        """Of many rows at once, numbers of labels each."""
        made = cls(int(max(true.max(initial=0), found.max(initial=0))) + 1)
        np.add.at(made.table, (true, found), 1)
        return made

    def add(self, true: int, found: int) -> None:
        """One row."""
        self.table[true, found] += 1

    @property
    def rows(self) -> int:
        """How many there were."""
        return int(self.table.sum())

    def accuracy(self) -> float:
        """The share of rows that are right."""
        return int(np.trace(self.table)) / max(self.rows, 1)

    def f1(self, label: int = 1) -> float:
        """Of one label: 2·right / (found + there); 0 where it is neither."""
        both = self.table[label].sum() + self.table[:, label].sum()
        return float(2 * self.table[label, label] / both) if both else 0.0

    def macro_f1(self) -> float:
        """The mean of F1 over all labels that occur."""
        there = np.flatnonzero(self.table.sum(0) + self.table.sum(1))
        return float(np.mean([self.f1(int(label)) for label in there])) if len(there) else 0.0

    def matthews(self) -> float:
        """Matthews' correlation, for any number of labels; 0 where one side has a single label."""
        rows, table = float(self.rows), self.table.astype(np.float64)
        there, said = table.sum(1), table.sum(0)
        covariance = np.trace(table) * rows - there @ said
        spread = np.sqrt((rows**2 - there @ there) * (rows**2 - said @ said))
        return float(covariance / spread) if spread else 0.0
