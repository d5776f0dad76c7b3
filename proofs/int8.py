"""MiniLM in int8 on real tasks: SST-2 after fine-tuning, and STS-B as it is."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import bertkit
from bertkit.compress.exam import exam
from bertkit.compress.quantize import Verdict, quantize
from bertkit.tasks.finetune import finetune
from bertkit.tasks.finetuned import Finetuned
from bertkit.tasks.tuning import read
from proofs.finetune import RECIPES, Course, files

CLAIM = (
    "`bertkit quantize`, which sees rows of the training set alone, keeps at least 99 % of the score on development "
    "sets: accuracy on SST-2 of a fine-tuned MiniLM, Spearman's correlation on STS-B of MiniLM as it is"
)
COVERS = ("bertkit/compress", "bertkit/weights/int8.py", "bertkit/runtime", "bertkit/tasks/finetuned.py")

KEPT = 0.99
CALIBRATION = 1000
"""rows that states are centred by"""
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    yield "stsb", stsb
    yield "sst2", sst2


def summary(results: list[Result]) -> str:
    told = []
    for one in results:
        before, after = float(one["fp32"]), float(one["int8"])
        assert after >= KEPT * before, f"{one['task']}: {after} of {before}"
        told.append(
            f"{one['task']} ({one['measure']}, {int(one['rows']):,} rows) {before:.4f} in fp32, {after:.4f} in int8 "
            f"({after / before:.2%}; {one['engine']}, {one['megabytes']} MB)"
        )
    return "; ".join(told)


def stsb() -> Result:
    """The sentence encoder as it is."""
    with tempfile.TemporaryDirectory() as folder:
        train, dev = files(Course("stsb", 1, CALIBRATION), Path(folder))
        verdict = quantize("minilm", Path(folder, "int8"), train, force=True)
        judge, texts = exam(bertkit.load("minilm"), dev, ())
        before, after = (judge.score(bertkit.load(path)) for path in ("minilm", Path(folder, "int8")))
    return _told("stsb", judge.measure, len(texts) // 2, before, after, verdict)


def sst2() -> Result:
    """Fine-tuned by its recipe on 8,000 rows."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        train, dev = files(Course("sst2", 1, 8000), home)
        changes = [f"output={home / 'run'}", f"train={train}", "held_out=0.0", "seed=0"]
        run = finetune(read(RECIPES / "sst2.toml", changes))
        (home / "some").mkdir()
        some, _ = files(Course("sst2", 1, CALIBRATION), home / "some")
        verdict = quantize(run, home / "int8", some, force=True)
        before, after = (Finetuned.load(path).evaluate(dev) for path in (run, home / "int8"))
    main = before.main
    return _told("sst2", main, before.rows, before.scores[main], after.scores[main], verdict)


def _told(task: str, measure: str, rows: int, before: float, after: float, verdict: Verdict) -> Result:
    told: Result = {"task": task, "measure": measure, "rows": rows, "fp32": before, "int8": after}
    return told | {"engine": verdict.after.engine, "megabytes": round(verdict.after.megabytes, 1)}
