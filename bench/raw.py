"""An engine as somebody drives it who knows it well: batches of neighbours in length, in its best layout of threads.

What it computes is written here once more, from the weights as transformers reads them and with each engine's own
tools, so that bertkit is measured against what others would have built.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer

from bench.child import Call, Fresh, Job, by_turns
from bench.elsewhere import elsewhere
from bench.export import place
from bench.pipe import Array

BATCH = 32
SEEN = 1000
"""texts by which a layout of threads is chosen: with 256 of 2,000, the one that is slower for all was faster"""
ENOUGH = 2.0
"""seconds of trying a layout"""
Hidden = Callable[[Array, Array], Array]
"""ids and mask [B, L] -> hidden states [B, L, W], from as many threads at a time as there are workers"""
Built = Callable[[str, str, int, int], Hidden]
"""a model, its precision, workers, threads of each"""


def jobs(build: Built) -> dict[str, Job]:
    """Those of an engine."""

    def vectors(model: str, pieces: list[list[str]], precision: str) -> Fresh:
        def seconds(layout: tuple[int, int]) -> float:
            encode = _encode(model, build, precision, *layout)
            taken = [_seconds(encode, pieces[0][:SEEN])]
            while sum(taken) < ENOUGH:
                taken.append(_seconds(encode, pieces[0][:SEEN]))
            return min(taken)

        # built again: the last one decides for a whole process how many threads OpenMP has
        return by_turns(_encode(model, build, precision, *min(layouts(), key=seconds)), pieces)

    def query(model: str, texts: list[str], precision: str) -> Call:
        encode = _encode(model, build, precision, 1, layouts()[-1][1])
        return lambda: np.concatenate([encode([text]) for text in texts])

    return {"vectors": vectors, "queries": query}


def layouts() -> list[tuple[int, int]]:
    """Workers and threads: a core for each worker, or one worker for all cores."""
    cores = int(os.environ["OMP_NUM_THREADS"])
    return [(cores, 1), (1, cores)] if cores > 1 else [(1, 1)]


def _seconds(encode: Callable[[list[str]], Array], texts: list[str]) -> float:
    begun = time.perf_counter()
    encode(texts)
    return time.perf_counter() - begun


def _encode(model: str, build: Built, precision: str, workers: int, threads: int) -> Callable[[list[str]], Array]:
    tokenizer = Tokenizer.from_file(str(Path(model) / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.no_padding()
    hidden, pool = build(model, precision, workers, threads), ThreadPoolExecutor(workers)

    def encode(texts: list[str]) -> Array:
        ids = [found.ids for found in tokenizer.encode_batch(texts)]
        order = iter(sorted(range(len(ids)), key=lambda place: -len(ids[place])))
        groups = list(iter(lambda: list(islice(order, BATCH)), []))

        def run(group: list[int]) -> Array:
            return _vectors(hidden, [ids[place] for place in group])

        made = map(run, groups) if workers == 1 else pool.map(run, groups)
        out = np.empty((len(ids), _width(model)), np.float32)
        for group, rows in zip(groups, made, strict=True):
            out[group] = rows
        return out

    return encode


def _vectors(hidden: Hidden, rows: list[list[int]]) -> Array:
    """The mean over tokens, of length 1."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]  # [B, L]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = np.concatenate(rows)
    states = hidden(ids, mask.astype(np.int64))
    means: Array = np.einsum("blw,bl->bw", states, mask.astype(np.float32)) / lengths[:, None]
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def _width(model: str) -> int:
    return int(config(model).hidden_size)


def config(model: str) -> Any:
    """As transformers reads it."""
    return transformers.AutoConfig.from_pretrained(model)


def network(model: str) -> torch.nn.Module:
    """transformers' network, with an attention that exporters know."""
    kind = transformers.BertModel
    made: torch.nn.Module = kind.from_pretrained(model, attn_implementation="eager", add_pooling_layer=False)
    return made.eval()


class States(torch.nn.Module):
    """Hidden states alone, of inputs in the order of a graph's."""

    NAMES = ("input_ids", "attention_mask", "token_type_ids")

    def __init__(self, model: str) -> None:
        super().__init__()
        self.network = network(model)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.network(
            input_ids=ids, attention_mask=mask, token_type_ids=segments
        ).last_hidden_state
        return states


def kept(model: str, name: str, make: Callable[[str, Path], None]) -> Path:
    """A file that is made of a model once, and kept; by another process, for what making takes is gigabytes."""
    path = place(model, "raw") / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        begun = path.with_name(f"{os.getpid()}-{name}")
        elsewhere(make, model, begun)
        begun.rename(path)
    return path


def graph(model: str, path: Path) -> None:
    """ONNX by torch's exporter."""
    ids = torch.arange(1000, 1018).view(2, 9)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    axes = {name: {0: "rows", 1: "length"} for name in (*States.NAMES, "states")}
    torch.onnx.export(
        States(model),
        (ids, mask, torch.zeros_like(ids)),
        str(path),
        input_names=list(States.NAMES),
        output_names=["states"],
        dynamic_axes=axes,
        opset_version=17,
        dynamo=False,  # whose graphs onnxruntime's own optimiser knows
    )
