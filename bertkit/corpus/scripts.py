"""Scripts: what kind of character each code point is, by Unicode's ranges and categories.

Letters belong to a script; digits, punctuation, symbols, spaces and what cannot be seen are kinds of their own.

>>> from collections import Counter
>>> Counter(NAMES[kind] for kind in kinds(codes("Nice, 北京!")).tolist())
Counter({'Latin': 4, 'punctuation': 2, 'Han': 2, 'spaces': 1})
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_RANGES = {
    "Latin": "0041-02FF 1D00-1DBF 1E00-1EFF 2071-209C 2183-2184 2C60-2C7F A720-A7FF AB30-AB6F FB00-FB06 FF21-FF5A",
    "Han": "2E80-2FDF 3005-3007 3400-4DBF 4E00-9FFF F900-FAFF 20000-323AF",
    "Hiragana": "3041-309F 1B001-1B11F",
    "Katakana": "30A0-30FF 31F0-31FF FF66-FF9F 1B000-1B000",
    "Hangul": "1100-11FF 3130-318F A960-A97F AC00-D7FF FFA0-FFDC",
    "Bopomofo": "3100-312F 31A0-31BF",
    "Yi": "A000-A4CF",
    "Greek": "0370-03E1 03F0-03FF 1F00-1FFF",
    "Cyrillic": "0400-052F 1C80-1C8F 2DE0-2DFF A640-A69F",
    "Armenian": "0530-058F FB13-FB17",
    "Georgian": "10A0-10FF 1C90-1CBF 2D00-2D2F",
    "Hebrew": "0590-05FF FB1D-FB4F",
    "Arabic": "0600-06FF 0750-077F 0870-08FF FB50-FDFF FE70-FEFE",
    "Syriac": "0700-074F 0860-086F",
    "Thaana": "0780-07BF",
    "Devanagari": "0900-097F A8E0-A8FF",
    "Bengali": "0980-09FF",
    "Gurmukhi": "0A00-0A7F",
    "Gujarati": "0A80-0AFF",
    "Oriya": "0B00-0B7F",
    "Tamil": "0B80-0BFF",
    "Telugu": "0C00-0C7F",
    "Kannada": "0C80-0CFF",
    "Malayalam": "0D00-0D7F",
    "Sinhala": "0D80-0DFF",
    "Thai": "0E00-0E7F",
    "Lao": "0E80-0EFF",
    "Tibetan": "0F00-0FFF",
    "Myanmar": "1000-109F A9E0-A9FF AA60-AA7F",
    "Khmer": "1780-17FF",
    "Ethiopic": "1200-139F 2D80-2DDF AB00-AB2F",
    "Cherokee": "13A0-13FF AB70-ABBF",
    "Canadian syllabics": "1400-167F 18B0-18FF",
    "Mongolian": "1800-18AF",
}
_OTHERS = ("other letters", "combining marks", "digits", "punctuation", "symbols", "spaces", "invisible", "control")
NAMES = (*_RANGES, *_OTHERS, "unassigned")
"""Kinds of characters; a kind is its place here. Words are made of those up to digits."""
HAN, HIRAGANA, KATAKANA = 1, 2, 3
LETTERS, MARKS, DIGITS, PUNCTUATION, SYMBOLS, SPACES, INVISIBLE, CONTROL, UNASSIGNED = range(len(_RANGES), len(NAMES))

_CATEGORIES = {"N": DIGITS, "P": PUNCTUATION, "S": SYMBOLS, "Z": SPACES, "Cc": CONTROL, "Cf": INVISIBLE}
_SETTLED = 0x32400
"""beyond it Unicode has nothing yet but selectors and places for private use"""
_ALL = 0x110000


def codes(text: str) -> Array:
    """The code points of a text, [C]."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def kinds(points: Array) -> Array:
    """The kind of each code point, [C]."""
    found: Array = _table()[points]
    return found


def small(points: Array) -> Array:
    """The code points with capitals made small, where that is one character, [C]."""
    found: Array = _lower()[points]
    return found


def is_white(points: Array) -> Array:
    """Whether Python takes each for white space, [C]."""
    found: Array = _white()[points]
    return found


@cache
def _table() -> Array:
    table = np.full(_ALL, UNASSIGNED, np.uint8)
    scripts = np.full(_ALL, LETTERS, np.uint8)
    for number, ranges in enumerate(_RANGES.values()):
        for first, last in (part.split("-") for part in ranges.split()):
            scripts[int(first, 16) : int(last, 16) + 1] = number
    for code in range(_SETTLED):
        category = unicodedata.category(chr(code))
        if category[0] in "LM":
            alone = category[0] == "M" and scripts[code] == LETTERS
            table[code] = MARKS if alone else scripts[code]
        else:
            table[code] = _CATEGORIES.get(category, _CATEGORIES.get(category[0], UNASSIGNED))
    table[[9, 10, 13]] = SPACES
    table[0xE0001:0xE0080] = INVISIBLE
    table[0xE0100:0xE01F0] = MARKS
    return table


@cache
def _lower() -> Array:
    table = np.arange(_ALL, dtype=np.uint32)
    for code in range(0x1E944):  # the last capital
        lowered = chr(code).lower()
        if len(lowered) == 1:
            table[code] = ord(lowered)
    return table


@cache
def _white() -> Array:
    table = np.zeros(_ALL, bool)
    table[[code for code in range(0x3001) if chr(code).isspace()]] = True
    return table
