"""The forward pass: token ids to hidden states, texts to vectors, one short query to a vector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import bertkit
from bench.measure import Bar, Case
from bench.peer import HOME
from bench.texts import lengths, queries, texts
from bertkit.weights.find import find

EMBEDDERS = ("sentence-transformers", "sentence-transformers-onnx", "sentence-transformers-openvino", "infinity")
"""nearest to us first: bars are set against sentence-transformers, whose turn is next to ours in every round"""
BARS = {
    "fixed": {"transformers": Bar(1.0, within_spread=True)},
    "mixed": {"sentence-transformers": Bar(1.3)},
    "query": {"sentence-transformers": Bar(1.5)},
}

ROWS, LENGTH = 32, 128
TEXTS = {"minilm": 2000, "base": 200}
"""so that a turn of either size takes about as long"""
PASSES = {"minilm": 16, "base": 4}
"""over the queries, in one turn: a moment of a second or so says little on a machine that others share"""


def cases(quick: bool) -> Iterable[Case]:
    """MiniLM and, unless `quick`, BERT's base size: rectangles, real lengths, and one query at a time."""
    for size in ("minilm",) if quick else ("minilm", "base"):
        model = find("minilm") if size == "minilm" else base()
        yield from _of(size, model, 32 if quick else TEXTS[size], 4 if quick else ROWS, 1 if quick else PASSES[size])


def _of(size: str, path: Path, count: int, rows: int, passes: int) -> Iterable[Case]:
    opened = bertkit.load(path)
    spec = opened.encoder.spec
    # ids below 1000 are special tokens and characters
    ids = np.random.default_rng(0).integers(1000, spec.embed.vocabulary, (rows, LENGTH))  # [B, L]
    ids[:, 0], ids[:, -1] = opened.tokenizer.encode("").ids
    asked = queries()
    counted = [len(found) for found in opened.tokenizer.ids_of_many(asked)]
    shape = len(spec.order), spec.width, spec.feeds[0].inner
    yield Case(
        f"fixed {rows}×{LENGTH}, {size}",
        "hidden",
        {"model": str(path)},
        ("transformers",),
        flops([LENGTH] * rows, *shape),
        array=ids,
        bars=BARS["fixed"],
    )
    yield Case(
        f"mixed {count:,} texts, {size}",
        "embed",
        {"model": str(path), "texts": texts(count)},
        EMBEDDERS,
        flops(lengths(count), *shape),
        bars=BARS["mixed"],
    )
    yield Case(
        f"query, {size}",
        "query",
        {"model": str(path), "texts": asked},
        EMBEDDERS,
        flops(counted, *shape),
        calls=passes,
        items=len(asked),
        bars=BARS["query"],
    )


def flops(lengths: Sequence[int], layers: int, width: int, inner: int) -> float:
    """Of the encoder for sequences of these lengths, padding apart; a multiplication and an addition are two.

    >>> flops([1], layers=1, width=2, inner=8)    # 4 matrices of 2 × 2, 2 of 2 × 8, one score, one sum
    104.0
    """
    matrices = 4 * width**2 + 2 * width * inner
    return float(sum(2 * layers * length * (matrices + 2 * length * width) for length in lengths))


def base() -> Path:
    """A network of BERT's base size, drawn at random once and kept: time does not depend on the weights."""
    path = HOME / "models" / "base"
    if not path.exists():
        made = bertkit.create("bert-base", bertkit.load("minilm").tokenizer, seed=0)
        made.normalize = True  # what every embedder here does with MiniLM too
        made.save(path)
    return path
