"""BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding
(Devlin, Chang, Lee, Toutanova 2019), https://arxiv.org/abs/1810.04805

The family's first member, from which the others differ: token, learned position and segment embeddings are summed and
normalised; then layers of bidirectional self-attention and a feed-forward block of four times the width, each followed
by its residual and norm; heads 64 wide; GELU; dropout 0.1; weights drawn from a normal of 0.02 cut at two deviations.
Pre-training reads every masked token (a head tied to the token table) and the pooled first token (next sentence).

The sizes below base are Google's "Well-Read Students Learn Better" (https://arxiv.org/abs/1908.08962).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from bertkit.errors import BertkitError, look_up
from bertkit.family.contract import ALONE, Family
from bertkit.family.dialect import Config, Dialect, Filed, Rows, classes, need, require_tied
from bertkit.parts.attention import Attention
from bertkit.parts.embed import Embed
from bertkit.parts.encoder import Encoder
from bertkit.parts.feed import Feed
from bertkit.parts.heads import Head, Mlm, NextSentence, Pooler, Span
from bertkit.parts.network import Network
from bertkit.parts.positions import Learned, Positions

SIZES = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
"""layers and width"""

VOCABULARIES = {"uncased": 30_522, "cased": 28_996, "chinese": 21_128, "multilingual": 119_547}
"""tokens in the vocabularies that Google published"""


def encoder(size: str, vocabulary: int = VOCABULARIES["uncased"]) -> Encoder:
    """One of the published sizes.

    >>> base = encoder("base")
    >>> len(base.order), base.width, base.attentions[0].heads, base.feeds[0].inner
    (12, 768, 12, 3072)
    """
    layers, width = look_up("size of BERT", size, SIZES)
    return stack(layers, width, Embed(vocabulary, width), Attention(width // 64, 64), Feed(4 * width))


def stack(layers: int, width: int, embed: Embed, attention: Attention, feed: Feed, **settings: Any) -> Encoder:
    """An encoder whose layers are alike, each with weights of its own."""
    order = tuple((layer, layer) for layer in range(layers))
    return Encoder(width, embed, (attention,) * layers, (feed,) * layers, order, **settings)


# Hugging Face's config.json ─────────────────────────────────────────────────────────────────────────────────────────

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
"""Hugging Face's names for activations -> ours; the first that fits is the one we write"""


def read_encoder(config: Config) -> Encoder:
    """The encoder that a config.json describes."""
    require_plain(config, "BERT")
    return read_stack(config, Learned(config.get("max_position_embeddings", 512)), config.get("embedding_size"))


def require_plain(config: Config, name: str) -> None:
    """Refuse settings that change the arithmetic in a way that is not read."""
    for key, wanted in {"position_embedding_type": "absolute", "is_decoder": False}.items():
        if config.get(key, wanted) != wanted:
            raise BertkitError(f"{key} is {config[key]!r}: {name} is read with {wanted!r} only")


