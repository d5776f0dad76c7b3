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

from bertkit.runtime.ledger import kept_of
from tests.cli.running import Bertkit

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


def test_interrupted_and_killed_the_same_command_goes_on(run: Bertkit, tiny: Path, tmp_path: Path) -> None:
    texts = [f"the cat {number}\n" for number in range(5000)]
    (tmp_path / "texts.txt").write_text("".join(texts))
    output, part = tmp_path / "vectors.npy", tmp_path / "vectors.npy.part"

    def started(upto: int, kept: int) -> subprocess.Popen[bytes]:
        """A process that waits for more texts, with so many rows kept."""
        command = [*BERTKIT, "embed", str(tiny), "--input", "-", "--output", str(output)]
        ours = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        assert ours.stdin
        ours.stdin.write("".join(texts[:upto]).encode())
        ours.stdin.flush()
        while kept_of(output).items != kept:
            assert ours.poll() is None
            time.sleep(0.01)
        return ours

    with started(1000, kept=768) as ours:
        assert ours.stderr
        ours.send_signal(signal.SIGINT)
        said = ours.stderr.readline() + ours.stderr.readline()
        while ours.poll() is None:  # on its way out, which takes a second
            ours.send_signal(signal.SIGINT)
            time.sleep(0.05)
        assert ours.wait(timeout=60) == 130
    assert said.decode().splitlines()[-1] == (
        f"bertkit: stopped; 768 vectors are kept in {part}. The same command goes on"
    )
    with started(4000, kept=3840) as ours:
        other = run("embed", tiny, "-i", tmp_path / "texts.txt", "-o", output)
        assert f"another process is writing {output}: wait until it ends" in other.err
        ours.kill()
    assert not output.exists()
    assert kept_of(output).items == 3840

    ran = run("embed", tiny, "-i", tmp_path / "texts.txt", "-o", output)
    assert f"bertkit: going on after 3,840 vectors that are kept in {part}" in ran.err.splitlines()
    assert f"5,000 vectors of width 128 in {output}. Next" in ran.err
    assert run("embed", tiny, "-i", tmp_path / "texts.txt", "-o", tmp_path / "whole.npy").code == 0
    assert output.read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert not part.exists()


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
