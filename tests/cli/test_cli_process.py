"""What only a real process shows: pipes that close, Ctrl-C, terminals."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

BERTKIT = [sys.executable, "-m", "bertkit"]


def test_closed_pipe_is_silent_and_endless_input_is_no_problem(tiny: Path) -> None:
    command = [*BERTKIT, "embed", str(tiny), "--input", "-", "--json"]
    with (
        subprocess.Popen(["yes", "the cat"], stdout=subprocess.PIPE) as texts,
        subprocess.Popen(command, stdin=texts.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ours,
    ):
        assert texts.stdout
        assert ours.stdout
        assert ours.stderr
        texts.stdout.close()
        first = json.loads(ours.stdout.readline())
        ours.stdout.close()  # as head -1 does
        said = ours.stderr.read().decode()
        ours.wait(timeout=60)
    assert first["text"] == "the cat"
    assert said == f"bertkit: {tiny}: took encoder, mlm; left none; made new none\n"


def test_interrupt_leaves_nothing(tiny: Path, tmp_path: Path) -> None:
    command = [*BERTKIT, "embed", str(tiny), "--input", "-", "--output", str(tmp_path / "never.npy")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ours:
        assert ours.stdin
        assert ours.stderr
        ours.stdin.write(b"the cat\n" * 5000)
        ours.stdin.flush()  # and then no end of input: it waits for the next window
        loaded = ours.stderr.readline().decode()
        while not list(tmp_path.glob(".never.npy.*.tmp/new")):  # where the file grows
            assert ours.poll() is None
        ours.send_signal(signal.SIGINT)
        said = ours.stderr.readline().decode()
        while ours.poll() is None:  # on its way out, which takes a second
            ours.send_signal(signal.SIGINT)
            time.sleep(0.05)
        code = ours.wait(timeout=60)
    assert loaded.endswith("made new none\n")
    assert said == "bertkit: stopped; nothing was written\n"
    assert code == 130
    assert list(tmp_path.iterdir()) == []


def test_bar_on_a_terminal_and_results_in_the_file(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("the cat\n" * 300)
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def watch() -> None:
        try:
            while part := os.read(ours, 4096):
                seen.append(part)
        except OSError:  # Linux says so when the other side is closed
            pass

    command = [*BERTKIT, "embed", str(tiny), "-i", str(tmp_path / "texts.txt"), "--json"]
    with (tmp_path / "out.jsonl").open("wb") as file, subprocess.Popen(command, stdout=file, stderr=theirs) as process:
        os.close(theirs)
        watcher = threading.Thread(target=watch)
        watcher.start()
        assert process.wait(timeout=60) == 0
        watcher.join(timeout=60)
    os.close(ours)
    assert b"300/300" in b"".join(seen)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 300


def test_output_that_is_not_utf8_is_still_json() -> None:
    command = [*BERTKIT, "tokenize", "minilm", "北京…", "--json"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=True)
    assert json.loads(done.stdout.decode("ascii"))["text"] == "北京…"
