"""SentenceTransformer.encode with its defaults: batches of 32, sorted by length, padded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sentence_transformers

from bench.child import Call, Job, serve


def jobs(opener: Callable[[str], Any]) -> dict[str, Job]:
    """Those of a SentenceTransformer, however it is opened."""

    def embed(model: str, texts: list[str]) -> Call:
        opened = opener(model)
        return lambda: opened.encode(texts)

    def query(model: str, texts: list[str]) -> Call:
        opened = opener(model)
        return lambda: np.stack([opened.encode(text) for text in texts])

    return {"embed": embed, "query": query}


if __name__ == "__main__":
    serve(jobs(lambda model: sentence_transformers.SentenceTransformer(model, device="cpu")), ["sentence-transformers"])
