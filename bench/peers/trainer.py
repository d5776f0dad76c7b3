"""transformers' Trainer, as its examples run_glue and run_qa set it: fine-tuning."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from itertools import count
from typing import Any

import numpy as np
import torch
import transformers
from transformers import Trainer, TrainingArguments

from bench.child import Fresh, serve
from bench.pipe import Array

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

NAMES = {"label": "labels", "start": "start_positions", "end": "end_positions"}


def finetune(
    model: str,
    objective: dict[str, Any],
    labels: dict[str, list[int]],
    batch: int,
    parts: int,
    checked: int,
    trainer: dict[str, Any],
    array: Array,
) -> Fresh:
    """An epoch over one part of the rows, the next one at each call."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network: torch.nn.Module = getattr(
        transformers, transformers.AutoConfig.from_pretrained(model).architectures[0]
    ).from_pretrained(model)
    rows = [
        _row(*planes, {name: values[place] for name, values in labels.items()}) for place, planes in enumerate(array)
    ]
    pad = {"padding": "max_length", "max_length": trainer["pad"]} if trainer["pad"] else {"padding": True}
    collator = transformers.DataCollatorWithPadding(tokenizer, **pad)
    numbers, home = count(), tempfile.mkdtemp()
    arguments = TrainingArguments(
        home,
        per_device_train_batch_size=batch,
        num_train_epochs=1,
        learning_rate=5e-5,
        weight_decay=0.01,
        warmup_steps=0.1,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        use_cpu=True,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        **({"train_sampling_strategy": "group_by_length"} if trainer["group"] else {}),
    )

    def epoch() -> None:
        part = rows[next(numbers) % parts :: parts]
        Trainer(network, arguments, train_dataset=part, data_collator=collator).train()

    network.eval()
    with torch.no_grad():
        losses = [float(network(**collator([row])).loss) for row in rows[:checked]]
    return Fresh(nullcontext, lambda _: epoch(), lambda _: np.array(losses))


def _row(ids: Array, segments: Array, labels: dict[str, int]) -> dict[str, Any]:
    length = int((ids > 0).sum())
    tokens = {"input_ids": ids[:length].tolist(), "token_type_ids": segments[:length].tolist()}
    return tokens | {"attention_mask": [1] * length} | {NAMES[name]: value for name, value in labels.items()}


if __name__ == "__main__":
    serve({"finetune": finetune}, ["transformers", "accelerate", "torch"])