def read_stack(config: Config, positions: Positions, embedding: int | None = None, **settings: Any) -> Encoder:
    """Layers that are alike, on embeddings that know these positions and are so wide, or as wide as the layers."""
    width, heads = need(config, "hidden_size"), need(config, "num_attention_heads")
    if width % heads:
        raise BertkitError(f"hidden_size {width} cannot be shared among num_attention_heads {heads}")
    dropout, epsilon = config.get("hidden_dropout_prob", 0.1), config.get("layer_norm_eps", 1e-12)
    embed = Embed(
        vocabulary=need(config, "vocab_size"),
        width=width if embedding is None else embedding,
        positions=positions,
        segments=config.get("type_vocab_size", 2),
        dropout=dropout,
        epsilon=epsilon,
    )
    attention = Attention(heads, width // heads, dropout, config.get("attention_probs_dropout_prob", 0.1), epsilon)
    feed = Feed(need(config, "intermediate_size"), activation(config), dropout, epsilon)
    spread = config.get("initializer_range", 0.02)
    return stack(need(config, "num_hidden_layers"), width, embed, attention, feed, spread=spread, **settings)


def write(network: Network) -> dict[str, Any]:
    """config.json, taken from the first layer."""
    spec = network.encoder
    config = write_encoder(spec) | {
        "architectures": [DIALECT.architecture(network)],
        "model_type": "bert",
        "max_position_embeddings": learned(spec).rows,
        "position_embedding_type": "absolute",
    }
    if spec.embed.width != spec.width:
        config["embedding_size"] = spec.embed.width
    return config | DIALECT.write_heads(network)


def learned(spec: Encoder) -> Learned:
    """The table of positions, which there must be."""
    positions = spec.embed.positions
    if not isinstance(positions, Learned):
        raise BertkitError(f"this family learns its positions; here is {type(positions).__name__}")
    return positions


def write_encoder(spec: Encoder) -> dict[str, Any]:
    """What all families say of theirs in config.json, taken from the first layer."""
    attention, feed, embed = spec.attentions[0], spec.feeds[0], spec.embed
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    return {
        "vocab_size": embed.vocabulary,
        "hidden_size": spec.width,
        "num_hidden_layers": len(spec.order),
        "num_attention_heads": attention.heads,
        "intermediate_size": feed.inner,
        "hidden_act": names[feed.activation],
        "hidden_dropout_prob": embed.dropout,
        "attention_probs_dropout_prob": attention.look_dropout,
        "type_vocab_size": embed.segments,
        "initializer_range": spec.spread,
        "layer_norm_eps": embed.epsilon,
        "tie_word_embeddings": True,
    }


def activation(config: Config) -> str:
    """Our name for the config's activation."""
    return look_up("hidden_act", config.get("hidden_act", "gelu"), ACTIVATIONS)


def read_mlm(config: Config) -> Head:
    """A masked language model that bends as the encoder does."""
    require_tied(config, ALONE)
    return Mlm(activation(config), config.get("layer_norm_eps", 1e-12))


# Hugging Face's weight names ────────────────────────────────────────────────────────────────────────────────────────

ENCODER_NAMES: Rows = {
    "encoder.embed.tokens.weight": "bert.embeddings.word_embeddings.weight",
    "encoder.embed.positions.weight": "bert.embeddings.position_embeddings.weight",
    "encoder.embed.segments.weight": "bert.embeddings.token_type_embeddings.weight",
    "encoder.embed.norm.weight": "bert.embeddings.LayerNorm.weight",
    "encoder.embed.norm.bias": "bert.embeddings.LayerNorm.bias",
    "encoder.embed.widen.weight": "bert.encoder.embedding_hidden_mapping_in.weight",
    "encoder.embed.widen.bias": "bert.encoder.embedding_hidden_mapping_in.bias",
    **{
        f"encoder.attentions.{{}}.qkv.{kind}": tuple(
            f"bert.encoder.layer.{{}}.attention.self.{part}.{kind}" for part in ("query", "key", "value")
        )
        for kind in ("weight", "bias")
    },
    **{
        f"encoder.{ours}.{kind}": f"bert.encoder.layer.{{}}.{theirs}.{kind}"
        for ours, theirs in {
            "attentions.{}.out": "attention.output.dense",
            "attentions.{}.norm": "attention.output.LayerNorm",
            "feeds.{}.up": "intermediate.dense",
            "feeds.{}.down": "output.dense",
            "feeds.{}.norm": "output.LayerNorm",
        }.items()
        for kind in ("weight", "bias")
    },
}

MLM_NAMES = {
    "transform": "cls.predictions.transform.dense",
    "norm": "cls.predictions.transform.LayerNorm",
    "bias": "cls.predictions.bias",
}

DIALECT = Dialect(
    prefix="bert.",
    classes=classes(
        "Bert",
        {
            "PreTraining": ("pooler", "mlm", "next_sentence"),
            "NextSentencePrediction": ("pooler", "next_sentence"),
            "MaskedLM": ("mlm",),
        },
    ),
    encoder=ENCODER_NAMES,
    heads={
        "pooler": Filed({"dense": "bert.pooler.dense"}, lambda config: Pooler()),
        "mlm": Filed(MLM_NAMES, read_mlm),
        "next_sentence": Filed({"dense": "cls.seq_relationship"}, lambda config: NextSentence()),
        "span": Filed({"dense": "qa_outputs"}, lambda config: Span()),
    },
    tied={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
)


def unopenable(network: Network) -> str:
    """Factorised embeddings have no place in Hugging Face's BERT."""
    width, embed = network.encoder.width, network.encoder.embed
    if embed.width == width:
        return ""
    return f"its embeddings are {embed.width} wide in a network of {width}, and transformers' BERT cannot have that"


FAMILY = Family(
    model_type="bert",
    sizes={size: partial(encoder, size) for size in SIZES},
    dialect=DIALECT,
    read_encoder=read_encoder,
    write=write,
    unopenable=unopenable,
)
