"""Embed a million lines on the command line and watch the memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

import bertkit
from bertkit.runtime.engines import ENGINES

CLAIM = (
    "`bertkit embed` of 1,000,000 lines needs no more memory than of 50,000 with any engine, and every line gets its "
    "own vector"
)
ROOT = Path(__file__).parents[1]
CHOOSING = {"tune.py", "excerpt.py"}
"""what measures engines: here they are named"""
RUNTIME = tuple(
    sorted(
        str(part.relative_to(ROOT))
        for part in (ROOT / "bertkit" / "runtime").iterdir()
        if part.name not in CHOOSING | {"__pycache__"}
    )
)
COVERS = (*RUNTIME, "bertkit/cli/embed.py", "bertkit/model.py", "bertkit/artifact.py")

FEW, MANY = 50_000, 1_000_000
ALLOWED = 1.1
WORDS = ["cat", "dog", "house", "river", "runs", "sits", "quickly", "slowly"]
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for engine in ENGINES:
        for lines in (FEW, MANY):
            yield f"{engine}, {lines:,} lines", partial(_embed, engine, lines)


def summary(results: list[Result]) -> str:
    told = []
    for engine in ENGINES:
        few, many = (float(result["megabytes"]) for result in results if result["engine"] == engine)
        assert many <= few * ALLOWED, f"{engine}: {many} MB for {MANY:,} lines, {few} MB for {FEW:,}"
        told.append(f"{engine}: peak {many:.0f} MB for {MANY:,} lines, {few:.0f} for {FEW:,} ({many / few:.2f} times)")
    return "; ".join(told)


def line(number: int) -> str:
    """Up to nine words, different for each of some hundred thousand numbers."""
    return " ".join(WORDS[number >> shift & 7] for shift in range(0, 3 * (1 + number % 9), 3))


def _embed(engine: str, count: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        model, texts, output = (Path(folder, name) for name in ("model", "texts.txt", "vectors.npy"))
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
        made = bertkit.create("bert-tiny", bertkit.Tokenizer.from_vocabulary(tokens), seed=0)
        made.save(model)
        with texts.open("w") as file:
            file.writelines(f"{line(number)}\n" for number in range(count))
        named = {"--input": texts, "--output": output, "--engine": engine}
        options = [str(part) for pair in named.items() for part in pair]
        megabytes = peak([sys.executable, "-m", "bertkit", "embed", str(model), *options])
        vectors = np.load(output, mmap_mode="r")
        assert vectors.shape == (count, 128)
        for place in (0, 1, 4095, 4096, count // 2, count - 1):
            assert np.abs(vectors[place] - made.embed(line(place))).max() <= 1e-5, place
    return {"engine": engine, "lines": count, "megabytes": megabytes}


def peak(command: list[str]) -> float:
    """The most memory a command had in use, in MB.

    It is started by a small process of its own: a child's peak begins with the size of whoever forked it.
    """
    watch = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", watch, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout) / (2**20 if sys.platform == "darwin" else 2**10)
