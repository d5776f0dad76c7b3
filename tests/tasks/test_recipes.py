"""Recipes of fine-tuning are whole, say what is known, and survive being written."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.tasks.known import KNOWN
from bertkit.tasks.tuning import read
from bertkit.train.recipe import to_toml

HOME = Path(__file__).parents[2] / "recipes" / "finetune"
RECIPES = sorted(HOME.glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_read_and_written(path: Path, tmp_path: Path) -> None:
    tuning = read(path, ["output=runs/x", "seed=3"])
    assert (tuning.output, tuning.seed) == ("runs/x", 3)
    (tmp_path / "again.toml").write_text(to_toml(tuning))
    assert read(tmp_path / "again.toml") == tuning
    known = KNOWN.get(path.stem)
    if known is not None and known.task is not None:
        assert (tuning.task, tuning.layout) == (known.task, known.layout)


def test_there_are_recipes() -> None:
    assert {path.stem for path in RECIPES} >= {"mrpc", "cola", "rte", "stsb", "sst2", "conll", "squad", "codah"}
