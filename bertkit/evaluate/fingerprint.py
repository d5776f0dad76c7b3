"""A fingerprint: all that decides a score, and one short name for it. Scores with other fingerprints do not compare."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class _Told:
    """What both kinds have in common."""

    def told(self) -> dict[str, Any]:
        """Itself, and under `id` twelve letters that differ where anything does."""
        values = asdict(self)
        text = json.dumps(values, sort_keys=True, ensure_ascii=False)
        return {"id": hashlib.sha256(text.encode()).hexdigest()[:12], **values}


@dataclass(frozen=True)
class Fingerprint(_Told):
    """Of a model's answers: weights, tokenizer and data by their SHA-256; everything else as it is."""

    weights: str
    tokenizer: str
    data: str
    rows: int
    task: Any
    """labels, thresholds, measures"""
    layout: Any
    """which columns, which rows"""
    limit: int
    truncate: Any
    bertkit: str


@dataclass(frozen=True)
class FilesFingerprint(_Told):
    """Of a file of predictions, whoever made them: it and the data by their SHA-256."""

    data: str
    predictions: str
    rows: int
    task: Any
    """its name and all that was chosen about it"""
    measures: tuple[str, ...]
    bertkit: str


def digest(path: Path) -> str:
    """SHA-256 of a file, or of all files in a folder with their names."""
    if path.is_dir():
        told = "".join(f"{one.name} {digest(one)}\n" for one in sorted(path.rglob("*")) if one.is_file())
        return hashlib.sha256(told.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
