"""A file that grows item by item and is gone on with after any interruption: Ctrl-C, kill -9, a full disk.

FILE.part/          beside FILE; gone when FILE is there
    content         the bytes of FILE, as far as they are made
    ledger          what decides them; then, for each window of items, how far all is safe
    lock            held by the process that writes

A line of the ledger is a CRC-32 in eight hexadecimal digits, a space, and a JSON object:

    1c291ca3 {"format": 1, "facts": {"weights": "…", "pool": …}, "replaces": null}
    9d2f50a1 {"items": 256, "windows": 1, "size": 393344, "read": "…", "more": {}}

`facts` are all that decides the content, but for the items. `read` is the SHA-256 of the items so far, each as the
number of its bytes (8, little-endian) and its UTF-8. The content is on the disk before the line that counts it: a line
that was torn is dropped, and so are bytes that no line counts.

Who goes on reads the items from the first on, which is cheap, and they must be those that were read before. What comes
after them may have changed: the file will be as if it had been made of the present items at once. To the bit, for
windows grow in the same steps, and each is worked on as it would have been.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from bertkit import artifact
from bertkit import workspace as workspaces
from bertkit.errors import BertkitError
from bertkit.text.window import FIRST, MOST, windows

FORMAT = 1
_CONTENT, _LEDGER = "content", "ledger"
_SHOWN = 40
"""characters of a value that a message shows"""

Item = TypeVar("Item")


class ChangedError(BertkitError):
    """What is kept was made of something else: the same command does not go on."""


@dataclass(frozen=True)
class Kept:
    """How far all is safe."""

    items: int = 0
    windows: int = 0
    size: int = 0
    """bytes of the content"""
    read: str = ""
    """SHA-256 of the items"""
    more: Mapping[str, Any] = field(default_factory=dict)
    """what the writer wants to know again"""


@contextlib.contextmanager
def growing(
    path: str | os.PathLike[str], facts: Mapping[str, Any], what: str = "items", *, overwrite: bool = False
) -> Iterator[Ledger]:
    """Append to the ledger's `file`; the file becomes `path` when the block ends well, and is kept when it does not.

    `facts` decide the content, and `what` is what messages call the items. `overwrite=True` begins anew, whatever is
    kept, and replaces what is there.

    >>> import tempfile
    >>> def shout(path, texts):
    ...     with growing(path, {"voice": "loud"}) as ledger:
    ...         for window in ledger.windows(texts):
    ...             ledger.file.write("".join(text.upper() + "!" for text in window).encode())
    ...             ledger.keep()
    >>> def interrupted():
    ...     yield from ["cat"] * 300
    ...     raise KeyboardInterrupt
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     output = Path(parent, "shouts.txt")
    ...     with contextlib.suppress(KeyboardInterrupt):
    ...         shout(output, interrupted())
    ...     print(output.exists(), kept_of(output).items)
    ...     shout(output, ["cat"] * 300)
    ...     print(output.read_text() == "CAT!" * 300, kept_of(output).items)
    False 256
    True 0
    """
    destination = artifact.resolved(path)
    with artifact.explained(destination):
        ledger = Ledger(destination, facts, what, overwrite)
    try:
        with ledger.telling(), artifact.explained(destination, caller=True):
            yield ledger
        with ledger.telling(), artifact.explained(destination):
            ledger.show()
    finally:
        ledger.close()


def kept_of(path: str | os.PathLike[str]) -> Kept:
    """What is kept for a file that is not finished; nothing where there is none."""
    _, kept, _ = _read(part_of(artifact.resolved(path)))
    return kept


def may_write(path: str | os.PathLike[str]) -> bool:
    """Whether nothing is at `path`, or just what an interrupted writer was allowed to replace."""
    destination = artifact.resolved(path)
    head, _, _ = _read(part_of(destination))
    return not destination.exists() or (head is not None and head["replaces"] == _identity(destination))


def part_of(destination: Path) -> Path:
    """Where a file grows."""
    return destination.with_name(f"{destination.name}.part")


class Ledger:
    """One writer's own, from its making to `close`."""

    def __init__(self, destination: Path, facts: Mapping[str, Any], what: str, overwrite: bool) -> None:
        self.home, self._destination, self._what, self._overwrite = part_of(destination), destination, what, overwrite
        _require_ours(self.home)
        lock = workspaces.claim(self.home)
        if lock is None:
            raise BertkitError(
                f"another process is writing {destination}: wait until it ends, or give another path. {self.home} is "
                "what it has so far"
            )
        self._lock, self._files = lock, contextlib.ExitStack()
        self.kept = Kept()
        self._replaces: list[int] | None = None  # the identity of the file that may be replaced
        self._items = self._windows = 0
        self._read = hashlib.sha256()
        try:
            self._open(json.loads(json.dumps(facts)))
        except BaseException:
            self.close()
            raise

    def windows(self, items: Iterable[Item], told: Callable[[Item], str] = str) -> Iterator[list[Item]]:
        """What is left to do of all items, in lists that fit into memory; `told` is what an item is known by."""
        pairs = self._reading(items, told)
        deque(islice(pairs, self.kept.items), maxlen=0)
        if (self._items, self._read.hexdigest()) != (self.kept.items, self.kept.read) and self.kept.items:
            raise self._changed_items()
        for window in windows(pairs, itemgetter(1), min(FIRST * 2 ** min(self.kept.windows, 16), MOST)):
            self._windows = self.kept.windows + 1
            yield [item for item, _ in window]

    def keep(self, **more: Any) -> None:
        """All of the windows so far is in the file: see that it stays, with what the writer wants to know again."""
        _sync(self.file)
        kept = Kept(self._items, self._windows, self.file.tell(), self._read.hexdigest(), more)
        self._ledger.write(_line(asdict(kept)))
        _sync(self._ledger)
        self.kept = kept

    def show(self) -> None:
        """Let the file appear, and the part vanish."""
        _sync(self.file)
        replace = self._overwrite or self._replaces is not None
        workspaces.show_file(self.home / _CONTENT, self._destination, replace, self._refuse_late)
        workspaces.sync(self._destination.parent)
        self._remove()
        self.kept = Kept()

    def close(self) -> None:
        """Leave what is kept to who goes on; where nothing is, nothing stays."""
        with contextlib.suppress(OSError):  # a full disk, which was told already
            self._files.close()
        if not self.kept.items:
            self._remove()
        workspaces.leave(self.home, self._lock, remove=not self.kept.items)

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """Say behind errors what is kept all the same."""
        try:
            yield
        except ChangedError:
            raise
        except BertkitError as error:
            if not self.kept.items:
                raise
            told = f"{self.kept.items:,} {self._what} are kept in {self.home}"
            again = "the same command without --overwrite" if self._overwrite else "the same command"
            raise BertkitError(f"{str(error).rstrip('.')}. {told}; {again} goes on after them") from error

    def _open(self, facts: dict[str, Any]) -> None:
        head, kept, end = _read(self.home)
        # a second name: it was shown, and its writer killed before it took this one away
        shown = kept.items and (self.home / _CONTENT).stat().st_nlink > 1
        if head is None or not kept.items or shown or self._overwrite:
            self._refuse()
            end = self._begin(facts)
        else:
            self.kept = kept
            self._require_same(head["facts"], facts)
            self._replaces = head["replaces"]
            self._refuse()
        self.file = self._opened(_CONTENT, self.kept.size)
        self._ledger = self._opened(_LEDGER, end)

    def _begin(self, facts: dict[str, Any]) -> int:
        """An empty content, and a ledger of one line, whose length is told."""
        self._remove()
        self._replaces = _identity(self._destination)
        line = _line({"format": FORMAT, "facts": facts, "replaces": self._replaces})
        (self.home / _CONTENT).touch()
        (self.home / _LEDGER).write_bytes(line)
        workspaces.sync_tree(self.home)
        workspaces.sync(self.home.parent)
        return len(line)

    def _opened(self, name: str, size: int) -> BinaryIO:
        file = self._files.enter_context((self.home / name).open("r+b"))
        file.truncate(size)
        file.seek(size)
        return file

    def _remove(self) -> None:
        """The ledger first, for without it the rest means nothing."""
        for name in (_LEDGER, _CONTENT):
            (self.home / name).unlink(missing_ok=True)

    def _reading(self, items: Iterable[Item], told: Callable[[Item], str]) -> Iterator[tuple[Item, int]]:
        for item in items:
            text = told(item)
            data = text.encode("utf-8", "surrogatepass")
            self._read.update(len(data).to_bytes(8, "little"))
            self._read.update(data)
            self._items += 1
            yield item, len(text)

    def _refuse(self) -> None:
        """Raise where the destination must not be written."""
        same = self._replaces is not None and self._replaces == _identity(self._destination)
        artifact.refuse_file(self._destination, self._overwrite or same)

    def _refuse_late(self) -> None:
        """The same after the work, which shall not be lost."""
        try:
            self._refuse()
        except BertkitError:
            raise BertkitError(f"{self._destination} came to exist meanwhile: move it away") from None

    def _require_same(self, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
        differing = [name for name in {**there, **here} if there.get(name) != here.get(name)]
        if differing:
            told = "; ".join(_difference(name, there.get(name), here.get(name)) for name in differing)
            raise self._changed(f"was made otherwise: {told}")

    def _changed_items(self) -> ChangedError:
        count = self.kept.items
        if self._items < count:
            return self._changed(f"was made of {count:,} texts, but now there are {self._items:,}")
        return self._changed(f"was made of other texts: the first {count:,} of the input are not the same now")

    def _changed(self, reason: str) -> ChangedError:
        return ChangedError(
            f"{self.home} holds {self.kept.items:,} {self._what}, and {reason}. Repeat what was there to go on, or add "
            "--overwrite (overwrite=True) to begin anew"
        )


def _require_ours(home: Path) -> None:
    """Refuse what somebody else made, or another version of this file."""
    names = {path.name for path in home.iterdir()} if home.is_dir() else set()
    foreign = names - {_CONTENT, _LEDGER, workspaces.LOCK}
    head, _, _ = _read(home)
    if foreign or (home.exists() and not home.is_dir()) or (head is not None and head.get("format") != FORMAT):
        raise BertkitError(f"{home} is where the output would grow, but something else is there: move it away")


def _read(home: Path) -> tuple[dict[str, Any] | None, Kept, int]:
    """The first line, the last whole one that the content bears out, and where that ends; None where nothing is."""
    head, kept, end = None, Kept(), 0
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        size = (home / _CONTENT).stat().st_size
        with (home / _LEDGER).open("rb") as file:
            first = next(file, b"")
            head, end = _told(first), len(first)
            for line in file:
                told = _told(line)
                if head is None or head.get("format") != FORMAT or told is None or told["size"] > size:
                    break
                kept, end = Kept(**told), end + len(line)
    return head, kept, end


def _line(told: Mapping[str, Any]) -> bytes:
    data = json.dumps(told).encode()
    return b"%08x %b\n" % (zlib.crc32(data), data)


def _told(line: bytes) -> dict[str, Any] | None:
    """What a line says; None where it is torn."""
    check, _, data = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or check != b"%08x" % zlib.crc32(data):
        return None
    told: dict[str, Any] = json.loads(data)
    return told


def _identity(path: Path) -> list[int] | None:
    """What tells a file from another that takes its name."""
    with contextlib.suppress(FileNotFoundError):
        found = path.stat()
        return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns]
    return None


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _difference(name: str, there: Any, here: Any) -> str:
    shown = [json.dumps(value, ensure_ascii=False) for value in (there, here)]
    if max(map(len, shown)) > _SHOWN:
        return f"{name} is another"
    return f"{name} is {shown[0]} there and {shown[1]} here"
