"""The ledger: whatever ends a writer, what it kept is gone on with, and the file is as if nothing had happened."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertkit.errors import BertkitError
from bertkit.runtime import ledger as ledgers
from bertkit.runtime.ledger import growing, kept_of, may_write
from bertkit.runtime.npy import NpyWriter
from bertkit.text import window
from tests.conftest import ROOT

TEXTS = [f"text {number} {'é' * (number % 5)}" for number in range(3000)]
SIZES = [256, 512, 1024, 1208]


class StopError(Exception):
    """What ends a writer in these tests."""


def write(path: Path, texts: Iterable[str], facts: dict[str, Any] | None = None, **more: Any) -> list[int]:
    """Texts in capitals; the sizes of the windows that were left to do."""
    sizes = []
    with growing(path, {"voice": "loud", **(facts or {})}, "shouts", **more) as ledger:
        for texts_of in ledger.windows(texts):
            ledger.file.write("".join(text.upper() + "\n" for text in texts_of).encode())
            ledger.keep(last=texts_of[-1])
            sizes.append(len(texts_of))
    return sizes


def stopping(after: int) -> Iterator[str]:
    yield from TEXTS[:after]
    raise StopError


def stopped(path: Path, after: int, **more: Any) -> Path:
    """A part with the windows of the first `after` texts."""
    with pytest.raises(StopError):
        write(path, stopping(after), **more)
    return path.with_name(path.name + ".part")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shouts.txt"


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    """What a writer makes that nothing ends."""
    path = tmp_path / "whole" / "shouts.txt"
    assert write(path, TEXTS) == SIZES
    assert list(path.parent.iterdir()) == [path]
    return path.read_bytes()


@pytest.mark.parametrize(
    ("after", "kept", "left"),
    [(0, 0, SIZES), (255, 0, SIZES), (256, 256, SIZES[1:]), (2000, 1792, SIZES[3:]), (3000, 1792, SIZES[3:])],
)
def test_goes_on_with_the_same_windows(path: Path, whole: bytes, after: int, kept: int, left: list[int]) -> None:
    part = stopped(path, after)
    assert part.exists() == (kept > 0)
    assert not path.exists()
    assert kept_of(path).items == kept
    if kept:
        assert kept_of(path).more == {"last": TEXTS[kept - 1]}
    assert write(path, TEXTS) == left
    assert path.read_bytes() == whole
    assert not part.exists()


def test_stopped_again_and_again(path: Path, whole: bytes) -> None:
    for after in (300, 300, 800, 100, 2999):
        with pytest.raises((StopError, BertkitError)):
            write(path, stopping(after))
    assert write(path, TEXTS) == SIZES[3:]
    assert path.read_bytes() == whole


def test_all_kept_but_not_shown(path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers.Ledger, "show", lambda self: (_ for _ in ()).throw(StopError))
    with pytest.raises(StopError):
        write(path, TEXTS)
    monkeypatch.undo()
    assert write(path, TEXTS) == []
    assert path.read_bytes() == whole


def test_no_items_are_an_empty_file(path: Path) -> None:
    assert write(path, []) == []
    assert path.read_bytes() == b""


# torn lines and bytes ────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_torn_ledger_is_cut_back_to_its_last_whole_line(path: Path, whole: bytes) -> None:
    part = stopped(path, 2000)
    lines = (part / "ledger").read_bytes()
    content = (part / "content").read_bytes()
    ends = [place + 1 for place, byte in enumerate(lines) if byte == ord("\n")]
    for length in sorted({*range(0, len(lines), 37), *ends, *(end - 1 for end in ends)}):
        (part / "ledger").write_bytes(lines[:length])
        whole_lines = sum(end <= length for end in ends)
        assert kept_of(path).items == [0, 0, 256, 768, 1792][whole_lines], length
    (part / "ledger").write_bytes(lines[: ends[2]] + lines[ends[2] : -9] + b"\0" * 9)
    assert (part / "content").read_bytes() == content
    assert write(path, TEXTS) == SIZES[2:]
    assert path.read_bytes() == whole


def test_bytes_that_no_line_counts_are_dropped(path: Path, whole: bytes) -> None:
    part = stopped(path, 800)
    with (part / "content").open("ab") as file:
        file.write(b"half of a ro")
    assert write(path, TEXTS) == SIZES[2:]
    assert path.read_bytes() == whole


def test_lines_that_count_more_than_there_is_are_dropped(path: Path, whole: bytes) -> None:
    part = stopped(path, 2000)
    os.truncate(part / "content", 10_000)
    assert kept_of(path).items == 256
    assert write(path, TEXTS) == SIZES[1:]
    assert path.read_bytes() == whole


def test_content_is_on_the_disk_before_the_line_that_counts_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    sync = os.fsync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    monkeypatch.setattr(os, "fsync", noted)
    write(path, TEXTS[:700])
    assert synced[-6:] == ["content", "ledger", "content", "ledger", "content", path.parent.name]


@pytest.mark.parametrize("fails", ["content", "ledger"])
def test_a_full_disk_keeps_what_was_there(
    path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    sync, calls = ledgers._sync, [0]

    def full(file: Any) -> None:
        calls[0] += Path(file.name).name == fails
        if calls[0] == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(file)

    monkeypatch.setattr(ledgers, "_sync", full)
    with pytest.raises(BertkitError) as raised:
        write(path, TEXTS)
    assert str(raised.value) == (
        f"{path} was not written: the disk is full. Free some space, or give a path on another disk. What was there is "
        f"unchanged. 768 shouts are kept in {path}.part; the same command goes on after them"
    )
    monkeypatch.undo()
    assert write(path, TEXTS) in (SIZES[2:], SIZES[3:])  # the line may have come through in the end
    assert path.read_bytes() == whole


# what has changed ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("texts", "facts", "said"),
    [
        (["other", *TEXTS[1:]], {}, "was made of other texts: the first 768 of the input are not the same now"),
        ([*TEXTS[:767], "other", *TEXTS[768:]], {}, "was made of other texts: the first 768 of the input are not the"),
        (["".join(TEXTS[:2]), "", *TEXTS[2:]], {}, "was made of other texts"),
        (TEXTS[:700], {}, "was made of 768 texts, but now there are 700"),
        (TEXTS, {"voice": "low"}, 'was made otherwise: voice is "loud" there and "low" here'),
        (TEXTS, {"pitch": 3}, "was made otherwise: pitch is null there and 3 here"),
        (TEXTS, {"voice": "x" * 99}, "was made otherwise: voice is another"),
    ],
)
def test_nothing_is_mixed(path: Path, texts: list[str], facts: dict[str, Any], said: str) -> None:
    part = stopped(path, 800)
    before = {name: (part / name).read_bytes() for name in ("content", "ledger")}
    with pytest.raises(BertkitError) as raised:
        write(path, texts, facts)
    message = str(raised.value)
    assert message.startswith(f"{part} holds 768 shouts, and {said}")
    assert message.endswith("Repeat what was there to go on, or add --overwrite (overwrite=True) to begin anew")
    assert {name: (part / name).read_bytes() for name in ("content", "ledger")} == before
    write(path, texts, facts, overwrite=True)
    assert path.read_text() == "".join(text.upper() + "\n" for text in texts)
    assert not part.exists()


def test_what_comes_after_may_change(path: Path) -> None:
    """A line that stopped the writer is repaired, a file grows: what is kept is right all the same."""
    stopped(path, 800)
    texts = [*TEXTS[:768], "new", *TEXTS[900:]]
    assert sum(write(path, texts)) == len(texts) - 768
    assert path.read_text() == "".join(text.upper() + "\n" for text in texts)


def test_an_output_is_replaced_by_who_was_allowed_to(path: Path, whole: bytes) -> None:
    path.write_text("old")
    with pytest.raises(BertkitError, match="exists"):
        write(path, TEXTS)
    assert not part_exists(path)
    stopped(path, 800, overwrite=True)
    assert path.read_text() == "old"
    assert may_write(path)
    assert write(path, TEXTS) == SIZES[2:]  # it was said once
    assert path.read_bytes() == whole


def part_exists(path: Path) -> bool:
    return path.with_name(path.name + ".part").exists()


def test_another_file_in_its_place_is_not_replaced(path: Path) -> None:
    path.write_text("old")
    stopped(path, 800, overwrite=True)
    path.write_text("precious")
    assert not may_write(path)
    with pytest.raises(BertkitError, match="exists"):
        write(path, TEXTS)
    assert (path.read_text(), kept_of(path).items) == ("precious", 768)


def test_a_file_that_came_meanwhile_stays_and_so_does_the_work(path: Path, whole: bytes) -> None:
    def busy() -> Iterator[str]:
        yield from TEXTS
        path.write_text("precious")

    with pytest.raises(
        BertkitError, match=r"came to exist meanwhile: move it away. 3,000 shouts are kept in .*goes on"
    ):
        write(path, busy())
    assert path.read_text() == "precious"
    path.unlink()
    assert write(path, TEXTS) == []
    assert path.read_bytes() == whole


def test_a_writer_killed_after_the_file_was_there(path: Path, whole: bytes) -> None:
    """The part has a second name for the file: who writes on would change the file."""
    part = stopped(path, 3000)
    os.link(part / "content", path)
    shown = path.read_bytes()
    moved = path.rename(path.with_name("moved.txt"))
    assert write(path, TEXTS) == SIZES
    assert (path.read_bytes(), moved.read_bytes()) == (whole, shown)


def test_what_others_made_is_let_be(path: Path) -> None:
    part = path.with_name(path.name + ".part")
    part.mkdir()
    (part / "content").write_text("precious")
    (part / "notes").touch()
    with pytest.raises(BertkitError, match="something else is there: move it away"):
        write(path, TEXTS)
    assert {one.name for one in part.iterdir()} == {"content", "notes"}
    assert (part / "content").read_text() == "precious"


def test_a_later_format_is_let_be(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "FORMAT", 2)
    part = stopped(path, 800)
    monkeypatch.undo()
    with pytest.raises(BertkitError, match="something else is there: move it away"):
        write(path, TEXTS, overwrite=True)
    assert json.loads((part / "ledger").read_bytes().splitlines()[0].partition(b" ")[2])["format"] == 2


# processes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

WRITER = """
import sys, time
from pathlib import Path
from tests.runtime.test_ledger import TEXTS, write
def slowly():
    for number, text in enumerate(TEXTS):
        time.sleep(0.001 if number % 8 == 0 else 0)
        yield text
