"""The runner of proofs goes on where it was stopped, and knows when a row no longer speaks for the code."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from proofs.run import Proof, Repository, Result, Row, check, discover, run, run_all, staleness


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # a hook that runs the tests must not lend them its own repository
    repository = Repository(tmp_path)
    repository.git("init", "--quiet")
    repository.git("config", "user.name", "a founder")
    repository.git("config", "user.email", "founder@example.org")
    (tmp_path / ".gitignore").write_text(".proofs/\n")
    (tmp_path / "code").mkdir()
    change(repository, "code/a.py", "1")
    return repository


def change(repository: Repository, name: str, content: str) -> str:
    (repository.root / name).write_text(content)
    return commit(repository)


def commit(repository: Repository) -> str:
    repository.git("add", "--all")
    done = repository.git("commit", "--quiet", "--no-gpg-sign", "-m", "change")
    assert done.returncode == 0, done.stderr
    return repository.git("rev-parse", "--short", "HEAD").stdout.strip()


def counting(done: list[str], failing: str = "") -> Proof:
    """Three parts that write down that they ran; the one named `failing` raises."""

    def part(name: str) -> Callable[[], Result]:
        def work() -> Result:
            if name == failing:
                raise ArithmeticError(f"{name} does not hold")
            done.append(name)
            return {"count": 10}

        return work

    def summary(results: list[Result]) -> str:
        return f"{sum(int(result['count']) for result in results)} of 30"

    return Proof("sums", "a | sum", ("code",), lambda: [(name, part(name)) for name in "abc"], summary)


def quiet() -> Console:
    return Console(file=io.StringIO(), width=200)


def test_a_run_goes_on_after_the_part_that_failed(repository: Repository) -> None:
    done: list[str] = []
    row = run(repository, counting(done, failing="c"), quiet())
    assert row.result == "FAILED in c: ArithmeticError: c does not hold"
    assert done == ["a", "b"]
    row = run(repository, counting(done), quiet())
    assert row == Row("sums", "a | sum", "30 of 30", repository.commit(["code"]))
    assert done == ["a", "b", "c"]
    assert run(repository, counting(done), quiet(), again=True).result == "30 of 30"
    assert done == ["a", "b", "c", "a", "b", "c"]


def test_a_run_goes_on_after_it_was_killed(repository: Repository) -> None:
    code = f"""
import os, signal, sys
sys.path[:0] = {sys.path!r}
from tests.test_proofs import *
done = []
proof = counting(done)
def parts():
    yield from list(proof.parts())[:2]
    yield "c", lambda: os.kill(os.getpid(), signal.SIGKILL)
