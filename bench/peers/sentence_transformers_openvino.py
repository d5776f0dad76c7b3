"""SentenceTransformer.encode on OpenVINO."""

from __future__ import annotations

import os

from bench.child import serve
from bench.export import opened
from bench.peers.sentence_transformers import jobs


def options() -> dict[str, object]:
    # fp32: elsewhere it would compute in half precision where the processor can
    settings = {"INFERENCE_NUM_THREADS": int(os.environ["OMP_NUM_THREADS"]), "INFERENCE_PRECISION_HINT": "f32"}
    return {"ov_config": settings}


if __name__ == "__main__":
    serve(
        jobs(lambda model, precision: opened(model, "openvino", options(), precision)),
        ["sentence-transformers", "openvino"],
    )
