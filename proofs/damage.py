"""Damage the files of a model anywhere: it opens, or one clear error says why not."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import bertkit
from tests.readers import build, damaged

CLAIM = (
    "20,000 random changes to the files of a model (Hugging Face's, sentence-transformers', Google's) end in a model "
    "or in one clear error, never in a crash"
)
COVERS = (
    "bertkit/weights",
    "bertkit/text",
    "bertkit/family",
    "bertkit/names.py",
    "bertkit/spec.py",
    "bertkit/model.py",
    "tests/readers.py",
)

CASES, PIECE = 20_000, 1000
FILES = {
    "hf": (
        *("config.json", "model.safetensors", "vocab.txt", "tokenizer.json", "tokenizer_config.json"),
        *("special_tokens_map.json", "modules.json", "1_Pooling/config.json", "2_Dense/config.json"),
        *("2_Dense/model.safetensors", "sentence_bert_config.json", "config_sentence_transformers.json"),
    ),
    "google": ("bert_config.json", "vocab.txt", "bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"),
}
"""what is damaged of a model of each kind"""
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for piece in range(CASES // PIECE):
        yield f"{piece * PIECE}-{(piece + 1) * PIECE - 1}", partial(run, piece, PIECE)


def summary(results: list[Result]) -> str:
    total = Counter[str]()
    for result in results:
        total.update({name: int(count) for name, count in result.items()})
    assert total["opened"] + total["refused"] == CASES
    counts = f"{total['opened']:,} opened, {total['refused']:,} refused, 0 crashed"
    return f"{CASES:,} changes over {sum(map(len, FILES.values()))} files: {counts}"


def run(seed: int, count: int) -> Result:
    """How many damaged models opened and how many were refused; any exception but ours is raised."""
    dice, found = random.Random(seed), Counter[str](opened=0, refused=0)
    with tempfile.TemporaryDirectory() as folder:
        models = build(Path(folder))
        for _ in range(count):
            path = models / dice.choice(["hf", "hf", "google"])
            file = path / dice.choice(FILES[path.name])
            original = file.read_bytes()
            file.write_bytes(damaged(original, dice))
            try:
                bertkit.load(path)
                found["opened"] += 1
            except bertkit.BertkitError as error:
                found["refused" if str(error).strip() else "silent"] += 1
            except Exception as error:
                raise AssertionError(
                    f"{file.name}: {type(error).__name__}: {error}; file: {file.read_bytes()!r}"
                ) from error
            file.write_bytes(original)
    return dict(found)
