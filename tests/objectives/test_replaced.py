"""Replaced-token detection is ELECTRA's: losses and gradients of both networks against two models of transformers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from scipy import stats

from bertkit.errors import BertkitError
from bertkit.family import electra
from bertkit.model import Model
from bertkit.objectives import replaced
from bertkit.objectives.mask import Mask, Vocabulary
from bertkit.objectives.masked_lm import MaskedLm
from bertkit.objectives.replaced import DETECT, ReplacedLearner, ReplacedTokens, drawn_from
from bertkit.parts.attention import Attention
from bertkit.parts.embed import Embed
from bertkit.parts.encoder import Encoder, with_dropout
from bertkit.parts.feed import Feed
from bertkit.parts.network import Network
from bertkit.spec import from_json, to_json
from bertkit.text import Tokenizer
from tests.objectives.test_objectives import batch_of, pairs, theirs
from tests.reference import LAYOUTS, gradients, worst

TOLERANCE = 1e-5
OBJECTIVE = ReplacedTokens(shrink=2)


def learner_of(tokenizer: Tokenizer, narrow: int = 16) -> ReplacedLearner:
    """A small ELECTRA without dropout, its weights drawn wide, so that an error anywhere shows."""
    torch.manual_seed(0)
    layer = Attention(2, 16), Feed(64)
    encoder = with_dropout(electra.bert.stack(2, 32, Embed(len(tokenizer), narrow), *layer, spread=0.15), 0.0)
    network = Network(encoder, OBJECTIVE.heads).build().train()
    made = OBJECTIVE.learner(network)
    assert isinstance(made, ReplacedLearner)
    for parameter in made.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=0.5, std=0.15)
    return made.train()


@pytest.mark.parametrize("narrow", [16, 32], ids=["factorised", "one width"])
def test_losses_and_gradients_are_those_of_two_models_of_transformers(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, narrow: int
) -> None:
    """A loop as anybody writes it with transformers: the generator fills, the discriminator judges, 1 and 50."""
    monkeypatch.setattr(replaced, "drawn_from", lambda logits: logits.argmax(-1))  # the same tokens on both sides
    ours = learner_of(tokenizer, narrow)
    models = {name: Model(net, tokenizer, config={"model_type": "electra"}) for name, net in ours.networks.items()}
    discriminator = transformers.ElectraForPreTraining.from_pretrained(models["model"].save(tmp_path / "model"))
    generator = transformers.ElectraForMaskedLM.from_pretrained(models["generator"].save(tmp_path / "generator"))
    generator.electra.embeddings = discriminator.electra.embeddings
    generator.generator_lm_head.weight = discriminator.electra.embeddings.word_embeddings.weight
    for model in (discriminator, generator):
        model.train()

    flat = OBJECTIVE.corrupt(pairs(tokenizer, "next"), Vocabulary.of(tokenizer))
    given = theirs(flat, "next")
    wanted, inputs = given["labels"], {name: given[name] for name in ("token_type_ids", "attention_mask")}
    named = generator(given["input_ids"], **inputs, labels=wanted)
    masked = wanted != -100
    filled = torch.where(masked, named.logits.argmax(-1), given["input_ids"])
    changed = masked & (filled != wanted)
    judged = discriminator(filled, **inputs, labels=changed.long())
    assert changed.any()
    ((named.loss + 50 * judged.loss) / 50).backward()  # so that gradients are about 1, where 1e-5 means something

    for layout in LAYOUTS:
        ours.zero_grad()
        batch = batch_of(flat, layout)
        asked, counts = ours(batch), OBJECTIVE.counts(batch)
        means = {name: asked[name].loss / counts[name] for name in asked}
        assert abs(float((means["mlm"] - named.loss).detach())) <= TOLERANCE
        assert abs(float((means[DETECT] - judged.loss).detach())) <= TOLERANCE
        assert counts == {"mlm": int(masked.sum()), DETECT: int(flat.lengths.sum())}
        right = (judged.logits > 0) == changed
        assert int(asked[DETECT].right) == int(right[given["attention_mask"].bool()].sum())
        (sum(OBJECTIVE.weights.get(name, 1) * loss for name, loss in means.items()) / 50).backward()
        found = gradients(ours.network, "electra") | {
            f"generator.{name}": x for name, x in gradients(ours.generator, "electra").items()
        }
        for prefix, model in (("", discriminator), ("generator.", generator)):
            for name, parameter in model.named_parameters():
                assert worst(found[prefix + name], parameter.grad) <= TOLERANCE, (layout, prefix, name)


def test_tables_are_one_and_nothing_else_is(tokenizer: Tokenizer) -> None:
    made = learner_of(tokenizer)
    shared = {
        name
        for name, parameter in made.generator.named_parameters()
        if any(parameter is other for other in made.network.parameters())
    }
    parts = ("tokens.weight", "positions.weight", "segments.weight", "norm.weight", "norm.bias")
    assert shared == {f"encoder.embed.{part}" for part in parts}


def test_no_gradient_goes_through_the_drawing(tokenizer: Tokenizer) -> None:
    made = learner_of(tokenizer)
    flat = OBJECTIVE.corrupt(pairs(tokenizer, "next"), Vocabulary.of(tokenizer))
    made(batch_of(flat))[DETECT].loss.backward()
    reached = [name for name, x in made.generator.named_parameters() if x.grad is not None and x.grad.any()]
    assert all(name.startswith("encoder.embed.") for name in reached), "the tables alone, which are shared"


def test_drawn_tokens_are_as_likely_as_the_generator_says() -> None:
    torch.manual_seed(3)
    logits = torch.randn(7) * 2
    drawn = drawn_from(logits.expand(200_000, 7))
    counts = np.bincount(drawn.numpy(), minlength=7)
    expected = logits.double().softmax(-1).numpy() * len(drawn)
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3


def test_what_the_network_sees_is_never_masked_and_only_masked_places_change(tokenizer: Tokenizer) -> None:
    seen = []
    made = learner_of(tokenizer)
    made.network.register_forward_pre_hook(lambda _, batches: seen.append(batches[0]))
    whole = pairs(tokenizer, "next")
    flat = OBJECTIVE.corrupt(whole, Vocabulary.of(tokenizer))
    batch = batch_of(flat)
    made(batch)
    ids = seen[0].layout.flat(seen[0].tokens["ids"]).numpy()
    at, _ = batch.marks["mlm"]
    every, true = (x.numpy() for x in batch.marks[DETECT])
    assert sorted(every) == list(range(len(whole.ids)))
    changed = np.flatnonzero(ids[every] != true)
    assert set(every[changed]) <= set(at.numpy().tolist())
    assert (flat.ids == tokenizer.mask_id).sum() == len(at) > (ids == tokenizer.mask_id).sum()
    assert sorted(true) == sorted(whole.ids)


GENERATORS = {"small": (4, 64, 1, 256), "base": (3, 256, 4, 1024), "large": (4, 256, 4, 1024)}


@pytest.mark.parametrize("size", GENERATORS)
def test_generators_are_the_papers(size: str) -> None:
    """Table 6: a quarter, a third, a quarter of the width."""
    shrink, width, heads, inner = GENERATORS[size]
    encoder: Encoder = electra.encoder(size)
    made = ReplacedTokens(shrink=shrink).generator(encoder).encoder
    assert (made.width, made.attentions[0].heads, made.feeds[0].inner) == (width, heads, inner)
    assert len(made.order) == len(encoder.order)
    assert made.embed == encoder.embed


def test_it_stands_alone_and_survives_json() -> None:
    with pytest.raises(BertkitError, match="cannot be part of a sum"):
        OBJECTIVE + MaskedLm()
    with pytest.raises(BertkitError, match="cannot be part of a sum"):
        MaskedLm() + OBJECTIVE
    odd = replace(OBJECTIVE, mask=Mask(rate=0.25, random=0.0, keep=0.15))
    assert from_json(to_json(odd)) == odd


def test_a_width_that_cannot_shrink_says_so() -> None:
    with pytest.raises(BertkitError, match="shrink"):
        ReplacedTokens(shrink=5).generator(electra.encoder("mini", 40))
