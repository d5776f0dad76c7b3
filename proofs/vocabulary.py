"""Learn vocabularies from more and more text: the memory stays below its bound, and the files do not depend on it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from proofs.corpus import content, peak_of, text

CLAIM = (
    "`bertkit vocab train` stays below --max-ram and needs no more memory for 2 GB of text than for 1 GB, though one "
    "word in a hundred is new; the same text gives the same files with 2 GB of memory and with 450 MB"
)
COVERS = (
    *("bertkit/vocab", "bertkit/corpus/source.py", "bertkit/corpus/format.py", "bertkit/text/chunks.py"),
    *("bertkit/cli/vocab.py", "bertkit/cli/sources.py", "proofs/corpus.py"),
)
SIZES = (1000, 2000)
"""MB of text"""
BOUND = 2 * 2**30
ALLOWED = 1.1
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    yield "memory makes no difference", _same
    for size in SIZES:
        yield f"memory, {size} MB", partial(_memory, size)


def summary(results: list[Result]) -> str:
    peaks = {int(result["size"]): float(result["megabytes"]) for result in results if "size" in result}
    assert max(peaks.values()) <= ALLOWED * peaks[min(peaks)], peaks
    told = ", ".join(f"{peak:,.0f} MB for {size:,} MB" for size, peak in peaks.items())
    spilled = next(result["files"] for result in results if "files" in result)
    return f"peak {told} (bound {BOUND / 1e6:,.0f} MB); {spilled} files equal with 2 GB and with 450 MB of memory"


def _same() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _write(place / "text.txt", 150)
        made = []
        for memory in ("2G", "450M"):
            subprocess.run(_command(place / "text.txt", place / memory, memory), check=True, capture_output=True)
            made.append(content(place / memory))
        assert made[0] == made[1]
    return {"files": len(made[0])}


def _memory(size: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _write(place / "text.txt", size)
        peak = peak_of(_command(place / "text.txt", place / "vocabulary", "2G"))
        assert peak <= BOUND, peak
    return {"size": size, "megabytes": peak / 1e6}


def _write(path: Path, size: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(text(size * 1_000_000, 1))


def _command(path: Path, output: Path, memory: str) -> list[str]:
    options = ["--size", "30000", "--output", str(output), "--max-ram", memory]
    return [sys.executable, "-m", "bertkit", "vocab", "train", str(path), *options]
