"""A directory or a file that appears whole or not at all: the one way bertkit writes to disk.

The content grows in a hidden sibling of its destination (see `workspace.py`). When it is whole, hashed and on the disk,
one rename shows it; whatever goes wrong before, what was there stays as it was.

A destination that is a symbolic link is followed once, at the start: what it points to is replaced, the link stays.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from bertkit import manifest as manifests
from bertkit import workspace as workspaces
from bertkit.errors import BertkitError
from bertkit.manifest import Manifest

_Result = TypeVar("_Result")

_FULL = {
    errno.ENOSPC: "the disk is full. Free some space, or give a path on another disk",
    errno.EDQUOT: "your disk quota is used up. Free some space, or give a path on another disk",
    errno.EFBIG: "a file is larger than this system allows. Raise `ulimit -f`, or give a path on another disk",
}
_DENIED = "permission denied. Give a path you may write to, or change the permissions of its parent directory"
_IN_THE_WAY = "a file stands where the path needs a directory. Give another path"
_REFUSED = dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _DENIED) | dict.fromkeys(
    (errno.EEXIST, errno.ENOTDIR), _IN_THE_WAY
)


@contextlib.contextmanager
def directory(
    path: str | os.PathLike[str], kind: str, *, overwrite: bool = False, facts: Mapping[str, Any] | None = None
) -> Iterator[Path]:
    """Fill the yielded directory; it becomes `path` when the block ends well, and vanishes when it does not.

    A `path` that exists and is not empty is refused before the work and again after it. `overwrite=True` replaces an
    artifact, and only one that holds nothing but its own files. `facts` are kept in the manifest; they are read at the
    end, so that a dict may be filled on the way.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with directory(Path(parent, "greeting"), "note", facts={"words": 1}) as temporary:
    ...         _ = (temporary / "hello.txt").write_text("hello")
    ...     found = verify(Path(parent, "greeting"))
    ...     print(found.kind, found.facts, found.files["hello.txt"].size)
    note {'words': 1} 5
    """
    destination = resolved(path)

    def check() -> None:
        _refuse_directory(destination, overwrite)

    def finish(content: Path) -> None:
        listed = Manifest(kind, facts or {}, manifests.measure(content))
        (content / manifests.NAME).write_text(listed.to_json(), encoding="utf-8")
        workspaces.sync_tree(content)
        workspaces.show_directory(content, destination, overwrite, check)

    with _growing(destination, check, finish) as content:
        content.mkdir()
        yield content


def require_free(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise what `directory` would raise about `path`, before work that takes long."""
    _refuse_directory(resolved(path), overwrite)


def require_apart(source: str | os.PathLike[str], destination: str | os.PathLike[str]) -> None:
    """Raise where what is written would replace what it is made from, or lie inside it."""
    here, there = resolved(source), resolved(destination)
    if here in (there, *there.parents):
        where = "is the source itself" if here == there else "lies inside the source"
        raise BertkitError(f"{os.fspath(destination)} {where}: give another directory to write to")


