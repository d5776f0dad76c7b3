"""Kill a save with signal 9 a thousand times, at random and at every single operation, and look at what is left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from bertkit import artifact, manifest, workspace

CLAIM = (
    "1,000 random kill -9 during a save leave a directory that verifies, old or new, and nothing stale after the next "
    "save; so does one before every single file operation of a save"
)
COVERS = ("bertkit/artifact.py", "bertkit/manifest.py", "bertkit/workspace.py")

WAYS = ("exchange", "two renames")  # in one step where the system can, and the fallback
KILLS, PIECE = 1000, 50
FILES = 12


def parts() -> Iterable[tuple[str, Callable[[], dict[str, int | float | str]]]]:
    """Each in a process of its own, which forks the writers: no threads, no torch, and a start that costs nothing."""
    for way in WAYS:
        yield f"every operation, {way}", partial(_apart, "every", way, 0)
    for piece in range(KILLS // PIECE):
        way = WAYS[piece % len(WAYS)]
        yield f"random {piece * PIECE}-{(piece + 1) * PIECE - 1}, {way}", partial(_apart, "random", way, piece)


def summary(results: list[dict[str, int | float | str]]) -> str:
    """Where the kills landed, so that the count can be judged."""
    total = Counter[str]()
    for result in results:
        total.update({name: int(count) for name, count in result.items()})
    assert total["random"] == KILLS, f"{total['random']} random kills instead of {KILLS}"
    missed = [where for where in ("filling", "closing", "clearing", "operation between") if not total[where]]
    assert not missed, f"no kill landed in: {missed}"
    return (
        f"{total['random']} random kills: {total['filling']} while files were written, {total['closing']} while they "
        f"were hashed and synced, {total['between']} between two renames, {total['clearing']} after the new one was "
        f"shown and while the old one was removed ({total['idle']} more came too late and do not count). "
        f"{total['every']} kills before single operations, {total['operation between']} of them between two renames. "
        f"{total['old']} times the old, {total['new']} times the new, 0 damaged, 0 stale"
    )


def _apart(mode: str, way: str, seed: int) -> dict[str, int | float | str]:
    command = [sys.executable, "-m", "proofs.artifact", mode, way, str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    if done.returncode:
        raise AssertionError(done.stderr.strip().splitlines()[-1])
    return dict(json.loads(done.stdout))


def kill_at_random(path: Path, seed: int) -> Counter[str]:
    """Half of the kills are spread over the whole save; half aim at its end, which is short and where the rename is."""
    chance, counts = random.Random(seed), Counter[str]()
    while counts["random"] < PIECE:
        begun, filled, ended = _time_a_save(path)
        aim = chance.choice([(begun, ended), (filled, ended)])
        child, started = _fork(path, dying=None)
        _wait_until(started + chance.uniform(aim[0] - begun, (aim[1] - begun) * 1.05))
        os.kill(child, signal.SIGKILL)
        if os.waitpid(child, 0)[1] == 0:
            counts["idle"] += 1  # it was done before the signal came: not counted as a kill
            continue
        counts["random"] += 1
        counts.update(_judge(path))
    return counts


def kill_at_every_operation(path: Path) -> Counter[str]:
    """Before the first file operation of a save, before the second, until a save comes through."""
    counts = Counter[str]()
    while True:
        _save(path, "old")
        _assert_alone(path)
        child, _ = _fork(path, dying=counts["every"])
        if os.waitpid(child, 0)[1] == 0:
            return counts
        counts["every"] += 1
        content, where = _judge(path)
        counts.update([content, f"operation {where}"])


def _save(path: Path, content: str) -> float:
    """Returns the moment when the files were there."""
    with artifact.directory(path, "proof", overwrite=True) as temporary:
        for number in range(FILES):
            (temporary / f"{number}.bin").write_bytes(content.encode() * 20_000)
        return time.monotonic()


def _time_a_save(path: Path) -> tuple[float, float, float]:
    begun = time.monotonic()
    filled = _save(path, "old")
    _assert_alone(path)
    return begun, filled, time.monotonic()


def _fork(path: Path, dying: int | None) -> tuple[int, float]:
    """A writer of the new content, with the moment it began."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"x")
        if dying is not None:
            _die_before(dying)
        _save(path, "new")
        os._exit(0)
    os.read(reading, 1)
    os.close(reading)
    os.close(writing)
    return child, time.monotonic()


def _die_before(operation: int) -> None:
    """Python tells an audit hook of every open, rename, lock and removal before it does it."""

    def hook(event: str, arguments: object) -> None:
        nonlocal operation
        if event.partition(".")[0] in ("open", "os", "fcntl", "ctypes", "shutil"):
            operation -= 1
            if operation == -1:  # once: the kill is an event too
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _wait_until(moment: float) -> None:
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left if left > 0.002 else 0)


def _judge(path: Path) -> tuple[str, str]:
    """Which content is there and, from what lies beside it, where the kill landed. Raises when anything is damaged."""
    where = _where(path)
    files = artifact.verify(path).files
    contents = {(path / name).read_bytes()[:3].decode() for name in files}
    assert len(files) == FILES, f"{len(files)} files instead of {FILES}"
    assert len(contents) == 1, f"a mixture of {contents}"
    content = contents.pop()
    return content, "clearing" if content == "new" else where


def _where(path: Path) -> str:
    """What the killed writer was at when it had not shown the new content yet."""
    if not path.exists():
        return "between"
    begun = [entry for entry in path.parent.iterdir() if entry != path]
    written = [entry.stat().st_size for entry in begun[0].glob("new/*.bin")] if begun else []
    return "closing" if len(written) == FILES and min(written) == 60_000 else "filling"


def _assert_alone(path: Path) -> None:
    beside = [entry.name for entry in path.parent.iterdir() if entry != path]
    assert not beside, f"stale after a save: {beside}"


def _main(mode: str, way: str, seed: str) -> None:
    if way == WAYS[1]:
        workspace._exchange = lambda one, other: False
    with tempfile.TemporaryDirectory() as parent:
        path = Path(parent, "saved")
        _save(path, "old")
        counts = kill_at_random(path, int(seed)) if mode == "random" else kill_at_every_operation(path)
        _save(path, "end")
        _assert_alone(path)
        assert manifest.NAME in {entry.name for entry in path.iterdir()}
    print(json.dumps(counts))


if __name__ == "__main__":
    _main(*sys.argv[1:])
