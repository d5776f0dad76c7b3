"""transformers: BertModel with its fused attention, the collator for masks, and pre-training in a plain loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import transformers
from transformers import (  # now, for they bring much with them that is not memory of learning
    ElectraForMaskedLM,
    ElectraForPreTraining,
)

from bench.child import Call, Fresh, by_turns, serve
from bench.measure import weighed
from bench.pipe import Array

BATCH = 32


def hidden(model: str, array: Array) -> Call:
    network = transformers.BertModel.from_pretrained(model, attn_implementation="sdpa", add_pooling_layer=False).eval()

    @torch.inference_mode()
    def call() -> Array:
        ids = torch.from_numpy(array)
        states: Array = network(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.numpy()
        return states

    return call


def opened(model: str) -> Callable[[list[str]], Array]:
    """Batches of 32 texts of like length, padded, as a careful user writes it; the mean over tokens, of length 1."""
    network = transformers.BertModel.from_pretrained(model, attn_implementation="sdpa", add_pooling_layer=False).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)

    @torch.inference_mode()
    def vectors(texts: list[str]) -> Array:
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        out = torch.empty(len(texts), network.config.hidden_size)
        for first in range(0, len(order), BATCH):
            places = order[first : first + BATCH]
            rows = [texts[place] for place in places]
            batch = tokenizer(rows, padding=True, truncation=True, max_length=256, return_tensors="pt")
            states, mask = network(**batch).last_hidden_state, batch["attention_mask"].unsqueeze(-1)
            out[places] = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1))
        made: Array = out.numpy()
        return made

    return vectors


def vectors(model: str, pieces: list[list[str]], precision: str) -> Fresh:
    return by_turns(opened(model), pieces)


def queries(model: str, texts: list[str], precision: str) -> Call:
    made = opened(model)
    return lambda: np.concatenate([made([text]) for text in texts])


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


def pretrain(
    model: str, objective: dict[str, Any], label: str, labels: list[list[int]], checked: int, clip: float, array: Array
) -> Fresh:
    """Forward, backward, clip, step, as most people write it; settings are those of the paper."""
    batches = [_padded(*planes, {label: row}) for planes, row in zip(array, labels, strict=True)]
    network = _opened(model)
    groups = [
        {"params": [weight for weight in network.parameters() if weight.dim() > 1], "weight_decay": 0.01},
        {"params": [weight for weight in network.parameters() if weight.dim() <= 1], "weight_decay": 0.0},
    ]
    optimizer, numbers = torch.optim.AdamW(groups, lr=1e-4, eps=1e-6, fused=True), count()

    def step() -> float:
        loss = network(**batches[next(numbers) % len(batches)]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    network.eval()  # without dropout
    losses = np.array([step() for _ in range(checked)])
    network.train()
    return Fresh(nullcontext, lambda _: step(), lambda _: losses)


def _opened(model: str) -> torch.nn.Module:
    """What was saved for pre-training, by the class that its config names."""
    name = transformers.AutoConfig.from_pretrained(model).architectures[0]
    network: torch.nn.Module = getattr(transformers, name).from_pretrained(model)
    if not isinstance(network, ElectraForPreTraining):
        return network
    return Electra(network, ElectraForMaskedLM.from_pretrained(Path(model).with_name("generator")))


class Electra(torch.nn.Module):
    """Generator and discriminator as most people write them: one fills masks, the other judges, tables are tied."""

    def __init__(self, discriminator: ElectraForPreTraining, generator: ElectraForMaskedLM) -> None:
        super().__init__()
        self.discriminator, self.generator = discriminator, generator
        generator.electra.embeddings = discriminator.electra.embeddings
        generator.generator_lm_head.weight = discriminator.electra.embeddings.word_embeddings.weight

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor, labels: torch.Tensor
    ) -> SimpleNamespace:
        same = {"attention_mask": attention_mask, "token_type_ids": token_type_ids}
        named, masked = self.generator(input_ids, **same, labels=labels), labels != -100
        ids = input_ids.clone()
        ids[masked] = self._drawn(named.logits.detach()[masked])
        judged = self.discriminator(ids, **same, labels=(masked & (ids != labels)).long())
        return SimpleNamespace(loss=named.loss + 50 * judged.loss)

    def _drawn(self, logits: torch.Tensor) -> torch.Tensor:
        """The first choice while losses are compared, else by chance."""
        return logits.softmax(-1).multinomial(1).squeeze(-1) if self.training else logits.argmax(-1)


_QUESTIONS = {"next": "next_sentence_label", "order": "sentence_order_label"}
"""what transformers calls labels of pairs"""


def _padded(ids: Array, segments: Array, true: Array, labels: dict[str, list[int]]) -> dict[str, torch.Tensor]:
    """As long as the longest of this batch."""
    longest = (ids > 0).sum(1).max()
    batch = {
        "input_ids": ids[:, :longest],
        "attention_mask": (ids[:, :longest] > 0).astype(np.int64),
        "token_type_ids": segments[:, :longest],
        "labels": np.where(true > 0, true, -100)[:, :longest],
        **{_QUESTIONS[label]: np.array(row) for label, row in labels.items() if label},
    }
    return {name: torch.tensor(values) for name, values in batch.items()}


if __name__ == "__main__":
    jobs = {"hidden": hidden, "vectors": vectors, "queries": queries, "assemble": assemble}
    serve({**jobs, "pretrain": pretrain, "pretrain_memory": weighed(pretrain)}, ["transformers"])
