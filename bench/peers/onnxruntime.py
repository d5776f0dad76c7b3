"""onnxruntime itself: torch's export, rewritten by its optimiser for BERT, in int8 by its dynamic quantisation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer

from bench.child import serve
from bench.pipe import Array
from bench.raw import Hidden, config, graph, jobs, kept
from bertkit import machine


def build(model: str, precision: str, workers: int, threads: int) -> Hidden:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    path = kept(model, f"{precision}.onnx", {"fp32": fused, "int8": quantized}[precision])
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])

    def hidden(ids: Array, mask: Array) -> Array:
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states: Array = session.run(None, given)[0]
        return states

    return hidden


def fused(model: str, path: Path) -> None:
    """With larger operators, as its optimiser for BERT writes them."""
    told, plain = config(model), kept(model, "plain.onnx", graph)
    heads, width = told.num_attention_heads, told.hidden_size
    made = optimizer.optimize_model(str(plain), model_type="bert", num_heads=heads, hidden_size=width, opt_level=1)
    made.save_model_to_file(str(path))


def quantized(model: str, path: Path) -> None:
    """Without the last bit where the processor lacks VNNI: products would overflow."""
    told_types = {"DefaultTensorType": onnx.TensorProto.FLOAT}  # which fused operators do not tell
    before = kept(model, "fp32.onnx", fused)
    lacks = "avx512_vnni" not in machine.instructions()
    kind = QuantType.QInt8
    quantize_dynamic(before, path, per_channel=True, reduce_range=lacks, weight_type=kind, extra_options=told_types)


if __name__ == "__main__":
    serve(jobs(build), ["onnxruntime"])
