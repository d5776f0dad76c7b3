"""The values of a JSON file, one after the other, however they are spread over lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError
from bertkit.tasks.unpacked import reading

BLOCK = 2**16
"""characters that are read at a time"""
LONGEST_WORD = 16
"""characters of the longest word of JSON, such as -Infinity or \\ud83d\\ude00, and some more"""
_SPACE = re.compile(r"[ \t\r\n]*")


def values(path: Path) -> Iterator[tuple[int, Any]]:
    """The line in which each value begins, and the value; no more than one and a block are held at a time."""
    decoder = json.JSONDecoder()
    with reading(path) as file:
        held, at, line = "", 0, 1
        while True:
            begin = _end_of_space(held, at)
            line, at = line + held.count("\n", at, begin), begin
            try:
                value, end = decoder.raw_decode(held, at)
            except json.JSONDecodeError as error:
                # as much again and more, so that a long value is not tried too often
                more = "" if _is_wrong(error) else file.read(max(BLOCK, 3 * (len(held) - at)))
                if not more and at < len(held):
                    number = line + held.count("\n", at, error.pos)
                    raise BertkitError(f"{path}, row {line} is not JSON: {error.msg} (line {number})") from None
                if not more:
                    return
                held, at = held[at:] + more, 0
            except (ValueError, RecursionError) as error:  # a number of 5000 digits; 5000 lists in each other
                raise BertkitError(f"{path}, row {line} is not JSON that can be read: {error}") from None
            else:
                yield line, value
                line, at = line + held.count("\n", at, end), end


def _is_wrong(error: json.JSONDecodeError) -> bool:
    """Whether more text would not help: it is wrong before its end, and no text that goes on."""
    return error.pos < len(error.doc) - LONGEST_WORD and not error.msg.startswith("Unterminated string")


def _end_of_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None  # it matches nothing as well
    return found.end()
