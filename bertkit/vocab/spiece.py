"""SentencePiece's model file, a message of Google's protocol buffers: what `tokenizers` needs of it.

https://protobuf.dev/programming-guides/encoding/: a field is a number and a wire type, then a value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5
_PIECE, _TRAINER, _NORMALIZER = 1, 2, 3
_INPUT = 1  # of the trainer


class Piece(NamedTuple):
    """A token and the logarithm of its probability."""

    text: str
    score: float


class Spiece(NamedTuple):
    """All pieces in the order of their ids, and the table by which characters are normalised."""

    pieces: list[Piece]
    characters: bytes


def parse(model: bytes) -> Spiece:
    """Read a model that sentencepiece has just written."""
    pieces, characters = [], b""
    for number, value, _ in _fields(model):
        if number == _PIECE:
            found = _values(value)
            (score,) = struct.unpack("<f", found.get(2, b"\0\0\0\0"))
            pieces.append(Piece(found[1].decode(), score))
        elif number == _NORMALIZER:
            characters = _values(value).get(2, b"")
    return Spiece(pieces, characters)


def without_paths(model: bytes) -> bytes:
    """The same model without the name of the file it was learned from, which is another one each time."""
    fields = []
    for number, value, whole in _fields(model):
        if number == _TRAINER:
            kept = b"".join(field for inner, _, field in _fields(value) if inner != _INPUT)
            whole = bytes([_TRAINER << 3 | _SIZED]) + _packed(len(kept)) + kept
        fields.append(whole)
    return b"".join(fields)


def _values(message: bytes) -> dict[int, bytes]:
    return {number: value for number, value, _ in _fields(message)}


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The number of each field, its value, and both as they stand there."""
    at = 0
    while at < len(message):
        begin = at
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        start = at
        if wire == _VARINT:
            _, at = _varint(message, at)
        elif wire == _SIZED:
            size, start = _varint(message, at)
            at = start + size
        else:
            assert wire in (_FOUR_BYTES, _EIGHT_BYTES), wire
            at += 4 if wire == _FOUR_BYTES else 8
        yield number, message[start:at], message[begin:at]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, and where it ends."""
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def _packed(number: int) -> bytes:
    """The same the other way round."""
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
