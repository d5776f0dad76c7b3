"""Chunks: the pieces of a text that WordPiece reads independently of each other.

A chunk is a run without white space, except that every Chinese character is one of its own, and so is a row of Chinese
sentence marks with the quotes that close after it. BERT puts spaces around Chinese characters and cuts at every
punctuation mark, so the tokens of a text are the tokens of its chunks in a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

_RANGES = (
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
)
"""What `tokenizers` puts spaces around: Google's ranges without U+2B820 to U+2B91F."""
CHINESE = "".join(f"{chr(first)}-{chr(last)}" for first, last in _RANGES)
"""The same as a class of a pattern."""
WIDE_MARKS = "。！？｡︒"
CLOSERS = "\"')]}»”’›」』）】》〉］｝"

_ALONE = rf"[{CHINESE}]|[{WIDE_MARKS}]+[{re.escape(CLOSERS)}]*"
_ONE = re.compile(f"[{CHINESE}]")
_WIDE = re.compile(_ALONE)
_CHUNK = re.compile(rf"{_ALONE}|[^\s{CHINESE}{WIDE_MARKS}]+")

_IS_WIDE = np.zeros(_RANGES[-1][1] + 2, bool)
for _first, _last in _RANGES:
    _IS_WIDE[_first : _last + 1] = True
_IS_WIDE[[ord(mark) for mark in WIDE_MARKS]] = True

# Python takes these for white space, BERT drops them: another character that BERT drops stands in for them
_ODD = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"
_STAND_IN = str.maketrans(dict.fromkeys(_ODD, "\u200b"))


def spaced(text: str) -> str:
    """The text with white space around every chunk: `.split()` gives the chunks.

    >>> spaced("我爱 BERT。好").split()
    ['我', '爱', 'BERT', '。', '好']
    """
    text = tamed(text)
    if text.isascii():
        return text
    places = _wide_places(text)
    if len(places) * 16 > len(text):
        return " ".join(_CHUNK.findall(text))
    parts, done = list[str](), 0  # the pattern would look at every character; there are few to look at
    for place in places:
        if place >= done:
            found = _WIDE.match(text, place)
            assert found is not None
            parts += text[done:place], found[0]
            done = found.end()
    return " ".join([*parts, text[done:]])


def is_chinese(chunk: str) -> bool:
    """Whether a chunk is one Chinese character.

    >>> is_chinese("猫"), is_chinese("cat"), is_chinese("。")
    (True, False, False)
    """
    return len(chunk) == 1 and chunk > "\u3000" and _ONE.match(chunk) is not None


def has_chinese(text: str) -> bool:
    """Whether there is a Chinese character in a text (or a mark that is written with them)."""
    return not text.isascii() and bool(len(_wide_places(text)))


def tamed(text: str) -> str:
    """The text without characters that Python and BERT disagree about; ids and lengths stay."""
    return text.translate(_STAND_IN) if any(odd in text for odd in _ODD) else text


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each chunk starts and ends.

    >>> list(spans("a b"))
    [(0, 1), (2, 3)]
    """
    return (found.span() for found in _CHUNK.finditer(tamed(text)))


def _wide_places(text: str) -> list[int]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.flatnonzero(np.take(_IS_WIDE, codes, mode="clip")).tolist()
