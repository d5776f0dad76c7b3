"""Damaged files for the readers: bytes changed anywhere, values of JSON replaced by others, packed files cut."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st

from bertkit.errors import BertkitError

Found = TypeVar("Found")

NASTY = [b"null", b"-1", b"1e999", b"NaN", b'"\\ud800"', b"{", b"]", b"\t", b"\n\n", b"\r", b"\x00", b"\xff", b"," * 9]
DEEP = [b"[" * 20_000, b'{"data":' * 20_000, b"9" * 5_000]
VALUES = [
    None,
    True,
    -1,
    7,
    10**30,
    1.5,
    float("inf"),
    "",
    " ",
    "x",
    "\ud800",
    [],
    [[]],
    [1],
    {},
    {"text": 3},
    {"": []},
]


@st.composite
def damaged(draw: st.DrawFn, samples: Mapping[str, bytes]) -> tuple[str, bytes]:
    """The name of a sample, and its bytes after some accident."""
    name = draw(st.sampled_from(sorted(samples)))
    data = samples[name]
    if data[:1] in (b"{", b"[") and b"\n" not in data.strip() and draw(st.integers(0, 3)):
        data = json.dumps(draw(_replaced(json.loads(data)))).encode()
    else:
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(data)))
            put = draw(st.one_of(st.binary(max_size=4), st.sampled_from(NASTY), st.sampled_from(DEEP)))
            data = data[:at] + put + data[at + draw(st.sampled_from([0, 1, len(put), 20, len(data)])) :]
    if draw(st.integers(0, 9)) == 0:
        packed = bytearray(gzip.compress(data, 1, mtime=0))
        for _ in range(draw(st.integers(0, 2))):
            packed[draw(st.integers(0, len(packed) - 1))] = draw(st.integers(0, 255))
        return f"{name}.gz", bytes(packed[: draw(st.sampled_from([None, -1, -9, 12, 0]))])
    return name, data


@st.composite
def _replaced(draw: st.DrawFn, value: Any) -> Any:
    value = copy.deepcopy(value)
    place = draw(st.sampled_from(list(_places(value))))
    match draw(st.integers(0, 2)):
        case 0:
            del place[0][place[1]]
        case _:
            place[0][place[1]] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def read_or_refused(read: Callable[[Path], Iterable[Found]], path: Path, data: bytes) -> list[Found]:
    """What a reader makes of these bytes; nothing where it refuses them, in words that can be printed."""
    path.write_bytes(data)
    try:
        return list(read(path))
    except BertkitError as error:
        words = str(error)
    assert path.name in words
    assert words.encode()
    return []
