"""bertkit itself, as its users call it."""

from __future__ import annotations

import numpy as np
import torch

import bertkit
from bench.child import Call, serve
from bench.pipe import Array
from bertkit.batch import collate
from bertkit.runtime.stream import example


def hidden(model: str, array: Array) -> Call:
    encoder = bertkit.load(model).encoder

    @torch.inference_mode()
    def call() -> Array:
        batch = collate([example(row) for row in array])
        padded: Array = batch.restore(batch.layout.to_padded(encoder(batch))).numpy()
        return padded

    return call


def embed(model: str, texts: list[str]) -> Call:
    opened = bertkit.load(model)
    return lambda: opened.embed(texts)


def query(model: str, texts: list[str]) -> Call:
    opened = bertkit.load(model)
    return lambda: np.stack([opened.embed(text) for text in texts])


if __name__ == "__main__":
    serve({"hidden": hidden, "embed": embed, "query": query}, ["bertkit"])
