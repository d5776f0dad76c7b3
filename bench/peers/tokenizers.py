"""The `tokenizers` library as its users call it in bulk: `encode_batch_fast` on lines, with all its threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tokenizers

from bench.child import Call, serve


def tokenize(model: str, text: str, before: str = "") -> Call:
    """A text to encodings; the answer is how many tokens there are."""
    opened = tokenizers.Tokenizer.from_file(str(Path(model, "tokenizer.json")))
    opened.no_truncation()
    opened.no_padding()
    lines = Path(text).read_text(encoding="utf-8").split("\n")

    def call() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([sum(map(len, opened.encode_batch_fast(lines, add_special_tokens=False)))])

    if before:
        opened.encode_batch_fast(Path(before).read_text(encoding="utf-8").split("\n"), add_special_tokens=False)
    return call


if __name__ == "__main__":
    serve({"tokenize": tokenize}, ["tokenizers"])
