"""transformers' BertModel with its fused attention, on token ids."""

from __future__ import annotations

import torch
import transformers

from bench.child import Call, serve
from bench.pipe import Array


def hidden(model: str, array: Array) -> Call:
    network = transformers.BertModel.from_pretrained(model, attn_implementation="sdpa", add_pooling_layer=False).eval()

    @torch.inference_mode()
    def call() -> Array:
        ids = torch.from_numpy(array)
        states: Array = network(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.numpy()
        return states

    return call


if __name__ == "__main__":
    serve({"hidden": hidden}, ["transformers"])
