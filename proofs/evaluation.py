"""Examine a fine-tuned model with half a million rows on the command line, and watch the memory."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import bertkit
from bertkit.tasks.finetuned import Finetuned
from proofs.memory import RUNTIME, WORDS, line, peak

CLAIM = "`bertkit evaluate` and `bertkit predict` of 500,000 rows need no more memory than of 25,000"
COVERS = (*RUNTIME, "bertkit/tasks", "bertkit/evaluate", "bertkit/cli", "bertkit/model.py")

FEW, MANY = 25_000, 500_000
ALLOWED = 1.1
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for verb in ("evaluate", "predict"):
        for rows in (FEW, MANY):
            yield f"{verb} {rows:,} rows", partial(examined, verb, rows)


def summary(results: list[Result]) -> str:
    told = []
    for verb in ("evaluate", "predict"):
        few, many = (float(result["megabytes"]) for result in results if result["verb"] == verb)
        assert many <= few * ALLOWED, f"{verb}: {many} MB for {MANY:,} rows, {few} MB for {FEW:,}"
        told.append(f"{verb}: peak {many:.0f} MB for {MANY:,} rows, {few:.0f} MB for {FEW:,} ({many / few:.2f} times)")
    return "; ".join(told)


def examined(verb: str, rows: int) -> Result:
    """The most memory that a command took."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
        bertkit.create("bert-tiny", bertkit.Tokenizer.from_vocabulary(tokens), seed=0).save(home / "tiny")
        texts = [line(number) for number in range(2000)]
        learned = bertkit.Classifier(str(home / "tiny"), epochs=1).fit(texts, ["cat" in text for text in texts])
        learned.save(home / "model")
        with (home / "rows.tsv").open("w") as file:
            file.write("text\tlabel\n")
            file.writelines(f"{line(number)}\t{'cat' in line(number)}\n" for number in range(rows))
        command = [
            sys.executable,
            "-m",
            "bertkit",
            verb,
            str(home / "model"),
            "--data",
            str(home / "rows.tsv"),
            "--engine",
            "torch",  # the others are built while the fastest is found, which is no part of the claim
            "--json",
        ]
        megabytes = peak(command)
        if verb == "evaluate" and rows == FEW:
            assert Finetuned.load(home / "model").evaluate(home / "rows.tsv").rows == rows
    return {"verb": verb, "rows": rows, "megabytes": megabytes}
