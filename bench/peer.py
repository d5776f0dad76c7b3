"""A contestant as the bench sees it: a process of its own that is asked for an answer, then for times."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.pipe import Array, receive, send

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".bench"
"""environments, models and exports; nothing of it is committed"""

PATIENCE = 900.0
"""seconds until a contestant that says nothing is given up"""


class AbsentError(Exception):
    """Why a contestant has no time in this run, in one line that names no place of this machine."""

    def __init__(self, reason: str) -> None:
        lines = reason.replace(str(ROOT), ".").replace(str(Path.home()), "~").strip().splitlines()
        super().__init__(lines[0][:300] if lines else "no reason was given")


def names() -> list[str]:
    """Every contestant: a module of `bench/peers/`, with hyphens where the file has underscores."""
    return sorted(path.stem.replace("_", "-") for path in (ROOT / "bench" / "peers").glob("[a-z]*.py"))


def lock(name: str) -> Path:
    """Where the pinned versions of a contestant's own environment stand, if it has one."""
    return ROOT / "bench" / "peers" / f"{name.replace('-', '_')}.txt"


def command(name: str) -> list[str]:
    """What starts a contestant."""
    module = ["-m", f"bench.peers.{name.replace('-', '_')}"]
    if not lock(name).exists():
        return [sys.executable, *module]
    failed = HOME / f"{name}.failed"
    if failed.exists():
        raise AbsentError(f"not built: {failed.read_text(encoding='utf-8')}")
    if not built(name):
        raise AbsentError("not built yet, or not from its lock as it is now: make bench-install")
    return [str(HOME / name / "bin" / "python"), *module]


def built(name: str) -> bool:
    """Whether a contestant's own environment is there, whole and of the versions its lock names."""
    stamp = HOME / name / "built.txt"
    return stamp.exists() and stamp.read_bytes() == lock(name).read_bytes()


class Peer:
    """One contestant: a process that begins when it is asked for its first answer, so that it disturbs nobody."""

    def __init__(self, name: str, threads: int, started: Sequence[str] | None = None) -> None:
        self.name = name
        self.versions: dict[str, str] = {}
        self.answered = 0.0
        """seconds of the call that gave the last answer"""
        self._threads = threads
        self._command = started
        self._process: subprocess.Popen[bytes] | None = None
        self._log = HOME / "log" / f"{name}.txt"

    def _start(self) -> None:
        """Begin its process, if it has none."""
        if self._process is not None:
            return
        begun = self._command or command(self.name)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                begun, cwd=ROOT, env=_environment(self._threads), stdin=-1, stdout=-1, stderr=log
            )

    def open(self, job: str, arguments: dict[str, Any], array: Array | None = None) -> Array:
        """Make ready for a case, and answer it once."""
        self._start()
        message, answer = self._ask({"job": job, "arguments": arguments}, array)
        self.versions, self.answered = message["versions"], float(message["seconds"])
        assert answer is not None, f"{self.name} answered nothing"
        return answer

    def seconds(self, calls: int) -> float:
        """The mean time of so many calls."""
        return float(self._ask({"calls": calls})[0]["seconds"])

    def close(self) -> None:
        """End the process; it is no error if it has ended."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()  # which ends its loop, and whatever it started itself
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._process = None

    def _ask(self, message: dict[str, Any], array: Array | None = None) -> tuple[dict[str, Any], Array | None]:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            send(self._process.stdin, message, array)
            # nothing is ever left in the reader's buffer between two answers: one question, one frame
            if not select.select([self._process.stdout], [], [], PATIENCE)[0]:
                self._process.kill()
                self.close()
                raise AbsentError(f"it said nothing for {PATIENCE:.0f} seconds")
            answer, content = receive(self._process.stdout)
        except ValueError as error:
            self.close()
            raise AbsentError(f"it sent what is no answer: {error}") from None
        except (EOFError, OSError):
            ended = self._process
            self.close()
            raise AbsentError(f"its process ended: {self._last_words(ended.returncode)}") from None
        if "error" in answer:
            raise AbsentError(answer["error"])
        return answer, content

    def _last_words(self, code: int) -> str:
        """What ended it, if that was a signal (SIGKILL: mostly no memory was left), or else what it said last."""
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _environment(threads: int) -> dict[str, str]:
    """The same for all: so many threads, no hub, no telemetry, nothing of the caller's Python."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"))
    silent = ("HF_HUB_DISABLE_TELEMETRY", "ORT_DISABLE_TELEMETRY", "DO_NOT_TRACK")
    offline = dict.fromkeys(("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", *silent), "1")
    return kept | dict.fromkeys(counts, str(threads)) | offline
