"""From nothing to a first answer: a new process, its imports, a model, one text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.child import Fresh
from bench.pipe import Array


def startup(program: str) -> Callable[[str, str], Fresh]:
    """A job that runs a program, which is told a model, a text, and a file for its vector."""

    def job(model: str, text: str) -> Fresh:
        def call(place: str) -> Path:
            out = Path(place, "vector.npy")
            done = subprocess.run([sys.executable, "-c", program, model, text, out], capture_output=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr.decode(errors="replace").strip().splitlines()[-1])
            return out

        def answer(out: Path) -> Array:
            vector: Array = np.load(out)
            return vector

        return Fresh(TemporaryDirectory, call, answer)

    return job
