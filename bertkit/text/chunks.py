"""Chunks: the pieces of a text that WordPiece reads independently of each other.

A chunk is a run without white space, except that every Chinese character is one of its own, and so is a row of Chinese
sentence marks with the quotes that close after it. BERT puts spaces around Chinese characters and cuts at every
punctuation mark, so the tokens of a text are the tokens of its chunks in a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

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

# what Python takes for white space beyond ASCII
_SPACES = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

_IS_WIDE = np.zeros(_RANGES[-1][1] + 2, bool)
for _first, _last in _RANGES:
    _IS_WIDE[_first : _last + 1] = True
_IS_WIDE[[ord(mark) for mark in WIDE_MARKS]] = True
_IS_APART = _IS_WIDE.copy()
_IS_APART[[ord(space) for space in _SPACES]] = True

# Python takes these for white space, BERT drops them: another character that BERT drops stands in for them
_ODD = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"
_STAND_IN = str.maketrans(dict.fromkeys(_ODD, "\u200b"))


def spaced(text: str) -> str:
    """The text with " ", or \\t, \\n or \\r that were there, around every chunk, and no other white space.

    >>> spaced("我爱 BERT。好").split()
    ['我', '爱', 'BERT', '。', '好']
    """
    text = tamed(text)
    if text.isascii():
        return text
    places = _places(text, _IS_APART)
    if len(places) * 16 > len(text):
        return " ".join(_CHUNK.findall(text))
    parts, done = list[str](), 0  # the pattern would look at every character; there are few to look at
    for place in places:
        if place >= done:
            found = _WIDE.match(text, place)
            parts += text[done:place], found[0] if found else ""
            done = found.end() if found else place + 1
    return " ".join([*parts, text[done:]])


def is_chinese(chunk: str) -> bool:
    """Whether a chunk is one Chinese character.

    >>> is_chinese("猫"), is_chinese("cat"), is_chinese("。")
    (True, False, False)
    """
    return len(chunk) == 1 and chunk > "\u3000" and _ONE.match(chunk) is not None


def are_chinese(chunks: Sequence[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """`is_chinese` each, [N]."""
    return np.array([is_chinese(chunk) for chunk in chunks], bool)


def has_chinese(text: str) -> bool:
    """Whether there is a Chinese character in a text (or a mark that is written with them)."""
    return not text.isascii() and bool(_places(text, _IS_WIDE))


def tamed(text: str) -> str:
    """The text without characters that Python and BERT disagree about; ids and lengths stay."""
    return text.translate(_STAND_IN) if any(odd in text for odd in _ODD) else text


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each chunk starts and ends.

    >>> list(spans("a b"))
    [(0, 1), (2, 3)]
    """
    return (found.span() for found in _CHUNK.finditer(tamed(text)))


def _places(text: str, kind: np.ndarray[Any, np.dtype[Any]]) -> list[int]:
    """Where characters of this kind stand."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    found: list[int] = np.flatnonzero(np.take(kind, codes, mode="clip")).tolist()
    return found
