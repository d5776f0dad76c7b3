"""Fine-tuning: an epoch of MRPC's pairs and of SQuAD's windows, in eight parts, one for each round.

Rows are drawn: ids by chance, lengths as the real sets have them (tenths of their distribution, by BERT's tokenizer).
A turn learns from one part of the rows, as the loop of `bertkit finetune` and as transformers' Trainer do it; making
examples of texts and saving are not timed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bertkit
from bench import peer
from bench.measure import Amount, Bar, Case
from bench.pipe import Array
from bertkit.objectives.labels import LabelQuestion
from bertkit.objectives.objective import Objective
from bertkit.objectives.spans import SpanQuestion
from bertkit.spec import to_json

PARTS = 8
"""turns of a whole epoch: as many as there are rounds"""
CHECKED = 16
"""rows whose loss, without dropout, all must agree on"""
MRPC = (19, 36, 41, 45, 50, 53, 57, 61, 64, 70, 103)
SQUAD = (41, 110, 127, 139, 150, 164, 179, 198, 223, 272, 384)
"""tokens of the shortest input, of a tenth of them, of two … of the longest"""


class Set(NamedTuple):
    """Rows to learn from."""

    objective: Objective
    lengths: tuple[int, ...]
    rows: int
    batch: int


PAIRS = Set(LabelQuestion(("0", "1")), MRPC, 3668, 32)
WINDOWS = Set(SpanQuestion(), SQUAD, 384, 16)


class Way(NamedTuple):
    """A case: the rows, how Trainer is set, and what shall be reached."""

    set: Set
    trainer: dict[str, Any]
    bar: float


WAYS = {
    "mrpc-runglue": Way(PAIRS, {"pad": 128, "group": False}, 2.5),
    "mrpc-dynamic": Way(PAIRS, {"pad": 0, "group": True}, 1.2),
    "squad": Way(WINDOWS, {"pad": 0, "group": True}, 1.2),
}


def cases(quick: bool) -> Iterable[Case]:
    """Each against Trainer, MiniLM's weights."""
    for name, way in WAYS.items():
        rows = way.set.batch * PARTS if quick else way.set.rows
        array, labels = drawn(way.set, rows)
        yield Case(
            name,
            "finetune",
            {
                "model": str(weights(way.set)),
                "objective": to_json(way.set.objective),
                "labels": labels,
                "batch": way.set.batch,
                "parts": PARTS,
                "checked": CHECKED,
                "trainer": way.trainer,
            },
            ("trainer",),
            array=array,
            bars={"trainer": Bar(way.bar)},
            amount=Amount(float((array[:, 0] > 0).sum() / PARTS), "tokens"),
        )


def drawn(chosen: Set, rows: int) -> tuple[Array, dict[str, list[int]]]:
    """Ids and segments [rows, 2, L], 0 where there is no token, and what is true of each row."""
    random = np.random.default_rng(0)
    tenths = np.linspace(0, 1, len(chosen.lengths))
    lengths = np.interp(random.random(rows), tenths, chosen.lengths).astype(np.int64)
    ids = random.integers(1000, 30_000, (rows, max(chosen.lengths)))
    there = np.arange(ids.shape[1]) < lengths[:, None]
    second = (np.arange(ids.shape[1]) >= lengths[:, None] // 2) & there
    array = np.stack([np.where(there, ids, 0), second.astype(np.int64)], 1)
    if isinstance(chosen.objective, SpanQuestion):
        starts = (random.random(rows) * lengths).astype(np.int64)
        return array, {"start": starts.tolist(), "end": np.minimum(starts + 2, lengths - 1).tolist()}
    return array, {"label": random.integers(0, 2, rows).tolist()}


def weights(chosen: Set) -> Path:
    """MiniLM with the head of a set, drawn once, so that all begin with the same."""
    home = peer.HOME / "models" / f"finetune-{type(chosen.objective).__name__}"
    if not home.exists():
        made = bertkit.load("minilm", chosen.objective.heads)
        bertkit.Model(made.network, made.tokenizer, config=made.config).save(home)
    return home
