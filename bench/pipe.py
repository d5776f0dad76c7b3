"""What goes over the pipe between the bench and a contestant: a JSON object and perhaps an array, never a pickle.

A frame is the two lengths (4 and 8 bytes, big-endian), the JSON, and the array as a NumPy file. A contestant runs in an
environment of its own, so this file needs NumPy and nothing else.
"""

from __future__ import annotations

import io
import json
import struct
from typing import Any, BinaryIO

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_LENGTHS = struct.Struct(">IQ")
LARGEST = 1 << 30
"""bytes of a frame: more than any case needs, less than a machine has"""


def send(stream: BinaryIO, message: dict[str, Any], array: Array | None = None) -> None:
    """One frame, on its way when this returns.

    >>> stream = io.BytesIO()
    >>> send(stream, {"seconds": 0.5}, np.ones(2, np.float32))
    >>> _ = stream.seek(0)
    >>> receive(stream)
    ({'seconds': 0.5}, array([1., 1.], dtype=float32))
    """
    text, content = json.dumps(message).encode(), io.BytesIO()
    if array is not None:
        np.save(content, array, allow_pickle=False)
    stream.write(_LENGTHS.pack(len(text), content.tell()) + text + content.getvalue())
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], Array | None]:
    """The next frame; EOFError where the other side has gone."""
    text, content = _LENGTHS.unpack(_exactly(stream, _LENGTHS.size))
    if text + content > LARGEST:
        raise ValueError(f"a frame of {text + content:,} bytes: at most {LARGEST:,} are taken")
    message = json.loads(_exactly(stream, text))
    return message, np.load(io.BytesIO(_exactly(stream, content)), allow_pickle=False) if content else None


def _exactly(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) != size:
        raise EOFError("the pipe was closed")
    return content