run(Repository(Path({str(repository.root)!r})), Proof("sums", "", ("code",), parts, proof.summary), quiet())
"""
    root = Path(__file__).parents[1]
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done: list[str] = []
    assert run(repository, counting(done), quiet()).result == "30 of 30"
    assert done == ["c"]


def test_results_do_not_outlive_the_code_they_speak_of(repository: Repository) -> None:
    done: list[str] = []
    run(repository, counting(done, failing="b"), quiet())
    (repository.root / "code" / "a.py").write_text("2")
    run(repository, counting(done, failing="b"), quiet())
    assert done == ["a", "a"]


def test_a_file_that_one_part_reads_makes_that_part_run_again(repository: Repository) -> None:
    done: list[str] = []
    change(repository, "own.toml", "1")
    proof = replace(counting(done), reads={"b": ("own.toml",)})
    row = run(repository, proof, quiet())
    change(repository, "own.toml", "2")
    assert staleness(repository, proof, row).startswith("stale")
    assert run(repository, proof, quiet()).result == "30 of 30"
    assert done == ["a", "b", "c", "b"]


def test_code_that_changes_during_the_run_proves_nothing(repository: Repository) -> None:
    def work() -> Result:
        (repository.root / "code" / "new.py").write_text("")
        return {}

    proof = Proof("sums", "", ("code",), lambda: [("a", work)], lambda results: "holds")
    assert run(repository, proof, quiet()).result.startswith("FAILED: covered files changed")


def test_the_commit_is_marked_when_covered_files_are_not_committed(repository: Repository) -> None:
    head = repository.commit(["code"])
    assert not head.endswith("+changes")
    (repository.root / "other.py").write_text("elsewhere")
    assert repository.commit(["code"]) == head
    (repository.root / "code" / "new.py").write_text("untracked")
    assert repository.commit(["code"]) == head + "+changes"


def test_a_row_is_fresh_until_covered_files_change(repository: Repository) -> None:
    proof = counting([])
    assert staleness(repository, proof, None).startswith("missing")
    row = run(repository, proof, quiet())
    assert staleness(repository, proof, row) == ""
    change(repository, "other.py", "elsewhere")
    assert staleness(repository, proof, row) == ""
    (repository.root / "code" / "a.py").write_text("2")
    assert staleness(repository, proof, row) == f"stale: covered files changed since {row.commit}"
    (repository.root / "code" / "a.py").write_text("1")
    assert staleness(repository, proof, row) == ""
    (repository.root / "code" / "new.py").write_text("untracked")
    assert staleness(repository, proof, row).startswith("stale")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (Row("sums", "", "FAILED in a", "HEAD"), "failed"),
        (Row("sums", "", "30", "HEAD+changes"), "uncommitted"),
        (Row("sums", "", "30", "0123abc"), "not in this history"),
        (Row("sums", "", "30", "HEAD"), ""),
    ],
)
def test_which_rows_are_not_fresh(repository: Repository, row: Row, told: str) -> None:
    reason = staleness(repository, counting([]), row)
    assert told in reason
    assert bool(reason) == bool(told)


def test_a_run_with_changes_is_settled_by_a_commit_without_working_again(repository: Repository) -> None:
    done: list[str] = []
    (repository.root / "code" / "a.py").write_text("2")
    run_all(repository, [counting(done)], ["sums"], quiet())
    assert repository.rows()["sums"].commit.endswith("+changes")
    head = commit(repository)
    run_all(repository, [counting(done)], ["sums"], quiet())
    assert repository.rows()["sums"].commit == head
    assert done == ["a", "b", "c"]


def test_freshness_is_known_from_the_committed_page_alone(repository: Repository, tmp_path: Path) -> None:
    run_all(repository, [counting([])], ["sums"], quiet())
    commit(repository)
    clone = Repository(tmp_path / "clone")
    repository.git("clone", "--quiet", str(repository.root), str(clone.root))
    assert not (clone.root / ".proofs").exists()
    console, done = quiet(), list[str]()
    assert check(clone, [counting(done)], console) == 0
    run_all(clone, [counting(done)], ["sums"], console)
    assert done == []
    change_in_clone = clone.root / "code" / "a.py"
    change_in_clone.write_text("2")
    assert check(clone, [counting(done)], console) == 1
    assert run_all(clone, [counting(done, failing="b")], ["sums"], console) == 1


def test_a_failure_does_not_stop_the_others_and_lost_proofs_leave_the_page(repository: Repository) -> None:
    repository.write([Row("gone", "", "", ""), Row("kept", "stays", "1", "abc")])
    good = Proof("good", "holds", ("code",), lambda: [("a", dict)], lambda results: "fine")
    broken = Proof("broken", "", ("code",), lambda: 1 / 0, lambda results: "")  # type: ignore[arg-type,return-value]
    proofs = [counting([], failing="a"), broken, good]
    assert run_all(repository, proofs, ["sums", "broken", "good", "kept"], quiet()) == 2
    rows = repository.rows()
    assert sorted(rows) == ["broken", "good", "kept", "sums"]
    assert rows["broken"].result == "FAILED in parts: ZeroDivisionError: division by zero"
    assert rows["good"].result == "fine"


cells = st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: " ".join(text.split()))


@given(cells, cells, cells)
def test_a_row_reads_back_as_it_was(claim: str, result: str, at: str) -> None:
    row = Row("sums", claim, result, at)
    assert Row.from_markdown(row.to_markdown()) == row
    assert len(row.to_markdown().splitlines()) == 1


@pytest.mark.parametrize("line", ["", "| claim | command | result | commit |", "|---|---|---|---|", "text | more"])
def test_what_is_no_row(line: str) -> None:
    assert Row.from_markdown(line) is None


def test_a_row_is_a_line_of_four_cells() -> None:
    line = Row("sums", "a|b", "c\nd", "abc1234").to_markdown()
    assert line == r"| a\|b | `python -m proofs.run sums` | c d | abc1234 |"


@pytest.mark.parametrize("name", sorted(discover()))
def test_every_proof_of_ours_keeps_the_protocol(name: str, request: pytest.FixtureRequest) -> None:
    root = Path(__file__).parents[1]
    proof = discover()[name]
    assert proof.claim
    assert all(any(root.glob(path)) for path in proof.files)
    if name == "tokenizer":
        request.getfixturevalue("shared")  # its parts are the datasets there
    names = [part for part, _ in proof.parts()]
    assert len(names) == len(set(names)) > 0
