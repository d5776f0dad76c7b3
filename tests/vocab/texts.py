"""Real text for several tests, from beside the project."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest


def real(shared: Path, name: str, characters: int) -> str:
    """The first characters of a file of ../shared/data."""
    path = shared / "data" / name
    if not path.is_file():
        pytest.skip(f"needs ../shared/data/{name}; not found")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read(characters)


ENGLISH, CHINESE = "gutenberg/austen-emma.txt.gz", "zh-corpus/CLUECorpusSmall_bert_sampled.txt.gz"
