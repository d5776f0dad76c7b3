"""The streaming path: texts or pairs in any number go through in windows, results come out in the order of the texts.

Inside a window texts are tokenised on all cores, sorted by length and cut into batches of about equal work, so that a
batch holds neighbours in length. Memory holds one window, whatever the number of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from bertkit.batch import Example
from bertkit.errors import BertkitError, about
from bertkit.runtime.lanes import Lanes
from bertkit.text import Tokenizer
from bertkit.text.reading import assemble
from bertkit.text.truncate import Cut, Policy, Window
from bertkit.text.window import FIRST, MOST, windows

Rows = np.ndarray[Any, np.dtype[Any]]
Given = str | tuple[str, ...]
"""a text, or the fields of one input, such as a pair"""
Run = Callable[[Iterable[list[Example]], int], Iterator[Rows]]
"""Groups of examples and how many -> one row per example for each group, in their order."""
Join = Callable[[Rows, Rows], Rows]
"""The rows of a text's chunks [C, ...] and how many tokens each has [C] -> the row of the text [...]."""


def stream(
    texts: Iterable[Given],
    tokenizer: Tokenizer,
    run: Run,
    lanes: Lanes,
    join: Join,
    limit: int,
    policy: Policy,
    cut: Cut,
    progress: Callable[[int], None] | None = None,
    first: int = 0,
) -> Iterator[Rows]:
    """One array of rows for each window of texts. `progress` hears how many texts each batch finished.

    `first` is the number of the first text, for messages and for `cut`.

    Texts that are all there already come in the largest windows at once: lanes wait for each other at the end of each.
    """
    seen, most = first, MOST if isinstance(texts, Sequence) else FIRST
    for window in windows(checked(texts, first), lambda fields: sum(map(len, fields)), most):
        with about(f"texts from number {seen} on") if seen else nullcontext():
            encoded = _encoded(window, tokenizer)
        cut.latest.clear()
        chunks = [_chunks(ids, tokenizer, limit, policy, cut, seen + place) for place, ids in enumerate(encoded)]
        seen += len(window)
        yield _joined(_run(chunks, tokenizer, run, lanes, progress), chunks, join)


def checked(texts: Iterable[Given], first: int = 0) -> Iterator[tuple[str, ...]]:
    """The fields of each text; what is none is named by its place, counted from `first` on."""
    for index, text in enumerate(texts, first):
        fields = text if isinstance(text, tuple) else (text,)
        for field in fields or (None,):
            if not isinstance(field, str):
                raise BertkitError(
                    f"text {index} is {field!r} ({type(field).__name__}), not a str: drop it or convert it"
                )
        yield fields


def _encoded(window: Sequence[tuple[str, ...]], tokenizer: Tokenizer) -> list[list[list[int]]]:
    """The ids of every field, without special tokens."""
    ids = iter(tokenizer.ids_of_many([field for fields in window for field in fields], special_tokens=False))
    return [list(islice(ids, len(fields))) for fields in window]


def example(ids: Sequence[int], segments: Sequence[int] | None = None) -> Example:
    """One encoded text as a model reads it; a single sentence is all segment A."""
    tokens = np.asarray(ids, dtype=np.int64)
    return Example({"ids": tokens, "segments": np.zeros_like(tokens) if segments is None else np.asarray(segments)})


class _Chunk(NamedTuple):
    """A window of a text, kept as slices of its ids until it is needed: overlapping chunks may be many."""

    fields: list[list[int]]
    """ids of the whole text, without special ones"""
    window: Window | None
    """None for all of it"""
    length: int

    def read(self, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
        """Ids and segments, in the tokenizer's template."""
        if self.window is None:
            ids, segments, _ = tokenizer.template.filled(self.fields)
            return ids, segments
        reading = assemble(self.fields, self.window, tokenizer)
        return reading.ids, reading.segments


def _chunks(
    fields: list[list[int]], tokenizer: Tokenizer, limit: int, policy: Policy, cut: Cut, index: int
) -> list[_Chunk]:
    """A text, as the ids of its fields, in the windows that the policy makes of it."""
    lengths, specials = [len(ids) for ids in fields], tokenizer.template.specials(len(fields))
    with about(f"texts[{index}] (line {index + 1})"):
        kept = policy.windows(lengths, limit - specials)
    if kept == [tuple(((0, length),) for length in lengths)]:
        return [_Chunk(fields, None, specials + sum(lengths))]
    cut.count(index, lengths, kept)
    return [
        _Chunk(fields, window, specials + sum(stop - start for pieces in window for start, stop in pieces))
        for window in kept
    ]


def _run(
    chunks: list[list[_Chunk]],
    tokenizer: Tokenizer,
    run: Run,
    lanes: Lanes,
    progress: Callable[[int], None] | None,
) -> Rows:
    """A row for each chunk, text after text."""
    rows = [chunk for parts in chunks for chunk in parts]
    texts = [int(number == 0) for parts in chunks for number in range(len(parts))]  # a text counts once
    out: Rows | None = None
    groups = list(lanes.groups([chunk.length for chunk in rows]))
    examples = ([example(*rows[index].read(tokenizer)) for index in group] for group in groups)
    for indices, made in zip(groups, run(examples, len(groups)), strict=True):
        if out is None:
            out = np.empty((len(rows), *made.shape[1:]), dtype=made.dtype)
        out[indices] = made
        if progress:
            progress(sum(texts[index] for index in indices))
    assert out is not None, "a window is never empty"
    return out


def _joined(rows: Rows, chunks: list[list[_Chunk]], join: Join) -> Rows:
    """One row per text."""
    if len(rows) == len(chunks):
        return rows
    out = np.empty((len(chunks), *rows.shape[1:]), dtype=rows.dtype)
    at = 0
    for index, parts in enumerate(chunks):
        own = rows[at : at + len(parts)]
        out[index] = own[0] if len(parts) == 1 else join(own, np.array([chunk.length for chunk in parts]))
        at += len(parts)
    return out
