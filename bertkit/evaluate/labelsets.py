"""Several labels for each row: F1 over all of them (micro), its mean over labels (macro), and rows that are all right.

Letters: C labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class LabelSets:
    """Counts for each label; one size for any number of rows.

    >>> counted = LabelSets(2)
    >>> counted.add(np.array([True, False]), np.array([True, True]))
    >>> round(counted.micro_f1(), 4), counted.macro_f1(), counted.exact()
    (0.6667, 0.5, 0.0)
    """

    def __init__(self, labels: int) -> None:
        self._right, self._found, self._true = np.zeros((3, labels), np.int64)  # [C] each
        self._same = self._rows = 0

    def add(self, true: Array, found: Array) -> None:
        """One row: which labels are there, and which were found, [C] each."""
        self._right += true & found
        self._found += found
        self._true += true
        self._same += bool((true == found).all())
        self._rows += 1

    def micro_f1(self) -> float:
        """All labels of all rows together."""
        both = int(self._found.sum() + self._true.sum())
        return 2 * int(self._right.sum()) / both if both else 0.0

    def macro_f1(self) -> float:
        """The mean over labels; 0 for one that is neither there nor found."""
        both = self._found + self._true
        return float(np.mean(2 * self._right / np.maximum(both, 1)))

    def exact(self) -> float:
        """The share of rows whose labels are all right."""
        return self._same / max(self._rows, 1)


def best_threshold(true: Array, chances: Array, usual: float = 0.5) -> float:
    """The chance from which on a label is said to be there, where that has the best F1; [N], [N].

    Halfway to the next chance below; the usual one where the label is never there, or where nothing is better.

    >>> best_threshold(np.array([True, True, False]), np.array([0.4, 0.3, 0.1]))
    0.2
    """
    order = np.argsort(-chances, kind="stable")
    right = np.cumsum(true[order])  # where the first k are said
    said = np.arange(1, len(order) + 1)
    ends = np.append(chances[order][:-1] > chances[order][1:], True)  # equal chances go together
    f1 = np.where(ends, 2 * right / (said + true.sum()), -1.0)
    usual_said = chances >= usual
    both = usual_said.sum() + true.sum()
    as_usual = 2 * (usual_said & true).sum() / both if both else 0.0
    best = int(f1.argmax())
    if not true.any() or f1[best] <= as_usual:
        return usual
    below = chances[order][best + 1] if best + 1 < len(order) else 0.0
    return float((chances[order][best] + below) / 2)
