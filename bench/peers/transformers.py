"""transformers' BertModel with its fused attention, on token ids; its collator for masks, on blocks."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
import transformers

from bench.child import Call, Fresh, serve
from bench.pipe import Array


def hidden(model: str, array: Array) -> Call:
    network = transformers.BertModel.from_pretrained(model, attn_implementation="sdpa", add_pooling_layer=False).eval()

    @torch.inference_mode()
    def call() -> Array:
        ids = torch.from_numpy(array)
        states: Array = network(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.numpy()
        return states

    return call


def assemble(model: str, corpus: str, words: bool, array: Array) -> Fresh:
    """Blocks that are made already, and lie in memory with all that the collator asks for."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    collator = transformers.DataCollatorForLanguageModeling(tokenizer, whole_word_mask=words)
    fixed = np.isin(array, (tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id))
    rows: list[dict[str, Any]] = [
        {"input_ids": ids, "special_tokens_mask": special}
        for ids, special in zip(array.tolist(), fixed.astype(int).tolist(), strict=True)
    ]
    if words:
        for row in rows:
            row["offset_mapping"] = _offsets(tokenizer.convert_ids_to_tokens(row["input_ids"]))

    def answer(batch: dict[str, torch.Tensor]) -> Array:
        ids: Array = torch.where(batch["labels"] == -100, batch["input_ids"], batch["labels"]).numpy()
        return ids

    return Fresh(nullcontext, lambda _: collator(rows), answer)


def _offsets(tokens: list[str]) -> list[tuple[int, int]]:
    """Places in a text in which a space stands before every word."""
    found, at = [], 0
    for token in tokens:
        start = at if token.startswith("##") else at + 1
        at = start + len(token.removeprefix("##"))
        found.append((start, at))
    return found


if __name__ == "__main__":
    serve({"hidden": hidden, "assemble": assemble}, ["transformers"])
