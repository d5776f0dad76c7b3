"""Sorted tables of keys and values, the LevelDB format in which TensorFlow keeps the index of a checkpoint.

A file is blocks and a footer. A block is entries (how much of the key before is shared, how much follows, the value),
then the places where nothing is shared, a byte for compression and a checksum. The footer finds the index block, whose
values find the others. Blocks follow each other and keys ascend strictly, so that no byte of a file is read twice.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from bertkit.errors import BertkitError
from bertkit.weights.crc import crc32c, masked

MAGIC = bytes.fromhex("57fb808b247547db")
FOOTER = 48
BLOCK_BYTES = 1 << 18
_RESTART = 16
_TRAILER = 5
_GROWTH = 16  # shared beginnings make keys longer than their file; those of a real one by half


def read(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values in order."""
    if len(data) < FOOTER or data[-8:] != MAGIC:
        raise BertkitError("it does not end as an index of TensorFlow's does: it is cut short, or of another kind")
    footer = data[-FOOTER:-8]
    _, at = _handle(footer, 0)
    index, _ = _handle(footer, at)
    last, room, end = None, _GROWTH * len(data), 0
    blocks = [_handle(value, 0)[0] for _, value in _entries(_block(data, *index), room)]
    for offset, size in blocks:
        if offset < end:
            raise BertkitError("a block lies before the end of the one before it: it is damaged")
        end = offset + size + _TRAILER
        before = last
        for key, entry in _entries(_block(data, offset, size), room):
            if last is not None and key <= last:
                raise BertkitError(f"its keys are not in order, or one is there twice ({key[:60]!r})")
            room -= len(key)
            last = key
            yield key, entry
        if last is before and len(blocks) > 1:
            raise BertkitError("a block has no entries: it is damaged")


def write(rows: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A file of keys, ascending, and their values."""
    out, index = bytearray(), []
    block: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in rows:
        if block and size + len(key) + len(value) > BLOCK_BYTES:
            index.append((block[-1][0], _append(out, block, _RESTART)))
            block, size = [], 0
        block.append((key, value))
        size += len(key) + len(value)
    index.append((block[-1][0] if block else b"", _append(out, block, _RESTART)))
    footer = _append(out, [], 1) + _append(out, index, 1)
    return bytes(out) + footer.ljust(FOOTER - 8, b"\0") + MAGIC


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to 64 bits, seven in each byte, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise BertkitError("it ends within a number: it is cut short or damaged")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            if value >> 64:
                break
            return value, at
    raise BertkitError("it has a number of more than 64 bits: it is damaged")


def to_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    offset, at = varint(data, at)
    size, at = varint(data, at)
    return (offset, size), at


def _block(data: bytes, offset: int, size: int) -> bytes:
    end = offset + size
    if end + _TRAILER > len(data) - FOOTER:
        raise BertkitError("a block lies beyond its end: it is cut short or damaged")
    (stored,) = struct.unpack_from("<I", data, end + 1)
    if stored != masked(crc32c(data[offset : end + 1])):
        raise BertkitError("the checksum of a block is wrong: it is damaged")
    if data[end]:
        raise BertkitError("it is compressed, which TensorFlow's checkpoints are not: have its writer save it anew")
    return data[offset:end]


def _entries(block: bytes, room: int) -> Iterator[tuple[bytes, bytes]]:
    restarts = struct.unpack_from("<I", block, len(block) - 4)[0] if len(block) >= 4 else 0
    end = len(block) - 4 - 4 * restarts
    if end < 0:
        raise BertkitError("a block is shorter than it says: it is damaged")
    at, key = 0, b""
    while at < end:
        shared, at = varint(block, at)
        more, at = varint(block, at)
        size, at = varint(block, at)
        if shared > len(key) or at + more + size > end:
            raise BertkitError("an entry is longer than its block: it is damaged")
        room -= shared + more
        if room < 0:
            raise BertkitError("its names are longer than such a file needs: it is damaged")
        key = key[:shared] + block[at : at + more]
        yield key, block[at + more : at + more + size]
        at += more + size


def _append(out: bytearray, rows: list[tuple[bytes, bytes]], restart: int) -> bytes:
    """Put a block at the end; its place and size, as other blocks name it."""
    block, restarts, before = bytearray(), [0], b""
    for number, (key, value) in enumerate(rows):
        shared = 0
        if number % restart:
            shared = next((i for i, (a, b) in enumerate(zip(before, key, strict=False)) if a != b), len(before))
        elif number:
            restarts.append(len(block))
        block += to_varint(shared) + to_varint(len(key) - shared) + to_varint(len(value)) + key[shared:] + value
        before = key
    block += struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
    handle = to_varint(len(out)) + to_varint(len(block))
    block += b"\0"  # not compressed
    out += block + struct.pack("<I", masked(crc32c(bytes(block))))
    return handle
