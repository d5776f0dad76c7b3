"""Words on a terminal: nothing is cut that a user may want to copy, and no text can send it control codes."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

_CONTROL = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), "·")
_LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON in readable characters, or in escapes where standard output is not UTF-8.

    Line ends other than \\n are always escapes, for readers that split at them. What is no number is null.

    >>> as_json({"pearson": float("nan")})
    '{"pearson": null}'
    """
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return _dumped(value, indent, plain=encoding != "utf8")


def json_line(value: Any) -> bytes:
    r"""The same as a line of a UTF-8 file, which has escapes for halves of characters.

    >>> json_line({"text": "猫\ud800"}).decode()
    '{"text": "猫\\ud800"}\n'
    """
    return (_dumped(value, None, plain=False) + "\n").encode("utf-8", "backslashreplace")


def _dumped(value: Any, indent: int | None, plain: bool) -> str:
    try:
        text = json.dumps(value, ensure_ascii=plain, indent=indent, allow_nan=False)
    except ValueError:  # JSON has no word for it, and its readers refuse Python's
        text = json.dumps(_numbers(value), ensure_ascii=plain, indent=indent)
    return text.translate(_LINE_ENDS)


def _numbers(value: Any) -> Any:
    """The same with None in place of NaN and the infinities."""
    if isinstance(value, Mapping):
        return {key: _numbers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_numbers(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def one_line(text: str, longest: int | None = None) -> str:
    """The text with a dot for each line break and other control character, shortened to `longest`.

    >>> one_line("two\\nlines and more", 10)
    'two·lines…'
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    return text.translate(_CONTROL)


def columns(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Rows under each other, aligned also where characters are two cells wide; `right` says which columns are numbers.

    >>> print(columns([("token", "id"), ("猫", "7"), ("cat", "42")], (False, True)))
    token  id
    猫      7
    cat    42
    """
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = []
        for cell, width, numeric in zip(row, widths, right, strict=True):
            gap = " " * (width - cell_len(cell))
            cells.append(gap + cell if numeric else cell + gap)
        return "  ".join(cells).rstrip()

    return "\n".join(map(line, rows))


def facts(values: Mapping[str, Any]) -> str:
    """One fact per line for a reader: numbers with separators, lists with commas, long ones folded between words.

    >>> print(facts({"heads": ["mlm", "pooler"], "parameters": 22713216, "is_lowercase": True}))
    heads         mlm, pooler
    parameters    22,713,216
    is lowercase  yes
    """
    names = {key: key.replace("_", " ") for key in values}
    indent = max(map(len, names.values())) + 2
    width = max(shutil.get_terminal_size().columns, indent + 20)
    return "\n".join(
        textwrap.fill(
            _fact(value),
            width,
            initial_indent=names[key].ljust(indent),
            subsequent_indent=" " * indent,
            break_long_words=False,  # a path stays whole, to be copied
            break_on_hyphens=False,
        )
        for key, value in values.items()
    )


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return one_line(str(value))
