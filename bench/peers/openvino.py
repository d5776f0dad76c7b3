"""OpenVINO itself, on torch's export; its int8 needs nncf, and is measured through sentence-transformers."""

from __future__ import annotations

from threading import local

import numpy as np

from bench.child import serve
from bench.pipe import Array
from bench.raw import Hidden, graph, jobs, kept
from bertkit import packages
from bertkit.runtime.engines.openvino import core

intel = core(packages.load("openvino"))  # without its telemetry


def build(model: str, precision: str, workers: int, threads: int) -> Hidden:
    if precision != "fp32":
        raise LookupError("its int8 needs nncf: see sentence-transformers-openvino")
    settings = {
        "INFERENCE_NUM_THREADS": workers * threads,
        "NUM_STREAMS": workers,
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = intel.compile_model(intel.read_model(kept(model, "plain.onnx", graph)), "CPU", settings)
    own = local()

    def hidden(ids: Array, mask: Array) -> Array:
        if not hasattr(own, "request"):
            own.request = compiled.create_infer_request()
        states: Array = own.request.infer([ids, mask, np.zeros_like(ids)])[0]
        return states

    return hidden


if __name__ == "__main__":
    serve(jobs(build), ["openvino"])
