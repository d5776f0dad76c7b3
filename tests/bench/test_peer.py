"""A contestant in a process of its own: frames over its pipe, and what is said when it fails."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from bench import peer, pipe
from bench.peer import AbsentError, Peer

NUMBERS = np.arange(12.0).reshape(3, 4)


@pytest.fixture
def sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    monkeypatch.setattr(peer, "HOME", tmp_path)
    with closing(Peer("sums", 1, [sys.executable, "-m", "tests.bench.sums"])) as made:
        yield made


def test_it_answers_then_tells_its_time(sums: Peer) -> None:
    answer = sums.open("running", {"factor": 2.0, "seconds": 0.01}, NUMBERS)
    np.testing.assert_array_equal(answer, 2 * np.cumsum(NUMBERS, axis=-1))
    assert sums.versions == {"numpy": metadata.version("numpy")}
    assert 0.01 <= sums.seconds(3) < 0.1  # of one call, not of three
    np.testing.assert_array_equal(sums.open("running", {}, NUMBERS), np.cumsum(NUMBERS, axis=-1))


def test_what_a_call_needs_each_time_is_not_timed(sums: Peer) -> None:
    np.testing.assert_array_equal(sums.open("prepared", {}, NUMBERS), np.cumsum(NUMBERS, axis=-1))
    assert 0 < sums.seconds(2) < 0.1


def test_pieces_have_their_turns_and_begin_anew(sums: Peer) -> None:
    np.testing.assert_array_equal(sums.open("dealt", {}, NUMBERS), np.cumsum(NUMBERS[0]))
    taken = [sums.seconds(1) for _ in range(6)]
    assert [seconds > 0.19 for seconds in taken] == [False, True, False, False, True, False]
    np.testing.assert_array_equal(sums.open("dealt", {}, NUMBERS), np.cumsum(NUMBERS[0]))


def test_one_that_raises_says_so_and_lives_on(sums: Peer) -> None:
    with pytest.raises(AbsentError, match=r"^RuntimeError: no adder$"):
        sums.open("failing", {}, NUMBERS)
    with pytest.raises(AbsentError, match="it does not do 'juggling', only running"):
        sums.open("juggling", {}, NUMBERS)
    assert sums.open("running", {}, NUMBERS).shape == (3, 4)


def test_one_that_ends_leaves_its_last_words(sums: Peer) -> None:
    with pytest.raises(AbsentError, match="its process ended: adder: out of digits"):
        sums.open("ending", {}, NUMBERS)
    with pytest.raises(AbsentError, match="its process ended: killed by SIGKILL"):
        sums.open("killed", {}, NUMBERS)


def test_one_that_hangs_is_given_up(sums: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    sums.open("running", {}, NUMBERS)
    monkeypatch.setattr(peer, "PATIENCE", 0.2)
    with pytest.raises(AbsentError, match="said nothing for 0 seconds"):
        sums.open("hanging", {}, NUMBERS)


def test_a_reason_is_one_line_without_places() -> None:
    assert str(AbsentError(f"no file {peer.ROOT}/x\nand more")) == "no file ./x"
    assert str(AbsentError(" \n")) == "no reason was given"


def test_a_peer_that_is_not_built_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "HOME", tmp_path)
    with pytest.raises(AbsentError, match=r"not built yet.*: make bench-install"):
        peer.command("infinity")
    (tmp_path / "infinity.failed").write_text("ERROR: no wheel")
    with pytest.raises(AbsentError, match="not built: ERROR: no wheel"):
        peer.command("infinity")
    assert peer.command("transformers") == [sys.executable, "-m", "bench.peers.transformers"]


def test_every_lock_pins_every_version() -> None:
    locked = [peer.lock(name) for name in peer.names() if peer.lock(name).exists()]
    assert len(locked) == len(list((peer.ROOT / "bench" / "peers").glob("*.txt"))) == 5
    for lock in locked:
        lines = [line for line in lock.read_text().splitlines() if not line.startswith("#")]
        assert "torch==2.13.0" in lines or lock.name in ("datasets.txt", "fastembed.txt")  # which have no torch
        assert all(line.count("==") == 1 and "@" not in line for line in lines), lock.name


@pytest.mark.parametrize("cut", [3, 12, 20, -1])
def test_a_frame_that_is_cut_off_is_no_frame(cut: int) -> None:
    stream = io.BytesIO()
    pipe.send(stream, {"a": 1}, NUMBERS)
    with pytest.raises(EOFError):
        pipe.receive(io.BytesIO(stream.getvalue()[:cut]))


def test_no_pickle_and_no_giant_comes_over_the_pipe() -> None:
    with pytest.raises(ValueError, match="pickle"):
        pipe.send(io.BytesIO(), {}, np.array([{}]))
    with pytest.raises(ValueError, match="at most"):
        pipe.receive(io.BytesIO(b"\0\0\0\2" + b"\xff" * 8 + b"{}"))
