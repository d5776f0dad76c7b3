"""An hour of coverage-guided fuzzing over every reader of foreign files, by libFuzzer through atheris.

Each reader (`tests/readers.py`) has its own child, which starts from the whole file, knows the words that stand in it,
and keeps what led to new code for the next child. A child dies of an exception that is not ours, of a case that takes
too long, and of memory beyond a bound; any of these is a fault, and the case is printed.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

CLAIM = (
    "one CPU-hour of coverage-guided fuzzing over every reader of foreign files ends in files opened or refused with "
    "words: no crash, no hang, no allocation that the file does not justify"
)
COVERS = (
    *("bertkit/weights", "bertkit/family", "bertkit/names.py", "bertkit/spec.py", "bertkit/manifest.py"),
    *("bertkit/text/directory.py", "bertkit/text/files.py", "bertkit/text/vocabulary.py", "bertkit/text/added.py"),
    *("bertkit/text/wordpiece.py", "bertkit/parts/dense.py", "tests/readers.py"),
)

CPU_SECONDS = 3600
SLICE = 30
"""seconds of one child"""
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    from tests.readers import READERS  # not above: a child measures the code that it imports itself

    for name in READERS:
        yield name, partial(run, name, CPU_SECONDS / len(READERS))


def summary(results: list[Result]) -> str:
    cases = sum(int(result["cases"]) for result in results)
    seconds = sum(float(result["cpu_seconds"]) for result in results)
    assert seconds >= CPU_SECONDS
    return f"{len(results)} readers, {cases:,} cases in {seconds:,.0f} CPU-seconds: 0 faults"


def run(name: str, seconds: float) -> Result:
    """Children until so many CPU-seconds are spent; a fault is raised with the end of what the child said."""
    cases, spent = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, 1000):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [sys.executable, "-m", "proofs.fuzz", name, folder, str(seed), str(SLICE)]
            done = subprocess.run(command, capture_output=True, check=False)
            said = done.stderr.decode("utf-8", "replace")
            count = re.search(r"number_of_executed_units:\s*(\d+)", said)
            assert done.returncode == 0, f"{name}: a fault.\n{said[-6000:]}"
            assert count, f"{name}: the child ran nothing.\n{said[-6000:]}"
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            cases += int(count[1])
            if spent >= seconds:
                break
    return {"cases": cases, "cpu_seconds": spent}


def fuzz(name: str, folder: Path, seed: str, seconds: str) -> None:
    """One run of libFuzzer, which ends the process. What led to new code is kept in the folder for the next child."""
    import atheris

    with atheris.instrument_imports(include=["bertkit"]):
        from tests import readers

    models = folder / "models"
    if not models.is_dir():
        readers.build(models)
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    harness = readers.Harness(name, models, work)
    corpus, words = folder / "corpus", folder / "words"
    corpus.mkdir(exist_ok=True)
    (corpus / "whole").write_bytes(harness.seed)
    words.write_text("".join(f'"{word}"\n' for word in dictionary(harness.seed)))
    readers.bound_memory()

    def case(data: bytes) -> None:
        harness.opens(data)

    flags = [f"-max_total_time={seconds}", f"-seed={seed}", f"-timeout={readers.SECONDS}", "-rss_limit_mb=4096"]
    flags += ["-print_final_stats=1", f"-dict={words}", f"-max_len={2 * len(harness.seed) + 64}"]
    atheris.Setup([name, *flags, f"-artifact_prefix={folder}/", str(corpus)], case)
    atheris.Fuzz()


def dictionary(data: bytes) -> list[str]:
    """The words of a file and some nasty values, as libFuzzer reads them."""
    nasty = ["null", "-1", "1e999", "[]", "{}", "true", "99999999999999999999", "NaN", "\\\\ud800", "../", "\\x00"]
    nasty += ["\\xff\\xff\\xff\\xff\\x0f", "\\x80\\x80\\x80\\x80\\x80\\x80\\x80\\x80\\x80\\x01"]  # large varints
    found = {word.decode() for word in re.findall(rb"[A-Za-z_0-9./-]{3,60}", data[:20_000])}
    return nasty + sorted(found)[:400]


if __name__ == "__main__":
    fuzz(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4])
