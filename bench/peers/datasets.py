"""`datasets` in the manner of transformers' run_mlm: load the text, map the fast tokenizer, map the grouping, save."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import datasets
import numpy as np
import transformers

from bench.child import Fresh, serve
from bench.peer import HOME
from bench.pipe import Array

LENGTH = 512
Columns = dict[str, list[Any]]


def shards(model: str, text: str) -> Fresh:
    """A file of text to blocks on disk, with nothing in a cache before."""
    datasets.disable_progress_bars()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model, model_max_length=10**9)  # it would warn otherwise
    processes = int(os.environ["OMP_NUM_THREADS"])
    work = HOME / "work"
    work.mkdir(parents=True, exist_ok=True)

    def tokenized(rows: Columns) -> Columns:
        return dict(tokenizer(rows["text"], return_special_tokens_mask=True))

    def call(place: str) -> Path:
        loaded = datasets.load_dataset("text", data_files=text, split="train", cache_dir=str(Path(place, "cache")))
        ids = loaded.map(tokenized, batched=True, num_proc=processes, remove_columns=["text"])
        blocks = ids.map(_grouped, batched=True, num_proc=processes)
        blocks.save_to_disk(str(Path(place, "blocks")))
        return Path(place, "blocks")

    def answer(saved: Path) -> Array:
        rows = datasets.load_from_disk(str(saved))["input_ids"]
        ids = np.fromiter(chain.from_iterable(rows), np.int64)
        return ids[~np.isin(ids, (tokenizer.cls_token_id, tokenizer.sep_token_id))]

    return Fresh(lambda: TemporaryDirectory(dir=work), call, answer)


def _grouped(rows: Columns) -> Columns:
    """Blocks of equal length. run_mlm drops the rest of every thousand lines; here it is a shorter block."""
    joined = {name: list(chain.from_iterable(values)) for name, values in rows.items()}
    total = len(joined["input_ids"])
    return {name: [values[at : at + LENGTH] for at in range(0, total, LENGTH)] for name, values in joined.items()}


if __name__ == "__main__":
    serve({"shards": shards}, ["datasets", "transformers"])