write(Path(sys.argv[1]), slowly())
"""


def test_killed_at_any_moment(path: Path, whole: bytes) -> None:
    starts, killed = [], 0
    while not path.exists():
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=ROOT) as writer:
            before = kept_of(path).items
            while writer.poll() is None and kept_of(path).items == before and not path.exists():
                time.sleep(0.002)
            time.sleep(0.001 * (killed % 3))  # in the middle of a window, or of a line
            ending = signal.SIGTERM if killed == 1 else signal.SIGKILL
            writer.send_signal(ending)
            killed += writer.wait() == -ending
        starts.append(before)
    assert starts == sorted(set(starts)), "each went on where the one before it was"
    assert killed >= 3
    if part_exists(path):  # killed between the file and the end of its part
        path.unlink()
        write(path, TEXTS)
    assert path.read_bytes() == whole


def test_two_at_once(path: Path, whole: bytes) -> None:
    with growing(path, {"voice": "loud"}) as first:
        for texts_of in first.windows(TEXTS):
            first.file.write("".join(text.upper() + "\n" for text in texts_of).encode())
            first.keep()
            for overwrite in (False, True):
                with pytest.raises(BertkitError, match=f"another process is writing {path}: wait until it ends"):
                    write(path, TEXTS, overwrite=overwrite)
    assert path.read_bytes() == whole


# memory and NumPy files ──────────────────────────────────────────────────────────────────────────────────────────────


def test_memory_does_not_grow_with_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "MOST", 64)
    monkeypatch.setattr(ledgers, "MOST", 64)

    def peak(rows: int) -> int:
        path.unlink(missing_ok=True)
        tracemalloc.start()
        with growing(path, {}) as ledger:
            writer = NpyWriter(ledger.file, 256)
            for texts_of in ledger.windows("cat" for _ in range(rows)):
                writer.write(np.zeros((len(texts_of), 256), np.float32))
                ledger.keep()
            writer.finish()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few, many = peak(640), peak(12_800)
    assert path.stat().st_size > 12_800 * 1024
    assert many < few + 200_000


def test_rows_of_a_numpy_file_are_gone_on_with(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(600, 7)).astype(np.float32)

    def embed(path: Path, upto: int) -> None:
        with growing(path, {}) as ledger:
            writer = NpyWriter(ledger.file, 7, ledger.kept.items)
            for numbers in ledger.windows(iter(range(600))):
                if numbers[0] >= upto:
                    raise StopError
                writer.write(rows[numbers])
                ledger.keep()
            writer.finish()

    embed(tmp_path / "whole.npy", 600)
    with pytest.raises(StopError):
        embed(tmp_path / "two.npy", 256)
    embed(tmp_path / "two.npy", 600)
    np.testing.assert_array_equal(np.load(tmp_path / "two.npy"), rows)
    assert (tmp_path / "two.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
