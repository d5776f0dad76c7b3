"""An environment that cannot be built leaves its reason, one that is built is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import install, peer


def test_what_cannot_be_built_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "adder.txt"
    lock.write_text("./no-such-wheel-1.0-py3-none-any.whl\n")
    monkeypatch.setattr(peer, "HOME", tmp_path / "home")
    monkeypatch.setattr(peer, "lock", lambda name: lock)
    (tmp_path / "home").mkdir()
    done = install.install("adder")
    assert done.startswith("cannot be built: ")
    assert "no-such-wheel" in done
    assert not (tmp_path / "home" / "adder").exists()
    with pytest.raises(peer.AbsentError, match=r"not built: .*no-such-wheel"):
        peer.command("adder")


def test_what_is_built_is_left_alone_until_its_lock_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "HOME", tmp_path)
    (tmp_path / "infinity").mkdir()
    (tmp_path / "infinity" / "built.txt").write_text(peer.lock("infinity").read_text())
    assert install.install("infinity") == "is built"


def test_an_unknown_peer_is_told_what_exists(capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main(["infinty"]) == 1
    assert "infinity" in capsys.readouterr().err
