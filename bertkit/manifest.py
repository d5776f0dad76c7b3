"""What an artifact holds: every file with its size and SHA-256, listed in one JSON file beside them.

A manifest comes from outside as much as a model does, so reading one trusts nothing: it is bounded in size, every value
is checked, and only regular files found below the directory are ever opened. Links are never followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bertkit import __version__
from bertkit.errors import BertkitError

NAME = "bertkit-manifest.json"  # many tools write a manifest.json; nobody else writes this one
FORMAT = 1
LARGEST = 64 * 2**20  # bytes, some 400,000 files; a bigger one was not made here and would only fill memory


@dataclass(frozen=True)
class File:
    """The size in bytes and the SHA-256 a file had when it was written."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a directory is (`kind`, `facts`), which bertkit wrote it, and its files by their relative names."""

    kind: str
    facts: Mapping[str, Any]
    files: Mapping[str, File]
    bertkit: str = __version__

    def to_json(self) -> str:
        """The same text for the same content: sorted, and without a clock."""
        files = {name: {"bytes": file.size, "sha256": file.sha256} for name, file in self.files.items()}
        content = {"format": FORMAT, "kind": self.kind, "bertkit": self.bertkit, "facts": self.facts, "files": files}
        return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def measure(root: Path) -> dict[str, File]:
    """The size and hash of every file below `root`; links, pipes and sockets are refused."""
    regular, others = scan(root)
    if others:
        raise BertkitError(f"{others[0]!r} is a link or a device and cannot be saved. Copy the file itself instead.")
    return {name: _measure(path) for name, path in regular.items() if name != NAME}


def unlisted(root: Path, manifest: Manifest) -> list[str]:
    """What lies below `root` and is not of the artifact: a user's own notes, most often."""
    regular, others = scan(root)
    return sorted({*regular, *others} - {*manifest.files, NAME})


def read(root: Path) -> Manifest | None:
    """The manifest of a directory; None when it has none, so when bertkit did not write it.

    A manifest that is a link counts as none: we write no links, but the Hub's cache is made of them, and a model that
    went through the Hub is a foreign directory.
    """
    path = root / NAME
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as handle:
        text = handle.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise _unusable(path, f"it is larger than {LARGEST} bytes")
    return _parse(path, text)


def verify(root: Path) -> Manifest:
    """Compare every listed file with its size and hash; the manifest when all agree."""
    manifest = read(root)
    if manifest is None:
        raise BertkitError(f"{root} has no {NAME}: bertkit did not write it, so there is nothing to verify it against.")
    regular, others = scan(root)
    for name, expected in manifest.files.items():
        if name in others:
            raise _damaged(root, name, "is a link or a device where a file was written")
        if name not in regular:
            raise _damaged(root, name, f"is missing ({expected.size} bytes were written)")
        _compare(root, name, regular[name], expected)
    return manifest


def scan(root: Path) -> tuple[dict[str, Path], list[str]]:
    """The regular files below `root` by relative name, and the names of all else that is no directory."""
    regular: dict[str, Path] = {}
    others: list[str] = []
    pending = [root]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                path = Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.is_file(follow_symlinks=False):
                    regular[path.relative_to(root).as_posix()] = path
                else:
                    others.append(path.relative_to(root).as_posix())
    return regular, others


def _measure(path: Path) -> File:
    with path.open("rb") as handle:
        return File(os.fstat(handle.fileno()).st_size, hashlib.file_digest(handle, "sha256").hexdigest())


def _compare(root: Path, name: str, path: Path, expected: File) -> None:
    size = path.stat().st_size
    if size != expected.size:  # before hashing gigabytes
        raise _damaged(root, name, f"has {size} bytes where {expected.size} were written")
    found = _measure(path)
    if found != expected:
        raise _damaged(root, name, f"has SHA-256 {found.sha256} where {expected.sha256} was written")


def _damaged(root: Path, name: str, how: str) -> BertkitError:
    return BertkitError(
        f"{root}: {name!r} {how}. Restore it from a copy; or, if you changed it on purpose, delete {NAME} beside it."
    )


def _unusable(path: Path, why: str) -> BertkitError:
    return BertkitError(f"{path} cannot be used: {why}. Restore it from a copy, or write the directory again.")


def _parse(path: Path, text: bytes) -> Manifest:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unusable(path, f"it is not JSON ({error})") from error
    if not isinstance(content, dict) or type(content.get("format")) is not int:
        raise _unusable(path, 'it has no "format" number')
    if content["format"] != FORMAT:
        given = content["format"]
        raise BertkitError(f"{path} has format {given}; bertkit {__version__} reads format {FORMAT}. Upgrade bertkit.")
    types = {"kind": str, "bertkit": str, "facts": dict, "files": dict}
    for key, kind in types.items():
        if not isinstance(content.get(key), kind):
            raise _unusable(path, f"{key!r} is not a {kind.__name__}")
    files = {name: _file(path, name, value) for name, value in content["files"].items()}
    return Manifest(content["kind"], content["facts"], files, content["bertkit"])


def _file(path: Path, name: str, value: object) -> File:
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts or "/".join(parts) != name or "\0" in name:
        raise _unusable(path, f"it lists {name!r}, which is not a plain path inside the directory")
    match value:
        case {"bytes": int(size), "sha256": str(sha256)} if size >= 0 and re.fullmatch("[0-9a-f]{64}", sha256):
            return File(size, sha256)
    raise _unusable(path, f"{name!r} has no valid size and SHA-256")
