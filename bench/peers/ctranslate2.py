"""CTranslate2 itself, given transformers' weights through its specification, as its own converter would."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec

from bench.child import serve
from bench.pipe import Array
from bench.raw import Hidden, config, jobs, network
from bertkit.runtime.engines.ctranslate2 import widen


def build(model: str, precision: str, workers: int, threads: int) -> Hidden:
    kind = {"fp32": "float32", "int8": "int8"}[precision]
    with TemporaryDirectory() as place:
        made = _specification(model)
        made.validate()
        made.optimize(quantization=None if precision == "fp32" else kind)
        made.save(place)
        encoder = ctranslate2.Encoder(place, compute_type=kind, inter_threads=workers, intra_threads=threads)

    def hidden(ids: Array, mask: Array) -> Array:
        given = ids.astype(np.int32), mask.sum(1).astype(np.int32)
        rows, lengths = map(ctranslate2.StorageView.from_array, given)
        out = encoder.forward_batch(rows, lengths, np.zeros_like(ids).tolist())
        return np.array(out.last_hidden_state)

    return hidden


def _specification(model: str) -> Any:
    told = config(model)
    values = {name: value.numpy().copy() for name, value in network(model).state_dict().items()}
    made = transformer_spec.TransformerEncoderSpec(
        told.num_hidden_layers,
        told.num_attention_heads,
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
        num_source_embeddings=2,
        embeddings_merge=common_spec.EmbeddingsMerge.ADD,
    )
    made.scale_embeddings = False
    made.embeddings[0].weight = values["embeddings.word_embeddings.weight"]
    made.embeddings[1].weight = values["embeddings.token_type_embeddings.weight"]
    made.position_encodings.encodings = values["embeddings.position_embeddings.weight"]
    _norm(made.layernorm_embedding, values, "embeddings.LayerNorm")
    for number, layer in enumerate(made.layer):
        name = f"encoder.layer.{number}"
        three = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        layer.self_attention.linear[0].weight = np.concatenate([values[f"{part}.weight"] for part in three])
        layer.self_attention.linear[0].bias = np.concatenate([values[f"{part}.bias"] for part in three])
        _linear(layer.self_attention.linear[1], values, f"{name}.attention.output.dense")
        _norm(layer.self_attention.layer_norm, values, f"{name}.attention.output.LayerNorm")
        _linear(layer.ffn.linear_0, values, f"{name}.intermediate.dense")
        _linear(layer.ffn.linear_1, values, f"{name}.output.dense")
        _norm(layer.ffn.layer_norm, values, f"{name}.output.LayerNorm")
    out = transformer_spec.TransformerEncoderModelSpec(made)
    out.config.layer_norm_epsilon = told.layer_norm_eps
    out.register_vocabulary([str(number) for number in range(told.vocab_size)])
    return out


def _linear(into: Any, values: dict[str, Array], name: str) -> None:
    into.weight, into.bias = values[f"{name}.weight"], values[f"{name}.bias"]


def _norm(into: Any, values: dict[str, Array], name: str) -> None:
    into.gamma, into.beta = values[f"{name}.weight"], values[f"{name}.bias"]


if __name__ == "__main__":
    widen(os.environ)  # who knows it well knows that too
    serve(jobs(build), ["ctranslate2"])
