"""SentenceTransformer.encode on onnxruntime."""

from __future__ import annotations

import os

import onnxruntime

from bench.child import serve
from bench.export import opened
from bench.peers.sentence_transformers import jobs


def options() -> dict[str, object]:
    session = onnxruntime.SessionOptions()
    session.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])  # it does not look there itself
    return {"session_options": session, "provider": "CPUExecutionProvider"}


if __name__ == "__main__":
    serve(
        jobs(lambda model, precision: opened(model, "onnx", options(), precision)),
        ["sentence-transformers", "onnxruntime"],
    )
