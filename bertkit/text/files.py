"""One file of a tokenizer's directory, read whole or refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError


def read_text(path: Path) -> str:
    """The file as str; a byte-order mark and Windows line ends are dropped, anything but UTF-8 is an error."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BertkitError(
            f"{path} is not UTF-8 (byte {error.start} is 0x{error.object[error.start]:02x}); save it again as UTF-8"
        ) from error
    except OSError as error:
        raise BertkitError(f"cannot read {path}: {error.strerror}") from error
    if text.startswith("version https://git-lfs"):
        raise BertkitError(f"{path} is a Git LFS pointer, not the file itself: run `git lfs pull` where it came from")
    return text


def read_lines(path: Path) -> list[str]:
    """The file's lines. Only line ends separate them: str.splitlines would also cut at characters that are tokens."""
    lines = read_text(path).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def read_object(path: Path) -> dict[str, Any]:
    """The file as a JSON object; an absent file is an empty one."""
    if not path.exists():
        return {}
    text = read_text(path)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise BertkitError(
            f"{path} is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg}); "
            "it may have been cut short: copy or download it again"
        ) from error
    except ValueError as error:  # Python refuses numbers of thousands of digits
        raise BertkitError(f"{path} holds a number too long to read; copy or download it again") from error
    except RecursionError as error:
        raise BertkitError(f"{path} is nested too deeply for a tokenizer's file; copy or download it again") from error
    if not isinstance(value, dict):
        raise BertkitError(f"{path} must hold a JSON object {{...}}, not {type(value).__name__}")
    return value


def read_bytes(path: Path) -> bytes:
    """The file as bytes."""
    try:
        found = path.read_bytes()
    except OSError as error:
        raise BertkitError(f"cannot read {path}: {error.strerror}") from error
    if found.startswith(b"version https://git-lfs"):
        raise BertkitError(f"{path} is a Git LFS pointer, not the file itself: run `git lfs pull` where it came from")
    return found


def read_flag(config: Mapping[str, Any], key: str, default: bool, source: Path) -> bool:
    """A setting that is true or false.

    >>> read_flag({"keep_accents": True}, "keep_accents", False, Path("tokenizer_config.json"))
    True
    """
    value = config.get(key, default)
    if not isinstance(value, bool):
        raise BertkitError(f"{source}: {key} is {value!r}; write one of true, false")
    return value


def write_object(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object that people can read and diff."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
