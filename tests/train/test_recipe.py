"""Recipes: what a file says, what it leaves out, and what it takes from another file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.corpus.inputs import FullSentences, SegmentPairs
from bertkit.errors import BertkitError
from bertkit.objectives.choose import WholeWords
from bertkit.objectives.masked_lm import MaskedLm
from bertkit.objectives.pairs import Nsp
from bertkit.train.optimizer import Adam, Lamb
from bertkit.train.pretrain import phases
from bertkit.train.recipe import read, to_toml
from bertkit.train.schedule import Linear

HOME = Path(__file__).parents[2] / "recipes"
RECIPES = sorted(path for path in HOME.rglob("*.toml") if path.parent.name != "finetune")
LEAST = """
[data]
corpus = "shards"
[train]
steps = 10
phases = [{ inputs = { part = "SegmentPairs", length = 24 } }]
"""


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: str(path.relative_to(HOME)))
def test_every_recipe_reads_and_gives_itself_back(path: Path, tmp_path: Path) -> None:
    recipe = read(path, ["output=run"])
    (tmp_path / "resolved.toml").write_text(to_toml(recipe), encoding="utf-8")
    assert read(tmp_path / "resolved.toml") == recipe


def test_the_recipes_there_are() -> None:
    names = {str(path.relative_to(HOME).with_suffix("")) for path in RECIPES}
    sizes = [f"bert-{size}" for size in ("tiny", "mini", "small", "base", "large")]
    wanted = {*sizes, *(f"smoke/{size}" for size in sizes), "bert-wwm", "python-docs-tiny"}
    assert names >= wanted


def test_bert_base_is_the_paper_s() -> None:
    recipe = read(HOME / "bert-base.toml", ["output=run"])
    assert recipe.train.optimizer == Adam(rate=1e-4, decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6, correct=True)
    assert recipe.train.schedule == Linear(warmup=10_000)
    (first, *ends), (second, *more) = phases(recipe)
    assert (ends, more) == ([0, 900_000], [900_000, 1_000_000])
    assert (first.inputs, second.inputs) == (SegmentPairs(128), SegmentPairs(512))
    assert (first.rows, second.rows, recipe.train.clip) == (256, 256, 1.0)
    assert recipe.objective == (Nsp(), MaskedLm())
    mask = recipe.objective[1].mask
    assert (mask.rate, mask.random, mask.keep) == (0.15, 0.1, 0.1)


def test_recipes_that_extend_it_say_what_differs() -> None:
    base, mini, wwm, roberta = (
        read(HOME / f"{name}.toml", ["output=run"]) for name in ("bert-base", "bert-mini", "bert-wwm", "roberta-base")
    )
    assert (mini.model.size, mini.train, mini.objective) == ("bert-mini", base.train, base.objective)
    assert wwm.objective[1].mask.choose == WholeWords()
    assert (wwm.train, wwm.model) == (base.train, base.model)
    assert roberta.objective == (MaskedLm(),)
    assert roberta.train.phases[0].inputs == FullSentences(512)


def test_sections_go_together_and_parts_do_not(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(LEAST + "optimizer = { part = 'Adam', rate = 0.5 }\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one.toml").write_text(
        "extends = '../base.toml'\noutput = 'run'\n[train]\nsteps = 20\noptimizer = { part = 'Lamb' }\n"
    )
    (tmp_path / "two.toml").write_text("extends = 'deep/one.toml'\nseed = 3\n")
    made = read(tmp_path / "two.toml")
    assert (made.train.steps, made.train.optimizer, made.seed) == (20, Lamb(), 3)
    assert made.train.phases == (read(tmp_path / "base.toml", ["output=run"]).train.phases)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends = 'none.toml'", r"one\.toml extends 'none\.toml', and there is no such file beside it"),
        ("extends = 3", r"one\.toml extends 3"),
        ("extends = 'one.toml'", r"one\.toml extends itself"),
        ("extends = [", r"one\.toml is not TOML"),
    ],
)
def test_what_cannot_be_extended(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "one.toml").write_text(text)
    with pytest.raises(BertkitError, match=message):
        read(tmp_path / "one.toml")


def test_a_setting_of_the_usual_part_needs_no_part(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(LEAST)
    made = read(tmp_path / "one.toml", ["output=run", "train.optimizer.rate=0.5", "train.schedule.warmup=3"])
    assert (made.train.optimizer, made.train.schedule) == (Adam(rate=0.5), Linear(warmup=3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "objective=[{}]",
            r"objective\[0\] does not say which part it is: .* one of MaskedLm, Nsp, .*Sop, Sum",
        ),
        (
            "objective=[{part='PairQuestion'}]",
            r"unknown objective\[0\] 'PairQuestion'.*: MaskedLm, Nsp, .*Sop, Sum",
        ),
        ("train.optimizer={part='Sgd'}", "unknown train.optimizer 'Sgd'.*Known: Adam, Lamb"),
        ("train.optimizer.speed=1", "unknown key of train.optimizer 'speed'.*Known: beta1, .*rate"),
        ("data.corpus=", "data.corpus or from data.texts, and neither is there"),
        ("data.texts=['a.txt']", "data.corpus or from data.texts, and both are there"),
        ("compute.precision=half", "unknown Compute.precision 'half'.*Known: bfloat16, float16, float32"),
    ],
)
def test_errors_say_what_exists(tmp_path: Path, change: str, message: str) -> None:
    (tmp_path / "one.toml").write_text(LEAST)
    with pytest.raises(BertkitError, match=message):
        read(tmp_path / "one.toml", ["output=run", change])
