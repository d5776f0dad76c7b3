"""Small runs for tests: their recipe, and what they told."""

from __future__ import annotations

import json
from pathlib import Path

from bertkit.train import recipe

RECIPE = """
objective = [{ part = "Nsp" }, { part = "MaskedLm" }]

[data]
corpus = "corpus"

[model]
size = "bert-tiny"

[train]
steps = 12
phases = [
    { inputs = { part = "SegmentPairs", length = 24 }, rows = 8, micro = 4, share = 2 },
    { inputs = { part = "SegmentPairs", length = 48 }, rows = 6, micro = 4 },
]
optimizer = { part = "Adam", rate = 1e-3 }
schedule = { part = "Linear", warmup = 4 }
checkpoint_every = 3
log_every = 1
evaluate_every = 5
"""


def made(home: Path, *changes: str) -> recipe.Recipe:
    return recipe.read(home / "recipe.toml", [f"data.corpus={home / 'corpus'}", *changes])


def told(run: Path) -> list[dict]:
    """The journal without what differs from run to run: how long things took."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [
        {name: value for name, value in line.items() if name not in {"tokens_per_second", "waited"}} for line in lines
    ]


def same(run: Path, whole: Path) -> None:
    assert (run / "model" / "model.safetensors").read_bytes() == (whole / "model" / "model.safetensors").read_bytes()
    assert told(run) == told(whole)
