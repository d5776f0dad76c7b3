"""SentencePiece's model file, a message of Google's protocol buffers: what a tokenizer needs of it.

https://protobuf.dev/programming-guides/encoding/: a field is a number and a wire type, then a value. The fields are
those of sentencepiece_model.proto; a file that is cut short or damaged is refused.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

from bertkit.errors import BertkitError

_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5
_PIECE, _TRAINER, _NORMALIZER = 1, 2, 3
_INPUT, _MODEL_TYPE = 1, 3  # of the trainer
_CHARACTERS = 2  # of the normaliser
_TEXT, _SCORE, _SORT = 1, 2, 3  # of a piece

UNIGRAM = 1
"""the first of sentencepiece's ways to learn a vocabulary"""
NORMAL, UNKNOWN, CONTROL, USER = 1, 2, 3, 4
"""sorts of pieces: learned, the one for what cannot be spelled, such as [CLS], and those that a user wanted whole"""


class Piece(NamedTuple):
    """A token, the logarithm of its probability, and its sort."""

    text: str
    score: float
    sort: int = NORMAL


class Spiece(NamedTuple):
    """All pieces in the order of their ids, and the table by which characters are normalised."""

    pieces: list[Piece]
    characters: bytes
    model_type: int = UNIGRAM


def parse(model: bytes, source: str) -> Spiece:
    """Read the bytes of a model file; errors name the source."""
    try:
        pieces, characters, model_type = [], b"", UNIGRAM
        for number, value, _ in _fields(model):
            if number == _PIECE:
                pieces.append(_piece(value))
            elif number == _TRAINER:
                model_type = _number(_values(value).get(_MODEL_TYPE), UNIGRAM)
            elif number == _NORMALIZER:
                characters = _values(value).get(_CHARACTERS, b"")
    except (ValueError, IndexError, struct.error) as error:  # a UnicodeDecodeError is a ValueError
        raise BertkitError(
            f"{source} is not a model of sentencepiece, or it was damaged ({error}); copy or download it again"
        ) from None
    if not pieces:
        raise BertkitError(f"{source} holds no pieces: it is not a model of sentencepiece; copy or download it again")
    return Spiece(pieces, characters, model_type)


def without_paths(model: bytes) -> bytes:
    """The same model without the name of the file it was learned from, which is another one each time."""
    fields = []
    for number, value, whole in _fields(model):
        if number == _TRAINER:
            kept = b"".join(field for inner, _, field in _fields(value) if inner != _INPUT)
            whole = bytes([_TRAINER << 3 | _SIZED]) + _packed(len(kept)) + kept
        fields.append(whole)
    return b"".join(fields)


def _piece(message: bytes) -> Piece:
    found = _values(message)
    (score,) = struct.unpack("<f", found.get(_SCORE, b"\0\0\0\0"))
    if not math.isfinite(score):
        raise ValueError("a score is no number")
    return Piece(found.get(_TEXT, b"").decode(), score, _number(found.get(_SORT), NORMAL))


def _number(value: bytes | None, default: int) -> int:
    return default if value is None else _varint(value, 0)[0]


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
        elif wire in (_FOUR_BYTES, _EIGHT_BYTES):
            at += 4 if wire == _FOUR_BYTES else 8
        else:
            raise ValueError(f"byte {begin} begins no field")
        if at > len(message):
            raise ValueError(f"it ends inside the field that begins at byte {begin}")
        yield number, message[start:at], message[begin:at]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, and where it ends."""
    number = shift = 0
    while shift < 70:  # ten bytes hold the largest number there is
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
    raise ValueError(f"the number at byte {at} does not end")


def _packed(number: int) -> bytes:
    """The same the other way round."""
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
