"""SentenceTransformer.encode with its defaults: batches of 32, sorted by length, padded."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import sentence_transformers

from bench.child import Call, Fresh, Job, by_turns, serve
from bench.startup import startup


class Opener(Protocol):
    """A model and its precision to a SentenceTransformer."""

    def __call__(self, model: str, precision: str) -> Any: ...


def jobs(opener: Opener) -> dict[str, Job]:
    """Those of a SentenceTransformer, however it is opened."""

    def embed(model: str, texts: list[str]) -> Fresh:
        return vectors(model, [texts], "fp32")

    def vectors(model: str, pieces: list[list[str]], precision: str) -> Fresh:
        return by_turns(opener(model, precision).encode, pieces)

    def query(model: str, texts: list[str], precision: str = "fp32") -> Call:
        opened = opener(model, precision)
        return lambda: np.stack([opened.encode(text) for text in texts])

    return {"embed": embed, "vectors": vectors, "query": query, "queries": query}


def opened(model: str, precision: str) -> Any:
    if precision != "fp32":
        raise LookupError("its torch backend has fp32 alone")
    return sentence_transformers.SentenceTransformer(model, device="cpu")


FIRST = """
import sys, numpy, sentence_transformers
model = sentence_transformers.SentenceTransformer(sys.argv[1], device="cpu")
numpy.save(sys.argv[3], model.encode(sys.argv[2]))
"""

if __name__ == "__main__":
    serve({**jobs(opened), "startup": startup(FIRST)}, ["sentence-transformers"])
