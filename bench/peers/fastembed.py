"""fastembed's TextEmbedding: onnxruntime on batches of 256 texts as they come, padded to the longest of each."""

from __future__ import annotations

import os

import fastembed
import numpy as np
from fastembed.common.model_description import ModelSource, PoolingType

from bench.child import Call, Fresh, by_turns, serve
from bench.export import for_fastembed

LIMIT = 256
"""tokens, as for everybody"""


def opened(model: str, precision: str) -> fastembed.TextEmbedding:
    path = for_fastembed(model, precision)
    known = {each["model"] for each in fastembed.TextEmbedding.list_supported_models()}
    if path.name not in known:
        fastembed.TextEmbedding.add_custom_model(
            model=path.name,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=path.name),
            dim=0,  # of which nothing depends
            model_file="model.onnx",
        )
    threads = int(os.environ["OMP_NUM_THREADS"])
    made = fastembed.TextEmbedding(path.name, specific_model_path=str(path), threads=threads)
    made.model.tokenizer.enable_truncation(LIMIT)  # it would take the shorter of two that the files tell
    return made


def vectors(model: str, pieces: list[list[str]], precision: str) -> Fresh:
    embedding = opened(model, precision)
    return by_turns(lambda texts: np.stack(list(embedding.embed(texts))), pieces)


def query(model: str, texts: list[str], precision: str) -> Call:
    embedding = opened(model, precision)
    return lambda: np.stack([next(iter(embedding.embed([text]))) for text in texts])


if __name__ == "__main__":
    serve({"vectors": vectors, "queries": query}, ["fastembed", "onnxruntime"])
