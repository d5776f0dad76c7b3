"""CRC-32C (Castagnoli), the checksum in TensorFlow's files, over arrays instead of byte by byte.

A CRC is linear over GF(2): the checksum of a message is the sum (exclusive or) of its 32-bit words, each moved on by
as many bytes as follow it. So words that lie a row apart are folded by the thousand with two table look-ups, and the
last row is folded pairwise. Zeros in front of a message change nothing, so that any length fills whole rows.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

_POLYNOMIAL = 0x82F63B78  # reflected
_LANES = 1 << 14  # words in a row: what is folded at once stays in the processor's cache
_DELTA = 0xA282EAD8


def crc32c(data: bytes | npt.NDArray[np.uint8]) -> int:
    """The checksum of bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    array = np.frombuffer(data, np.uint8)
    if len(array) < 4:
        return _plain(array.tobytes())
    lanes = min(_LANES, 1 << (len(array) // 4).bit_length())
    head = len(array) % (4 * lanes) + (4 * lanes if len(array) >= 4 * lanes else 0)
    first = np.zeros(-(-head // (4 * lanes)) * 4 * lanes, np.uint8)
    first[-head:] = array[:head]
    first[-head:][:4] ^= 0xFF  # the checksum starts from all ones
    row = np.zeros(lanes, np.uint32)
    for part in (first, array[head:]):
        row = _fold_rows(row, part.view("<u4").reshape(-1, lanes))
    return _fold_row(row) ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """The form in which TensorFlow and LevelDB store a checksum, so that one of data with checksums in it works."""
    return (((crc >> 15) | (crc << 17)) + _DELTA) & 0xFFFFFFFF


def _plain(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _advance(crc ^ byte)
    return crc ^ 0xFFFFFFFF


def _fold_rows(row: Words, rows: Words) -> Words:
    """Move a row [L] on by its own length and add the next, for all rows [R, L]."""
    if len(rows) == 1 and not row.any():
        first: Words = rows[0]
        return first  # short messages need no wide tables
    low, high = _wide(4 * rows.shape[1])
    for following in rows:
        row = low[row & 0xFFFF] ^ high[row >> 16] ^ following
    return row


def _fold_row(row: Words) -> int:
    """Neighbours [L] into one [L/2], until one word is left; then the four bytes that are its own."""
    length = 4
    while len(row) > 1:
        row = _move(row[0::2], length) ^ row[1::2]
        length *= 2
    return int(_move(row, 4)[0])


def _move(words: Words, length: int) -> Words:
    """Words moved on by a power of two of bytes."""
    tables = _narrow(length)
    moved: Words = tables[0][words & 0xFF]
    for byte in (1, 2, 3):
        moved ^= tables[byte][words >> np.uint32(8 * byte) & 0xFF]
    return moved


@cache
def _narrow(length: int) -> Words:
    """The move as four tables, one for each byte of a word: [4, 256]."""
    images = _images(length)
    rows = [[_apply(images[8 * byte :], value) for value in range(256)] for byte in range(4)]
    return np.array(rows, np.uint32)


@cache
def _wide(length: int) -> tuple[Words, Words]:
    """The move as two tables, for the lower and the upper 16 bits of a word."""
    values = np.arange(1 << 16, dtype=np.uint32)
    return _move(values, length), _move(values << np.uint32(16), length)


@cache
def _images(length: int) -> tuple[int, ...]:
    """What moving on by `length` bytes, a power of two, makes of each of the 32 bits."""
    if length == 1:
        return tuple(_advance(1 << bit) for bit in range(32))
    half = _images(length // 2)
    return tuple(_apply(half, image) for image in half)


def _apply(images: tuple[int, ...], word: int) -> int:
    out = 0
    for bit, image in enumerate(images):
        out ^= image if word >> bit & 1 else 0
    return out


def _advance(word: int) -> int:
    """One byte of zeros further."""
    for _ in range(8):
        word = (word >> 1) ^ (_POLYNOMIAL if word & 1 else 0)
    return word
