"""TensorFlow's checkpoints (PREFIX.index, PREFIX.data-00000-of-00001, …), read and written without TensorFlow.

The index is a sorted table of protobuf messages: what kind of numbers a variable holds, its shape, and where in which
data file they lie, with their checksum. Nothing is believed before it is checked against the files themselves.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bertkit.errors import BertkitError, about
from bertkit.weights import table
from bertkit.weights.crc import crc32c, masked
from bertkit.weights.table import to_varint, varint

INDEX = ".index"
_LARGEST_INDEX = 1 << 24  # the largest BERT with its optimizer needs a hundredth of it
_MOST_DIMENSIONS = 32
_MOST_NUMBERS = 1 << 48
_AGAIN = "fetch the files again, or have their writer save them anew"

NUMBERS = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
}
"""TensorFlow's numbers for kinds of numbers; others (texts, resources, quantised) are listed, not read"""
_NUMBER_OF = {kind: number for number, kind in NUMBERS.items()}


@dataclass(frozen=True)
class Entry:
    """One variable, as the index describes it."""

    dtype: str
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int


class Bundle:
    """The variables of a checkpoint by name, each read when it is asked for."""

    def __init__(self, prefix: Path) -> None:
        self.path = index_of(prefix)
        with about(self.path):
            shards, self._entries = _read_index(self.path)
            self._files = {
                shard: prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{shards:05d}")
                for shard in sorted({entry.shard for entry in self._entries.values()})
            }
            _check_places(self._entries, self._files)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entries[name].shape

    def dtype(self, name: str) -> str:
        """The kind of numbers, by NumPy's name or bfloat16; `type N` for what is not read."""
        return self._entries[name].dtype

    def where(self, name: str) -> Path:
        """The file that holds a variable's numbers."""
        return self._files[self._entries[name].shard]

    def read(self, name: str) -> npt.NDArray[Any]:
        """A copy of the numbers, their checksum checked; bfloat16, which NumPy lacks, comes as float32."""
        entry, path = self._entries[name], self.where(name)
        if entry.dtype not in _NUMBER_OF:
            raise BertkitError(f"{path}: {name} holds no numbers that are read here ({entry.dtype})")
        data = np.empty(entry.size, np.uint8)
        try:
            with path.open("rb") as file:
                file.seek(entry.offset)
                got = file.readinto(data.data) if entry.size else 0
        except OSError as error:
            raise BertkitError(f"{path} cannot be read: {error.strerror}") from None
        if got != entry.size or masked(crc32c(data)) != entry.crc:
            raise BertkitError(f"{path}: the numbers of {name} are not those that were written (checksum): {_AGAIN}")
        if entry.dtype == "bfloat16":
            return (data.view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(entry.shape)
        return data.view(np.dtype(entry.dtype).newbyteorder("<")).reshape(entry.shape)


def index_of(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + INDEX)


def write(tensors: Mapping[str, npt.NDArray[Any]], prefix: Path) -> None:
    """A checkpoint in one data file that `tf.train.load_checkpoint` opens. Tensors are looked up one after another."""
    rows = [(b"", _field(1, 1) + _message(3, _field(1, 1)))]  # one data file, version 1
    offset = 0
    with prefix.with_name(f"{prefix.name}.data-00000-of-00001").open("wb") as file:
        for name in sorted(tensors, key=str.encode):
            tensor = np.asarray(tensors[name])
            if tensor.dtype.name not in _NUMBER_OF or not name:
                raise BertkitError(f"{name!r} holds {tensor.dtype}, which is not written to a checkpoint")
            data = np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
            file.write(data.data)
            sizes = b"".join(_message(2, _field(1, size)) for size in tensor.shape)
            row = _field(1, _NUMBER_OF[tensor.dtype.name]) + _message(2, sizes)
            row += _field(4, offset) + _field(5, len(data)) + b"\x35" + struct.pack("<I", masked(crc32c(data)))
            rows.append((name.encode(), row))
            offset += len(data)
    index_of(prefix).write_bytes(table.write(rows))


def _read_index(path: Path) -> tuple[int, dict[str, Entry]]:
    """How many data files there are, and all entries by name."""
    try:
        size = path.stat().st_size
        if size > _LARGEST_INDEX:
            raise BertkitError(f"it has {size:,} bytes, more than the index of any BERT")
        data = path.read_bytes()
    except OSError as error:
        raise BertkitError(f"it cannot be read: {error.strerror}") from None
    rows = table.read(data)
    key, header = next(rows, (b"", b""))
    if key or not header:
        raise BertkitError(f"it has no header: {_AGAIN}")
    shards = _read_header(header)
    entries: dict[str, Entry] = {}
    for key, value in rows:
        name = _name(key)
        with about(name):
            entries[name] = _read_entry(value, shards)
    return shards, entries


def _name(key: bytes) -> str:
    if key.startswith(b"\0"):
        raise BertkitError("it has variables in slices (partitioned): have its writer save them whole")
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise BertkitError(f"a name is not UTF-8 ({key[:60]!r}): {_AGAIN}") from None


def _read_header(data: bytes) -> int:
    said = dict(_fields(data))
    shards, version = _number(said, 1), dict(_fields(_bytes(said, 3)))
    if _number(said, 2):
        raise BertkitError("its numbers are big-endian, which is not read: have it saved on a common machine")
    if _number(version, 2) > 1:
        raise BertkitError("it was written for a later version of TensorFlow's format")
    if not 1 <= shards < 10**5:
        raise BertkitError(f"it says that there are {shards} data files: {_AGAIN}")
    return shards


def _read_entry(data: bytes, shards: int) -> Entry:
    said = dict(_fields(data))
    if 7 in said:
        raise BertkitError("it is in slices (partitioned): have its writer save it whole")
    kind = NUMBERS.get(_number(said, 1), f"type {_number(said, 1)}")
    shape = _read_shape(_bytes(said, 2))
    shard, offset, size = (_number(said, field) for field in (3, 4, 5))
    if not shard < shards:
        raise BertkitError(f"it lies in data file {shard} of {shards}: {_AGAIN}")
    width = 2 if kind == "bfloat16" else np.dtype(kind).itemsize if kind in _NUMBER_OF else 0
    if width and math.prod(shape) * width != size:
        raise BertkitError(f"{size} bytes are not {list(shape)} numbers of {kind}: {_AGAIN}")
    return Entry(kind, shape, shard, offset, size, _number(said, 6))


def _read_shape(data: bytes) -> tuple[int, ...]:
    shape: list[int] = []
    for field, value in _fields(data):
        if field == 3 and value:
            raise BertkitError("its shape is not known")
        if field == 2 and isinstance(value, bytes):
            shape.append(_number(dict(_fields(value)), 1))
        if len(shape) > _MOST_DIMENSIONS or math.prod(filter(None, shape)) > _MOST_NUMBERS:
            raise BertkitError(f"its shape begins with {shape[:4]}: no variable is so large")  # -1 is 2 ** 64 - 1 here
    return tuple(shape)


def _check_places(entries: Mapping[str, Entry], files: Mapping[int, Path]) -> None:
    """Every variable lies within its file and none on another, so that a model is not larger than its files."""
    sizes: dict[int, int] = {}
    for shard, path in files.items():
        if not path.is_file():
            raise BertkitError(f"its data file {path.name} is not beside it: {_AGAIN}")
        sizes[shard] = path.stat().st_size
    reached = dict.fromkeys(files, 0)
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].offset, item[1].size)):
        if entry.offset < reached[entry.shard]:
            raise BertkitError(f"{name} lies where another variable lies: {_AGAIN}")
        reached[entry.shard] = entry.offset + entry.size
        if reached[entry.shard] > sizes[entry.shard]:
            raise BertkitError(f"{files[entry.shard].name} ends before {name} does: it is cut short; {_AGAIN}")


