"""Strings to vectors on a CPU: bertkit with the engine it chose, against products, raw engines, and its own engines.

A product is what a user would pick; a raw engine is what somebody writes who knows it well; and our own engines, one by
one, tell whether the choice was right.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import bertkit
from bench.forward import LENGTH, PASSES, ROWS, base, flops
from bench.measure import Bar, Case
from bench.texts import lengths, pieces, queries, text, texts
from bertkit.weights.find import find

PRODUCTS = (
    "sentence-transformers",
    "transformers",
    "sentence-transformers-onnx",
    "sentence-transformers-openvino",
    "fastembed",
)
"""fastembed after the one whose graph it reads"""
RAW = ("ctranslate2", "onnxruntime", "openvino")
ENGINES = ("bertkit-ctranslate2", "bertkit-onednn", "bertkit-onnx", "bertkit-openvino", "bertkit-torch")
ONLY_FP32 = {"sentence-transformers", "transformers", "openvino", "bertkit-onednn", "bertkit-openvino", "bertkit-torch"}

ROUNDS = 4
"""for there are twelve contestants"""
TEXTS = 2000
PIECES = {"minilm": 1, "base": 4}
"""of those texts, where all at once would take a minute or more: each is a turn, and rounds are as many"""
FIXED = {"minilm": 4, "base": 1}
"""calls of a turn: a moment says little on a machine that others share"""

AHEAD, EVEN, CHOSEN = Bar(1.2), Bar(1.0, within_spread=True), Bar(0.87)
"""CHOSEN: within 15 % of an engine that was not chosen"""


def cases(quick: bool) -> Iterable[Case]:
    """MiniLM and, unless `quick`, BERT's base size: mixed lengths, rectangles, one query; and a first answer."""
    for size in ("minilm",) if quick else ("minilm", "base"):
        path = find("minilm") if size == "minilm" else base()
        yield from _mixed(size, path, 32 if quick else TEXTS)
        yield from _fixed(size, path, 4 if quick else ROWS, 1 if quick else FIXED[size])
        yield _query(size, path, 1 if quick else PASSES[size])
    yield _startup()


def _mixed(size: str, path: Path, count: int) -> Iterable[Case]:
    given, tokens = texts(count), lengths(count)
    parts = pieces(given, tokens, PIECES[size]) if PIECES[size] > 1 else [given]
    for case in _bulk(f"{count:,} texts, {size}", path, parts, tokens):
        # an answer of hundreds of texts has warmed everything
        yield replace(case, name=f"mixed-{case.name}", warm=0, rounds=len(parts) if len(parts) > 1 else None)


def _fixed(size: str, path: Path, rows: int, calls: int) -> Iterable[Case]:
    dice = random.Random(2)
    for case in _bulk(f"{rows}×{LENGTH}, {size}", path, [[text(LENGTH, dice) for _ in range(rows)]], [LENGTH] * rows):
        yield replace(case, name=f"fixed-{case.name}", calls=calls, bars=_bars(case.peers, EVEN))


def _bulk(name: str, path: Path, parts: list[list[str]], tokens: list[int]) -> Iterable[Case]:
    """Texts to vectors in both precisions, one part in each call."""
    model = bertkit.load(path, engine="torch")
    spec = model.encoder.spec
    for precision in ("fp32", "int8"):
        peers = _peers(precision)
        yield Case(
            f"{precision} {name}",
            "vectors",
            {"model": str(path), "pieces": parts, "precision": precision},
            peers,
            flops(tokens, len(spec.order), spec.width, spec.feeds[0].inner) / len(parts),
            bars=_bars(peers, AHEAD),
            truth=cache(partial(model.embed, parts[0])) if precision == "int8" else None,
            precision=precision,
        )


def _query(size: str, path: Path, passes: int) -> Case:
    model, asked, peers = bertkit.load(path, engine="torch"), queries(), _peers("fp32")
    spec = model.encoder.spec
    counted = [len(found) for found in model.tokenizer.ids_of_many(asked)]
    return Case(
        f"query, {size}",
        "queries",
        {"model": str(path), "texts": asked, "precision": "fp32"},
        peers,
        flops(counted, len(spec.order), spec.width, spec.feeds[0].inner),
        calls=passes,
        items=len(asked),
        bars=_bars(peers, EVEN),
        anew=True,
    )


def _startup() -> Case:
    """A new process, from its first import to a vector."""
    model, (asked, *_) = bertkit.load("minilm", engine="torch"), queries()
    spec = model.encoder.spec
    return Case(
        "start-up, minilm",
        "startup",
        {"model": str(find("minilm")), "text": asked},
        PRODUCTS[:1],
        flops([len(model.tokenizer.encode(asked).ids)], len(spec.order), spec.width, spec.feeds[0].inner),
        bars={PRODUCTS[0]: Bar(2.0)},
    )


def _peers(precision: str) -> tuple[str, ...]:
    return tuple(name for name in (*PRODUCTS, *RAW, *ENGINES) if precision == "fp32" or name not in ONLY_FP32)


def _bars(peers: Iterable[str], products: Bar) -> Mapping[str, Bar]:
    return {name: products if name in PRODUCTS else EVEN if name in RAW else CHOSEN for name in peers}
