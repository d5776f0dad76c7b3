"""RoBERTa: A Robustly Optimized BERT Pretraining Approach
(Liu, Ott, Goyal, Du, Joshi, Chen, Levy, Lewis, Zettlemoyer, Stoyanov 2019), https://arxiv.org/abs/1907.11692

BERT's network, trained longer on more text, in larger batches, with masks drawn anew (`MaskedLm`), full sentences
(`FullSentences`) and no next-sentence prediction. Its tokens are byte-level BPE; an input is `<s> A </s></s> B </s>`,
all of one segment. What is left of fairseq in the network: positions are counted from the row after the one of <pad>,
so that the first token has row 2 of 514. A classifier has a matrix of its own on the first token where BERT has the
pooler, with dropout before it as well.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from bertkit.errors import BertkitError
from bertkit.family import bert
from bertkit.family.contract import ALONE, Family
from bertkit.family.dialect import Config, Dialect, Filed, classes, renamed, require_tied
from bertkit.parts.encoder import Encoder
from bertkit.parts.heads import Head, Mlm, Pooler
from bertkit.parts.network import Network
from bertkit.parts.positions import Learned

VOCABULARY = 50_265
FIRST = 2
"""the row of the first position: <pad> is token 1"""
POSITIONS = Learned(512 + FIRST, FIRST)
EPSILON = 1e-5


def encoder(size: str, vocabulary: int = VOCABULARY) -> Encoder:
    """BERT's sizes; base and large were published.

    >>> base = encoder("base")
    >>> base.longest, base.embed.segments
    (512, 1)
    """
    made = bert.encoder(size, vocabulary)
    attention, feed = replace(made.attentions[0], epsilon=EPSILON), replace(made.feeds[0], epsilon=EPSILON)
    embed = replace(made.embed, positions=POSITIONS, segments=1, epsilon=EPSILON)
    return bert.stack(len(made.order), made.width, embed, attention, feed)


def read_encoder(config: Config) -> Encoder:
    """The encoder that a config.json describes."""
    bert.require_plain(config, "RoBERTa")
    first = config.get("pad_token_id", FIRST - 1)
    if not isinstance(first, int) or isinstance(first, bool) or first < 0:
        raise BertkitError(f"pad_token_id is {first!r}: positions are counted from it, so it must be a token's number")
    return bert.read_stack(config, Learned(config.get("max_position_embeddings", 512), first + 1))


def read_mlm(config: Config) -> Head:
    """It bends by GELU, whatever the encoder does."""
    require_tied(config, ALONE)
    return Mlm("gelu", config.get("layer_norm_eps", 1e-12))


def write(network: Network, model_type: str, dialect: Dialect) -> dict[str, Any]:
    """config.json."""
    spec = network.encoder
    positions = bert.learned(spec)
    return bert.write_encoder(spec) | {
        "architectures": [dialect.architecture(network)],
        "model_type": model_type,
        "max_position_embeddings": positions.rows,
        "pad_token_id": max(positions.first - 1, 0),
        **dialect.write_heads(network),
    }


MLM_NAMES = {"transform": "lm_head.dense", "norm": "lm_head.layer_norm", "bias": "lm_head.bias"}


def dialect(name: str) -> Dialect:
    """The words of RoBERTa, for classes of this name."""
    return Dialect(
        prefix="roberta.",
        classes=classes(name, {"MaskedLM": ("mlm",)}),
        encoder=renamed(bert.ENCODER_NAMES, "bert.", "roberta."),
        heads={
            **bert.DIALECT.heads,
            "pooler": Filed({"dense": "roberta.pooler.dense"}, read_pooler),
            "mlm": Filed(MLM_NAMES, read_mlm),
        },
        tied={
            "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
            "lm_head.decoder.bias": "lm_head.bias",
        },
        respelled={
            f"{name}ForSequenceClassification": {
                "roberta.pooler.dense": "classifier.dense",
                "classifier": "classifier.out_proj",
            }
        },
    )


def read_pooler(config: Config) -> Head:
    """That of a classifier drops as the classifier does."""
    return Pooler("tanh", bert.DIALECT.pooler_dropout(config))


def family(model_type: str, words: Dialect) -> Family:
    """A family that computes as RoBERTa does."""
    return Family(
        model_type=model_type,
        sizes={size: partial(encoder, size) for size in bert.SIZES},
        dialect=words,
        read_encoder=read_encoder,
        write=partial(write, model_type=model_type, dialect=words),
    )


FAMILY = family("roberta", dialect("Roberta"))
