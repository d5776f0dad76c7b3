"""ALBERT: A Lite BERT for Self-supervised Learning of Language Representations
(Lan, Chen, Goodman, Gimpel, Sharma, Soricut 2020), https://arxiv.org/abs/1909.11942

Three things differ from BERT. Embeddings are factorised: tables 128 wide, and a matrix that widens them. Layers share
their weights: all of a layer, its attention alone, its feed-forward block alone, or nothing. Sentence order takes the
place of next sentences (`Sop` on `OrderPairs`), and n-grams of up to three words are masked together
(`NGrams(odds=(6, 3, 2))`: p(n) ∝ 1/n). It bends by the tanh form of GELU, its tokens are sentencepiece's, and it learns
with LAMB. Dropout is not used in xxlarge.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bertkit.errors import BertkitError, look_up
from bertkit.family import bert
from bertkit.family.contract import Family
from bertkit.family.dialect import Config, Dialect, Filed, classes, need, renamed
from bertkit.parts.attention import Attention
from bertkit.parts.embed import Embed
from bertkit.parts.encoder import Encoder, with_dropout
from bertkit.parts.feed import Feed
from bertkit.parts.heads import NextSentence, Pooler
from bertkit.parts.network import Network
from bertkit.parts.positions import Learned

VOCABULARY = 30_000
EMBEDDING = 128
SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
    "xlarge": (24, 2048, 16),
    "xxlarge": (12, 4096, 64),
}
"""layers, width and heads; the paper has those from base on"""

Order = tuple[tuple[int, int], ...]
SHARED: dict[str, Callable[[int], Order]] = {
    "all": lambda layers: ((0, 0),) * layers,
    "attention": lambda layers: tuple((0, layer) for layer in range(layers)),
    "feed": lambda layers: tuple((layer, 0) for layer in range(layers)),
    "nothing": lambda layers: tuple((layer, layer) for layer in range(layers)),
}
"""what layers share (the paper's Table 4) -> which blocks each of them runs"""


def encoder(size: str, vocabulary: int = VOCABULARY, share: str = "all") -> Encoder:
    """One of the sizes, whose layers share so much.

    >>> base = encoder("base")
    >>> len(base.order), len(base.attentions), base.embed.width
    (12, 1, 128)
    """
    layers, width, heads = look_up("size of ALBERT", size, SIZES)
    embed, feed = Embed(vocabulary, min(EMBEDDING, width // 2)), Feed(4 * width, "gelu_tanh")
    made = shared(layers, width, embed, Attention(heads, width // heads), feed, share)
    return with_dropout(made, 0.0) if size == "xxlarge" else made


def shared(
    layers: int, width: int, embed: Embed, attention: Attention, feed: Feed, share: str, **settings: Any
) -> Encoder:
    """Layers that are alike and share so much."""
    order = look_up("share", share, SHARED)(layers)
    attentions, feeds = (1 + max(step[kind] for step in order) for kind in (0, 1))
    return Encoder(width, embed, (attention,) * attentions, (feed,) * feeds, order, **settings)


# Hugging Face's config.json ─────────────────────────────────────────────────────────────────────────────────────────

SHARE = "shared_blocks"
"""a key of ours, where layers share what Hugging Face's ALBERT cannot say: attention or feed"""


def read_encoder(config: Config) -> Encoder:
    """The encoder that a config.json describes. Layers are dealt to its groups, each of which is one block."""
    bert.require_plain(config, "ALBERT")
    if config.get("inner_group_num", 1) != 1:
        raise BertkitError(f"inner_group_num is {config['inner_group_num']!r}: ALBERT is read with 1 only")
    plain = {"hidden_act": "gelu_new", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, **config}
    positions = Learned(config.get("max_position_embeddings", 512))
    read = bert.read_stack(plain, positions, config.get("embedding_size", EMBEDDING))
    if read.embed.width == read.width:
        raise BertkitError(
            f"embedding_size and hidden_size are both {read.width}: Google's ALBERT has no matrix between them then, "
            "Hugging Face's has one, and it is not read"
        )
    layers, groups = len(read.order), groups_of(config)
    if groups > layers:
        raise BertkitError(f"num_hidden_groups is {groups}, but there are only {layers} layers")
    if SHARE in config:
        parts = (read.embed, read.attentions[0], read.feeds[0])
        return shared(layers, read.width, *parts, str(config[SHARE]), spread=read.spread)
    order = dealt(layers, groups)
    return Encoder(read.width, read.embed, read.attentions[:groups], read.feeds[:groups], order, spread=read.spread)


def groups_of(config: Config) -> int:
    """How many blocks there are."""
    return need(config, "num_hidden_groups") if "num_hidden_groups" in config else 1


def dealt(layers: int, groups: int) -> Order:
    """Layers in a row share a group.

    >>> dealt(5, 2)
    ((0, 0), (0, 0), (0, 0), (1, 1), (1, 1))
    """
    return tuple((int(layer / (layers / groups)),) * 2 for layer in range(layers))  # rounded as Google's code rounds


def write(network: Network) -> dict[str, Any]:
    """config.json."""
    spec, config = network.encoder, dict[str, Any]()
    layers, groups = len(spec.order), max(len(spec.attentions), len(spec.feeds))
    share = [name for name in ("attention", "feed") if SHARED[name](layers) == spec.order and layers > 1]
    if share:
        config[SHARE] = share[0]
    order = network.heads.get("next_sentence")
    if isinstance(order, NextSentence):
        config[DIALECT.classifier_dropout] = order.dropout
    return bert.write_encoder(spec) | {
        "architectures": [DIALECT.architecture(network)],
        "model_type": "albert",
        "embedding_size": spec.embed.width,
        "max_position_embeddings": bert.learned(spec).rows,
        "num_hidden_groups": groups,
        "inner_group_num": 1,
        **config,
        **DIALECT.write_heads(network),
    }


# Hugging Face's weight names ────────────────────────────────────────────────────────────────────────────────────────

_LAYER = "albert.encoder.albert_layer_groups.{}.albert_layers.0"
_KINDS = ("weight", "bias")

DIALECT = Dialect(
    prefix="albert.",
    classes=classes("Albert", {"PreTraining": ("pooler", "mlm", "next_sentence"), "MaskedLM": ("mlm",)}),
    encoder={
        **{
            ours: theirs
            for ours, theirs in renamed(bert.ENCODER_NAMES, "bert.", "albert.").items()
            if ours.startswith("encoder.embed.")
        },
        **{
            f"encoder.attentions.{{}}.qkv.{kind}": tuple(
                f"{_LAYER}.attention.{part}.{kind}" for part in ("query", "key", "value")
            )
            for kind in _KINDS
        },
        **{
            f"encoder.{ours}.{kind}": f"{_LAYER}.{theirs}.{kind}"
            for ours, theirs in {
                "attentions.{}.out": "attention.dense",
                "attentions.{}.norm": "attention.LayerNorm",
                "feeds.{}.up": "ffn",
                "feeds.{}.down": "ffn_output",
                "feeds.{}.norm": "full_layer_layer_norm",
            }.items()
            for kind in _KINDS
        },
    },
    heads={
        **bert.DIALECT.heads,
        "pooler": Filed({"dense": "albert.pooler"}, lambda config: Pooler()),
        "mlm": Filed(
            {"transform": "predictions.dense", "norm": "predictions.LayerNorm", "bias": "predictions.bias"},
            lambda config: bert.read_mlm({"hidden_act": "gelu_new", **config}),
        ),
        "next_sentence": Filed(
            {"dense": "sop_classifier.classifier"},
            lambda config: NextSentence(config.get("classifier_dropout_prob", 0.1)),
        ),
    },
    tied={
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    classifier_dropout="classifier_dropout_prob",
)


def unopenable(network: Network) -> str:
    """Blocks that are shared alone have no place in Hugging Face's ALBERT."""
    attentions, feeds = len(network.encoder.attentions), len(network.encoder.feeds)
    if attentions == feeds:
        return ""
    return "its layers share one of their blocks, and transformers' ALBERT shares both or none"


FAMILY = Family(
    model_type="albert",
    sizes={
        **{size: partial(encoder, size) for size in SIZES},
        **{f"base-shared-{share}": partial(encoder, "base", share=share) for share in SHARED if share != "all"},
    },
    dialect=DIALECT,
    read_encoder=read_encoder,
    write=write,
    layers=groups_of,
    numbered=r"\.albert_layer_groups\.(\d{1,9})\.",
    unopenable=unopenable,
)
