"""Small models for exports: networks in which nothing is 0 or 1, saved with a tokenizer of a few words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from torch import nn

from bertkit.family import albert, bert, nezha
from bertkit.model import Model
from bertkit.parts import heads
from bertkit.parts.attention import Attention
from bertkit.parts.dense import Dense
from bertkit.parts.embed import Embed
from bertkit.parts.encoder import Encoder
from bertkit.parts.feed import Feed
from bertkit.parts.heads import Head
from bertkit.parts.pool import Cls
from bertkit.parts.positions import Learned
from bertkit.text import Tokenizer
from tests.runtime.networks import network

WORDS = "the cat dog sat on a mat play ##ing ##ed runs fast . 猫 狗"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()]
LIMIT = 40
LABELS = ("a", "b", "c")
TEXTS = ["the cat sat on a mat .", "猫 狗", "", "the dog runs fast " * 20, ("the cat", "a dog played on")]
POOLER = {"pooler": heads.Pooler()}
HEADS: dict[str, Mapping[str, Head]] = {
    "classify": {**POOLER, "classify": heads.Classify(LABELS)},
    "tag": {"tag": heads.Tag(LABELS)},
    "span": {"span": heads.Span()},
    "mlm": {"mlm": heads.Mlm()},
    "choice": {**POOLER, "choice": heads.Choice()},
    "number": {**POOLER, "regress": heads.Regress()},
}


def small(vocabulary: int = len(VOCABULARY)) -> Encoder:
    """A BERT of one layer."""
    return bert.stack(1, 16, Embed(vocabulary, 16, Learned(LIMIT)), Attention(2, 8), Feed(24))


def encoders() -> dict[str, Encoder]:
    """One of each kind that is not BERT."""
    plain = small()
    shared = albert.encoder("tiny", len(VOCABULARY), "all")
    relative = replace(plain, embed=replace(plain.embed, positions=nezha.encoder("tiny").embed.positions))
    return {"albert": shared, "nezha": replace(relative, place=nezha.FunctionalRelative(8))}


def model(name: str = "mean", encoder: Encoder | None = None, family: str = "bert") -> Model:
    """With a head of this name, or with vectors: mean (scaled), cls, dense (and shortened)."""
    tokenizer = Tokenizer.from_vocabulary(VOCABULARY, limit=LIMIT)
    made = Model(network(encoder or small(), HEADS.get(name)), tokenizer, config={"model_type": family})
    made.normalize = name in ("mean", "dense")
    if name in ("cls", "dense"):
        made.pool = Cls()
    if name == "dense":
        made.dense.append(Dense(made.network.spec.encoder.width, 8).build())
        nn.init.normal_(made.dense[0].linear.bias)
        made.shorten = 6
    return made


def saved(home: Path, name: str = "mean", encoder: Encoder | None = None, family: str = "bert") -> Path:
    """The same, on disk."""
    return model(name, encoder, family).save(home / f"{family}-{name}")
