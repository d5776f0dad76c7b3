"""The hidden sibling where an artifact grows, `.NAME.<random>.tmp/`, and the moment it takes its place.

A workspace holds a `lock` file, which its writer keeps locked, and the `new` content. A writer that is killed leaves a
workspace whose lock is free, so the next writer to the same destination removes it without guessing at process numbers.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LOCK = "lock"
_NEW = "new"
_OLD = "old"  # the previous artifact between two renames: always whole under this name, never deleted under it
_TRASH = "trash"


@dataclass(frozen=True)
class Workspace:
    """One writer's own, from `open` to `close`."""

    path: Path
    lock: int

    @classmethod
    def open(cls, destination: Path) -> Workspace:
        """Beside `destination`, so that a rename between them stays on one filesystem."""
        _make_directory(destination.parent)
        while True:  # a cleaner may take a workspace in the moment before it is locked: then make another
            path = destination.with_name(f".{destination.name}.{secrets.token_hex(8)}.tmp")
            path.mkdir()
            lock = _lock(path, wait=True)
            if lock is not None:
                return cls(path, lock)

    @property
    def content(self) -> Path:
        """Where the new artifact grows."""
        return self.path / _NEW

    def close(self) -> None:
        """Remove it, unless it holds the only copy of the previous artifact, which `recover` puts back."""
        if not (self.path / _OLD).exists():
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def clean(destination: Path) -> None:
    """Remove the workspaces that killed writers to `destination` left; those of living writers are let be."""
    for path in _beside(destination):
        _settle(path, destination, wait=False)


def recover(destination: Path) -> None:
    """Put back the artifact that a writer took away and was killed before it placed the new one."""
    for path in _beside(destination):
        if (path / _OLD).exists():
            _settle(path, destination, wait=True)


def _beside(destination: Path) -> list[Path]:
    ours = re.compile(rf"\.{re.escape(destination.name)}\.[0-9a-f]{{16}}\.tmp")
    if not destination.parent.is_dir():
        return []
    return [path for path in destination.parent.iterdir() if ours.fullmatch(path.name) and not path.is_symlink()]


def _settle(path: Path, destination: Path, wait: bool) -> None:
    lock = _lock(path, wait)
    if lock is None:
        return
    old = path / _OLD
    with contextlib.suppress(FileNotFoundError):
        old.rename(old.with_name(_TRASH) if destination.exists() else destination)
    Workspace(path, lock).close()


def _lock(workspace: Path, wait: bool) -> int | None:
    """The lock as an open descriptor; None when another process holds it or the workspace is gone.

    The kernel frees it when its holder dies, however it dies. It is a file because NFS locks no directories.
    """
    path = workspace / LOCK
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if wait and not isinstance(error, FileNotFoundError):
            raise
        return None  # gone, or another user's
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        held = True
    except OSError:  # held by another; or a filesystem without locks, where we may write but must not clean
        held = wait
    with contextlib.suppress(FileNotFoundError):
        if held and os.path.samestat(os.fstat(lock), path.stat()):
            return lock
    os.close(lock)
    return None


def claim(directory: Path) -> int | None:
    """The lock of a directory, which is made where it is not there; None while another process holds it."""
    while True:  # whoever held it last may take it away before we lock it: then make it again
        _make_directory(directory)
        path = directory / LOCK
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                return None
            except OSError:  # a filesystem without locks, where we may write all the same
                pass
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), path.stat()):
                    return lock
            os.close(lock)


def leave(directory: Path, lock: int, remove: bool) -> None:
    """Give a claimed directory back; `remove` takes it away if nothing but the lock is in it."""
    if remove:
        with contextlib.suppress(OSError):
            (directory / LOCK).unlink()
            directory.rmdir()
    os.close(lock)


def show_directory(content: Path, destination: Path, overwrite: bool, check: Callable[[], None]) -> None:
    """Make `content` appear at `destination`; `check` raises when what is there must stay."""
    while True:  # until one step succeeds: other writers may come and go between the look and the step
        check()
        try:
            content.rename(destination)  # refused by the system where anything is, except an empty directory
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if overwrite:
            check()
            with contextlib.suppress(FileNotFoundError):
                if not _exchange(content, destination):
                    _rename_twice(content, destination)
                return


def show_file(content: Path, destination: Path, overwrite: bool, check: Callable[[], None]) -> None:
    """Make `content` appear at `destination`; `check` raises when what is there must stay."""
    check()
    if overwrite:
        content.replace(destination)
        return
    try:
        destination.hardlink_to(content)  # unlike a rename, it replaces nothing that came meanwhile
    except FileExistsError:
        check()
        raise
    except OSError:  # a filesystem without hard links
        content.replace(destination)


def _rename_twice(content: Path, destination: Path) -> None:
    """For systems that cannot exchange. Killed in between, the old artifact is whole in its workspace: `recover`."""
    old = content.with_name(_OLD)
    destination.rename(old)
    try:
        content.rename(destination)
    except OSError:
        old.rename(destination)
        raise
    old.rename(old.with_name(_TRASH))


def _exchange(one: Path, other: Path) -> bool:
    """Swap two directories in one step; False where the system or the filesystem cannot."""
    library = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            failed = library.renamex_np(first, second, ctypes.c_uint(2))  # RENAME_SWAP
        else:
            here = -100  # AT_FDCWD
            failed = library.renameat2(here, first, here, second, ctypes.c_uint(2))  # RENAME_EXCHANGE
    except AttributeError:
        return False
    number = ctypes.get_errno()
    if failed and number not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        raise OSError(number, os.strerror(number), str(one), None, str(other))
    return not failed


def sync_tree(root: Path) -> None:
    """Every file, then every directory from the inside out, so that a name on the disk always has its content."""
    for path, _, names in os.walk(root, topdown=False):
        for name in names:
            sync(Path(path, name))
        sync(Path(path))


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_directory(path: Path) -> None:
    if not path.is_dir():
        _make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)
