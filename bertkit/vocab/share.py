"""Shares: a fixed part of the documents is held out, by what they say, wherever they stand in the files.

A document that occurs twice is on the same side both times, so that held-out text is new text.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

LONG = 100_000
"""characters of a document beyond which its lines are taken one by one: no empty lines seem to part documents there"""

_BETWEEN = re.compile(r"\n[ \t\r]*\n\s*")


def split(text: str, fraction: float) -> tuple[str, str]:
    """The text without the held-out documents, and these.

    >>> text = "\\n\\n".join(f"document {number}" for number in range(100))
    >>> kept, held = split(text, 0.1)
    >>> len(kept.split("\\n\\n")), len(held.split("\\n\\n"))
    (89, 11)
    """
    if not fraction:
        return text, ""
    bound = int(fraction * 2**32)
    kept: list[str] = []
    held: list[str] = []
    for unit in _units(text):
        (held if _number(unit) < bound else kept).append(unit)
    return "\n\n".join(kept), "\n\n".join(held)


def _number(unit: str) -> int:
    """A number below 2³² that only the text decides, mixed because checksums of similar texts are similar."""
    return zlib.crc32(unit.strip().encode("utf-8", "surrogatepass")) * 0x9E3779B1 % 2**32


def _units(text: str) -> Iterator[str]:
    for document in _BETWEEN.split(text):
        if len(document) > LONG:
            yield from document.split("\n")
        else:
            yield document
