"""A corpus, a run that nothing happened to, and examples."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from bertkit import machine
from bertkit.corpus import build
from bertkit.corpus.build import Options
from bertkit.corpus.examples import Examples
from bertkit.corpus.inputs import SegmentPairs
from bertkit.corpus.source import files
from bertkit.text import Tokenizer
from bertkit.train.compute import WITHOUT_AMX, survives
from bertkit.train.pretrain import pretrain
from tests.corpus.making import numbered
from tests.train.running import RECIPE, made

if "amx_tile" in machine.instructions() and not survives("bfloat16"):
    os.environ["ONEDNN_MAX_CPU_ISA"] = WITHOUT_AMX  # before torch looks: the rest is tested also on such a machine
survives.cache_clear()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a corpus and a recipe."""
    place, draw = tmp_path_factory.mktemp("runs"), random.Random(0)
    words = "the cat dog sat on a mat play runs fast slow house".split()  # noqa: SIM905 - a list to read
    tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, "##ing", "."])
    sentences = [" ".join(draw.choices(words, k=draw.randint(4, 12))) + "." for _ in range(600)]
    documents = ["\n".join(sentences[first : first + 6]) for first in range(0, 600, 6)]
    (place / "text.txt").write_text("\n\n".join(documents))
    build.build(files([str(place / "text.txt")]), tokenizer, place / "corpus", Options(held_out=0.1))
    (place / "recipe.toml").write_text(RECIPE)
    return place


@pytest.fixture(scope="module")
def whole(home: Path) -> Path:
    """A run that nothing happened to."""
    pretrain(made(home, f"output={home / 'whole'}"))
    return home / "whole"


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Examples:
    documents = [[3 + (place + part) % 9 for part in range(8)] for place in range(30)]
    made = numbered(tmp_path_factory.mktemp("corpus") / "corpus", documents)
    return Examples(made.corpus, SegmentPairs(24))
