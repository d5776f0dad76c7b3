"""From a model to a file that other programs run, kept only if it says what the model says.

DIR/
    model.onnx, openvino_model.xml and .bin, or model.pt2
    tokenizer.json …    the tokenizer, as transformers' AutoTokenizer opens it
    config.json         the network and its labels, as Hugging Face has them
    task.json           the task, where the model learned one
    export.json         inputs, outputs, limit, labels, the tokenizer's fingerprint, and what the check found
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bertkit
from bertkit import artifact
from bertkit.batch import Array, Example
from bertkit.compress.exam import Subject, model_of, opened
from bertkit.compress.sample import SENTENCES
from bertkit.errors import BertkitError, look_up
from bertkit.export.ending import Ending, ending_of, inputs_of, modules_of
from bertkit.export.exported import FORMATS, SHEET, Exported, Sheet, is_export
from bertkit.export.format import Format
from bertkit.export.speaker import Live
from bertkit.model import Model
from bertkit.runtime.engines.engine import FP32, INT8
from bertkit.runtime.engines.products import Floats, Integers, Product
from bertkit.runtime.runner import Runner
from bertkit.runtime.stream import example
from bertkit.tasks.finetuned import TASK, Finetuned
from bertkit.text.truncate import Cut, KeepHead
from bertkit.weights import directory
from bertkit.weights.find import find
from bertkit.weights.int8 import Quantization

TOLERANCE = 1e-4
"""by which a number may differ"""
COSINE = 0.95
"""the least cosine between what an int8 graph and floats say of a text"""
LONGEST = 2048
"""tokens of the longest row that is checked, where a model has no longest"""

log = logging.getLogger("bertkit")


@dataclass(frozen=True)
class Check:
    """How far a graph is from its model."""

    rows: int
    largest: float
    """difference of any number"""
    cosine: float
    """the smallest of any row"""

    def told(self) -> dict[str, Any]:
        """For a program to read."""
        return {"rows": self.rows, "largest_difference": self.largest, "smallest_cosine": self.cosine}


@dataclass(frozen=True)
class Export:
    """What was written."""

    source: str
    path: Path
    sheet: Sheet
    check: Check

    def told(self) -> dict[str, Any]:
        """For a program to read."""
        facts = {"source": self.source, "output": str(self.path), **self.sheet.told()}
        return facts | {"check": self.check.told()}


def export(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    to: str = "onnx",
    head: str | None = None,
    overwrite: bool = False,
    say: Callable[[str], None] = log.info,
) -> Export:
    """Write a model, or a run of bertkit finetune, as a graph of the kind `to`: onnx, openvino or torch-export.

    What follows the hidden states is in the graph: a task's head, or pooling, Dense modules and scaling; `head` chooses
    another head, or `sentence`. The directory appears only when the file, opened by its own runtime, gives the model's
    numbers within 1e-4; an int8 model's, which is exported to onnx alone, are compared by their cosines.
    """
    format = look_up("format", to, FORMATS)
    format.require()
    found = find(source)
    if is_export(found):
        raise BertkitError(f"{os.fspath(source)} is an export already: give the model that it was made from")
    artifact.require_apart(found, output)
    artifact.require_free(output, overwrite=overwrite)
    subject = opened(source)
    model = model_of(subject).to("cpu")
    model.network.float()
    model.dense.float()
    ending = ending_of(model, head_of(subject) if head is None else head)
    _require_numbers(ending)
    product = _product(model, format)
    eager = Live(ending, Runner.of_torch(model.network))
    sheet = _sheet(format, eager)
    noted = {"tokenizer": model.tokenizer.fingerprint, "format": to}
    with artifact.directory(output, "export", overwrite=overwrite, facts=noted) as home:
        say(f"writing {format.file}: {', '.join(one.name for one in sheet.outputs)}")
        format.write(ending, product, home / format.file)
        say("comparing it with the model")
        check = _checked(home / format.file, format, sheet, eager)
        _require_near(check, sheet, output)
        _write_beside(home, subject, sheet, check)
    return Export(os.fspath(source), Path(output), sheet, check)


def head_of(subject: Subject) -> str | None:
    """The head of its task, where it learned one."""
    if not isinstance(subject, Finetuned):
        return None
    return next(name for name in subject.task.objective.heads if name != "pooler")


def _product(model: Model, format: Format) -> Product:
    """Floats, or the whole numbers of an int8 model; what follows its encoder stays in floats, as in its engines."""
    quantization = Quantization.of(model.config)
    if quantization is None:
        return Floats()
    if not format.whole:
        raise BertkitError(
            f"this model is int8, and {format.name} files hold floats: export it to onnx, or export the model that it "
            "was made from"
        )
    return Integers(frozenset(quantization.kept), within="encoder.")


def _require_numbers(ending: Ending) -> None:
    for name, value in modules_of(ending).named_parameters():
        if not bool(value.isfinite().all()):
            raise BertkitError(
                f"{name.removeprefix('network.')} holds values that are no finite numbers (NaN or infinite): the model "
                "is damaged, and is not exported. Take an earlier checkpoint, or train it again"
            )


def _sheet(format: Format, eager: Live) -> Sheet:
    ending, model = eager.ending, eager.ending.model
    return Sheet(
        format=format.name,
        family=model.config["model_type"],
        head=ending.name,
        kind=ending.kind,
        labels=ending.labels,
        inputs=inputs_of(model),
        outputs=ending.outputs,
        limit=model.limit,
        prompt=eager.prompt,
        tokenizer=model.tokenizer.fingerprint,
        precision=INT8 if Quantization.of(model.config) else FP32,
    )


# the check ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _checked(file: Path, format: Format, sheet: Sheet, eager: Live) -> Check:
    """Over batches of one and of several, short and as long as may be, padded and not."""
    graph = Exported(sheet, eager.tokenizer, format.open(file, sheet.inputs))
    rows, largest, cosine = 0, [0.0], [1.0]
    for batch in _batches(eager):
        mine, theirs = eager.said(batch), graph.said(batch)
        for output in eager.outputs:
            for row, one in enumerate(batch):
                shown = slice(len(one)) if output.of_tokens else slice(None)
                a, b = (said[output.name][row, shown].astype(np.float64) for said in (mine, theirs))
                largest.append(float(np.abs(a - b).max()))
                cosine.append(_cosine(a, b))
        rows += len(batch)
    return Check(rows, float(np.max(largest)), float(np.min(cosine)))  # both are NaN where one of them is


def _cosine(a: Array, b: Array) -> float:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float((a * b).sum() / lengths) if lengths != 0 else float(np.array_equal(a, b))


def _batches(eager: Live) -> Iterator[list[Example]]:
    pairs = list(zip(SENTENCES[:4], SENTENCES[30:], strict=False))
    texts: list[tuple[str, ...]] = [("",), (SENTENCES[0],), (SENTENCES[5],), (SENTENCES[29],), *pairs]
    read = list(eager.examples(texts, KeepHead(), Cut()))
    longest = _longest(eager.ending.model)
    yield read[1:2]
    yield read
    yield [longest]
    yield [read[0], longest, *read[3:5]]


def _longest(model: Model) -> Example:
    """A row of all the tokens that may be, from all over the vocabulary, half of it in the last segment."""
    embed, count = model.network.spec.encoder.embed, min(model.limit, LONGEST)
    ids = np.linspace(0, embed.vocabulary - 1, count).astype(np.int64)
    return example(ids.tolist(), ((np.arange(count) >= count // 2) * (embed.segments - 1)).tolist())


def _require_near(check: Check, sheet: Sheet, output: str | os.PathLike[str]) -> None:
    if sheet.precision == INT8:
        near, bound = check.cosine >= COSINE, f"a cosine of {COSINE:g} is asked for"
    else:
        near, bound = check.largest <= TOLERANCE, f"{TOLERANCE:g} is let through"
    if not (near and np.isfinite(check.largest)):
        raise BertkitError(
            f"{os.fspath(output)} was not written: over {check.rows} rows its {sheet.format} file differs from the "
            f"model by up to {check.largest:.1e} (smallest cosine {check.cosine:.6f}), and {bound}. What was there is "
            "unchanged"
        )


# beside the graph ────────────────────────────────────────────────────────────────────────────────────────────────────


def _write_beside(home: Path, subject: Subject, sheet: Sheet, check: Check) -> None:
    model = model_of(subject)
    model.tokenizer.save_files(home)
    directory.write_config(model.network, model.config, home)
    if isinstance(subject, Finetuned):
        (home / TASK).write_text(subject.told(), encoding="utf-8")
    told = {"bertkit": bertkit.__version__, **sheet.told(), "check": check.told()}
    (home / SHEET).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
