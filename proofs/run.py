"""Run the proofs and write docs/proofs.md: `python -m proofs.run [NAME …] [--check] [--again]`.

Results of finished parts are kept in `.proofs/NAME.json`, so Ctrl-C or a power cut costs one part. They hold for the
exact content of the covered files, and a row of docs/proofs.md for as long as these are what they were at its commit.
A part may read files of its own: where only these change, it alone is run again.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import proofs
from bertkit import artifact
from bertkit.errors import BertkitError, unknown

Result = dict[str, int | float | str]

FAILED = "FAILED"
CHANGES = "+changes"
INTRODUCTION = f"""# Proofs

`make proofs` runs what takes too long for `make test`, where covered files changed, and writes this page;
`python -m proofs.run --check` only tells which rows are fresh. A commit marked `{CHANGES}` had uncommitted changes.

| claim | command | result | commit |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Proof:
    """One module of `proofs/`."""

    name: str
    claim: str
    covers: tuple[str, ...]
    """files that every part depends on"""
    parts: Callable[[], Iterable[tuple[str, Callable[[], Result]]]]
    summary: Callable[[list[Result]], str]
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """further files that a part depends on, by its name"""

    @property
    def files(self) -> tuple[str, ...]:
        """All that the row speaks for."""
        return tuple(dict.fromkeys((*self.covers, *(path for paths in self.reads.values() for path in paths))))


@dataclass(frozen=True)
class Row:
    """One line of docs/proofs.md."""

    name: str
    claim: str
    result: str
    commit: str

    def to_markdown(self) -> str:
        """The line, on one line, with the bars inside its cells escaped."""
        cells = (self.claim, f"`python -m proofs.run {self.name}`", self.result, self.commit)
        return "| " + " | ".join(re.sub(r"[\\|]", r"\\\g<0>", " ".join(cell.split())) for cell in cells) + " |"

    @classmethod
    def from_markdown(cls, line: str) -> Row | None:
        """The row that a line tells; None for the heading, and for all that is no row."""
        cells = re.findall(r"((?:[^|\\]|\\.)*)\|", line)[1:]
        claim, command, result, commit = (re.sub(r"\\(.)", r"\1", cell.strip()) for cell in (*cells, *[""] * 4)[:4])
        name = re.fullmatch(r"`python -m proofs\.run (\w+)`", command)
        return cls(name[1], claim, result, commit) if name else None


