"""A fine-tuning once, with several seeds, or with each fold held out in turn; what they come to together.

One run says little about small sets: scores differ by several points from seed to seed.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from bertkit import artifact
from bertkit.tasks.finetune import finetune
from bertkit.tasks.finetuned import TASK
from bertkit.tasks.tuning import Tuning
from bertkit.text.files import read_object
from bertkit.train.page import MODEL
from bertkit.train.run import Tell

SUMMARY = "repeats.json"


@dataclass(frozen=True)
class Spread:
    """A measure over several runs."""

    values: tuple[float, ...]

    def __str__(self) -> str:
        if len(self.values) == 1:
            return f"{self.values[0]:.4f}"
        return f"{mean(self.values):.4f} ± {stdev(self.values):.4f} ({', '.join(f'{one:.4f}' for one in self.values)})"

    def told(self) -> dict[str, Any]:
        """For a program to read."""
        several = len(self.values) > 1
        return {"mean": mean(self.values), "deviation": stdev(self.values) if several else None, "runs": self.values}


def repeat(
    tuning: Tuning, seeds: int, tell: Tell | None = None, say: Callable[[str], None] = lambda said: None
) -> dict[str, Any]:
    """All runs of a tuning, and what they came to. Each goes on where it was; the best one's model is `model`."""
    several = variants(tuning, seeds)
    for name, one in several.items():
        if name:
            say(f"{name}, of {len(several)} runs")
        finetune(one, tell, say)
    runs = {name: Path(one.output) for name, one in several.items()}
    scores = {name: scored(run) for name, run in runs.items()}
    main = tuning.task.main
    measures = sorted(
        {measure for found in scores.values() for measure in found}, key=lambda name: (name != main, name)
    )
    spreads = {
        measure: Spread(tuple(found[measure] for found in scores.values() if measure in found)) for measure in measures
    }
    best = max(runs, key=lambda name: _worth(scores[name], main))
    told = {
        "model": str(runs[best] / MODEL),
        "main": main,
        "scores": {measure: spread.told() for measure, spread in spreads.items()},
        "shown": {measure: str(spread) for measure, spread in spreads.items()},
        "next": f"bertkit predict {runs[best]} --input -",
    }
    if len(several) > 1 and os.environ.get("RANK", "0") == "0":
        with artifact.file(Path(tuning.output) / SUMMARY, overwrite=True) as file:
            file.write(json.dumps(told, indent=1, ensure_ascii=False).encode() + b"\n")
    return told


def variants(tuning: Tuning, seeds: int) -> dict[str, Tuning]:
    """The runs by name: one, one for each fold, one for each seed, or for both."""
    several: dict[str, Tuning] = {}
    for fold in range(max(tuning.folds, 1)):
        for seed in range(tuning.seed, tuning.seed + seeds):
            parts = [f"fold-{fold + 1}"] if tuning.folds else []
            parts += [f"seed-{seed}"] if seeds > 1 else []
            name = "-".join(parts)
            output = str(Path(tuning.output) / name) if name else tuning.output
            several[name] = replace(tuning, output=output, seed=seed, fold=fold)
    return several


def scored(run: Path) -> dict[str, float]:
    """The scores of a run's best exam."""
    found: dict[str, float] = read_object(run / MODEL / TASK).get("scores", {})
    return found


def _worth(scores: dict[str, float], main: str) -> float:
    """What runs are compared by; a score that is no number is worth nothing."""
    worth = scores.get(main, -math.inf)
    return -math.inf if math.isnan(worth) else worth