@contextlib.contextmanager
def file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Write to the yielded handle, seeking as you like; the file becomes `path` when the block ends well.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with file(Path(parent, "vectors.bin")) as handle:
    ...         _ = handle.write(b"header, body")
    ...     Path(parent, "vectors.bin").read_bytes()
    b'header, body'
    """
    destination = resolved(path)

    def check() -> None:
        refuse_file(destination, overwrite)

    def finish(content: Path) -> None:
        workspaces.sync(content)
        workspaces.show_file(content, destination, overwrite, check)

    with _growing(destination, check, finish) as content, content.open("wb") as handle:
        yield handle


def verify(path: str | os.PathLike[str]) -> Manifest:
    """The manifest of `path`, once every file it lists has its size and SHA-256; else an error naming the file.

    Files the manifest does not list are let be: users keep notes beside their models.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with directory(Path(parent, "greeting"), "note") as temporary:
    ...         _ = (temporary / "hello.txt").write_text("hello")
    ...     _ = Path(parent, "greeting", "hello.txt").write_text("hullo")
    ...     verify(Path(parent, "greeting"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bertkit.errors.BertkitError: ...greeting: 'hello.txt' has SHA-256 ... where ... was written. Restore it from ...
    """
    return _read(path, manifests.verify)


def read_manifest(path: str | os.PathLike[str]) -> Manifest | None:
    """The manifest of the directory `path` without hashing its files; None when bertkit did not write it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as foreign:
    ...     print(read_manifest(foreign))
    None
    """
    return _read(path, manifests.read)


def recover(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a directory, once one that a killed writer had taken away is put back."""
    root = resolved(path)
    if not root.exists():
        workspaces.recover(root)
    return root.is_dir()


def _read(path: str | os.PathLike[str], reader: Callable[[Path], _Result]) -> _Result:
    """Read a directory that another process may replace meanwhile: what failed half-way is read again if it is new."""
    root = resolved(path)
    try:
        while True:
            with _held(root) as opened:
                try:
                    return reader(root)
                except (BertkitError, OSError):
                    if root.is_dir() and os.path.samestat(os.fstat(opened), root.stat()):
                        raise
    except OSError as error:
        raise BertkitError(f"{root} cannot be read: {error}. Check the permissions and the disk.") from error


@contextlib.contextmanager
def _held(root: Path) -> Iterator[int]:
    """The directory, kept open: while it is, no directory that replaces it can have its number."""
    opened = None
    while opened is None:  # a writer that renames twice takes it away for a moment
        if not recover(root):
            raise BertkitError(f"{root} {'is not a directory' if root.exists() else 'does not exist'}. Check the path.")
        with contextlib.suppress(FileNotFoundError):
            opened = os.open(root, os.O_RDONLY)
    try:
        yield opened
    finally:
        os.close(opened)


def resolved(path: str | os.PathLike[str]) -> Path:
    """The path without links and dots; an error where no file could ever have it."""
    try:
        root = Path(path).resolve()
        root.exists()  # asks the system, which may find the name impossible
        return root
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a NUL
        reason = getattr(error, "strerror", None) or error
        raise BertkitError(f"{os.fspath(path)[:80]!r} is no usable path: {reason}. Give another path.") from error


@contextlib.contextmanager
def _growing(destination: Path, check: Callable[[], None], finish: Callable[[Path], None]) -> Iterator[Path]:
    """Where the content grows: a path in a workspace that is gone at the end, whatever happens."""
    with explained(destination):
        workspaces.clean(destination)
        check()
        workspace = workspaces.Workspace.open(destination)
    try:
        with explained(destination, caller=True):
            yield workspace.content
        with explained(destination):
            finish(workspace.content)
            workspaces.sync(destination.parent)
    finally:
        workspace.close()


@contextlib.contextmanager
def explained(destination: Path, caller: bool = False) -> Iterator[None]:
    """Turn what a disk refuses into one error that says which path and what to do.

    In the caller's block only a full disk is ours to explain: it may fail to open its own inputs as well.
    """
    try:
        yield
    except BertkitError:
        raise
    except Exception as error:
        number = _errno(error)
        if not number or (caller and number not in _FULL):
            raise
        remedy = (_FULL | _REFUSED).get(number, f"{os.strerror(number)}. Give another path")
        raise BertkitError(f"{destination} was not written: {remedy}. What was there is unchanged.") from error


def _errno(error: Exception) -> int:
    """Which system error this is, 0 for none; safetensors is Rust and tells it in the text only."""
    if isinstance(error, OSError):
        return error.errno or 0
    told = re.search(r"\(os error (\d+)\)", str(error))
    return int(told[1]) if told else 0


def _refuse_directory(destination: Path, overwrite: bool) -> None:
    if not destination.exists():
        return
    if not destination.is_dir():
        raise BertkitError(f"{destination} is a file, and a directory is to be written. Give another path.")
    if not any(destination.iterdir()):
        return
    if not overwrite:
        raise BertkitError(
            f"{destination} exists and is not empty. Give another path, or overwrite=True (--overwrite)."
        )
    present = manifests.read(destination)
    if present is None:
        raise BertkitError(f"{destination} was not written by bertkit and is not replaced. Give another path.")
    extra = manifests.unlisted(destination, present)
    if extra:
        shown = ", ".join(map(repr, extra[:5])) + (f" and {len(extra) - 5} more" if len(extra) > 5 else "")
        raise BertkitError(f"{destination} is not replaced: it also holds {shown}. Move them, or give another path.")


def refuse_file(destination: Path, overwrite: bool) -> None:
    """Raise where a file must not be written: something else is there, or a file that may not be replaced."""
    if destination.exists() and not destination.is_file():
        raise BertkitError(f"{destination} is not a regular file and is not replaced. Give another path.")
    if destination.exists() and not overwrite:
        raise BertkitError(f"{destination} exists. Give another path, or overwrite=True (--overwrite).")