# protobuf ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message by number: numbers, or bytes that are texts or messages."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value: int | bytes
        match tag & 7:
            case 0:
                value, at = varint(data, at)
            case 1 | 5 as kind:
                size = 8 if kind == 1 else 4
                value, at = int.from_bytes(_piece(data, at, size), "little"), at + size
            case 2:
                size, at = varint(data, at)
                value, at = _piece(data, at, size), at + size
            case other:
                raise BertkitError(f"a field has the unknown kind {other}: {_AGAIN}")
        yield tag >> 3, value


def _piece(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise BertkitError(f"a field is longer than its message: {_AGAIN}")
    return data[at : at + size]


def _number(said: Mapping[int, int | bytes], field: int) -> int:
    value = said.get(field, 0)
    if isinstance(value, bytes):
        raise BertkitError(f"field {field} is not a number: {_AGAIN}")
    return value


def _bytes(said: Mapping[int, int | bytes], field: int) -> bytes:
    value = said.get(field, b"")
    if isinstance(value, int):
        raise BertkitError(f"field {field} is a number where a message belongs: {_AGAIN}")
    return value


def _field(field: int, value: int) -> bytes:
    return to_varint(field << 3) + to_varint(value) if value else b""  # zeros are left out


def _message(field: int, data: bytes) -> bytes:
    return to_varint(field << 3 | 2) + to_varint(len(data)) + data