@dataclass(frozen=True)
class Repository:
    """The checkout the proofs speak of: what git knows of covered files, the page of rows, the kept results."""

    root: Path

    def git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One git command, whose failure is an answer."""
        return subprocess.run(["git", "-C", str(self.root), *arguments], capture_output=True, text=True, check=False)

    def files(self, covers: Sequence[str], *options: str) -> list[str]:
        """The covered files git sees, ignored ones left out."""
        listed = self.git("ls-files", "-z", "--exclude-standard", *options, "--", *covers).stdout
        return sorted(set(filter(None, listed.split("\0"))))

    def fingerprint(self, covers: Sequence[str]) -> str:
        """A hash of the covered files as they are now, committed or not."""
        digest = hashlib.sha256()
        for name in self.files(covers, "--cached", "--others"):
            if (self.root / name).is_file():
                content = hashlib.sha256((self.root / name).read_bytes()).hexdigest()
                digest.update(f"{name}\0{content}\0".encode())
        return digest.hexdigest()

    def differs(self, commit: str, covers: Sequence[str]) -> bool:
        """Whether the covered files are no longer what they were at `commit`."""
        changed = self.git("diff", "--quiet", commit, "--", *covers).returncode != 0
        return changed or bool(self.files(covers, "--others"))

    def commit(self, covers: Sequence[str]) -> str:
        """The commit checked out, marked when covered files differ from it."""
        head = self.git("rev-parse", "--short", "HEAD").stdout.strip()
        return head + CHANGES if self.differs("HEAD", covers) else head

    def page(self) -> Path:
        """Where the rows are."""
        return self.root / "docs" / "proofs.md"

    def rows(self) -> dict[str, Row]:
        """Those of the page by name."""
        lines = self.page().read_text(encoding="utf-8").splitlines() if self.page().exists() else []
        return {row.name: row for row in map(Row.from_markdown, lines) if row}

    def write(self, rows: Iterable[Row]) -> None:
        """The page anew."""
        lines = [row.to_markdown() + "\n" for row in sorted(rows, key=lambda row: row.name)]
        with artifact.file(self.page(), overwrite=True) as handle:
            handle.write((INTRODUCTION + "".join(lines)).encode())

    def results(self, proof: Proof) -> dict[str, Result]:
        """Of the parts that were finished with the files they depend on as they are now."""
        try:
            kept = json.loads(self._kept(proof).read_bytes())["parts"]
        except (OSError, ValueError, KeyError):
            return {}
        return {name: one["result"] for name, one in kept.items() if one["fingerprint"] == self._print(proof, name)}

    def keep(self, proof: Proof, results: Mapping[str, Result]) -> None:
        """Remember finished parts, whatever happens next."""
        parts = {name: {"fingerprint": self._print(proof, name), "result": result} for name, result in results.items()}
        with artifact.file(self._kept(proof), overwrite=True) as handle:
            handle.write(json.dumps({"parts": parts}, indent=1).encode())

    def _print(self, proof: Proof, part: str) -> str:
        return self.fingerprint((*proof.covers, *proof.reads.get(part, ())))

    def _kept(self, proof: Proof) -> Path:
        return self.root / ".proofs" / f"{proof.name}.json"


def staleness(repository: Repository, proof: Proof, row: Row | None) -> str:
    """Why a row does not speak for the code as it is now; empty when it does."""
    if row is None:
        return "missing: it was never run"
    if row.result.startswith(FAILED):
        return "failed when it was last run"
    if row.commit.endswith(CHANGES):
        return "stale: it was run with uncommitted changes"
    if repository.git("merge-base", "--is-ancestor", row.commit, "HEAD").returncode != 0:
        return f"stale: its commit {row.commit} is not in this history"
    return f"stale: covered files changed since {row.commit}" if repository.differs(row.commit, proof.files) else ""


def run(repository: Repository, proof: Proof, console: Console, again: bool = False) -> Row:
    """Do the parts that are not done, in order, up to one that raises."""
    fingerprint = repository.fingerprint(proof.files)
    results = {} if again else repository.results(proof)
    at = "parts"
    try:
        parts = dict(proof.parts())
        with _progress(console) as progress:
            bar = progress.add_task(proof.name, total=len(parts), completed=len(parts.keys() & results), part="")
            for at, work in parts.items():
                if at not in results:
                    progress.update(bar, part=at)
                    results[at] = work()
                    if repository.fingerprint(proof.files) == fingerprint:  # else nobody knows what it speaks for
                        repository.keep(proof, results)
                    progress.advance(bar)
        at = "summary"
        result = proof.summary([results[name] for name in parts])
    except Exception as error:  # whatever a part raises is its verdict, and the other proofs go on
        result = f"{FAILED} in {at}: {type(error).__name__}: {error}"
    if repository.fingerprint(proof.files) != fingerprint:
        result = f"{FAILED}: covered files changed while it ran; run it again"
    return Row(proof.name, proof.claim, result, repository.commit(proof.files))


def _progress(console: Console) -> Progress:
    columns = (SpinnerColumn(), "{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("{task.fields[part]}"), console=console)


def run_all(
    repository: Repository, chosen: Sequence[Proof], known: Iterable[str], console: Console, again: bool = False
) -> int:
    """Run what is not fresh, writing the page after each; the number of proofs that failed."""
    rows = {name: row for name, row in repository.rows().items() if name in set(known)}
    failed = 0
    for proof in chosen:
        if not again and not staleness(repository, proof, rows.get(proof.name)):
            console.print(f"{proof.name}: fresh, proven at {rows[proof.name].commit}", highlight=False)
            continue
        row = run(repository, proof, console, again)
        # read again: another run may have written its own rows in the hours between
        rows = {name: kept for name, kept in repository.rows().items() if name in set(known)} | {proof.name: row}
        repository.write(rows.values())
        failed += row.result.startswith(FAILED)
        console.print(f"{proof.name}: {row.result} ({row.commit})", highlight=False, markup=False)
        if row.commit.endswith(CHANGES):
            console.print(f"  covered files are not committed: commit, then `python -m proofs.run {proof.name}` again")
    return failed


def check(repository: Repository, chosen: Sequence[Proof], console: Console) -> int:
    """Tell which rows are fresh; the number that are not."""
    rows = repository.rows()
    reasons = {proof.name: staleness(repository, proof, rows.get(proof.name)) for proof in chosen}
    for name, reason in reasons.items():
        console.print(f"{name}: {reason or 'fresh'}", highlight=False, markup=False)
    return sum(map(bool, reasons.values()))


def discover() -> dict[str, Proof]:
    """Every proof by name. A proof always covers its own module."""
    names = sorted(module.name for module in pkgutil.iter_modules(proofs.__path__) if module.name != "run")
    return {name: _proof(name) for name in names}


def _proof(name: str) -> Proof:
    module = importlib.import_module(f"proofs.{name}")
    covers = (*module.COVERS, f"proofs/{name}.py")
    return Proof(name, module.CLAIM, covers, module.parts, module.summary, getattr(module, "READS", {}))


def _choose(names: Sequence[str], repository: Repository) -> tuple[list[Proof], dict[str, Proof]]:
    known = discover()
    for name in names:
        if name not in known:
            raise unknown("proof", name, known)
    chosen = [known[name] for name in names or known]
    for proof in chosen:
        for path in proof.files:
            if not any(repository.root.glob(path)):
                raise BertkitError(f"proofs/{proof.name}.py covers {path!r}, which does not exist. Correct its COVERS.")
    return chosen, known


def main() -> int:
    """The command line; 0 when every chosen proof holds (or, with --check, is fresh)."""
    parser = argparse.ArgumentParser(prog="python -m proofs.run", description="Run the proofs, write docs/proofs.md.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the proofs to run; all when none is named")
    parser.add_argument("--check", action="store_true", help="only tell which are fresh; fail if any is not")
    parser.add_argument("--again", action="store_true", help="run also what is fresh, from the first part")
    arguments = parser.parse_args()
    console, repository = Console(), Repository(Path(__file__).parents[1])
    try:
        chosen, known = _choose(arguments.names, repository)
        if arguments.check:
            return int(check(repository, chosen, console) > 0)
        failed = run_all(repository, chosen, known, console, arguments.again)
    except BertkitError as error:
        console.print(f"error: {error}", highlight=False, markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("Stopped. Finished parts are kept: the same command goes on from here.")
        return 130
    console.print(
        f"{len(chosen) - failed} of {len(chosen)} proofs hold; written to docs/proofs.md. Next: git add docs/proofs.md"
    )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
