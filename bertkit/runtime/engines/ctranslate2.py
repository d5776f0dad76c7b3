"""CTranslate2: a Transformer in C++ that leaves padding out. It is fed through its own specification, weight by weight.

It knows post-norm encoders with learned positions, and relative ones as vectors of clipped distances (Shaw et al.
2018), which NEZHA's sines and cosines are.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import MutableMapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertkit import machine
from bertkit.batch import Array, Batch
from bertkit.family import nezha
from bertkit.parts.encoder import Encoder
from bertkit.parts.network import NetworkModule
from bertkit.parts.place import Unplaced
from bertkit.parts.positions import Learned
from bertkit.runtime.engines.engine import INT8, Engine, Setup, mask_of, weights
from bertkit.weights import int8

ACTIVATIONS = {"gelu": "GELU", "gelu_tanh": "GELUTanh", "relu": "RELU"}
WIDE = frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vbmi2"})
"""instructions of processors from Ice Lake and Zen 4 on, which the last tells from those that 512 bits slow down"""


class CTranslate2(Engine):
    """Its encoder, with as many workers as the setup says."""

    name = package = "ctranslate2"
    # bytes that one part hands to the next stay in the cache: long texts take a seventh less time
    tokens = Engine.tokens | {INT8: 512}

    def __init__(self, network: NetworkModule, setup: Setup) -> None:
        super().__init__(network, setup)
        library = self._package()
        model = _model(network, setup.precision)
        with tempfile.TemporaryDirectory() as home:
            model.validate()
            model.optimize()
            model.save(home)
            threads = torch.get_num_threads()
            widen(os.environ)
            self._encoder = library.Encoder(
                home,
                compute_type="int8" if setup.precision == INT8 else "float32",
                inter_threads=setup.workers,
                intra_threads=setup.threads,
            )
            torch.set_num_threads(threads)  # OpenMP's number, which it takes for its own
        self._array = library.StorageView.from_array
        self._segments = network.spec.encoder.embed.segments > 1

    @classmethod
    def refusal(cls, encoder: Encoder) -> str:
        epsilons = {encoder.embed.epsilon}
        epsilons |= {each.epsilon for each in encoder.attentions} | {each.epsilon for each in encoder.feeds}
        heads = {(attention.heads, attention.head) for attention in encoder.attentions}
        activations = {feed.activation for feed in encoder.feeds}
        if encoder.embed.width != encoder.width:
            return "its embeddings are narrower than the network"
        if len(epsilons) > 1:
            return "its norms have several epsilons"
        if len(heads) > 1 or any(count * head != encoder.width for count, head in heads):
            return "its heads are not all of one kind, as wide together as the network"
        if len(activations) > 1 or not activations <= ACTIVATIONS.keys():
            return f"it bends by {', '.join(sorted(activations))}"
        placed = isinstance(encoder.place, Unplaced) and isinstance(encoder.embed.positions, Learned)
        if not placed and not isinstance(encoder.place, nezha.FunctionalRelative):
            return "it does not know its positions"
        return ""

    def hidden(self, batch: Batch) -> Tensor:
        given = [x.int().numpy() for x in (batch.tokens["ids"], mask_of(batch).sum(1))]  # alive until they are read
        rows, lengths = map(self._array, given)
        segments = batch.tokens["segments"].tolist() if self._segments else None
        out = self._encoder.forward_batch(rows, lengths, segments)
        return torch.from_numpy(np.array(out.last_hidden_state))  # [B, L, W]


def widen(environment: MutableMapping[str, str]) -> None:
    """Let it compute on 512 bits at once where that is faster: it takes 256 unless it is told, before it begins."""
    if machine.instructions() >= WIDE:
        environment.setdefault("CT2_FORCE_CPU_ISA", "AVX512")


def _model(network: NetworkModule, precision: str) -> Any:
    """The encoder in CTranslate2's own words."""
    from ctranslate2.specs import common_spec, transformer_spec

    spec = network.spec.encoder
    values = weights(network.encoder)
    relative = isinstance(spec.place, nezha.FunctionalRelative)
    made = transformer_spec.TransformerEncoderSpec(
        len(spec.order),
        spec.attentions[0].heads,
        pre_norm=False,
        activation=getattr(common_spec.Activation, ACTIVATIONS[spec.feeds[0].activation]),
        num_source_embeddings=min(spec.embed.segments, 2),
        embeddings_merge=common_spec.EmbeddingsMerge.ADD,
        layernorm_embedding=True,
        relative_position=relative,
    )
    made.scale_embeddings = False
    tables = [values["embed.tokens.weight"], values["embed.segments.weight"]]
    if spec.embed.segments == 1:  # one vector for all tokens
        tables = [tables[0] + tables[1]]
    for table, into in zip(tables, made.embeddings, strict=True):
        _matrix(into, table, precision, multiplied=False)
    if isinstance(spec.embed.positions, Learned):
        places = values["embed.positions.weight"][spec.embed.positions.first :]
        if precision == INT8 and spec.embed.segments > 1:  # positions stay floats: they take what segment A lost
            segments = made.embeddings[1]
            places = places + tables[1][0] - segments.weight[0] / segments.weight_scale[0]
        made.position_encodings.encodings = places
    _norm(made.layernorm_embedding, values, "embed.norm")
    for layer, (attention, feed) in zip(made.layer, spec.order, strict=True):
        linears = {
            f"attentions.{attention}.qkv": layer.self_attention.linear[0],
            f"attentions.{attention}.out": layer.self_attention.linear[1],
            f"feeds.{feed}.up": layer.ffn.linear_0,
            f"feeds.{feed}.down": layer.ffn.linear_1,
        }
        for name, into in linears.items():
            _matrix(into, values[f"{name}.weight"], precision)
            into.bias = values[f"{name}.bias"]
        _norm(layer.self_attention.layer_norm, values, f"attentions.{attention}.norm")
        _norm(layer.ffn.layer_norm, values, f"feeds.{feed}.norm")
        if isinstance(spec.place, nezha.FunctionalRelative):
            distances = torch.arange(-spec.place.clip, spec.place.clip + 1)
            table = nezha.vectors(distances, spec.place).numpy()  # [2·clip + 1, H]
            layer.self_attention.relative_position_keys = table
            layer.self_attention.relative_position_values = table
    model = transformer_spec.TransformerEncoderModelSpec(made)
    model.config.layer_norm_epsilon = spec.embed.epsilon
    model.register_vocabulary([str(number) for number in range(spec.embed.vocabulary)])  # it never sees tokens
    return model


def _matrix(into: Any, matrix: Array, precision: str, multiplied: bool = True) -> None:
    into.weight = matrix
    if precision == INT8:  # not by its own rounding, whose sums are cut off on processors without VNNI
        whole, scale = int8.quantized(torch.from_numpy(matrix), multiplied)
        into.weight, into.weight_scale = whole.numpy(), (1 / scale).numpy()


def _norm(into: Any, values: dict[str, Any], name: str) -> None:
    into.gamma, into.beta = values[f"{name}.weight"], values[f"{name}.bias"]
