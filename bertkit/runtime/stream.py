"""The streaming path: texts in any number go through in windows, results come out in the order of the texts.

Inside a window texts are tokenised on all cores, sorted by length and cut into batches of about equal work, so that a
batch holds neighbours in length. Memory holds one window, whatever the number of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertkit.batch import Batch, Example, Packed, collate
from bertkit.errors import BertkitError, about, unknown
from bertkit.text import Tokenizer

FIRST_TEXTS, WINDOW_TEXTS = 256, 4096
WINDOW_CHARACTERS = 4_000_000
BATCH_TOKENS = 2048

Rows = np.ndarray[Any, np.dtype[Any]]
Engine = Callable[[Batch], Rows]
"""A batch in, one row per example out, in the order of the examples."""


@dataclass
class Cut:
    """What truncation removed so far."""

    limit: int
    texts: int = 0
    tokens: int = 0

    def among(self, count: int) -> str:
        """One line for a reader.

        >>> Cut(256, texts=1, tokens=146).among(7)
        'texts over 256 tokens, cut to their beginning: 1 of 7 (146 tokens lost)'
        """
        lost = f"({self.tokens:,} tokens lost)"
        return f"texts over {self.limit} tokens, cut to their beginning: {self.texts:,} of {count:,} {lost}"


def stream(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    engine: Engine,
    cut: Cut,
    truncate: str = "head",
    progress: Callable[[int], None] | None = None,
) -> Iterator[Rows]:
    """One array of rows for each window of texts. `progress` hears how many texts each batch finished."""
    if truncate not in ("head", "error"):
        raise unknown("truncate", truncate, ("head", "error"))
    seen = 0
    for window in windows(texts):
        with about(f"texts from number {seen} on") if seen else nullcontext():
            encoded = tokenizer.ids_of_many(window)
        rows = [_shorten(ids, cut, truncate, seen + place) for place, ids in enumerate(encoded)]
        seen += len(window)
        yield _run(rows, engine, progress)


def windows(texts: Iterable[str]) -> Iterator[list[str]]:
    """Lists of texts, bounded in number and in characters; small at first, so that the first results come soon.

    >>> [len(window) for window in windows(["a"] * 9000)]
    [256, 512, 1024, 2048, 4096, 1064]
    """
    window: list[str] = []
    characters, most = 0, min(FIRST_TEXTS, WINDOW_TEXTS)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise BertkitError(f"text {index} is {text!r} ({type(text).__name__}), not a str: drop it or convert it")
        window.append(text)
        characters += len(text)
        if len(window) == most or characters >= WINDOW_CHARACTERS:
            yield window
            window, characters, most = [], 0, min(2 * most, WINDOW_TEXTS)
    if window:
        yield window


def batches(lengths: Sequence[int], budget: int = BATCH_TOKENS) -> Iterator[list[int]]:
    """Indices of texts, longest first, in groups of at most `budget` tokens (at least one text).

    >>> list(batches([3, 9, 4, 2], budget=9))
    [[1], [2, 0, 3]]
    """
    batch: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batch and tokens + lengths[index] > budget:
            yield batch
            batch, tokens = [], 0
        batch.append(index)
        tokens += lengths[index]
    if batch:
        yield batch


def example(ids: Sequence[int], segments: Sequence[int] | None = None) -> Example:
    """One encoded text as a model reads it; a single sentence is all segment A."""
    tokens = np.asarray(ids, dtype=np.int64)
    return Example({"ids": tokens, "segments": np.zeros_like(tokens) if segments is None else np.asarray(segments)})


def _run(rows: list[list[int]], engine: Engine, progress: Callable[[int], None] | None) -> Rows:
    out: Rows | None = None
    for indices in batches([len(ids) for ids in rows]):
        made = engine(collate([example(rows[index]) for index in indices], Packed))
        if out is None:
            out = np.empty((len(rows), *made.shape[1:]), dtype=made.dtype)
        out[indices] = made
        if progress:
            progress(len(indices))
    assert out is not None, "a window is never empty"
    return out


def _shorten(ids: list[int], cut: Cut, truncate: str, index: int) -> list[int]:
    """Keep the beginning and the closing [SEP]."""
    if len(ids) <= cut.limit:
        return ids
    if truncate == "error":
        raise BertkitError(
            f"texts[{index}] (line {index + 1}) has {len(ids)} tokens, the model takes {cut.limit}: shorten it, or let "
            "its beginning do with truncate='head' (--truncate head)"
        )
    cut.texts += 1
    cut.tokens += len(ids) - cut.limit
    return ids[: cut.limit - 1] + ids[-1:]
