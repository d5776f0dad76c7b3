"""SentenceTransformer.encode on OpenVINO."""

from __future__ import annotations

import os

import numpy as np

from bench.child import serve
from bench.elsewhere import elsewhere
from bench.export import opened
from bench.peers.sentence_transformers import jobs

LIMIT = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"}
"""for processors with matrix instructions (AMX) on which it dies: without these it lives"""


def multiply() -> None:
    """A product of whole numbers."""
    import openvino
    import openvino.opset13 as op

    rows = op.parameter([-1, 64], np.float32)
    whole = op.fake_quantize(rows, *map(np.float32, (0, 255, 0, 255)), 256)
    matrix = op.multiply(op.convert(op.constant(np.ones((64, 64), np.int8)), np.float32), np.float32(1))
    network = openvino.Model([op.matmul(whole, matrix, False, True)], [rows])
    openvino.Core().compile_model(network, "CPU", options()["ov_config"])([np.ones((32, 64), np.float32)])


def options() -> dict[str, object]:
    # fp32: elsewhere it would compute in half precision where the processor can
    settings = {"INFERENCE_NUM_THREADS": int(os.environ["OMP_NUM_THREADS"]), "INFERENCE_PRECISION_HINT": "f32"}
    return {"ov_config": settings}


if __name__ == "__main__":
    try:
        elsewhere(multiply)
    except LookupError:
        os.environ |= LIMIT  # before its library looks
    serve(
        jobs(lambda model, precision: opened(model, "openvino", options(), precision)),
        ["sentence-transformers", "openvino"],
    )
