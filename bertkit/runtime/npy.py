"""A NumPy file written row by row, before anybody knows how many rows there will be."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy


class NpyWriter:
    """float32 rows into an open file; `finish` writes the true shape into the header.

    >>> import io
    >>> file = io.BytesIO()
    >>> writer = NpyWriter(file, width=2)
    >>> writer.write(np.ones((3, 2))); writer.write(np.zeros((1, 2)))
    >>> writer.finish()
    4
    >>> _ = file.seek(0)
    >>> np.load(file).sum(1)
    array([2., 2., 2., 0.], dtype=float32)

    A file that holds `rows` rows already is gone on with.
    """

    def __init__(self, file: BinaryIO, width: int, rows: int = 0) -> None:
        self._file, self._width, self._rows = file, width, rows
        self._body = self._header()
        end = self._file.seek(0, os.SEEK_END)
        assert end == self._body + rows * width * 4, "rows are there to the last byte"

    def write(self, rows: np.ndarray[Any, Any]) -> None:
        assert rows.shape[1:] == (self._width,), rows.shape
        self._file.write(np.ascontiguousarray(rows, dtype="<f4").tobytes())
        self._rows += len(rows)

    def finish(self) -> int:
        """How many rows there are now, also in the header."""
        assert self._header() == self._body, "NumPy leaves room for the row count to grow"
        return self._rows

    def _header(self) -> int:
        self._file.seek(0)
        shape = (self._rows, self._width)
        npy.write_array_header_1_0(self._file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        return self._file.tell()
