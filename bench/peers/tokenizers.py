"""The `tokenizers` library as its users call it in bulk: `encode_batch_fast` on documents, on all its threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path

import numpy as np
import tokenizers

from bench.child import Fresh, serve
from bench.pipe import Array

BATCH = 1000


def tokenize(model: str, text: str, before: str = "") -> Fresh:
    """A text to encodings. Taking the lists of ids out of them is not timed."""
    opened = tokenizers.Tokenizer.from_file(str(Path(model, "tokenizer.json")))
    opened.no_truncation()
    opened.no_padding()

    def encoded(documents: list[str]) -> list[tokenizers.Encoding]:
        batches = (documents[at : at + BATCH] for at in range(0, len(documents), BATCH))
        found: Iterator[list[tokenizers.Encoding]] = (
            opened.encode_batch_fast(batch, add_special_tokens=False) for batch in batches
        )
        return list(chain.from_iterable(found))

    documents = _documents(text)
    if before:
        encoded(_documents(before))
    return Fresh(nullcontext, lambda _: encoded(documents), _ids)


def _documents(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").split("\n\n")


def _ids(found: list[tokenizers.Encoding]) -> Array:
    return np.fromiter(chain.from_iterable(each.ids for each in found), np.int64)


if __name__ == "__main__":
    serve({"tokenize": tokenize}, ["tokenizers"])
