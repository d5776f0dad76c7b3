"""Learn vocabularies from more and more text: the memory stays below its bound, and the files do not depend on it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from bertkit.cli.arguments import bytes_of
from proofs.corpus import content, peak_of, text

CLAIM = (
    "`bertkit vocab train` stays below --max-ram 1200M and needs no more memory for 2 GB of text than for 1 GB, though "
    "one word in a hundred is new; 1 GB gives the same files with 3 GB of memory, where nothing goes to the disk"
)
COVERS = (
    *("bertkit/vocab", "bertkit/corpus/source.py", "bertkit/corpus/format.py", "bertkit/text/chunks.py"),
    *("bertkit/cli/vocab.py", "bertkit/cli/sources.py", "proofs/corpus.py"),
)
SIZES = (1000, 2000)
"""MB of text"""
BOUND, AMPLE = "1200M", "3G"
ALLOWED = 1.1
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for size in SIZES:
        yield f"memory, {size} MB", partial(_memory, size)


def summary(results: list[Result]) -> str:
    peaks = {int(result["size"]): float(result["megabytes"]) for result in results}
    assert max(peaks.values()) <= ALLOWED * peaks[min(peaks)], peaks
    told = ", ".join(f"{peak:,.0f} MB for {size:,} MB" for size, peak in peaks.items())
    return f"peak {told}; {sum(int(result['files']) for result in results)} files equal with {AMPLE}"


def _memory(size: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place, equal = Path(folder), 0
        _write(place / "text.txt", size)
        peak = peak_of(_command(place / "text.txt", place / BOUND, BOUND))
        assert peak <= bytes_of("--max-ram", BOUND), peak
        if size == min(SIZES):
            subprocess.run(_command(place / "text.txt", place / AMPLE, AMPLE), check=True, capture_output=True)
            made = content(place / BOUND)
            assert made == content(place / AMPLE)
            equal = len(made)
    return {"size": size, "megabytes": peak / 1e6, "files": equal}


def _write(path: Path, size: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(text(size * 1_000_000, 1))


def _command(path: Path, output: Path, memory: str) -> list[str]:
    options = ["--size", "30000", "--output", str(output), "--max-ram", memory]
    return [sys.executable, "-m", "bertkit", "vocab", "train", str(path), *options]
