"""Directories of RoBERTa, ALBERT and XLM-R for several tests: trained here, or with the published vocabularies."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bertkit.corpus.source import embedded
from bertkit.vocab.kind import Options
from bertkit.vocab.train import train

PROSE = (
    "The cat sat on the mat, and the dogs (not the cats) didn't play in the house. "
    'Café owners say: "we\'ve 3.5% more guests!" Der Hund läuft schnell. 猫坐在垫子上。狗在家里玩。 '
    "Unbelievably, nobody was walking, talking or playing; everybody waited... "
)
TEXT = "".join(f"{PROSE[at:]} {PROSE[:at]}\n" for at in range(0, len(PROSE), 7))


def trained(directory: Path, kind: str, **options: Any) -> Path:
    """A small vocabulary as `bertkit vocab train` writes it."""
    train([embedded("prose", TEXT.encode())], directory, kind, Options(**{"size": 600, "min_count": 1, **options}))
    return directory


def fairseq(directory: Path) -> Path:
    """A model of sentencepiece with <unk> <s> </s> first, as fairseq trains it for XLM-R."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="needs sentencepiece; not installed")
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT.split("\n")),
        model_writer=written,
        vocab_size=300,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
    )
    directory.mkdir()
    (directory / "sentencepiece.bpe.model").write_bytes(written.getvalue())
    return told(directory, {"config": {"model_type": "xlm-roberta"}})


def published(shared: Path, directory: Path, names: Mapping[str, str], said: Mapping[str, Any]) -> Path:
    """Files of ../shared/data/vocabs under other names, with small JSON files beside them."""
    directory.mkdir()
    for source, name in names.items():
        if not (shared / "data" / "vocabs" / source).is_file():
            pytest.skip(f"needs ../shared/data/vocabs/{source}; not found")
        shutil.copyfile(shared / "data" / "vocabs" / source, directory / name)
    return told(directory, said)


def told(directory: Path, said: Mapping[str, Any]) -> Path:
    """The directory with these JSON files written into it."""
    for name, content in said.items():
        (directory / f"{name}.json").write_text(json.dumps(content), "utf-8")
    return directory


def without(directory: Path, target: Path, *names: str) -> Path:
    """A copy of the directory that lacks some files."""
    return Path(shutil.copytree(directory, target, ignore=shutil.ignore_patterns(*names)))


def each(cases: Mapping[str, Any]) -> Iterator[Any]:
    """Cases for `parametrize`, by name."""
    return (pytest.param(case, id=name) for name, case in cases.items())
