"""An export that is opened again: its graph by its own runtime, its tokenizer, and what was written about both."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertkit import artifact
from bertkit.batch import Array, Example, Padded, collate
from bertkit.errors import BertkitError, about, look_up
from bertkit.export.ending import Output
from bertkit.export.format import Format, Run
from bertkit.export.onnx import Onnx
from bertkit.export.openvino import OpenVino
from bertkit.export.program import Program
from bertkit.export.speaker import Speaker
from bertkit.text import Tokenizer
from bertkit.text.files import read_object
from bertkit.weights.tensors import EXPORT

FORMATS: dict[str, Format] = {made.name: made for made in (Onnx(), OpenVino(), Program())}
SHEET = EXPORT


@dataclass(frozen=True)
class Sheet:
    """What lies beside a graph, so that it can be used: `export.json`."""

    format: str
    family: str
    head: str
    """whose logits are told, or `sentence`"""
    kind: str
    """the head's class"""
    labels: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[Output, ...]
    limit: int
    prompt: str
    """what is to be written before each text"""
    tokenizer: str
    """its fingerprint"""
    precision: str

    @classmethod
    def read(cls, path: Path) -> Sheet:
        """Of a file; what it lacks is named."""
        told, words = read_object(path), ("format", "family", "head", "kind", "prompt", "tokenizer", "precision")
        with about(path):
            found: dict[str, Any] = {name: _needed(told, name, str) for name in words}
            found |= {name: tuple(_needed(told, name, list)) for name in ("labels", "inputs")}
            outputs = _needed(told, "outputs", dict).items()
            found["outputs"] = tuple(Output(name, tuple(axes)) for name, axes in outputs)
            return cls(**found, limit=_needed(told, "limit", int))

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**vars(self), "outputs": {output.name: list(output.axes) for output in self.outputs}}


def _needed(told: Mapping[str, Any], name: str, kind: type) -> Any:
    if not isinstance(told.get(name), kind):
        there = f"is {told[name]!r}" if name in told else "is missing"
        raise BertkitError(f"{name} {there}: copy the export again, or make it again with bertkit export")
    return told[name]


class Exported(Speaker):
    """A graph that answers.

    >>> import tempfile, bertkit
    >>> from bertkit.export.export import export
    >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat"]
    >>> model = bertkit.create("bert-tiny", bertkit.Tokenizer.from_vocabulary(words, limit=9), seed=0)
    >>> with tempfile.TemporaryDirectory() as home:
    ...     made = export(model.save(f"{home}/tiny"), f"{home}/tiny-onnx", "onnx")
    ...     (row,) = Exported.load(made.path).rows(["a cat"])
    >>> row["sentence_embedding"].shape, row["token_embeddings"].shape
    ((128,), (4, 128))
    """

    def __init__(self, sheet: Sheet, tokenizer: Tokenizer, run: Run) -> None:
        self.sheet, self.tokenizer, self._run = sheet, tokenizer, run
        self.limit, self.prompt, self.outputs = sheet.limit, sheet.prompt, sheet.outputs
        self.kind, self.labels = sheet.kind, sheet.labels

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Exported:
        """Of a directory that `bertkit export` wrote, whole and with its own tokenizer.

        A `.pt2` file may hold code that runs when it is opened: without a manifest that knows it, it is refused.
        """
        home = Path(path)
        if not is_export(home):
            raise BertkitError(
                f"{home} is no export, for it has no {SHEET}. Make one: bertkit export MODEL --to onnx -o {home}"
            )
        sheet = Sheet.read(home / SHEET)
        with about(home / SHEET):
            format = look_up("format", sheet.format, FORMATS)
        tokenizer = Tokenizer.load(home)
        _require_same(home, sheet, tokenizer)
        _require_whole(home, format)
        return cls(sheet, tokenizer, format.open(home / format.file, sheet.inputs))

    def said(self, examples: Sequence[Example]) -> dict[str, Array]:
        batch = collate(examples, Padded)
        assert isinstance(batch.layout, Padded)
        mask = (
            torch.ones(batch.layout.shape, dtype=torch.long) if batch.layout.mask is None else batch.layout.mask.long()
        )
        there = {
            "input_ids": batch.tokens["ids"],
            "attention_mask": mask,
            "token_type_ids": batch.tokens["segments"],
        }
        said = self._run({name: there[name].numpy() for name in self.sheet.inputs})
        return {output.name: said[output.name] for output in self.outputs}


def is_export(path: Path) -> bool:
    """Whether a directory is an export."""
    return (path / SHEET).is_file()


def _require_same(home: Path, sheet: Sheet, tokenizer: Tokenizer) -> None:
    if tokenizer.fingerprint != sheet.tokenizer:
        raise BertkitError(
            f"{home}: its tokenizer ({tokenizer.fingerprint[:12]}…) is not the one that the graph was exported with "
            f"({sheet.tokenizer[:12]}…), so that the same ids would mean other words. Put the files of the tokenizer "
            f"back, or export again: bertkit export MODEL --to {sheet.format} --output {home} --overwrite"
        )


def _require_whole(home: Path, format: Format) -> None:
    known = artifact.read_manifest(home) is not None and format.file in artifact.verify(home).files
    if format.trusted and not known:
        raise BertkitError(
            f"{home} has no manifest that knows its {format.file}, and opening one may run code that is in it. Export "
            f"it again: bertkit export MODEL --to {format.name} --output OTHER"
        )
