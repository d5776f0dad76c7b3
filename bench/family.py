"""The family: a step of pre-training of each variant, mini size, on batches that all have.

RoBERTa, ALBERT and ELECTRA against transformers; NEZHA, which it no longer has, against our own BERT.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bertkit
from bench import peer
from bench.measure import Amount, Bar, Case
from bench.pretrain import CHECKED, CLIP, PEER, QUICK, Shape, drawn, planes
from bertkit import family
from bertkit.corpus.flat import Flat
from bertkit.model import Model
from bertkit.objectives.choose import NGrams, WholeWords
from bertkit.objectives.mask import Mask, Vocabulary
from bertkit.objectives.masked_lm import MaskedLm
from bertkit.objectives.objective import Objective
from bertkit.objectives.pairs import Nsp, Sop
from bertkit.objectives.replaced import ReplacedTokens
from bertkit.spec import to_json
from bertkit.text import Tokenizer
from bertkit.weights.find import find

BERT = "bertkit-bert"
SHAPE = Shape(32, 128, 4)


class Variant(NamedTuple):
    """What a variant learns, and whom it is measured against."""

    objective: Objective
    label: str
    """of pairs; none where nothing is asked about them"""
    peer: str
    bar: float


VARIANTS = {
    "roberta": Variant(MaskedLm(), "", PEER, 2.0),
    "albert": Variant(Sop() + MaskedLm(Mask(NGrams())), Sop.label, PEER, 2.0),
    "electra": Variant(ReplacedTokens(), "", PEER, 1.5),
    "nezha": Variant(Nsp() + MaskedLm(Mask(WholeWords())), Nsp.label, BERT, 0.667),
}
"""NEZHA's step may take 1.5 times as long as BERT's: two thirds of its speed"""


def cases(quick: bool) -> Iterable[Case]:
    """All of them in rectangles of 32×128."""
    shape = QUICK if quick else SHAPE
    for name, variant in VARIANTS.items():
        arguments, array = work(name, shape)
        yield Case(
            f"{name} mini {shape.rows}×{shape.length}",
            "pretrain",
            arguments,
            (variant.peer,),
            array=array,
            calls=len(array),
            bars={variant.peer: Bar(variant.bar)},
            amount=Amount(float((array[:, 0] > 0).sum() / len(array)), "tokens"),
        )


def work(name: str, shape: Shape, size: str = "mini") -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """The arguments of a case, and its batches [batches, 3, B, L]."""
    variant, tokenizer = VARIANTS[name], Tokenizer.load(find("minilm"))
    segments = family.encoder(f"{name}-{size}", len(tokenizer)).embed.segments
    flats = [asked(flat, variant, segments, Vocabulary.of(tokenizer)) for flat in drawn(shape, tokenizer)]
    arguments = {
        "model": str(weights(name, size, variant.objective, tokenizer)),
        "objective": to_json(variant.objective),
        "label": variant.label,
        "labels": [flat.labels[variant.label].tolist() if variant.label else [] for flat in flats],
        "checked": CHECKED if variant.peer == PEER else 0,
        "clip": CLIP,
    }
    return arguments, np.stack([planes(flat, shape.length) for flat in flats])


def asked(flat: Flat, variant: Variant, segments: int, vocabulary: Vocabulary) -> Flat:
    """A batch by chance as this variant learns from it: with its labels, its segments and its masks."""
    labels = {variant.label: flat.labels[Nsp.label]} if variant.label else {}
    made = Flat(flat.ids, flat.segments % segments, flat.words, flat.starts, flat.keys, labels)
    return variant.objective.corrupt(made, vocabulary)


def weights(name: str, size: str, objective: Objective, tokenizer: Tokenizer) -> Path:
    """All networks that learn, drawn at random once and kept beside each other; where BERT is the peer, BERT's too."""
    home = peer.HOME / "models" / f"family-{name}-{size}"
    kinds = {name: home, "bert": home / "bert"} if VARIANTS[name].peer == BERT else {name: home}
    for kind, place in kinds.items():
        if place.exists():
            continue
        made = bertkit.create(f"{kind}-{size}", tokenizer, objective.heads, seed=0)
        for part, network in objective.learner(made.network).networks.items():
            Model(network, tokenizer, config=made.config).save(place / part)
    return home / "model"
