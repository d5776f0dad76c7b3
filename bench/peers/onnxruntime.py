"""onnxruntime itself: torch's export, rewritten by its optimiser for BERT, in int8 by its dynamic quantisation."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer

from bench.child import serve
from bench.pipe import Array
from bench.raw import Hidden, config, graph, jobs


def build(model: str, precision: str, workers: int, threads: int) -> Hidden:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    told = config(model)
    with TemporaryDirectory() as place:
        plain, better, small = (Path(place, name) for name in ("plain.onnx", "better.onnx", "small.onnx"))
        graph(model, plain)
        fused = optimizer.optimize_model(
            str(plain), model_type="bert", num_heads=told.num_attention_heads, hidden_size=told.hidden_size, opt_level=1
        )
        fused.save_model_to_file(str(better))
        if precision == "int8":  # without the last bit, products do not overflow on processors that lack VNNI
            told_types = {"DefaultTensorType": onnx.TensorProto.FLOAT}  # which fused operators do not tell
            quantize_dynamic(
                better,
                small,
                per_channel=True,
                reduce_range=True,
                weight_type=QuantType.QInt8,
                extra_options=told_types,
            )
        kept = small if precision == "int8" else better
        session = onnxruntime.InferenceSession(str(kept), options, ["CPUExecutionProvider"])

    def hidden(ids: Array, mask: Array) -> Array:
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states: Array = session.run(None, given)[0]
        return states

    return hidden


if __name__ == "__main__":
    serve(jobs(build), ["onnxruntime"])
