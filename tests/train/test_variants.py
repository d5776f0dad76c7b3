"""Every variant learns by its own recipe, goes on after an end, and is opened by transformers."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import transformers
from safetensors.torch import load_file

import bertkit
from bertkit.corpus import build
from bertkit.corpus.build import Options
from bertkit.corpus.source import files
from bertkit.objectives.replaced import ReplacedTokens
from bertkit.text import Tokenizer
from bertkit.train import recipe
from bertkit.train.pretrain import pretrain
from bertkit.train.run import StoppedError, Told
from bertkit.vocab.kind import Options as Spelling
from bertkit.vocab.train import train
from tests.train.running import same, told

RECIPES = Path(__file__).parents[2] / "recipes"
VARIANTS = {
    "roberta": ("bpe", "FullSentences", ["mlm"]),
    "albert": ("unigram", "OrderPairs", ["order", "mlm"]),
    "electra": ("wordpiece", "SegmentPairs", ["mlm", "replaced"]),
    "nezha": ("wordpiece", "SegmentPairs", ["next", "mlm"]),
}
"""what it is spelled with, its inputs, and what is asked"""


@pytest.fixture(scope="module")
def corpora(home: Path) -> Path:
    """The text of `home`, spelled in three ways."""
    text = files([str(home / "text.txt")])
    for kind, size in {"wordpiece": 60, "bpe": 320, "unigram": 60}.items():
        train(text, home / f"{kind}-vocabulary", kind, Spelling(size=size, min_count=1))
        build.build(text, Tokenizer.load(home / f"{kind}-vocabulary"), home / kind, Options(held_out=0.1))
    return home


def plan(home: Path, name: str, output: str) -> recipe.Recipe:
    """The variant's smoke recipe, tiny, in forty quick steps."""
    kind, inputs, _ = VARIANTS[name]
    random = ",random=0.0" if name == "electra" else ""
    rate = 1e-2 if name in ("albert", "nezha") else 3e-3  # LAMB's is a share of each matrix
    return recipe.read(
        RECIPES / "smoke" / f"{name}-mini.toml",
        [
            *("data.texts=[]", f"data.corpus={home / kind}", f"output={home / output}", f"model.size={name}-tiny"),
            *("train.steps=40", f"train.optimizer.rate={rate}", "train.checkpoint_every=15", "train.schedule.warmup=5"),
            f'train.phases=[{{inputs={{part="{inputs}",length=32{random}}},rows=8,micro=4}}]',
        ],
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_learns_by_its_recipe(corpora: Path, name: str) -> None:
    model = pretrain(plan(corpora, name, name))
    steps = [line for line in told(corpora / name) if line["kind"] == "step"]
    assert set(steps[0]["losses"]) == set(VARIANTS[name][2])
    first, last = (sum(line["losses"]["mlm"] for line in part) / 5 for part in (steps[:5], steps[-5:]))
    assert last < first - 0.5
    opened = bertkit.load(model)
    assert opened.config["model_type"] == name
    assert opened.embed(["the cat sat .", "dog"]).shape == (2, 128)
    filling = bertkit.load(corpora / name / "generator") if name == "electra" else opened
    mask = filling.tokenizer.specials.mask
    assert len(filling.fill(f"the {mask} sat on a mat")[0]) == 5
    if name != "nezha":  # which transformers no longer has
        again = transformers.AutoModelForPreTraining.from_pretrained(model)
        assert type(again).__name__.lower().startswith(name)
        text = "the cat sat on a mat, slow!"
        ids = transformers.AutoTokenizer.from_pretrained(model)(text, "dog runs").input_ids
        assert ids == opened.tokenizer.encode(text, "dog runs").ids


@pytest.mark.parametrize("name", ["electra", "nezha"])
def test_a_variant_goes_on_where_it_was(corpora: Path, name: str) -> None:
    """Two networks and what one drew for the other, and LAMB: to the bit."""
    whole, run = corpora / f"{name}-whole", corpora / f"{name}-stopped"
    pretrain(plan(corpora, name, whole.name))

    def stop(told: Told) -> None:
        if told.step == 17:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(StoppedError):
        pretrain(plan(corpora, name, run.name), stop)
    pretrain(plan(corpora, name, run.name))
    same(run, whole)
    if name == "electra":
        files = [place / "generator" / "model.safetensors" for place in (run, whole)]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_what_cannot_be_saved_is_refused_before_it_learns(corpora: Path) -> None:
    odd = replace(plan(corpora, "electra", "odd"), model=recipe.Start(size="bert-tiny"))
    with pytest.raises(bertkit.BertkitError, match="unknown head 'replaced'"):
        pretrain(odd)
    assert not (corpora / "odd" / "checkpoints").exists()


def test_both_networks_of_electra_go_on_with_another_text(corpora: Path) -> None:
    first = plan(corpora, "electra", "electra-first")
    pretrain(first)
    place = corpora / "electra-first" / "model"
    on = replace(plan(corpora, "electra", "electra-on"), model=recipe.Start(weights=str(place), dropout=0.0))
    pretrain(replace(on, train=replace(on.train, steps=1)))
    before, after = (
        load_file(corpora / run / "generator" / "model.safetensors") for run in ("electra-first", "electra-on")
    )
    assert before.keys() == after.keys()
    assert max((before[name] - after[name]).abs().max() for name in before) < 0.02, "one step from where it was"
    other = replace(on, output=str(corpora / "electra-other"), objective=(ReplacedTokens(shrink=2),))
    with pytest.raises(
        bertkit.BertkitError, match=r"generator cannot go on beside .*: here its encoder\.width is 64, not 32"
    ):
        pretrain(other)
