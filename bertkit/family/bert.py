"""BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding
(Devlin, Chang, Lee, Toutanova 2019), https://arxiv.org/abs/1810.04805

The family's first member, from which the others differ: token, learned position and segment embeddings are summed and
normalised; then layers of bidirectional self-attention and a feed-forward block of four times the width, each followed
by its residual and norm; heads 64 wide; GELU; dropout 0.1; weights drawn from a normal of 0.02 cut at two deviations.
Pre-training reads every masked token (a head tied to the token table) and the pooled first token (next sentence).

The sizes below base are Google's "Well-Read Students Learn Better" (https://arxiv.org/abs/1908.08962).
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from bertkit.errors import BertkitError, look_up
from bertkit.family.contract import ALONE, Config, Family
from bertkit.names import Names
from bertkit.parts.attention import Attention
from bertkit.parts.embed import Embed
from bertkit.parts.encoder import Encoder
from bertkit.parts.feed import Feed
from bertkit.parts.heads import (
    Choice,
    Classify,
    Head,
    Labelled,
    Mlm,
    MultiLabel,
    NextSentence,
    Pooler,
    Regress,
    Span,
    Tag,
)
from bertkit.parts.network import Network

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

ARCHITECTURES: dict[str, tuple[str, ...]] = {
    "BertForSequenceClassification": ("pooler", "classify"),
    "BertForMultipleChoice": ("pooler", "choice"),
    "BertForTokenClassification": ("tag",),
    "BertForQuestionAnswering": ("span",),
    "BertForPreTraining": ("pooler", "mlm", "next_sentence"),
    "BertForNextSentencePrediction": ("pooler", "next_sentence"),
    "BertForMaskedLM": ("mlm",),
    "BertModel": ("pooler",),
}
"""Hugging Face's classes and the heads each has; a network is written as the first whose heads it has"""

PROBLEMS: dict[str, type[Classify] | type[MultiLabel] | type[Regress]] = {
    "single_label_classification": Classify,
    "multi_label_classification": MultiLabel,
    "regression": Regress,
}
"""`problem_type` of a sequence classifier; where it is silent, one label means regression"""


def read_encoder(config: Config) -> Encoder:
    """The encoder that a config.json describes."""
    for key, wanted in {
        "position_embedding_type": "absolute",
        "is_decoder": False,
    }.items():
        if config.get(key, wanted) != wanted:
            raise BertkitError(f"{key} is {config[key]!r}: BERT is read with {wanted!r} only")
    width, heads = need(config, "hidden_size"), need(config, "num_attention_heads")
    if width % heads:
        raise BertkitError(f"hidden_size {width} cannot be shared among num_attention_heads {heads}")
    dropout, epsilon = config.get("hidden_dropout_prob", 0.1), config.get("layer_norm_eps", 1e-12)
    embed = Embed(
        vocabulary=need(config, "vocab_size"),
        width=config.get("embedding_size", width),
        positions=config.get("max_position_embeddings", 512),
        segments=config.get("type_vocab_size", 2),
        dropout=dropout,
        epsilon=epsilon,
    )
    attention = Attention(heads, width // heads, dropout, config.get("attention_probs_dropout_prob", 0.1), epsilon)
    feed = Feed(need(config, "intermediate_size"), activation(config), dropout, epsilon)
    layers = need(config, "num_hidden_layers")
    return stack(layers, width, embed, attention, feed, spread=config.get("initializer_range", 0.02))


def read_heads(config: Config, names: frozenset[str]) -> dict[str, Head]:
    """The heads whose names a file holds. `classifier` serves three of them: the config says which it is."""
    heads: dict[str, Head] = {}
    if "bert.pooler.dense.weight" in names:
        heads["pooler"] = Pooler()
    if "cls.predictions.transform.dense.weight" in names:
        if config.get("tie_word_embeddings", True) is not True:
            raise BertkitError(
                f"tie_word_embeddings is {config['tie_word_embeddings']!r}: a masked language model's output is read "
                f"as the token table only. {ALONE}"
            )
        heads["mlm"] = Mlm(activation(config), config.get("layer_norm_eps", 1e-12))
    if "cls.seq_relationship.weight" in names:
        heads["next_sentence"] = NextSentence()
    if "qa_outputs.weight" in names:
        heads["span"] = Span()
    if "classifier.weight" in names:
        heads.update(_read_classifier(config))
    return heads


def _read_classifier(config: Config) -> dict[str, Head]:
    said = config.get("architectures")
    architecture = said[0] if isinstance(said, list) and said else None
    dropout = config.get("classifier_dropout")
    dropout = config.get("hidden_dropout_prob", 0.1) if dropout is None else dropout
    if architecture == "BertForMultipleChoice":
        return {"choice": Choice(dropout)}
    labels = read_labels(config)
    if architecture == "BertForTokenClassification":
        return {"tag": Tag(labels, dropout)}
    if architecture != "BertForSequenceClassification":
        return {}  # somebody's own head that happens to be called so: left, and said
    problem = config.get("problem_type")
    silent = Regress if len(labels) == 1 else Classify
    kind = silent if problem is None else look_up("problem_type", problem, PROBLEMS)
    return {"regress" if kind is Regress else "classify": kind(labels, dropout)}


def read_labels(config: Config) -> tuple[str, ...]:
    """The label names in the order of their ids."""
    table = config.get("id2label")
    if table is None:
        return tuple(f"LABEL_{index}" for index in range(need(config, "num_labels") if "num_labels" in config else 2))
    if not isinstance(table, dict) or {str(key) for key in table} != {str(index) for index in range(len(table))}:
        raise BertkitError("id2label must name every id from 0 on, each once")
    return tuple(str(table[key]) for key in sorted(table, key=int))


def write(network: Network) -> dict[str, Any]:
    """config.json for a network whose layers are alike."""
    spec = network.encoder
    attention, feed, embed = spec.attentions[0], spec.feeds[0], spec.embed
    if stack(len(spec.order), spec.width, embed, attention, feed, spread=spec.spread) != spec:
        raise BertkitError("Hugging Face's BERT has equal layers, each its own; this encoder cannot be written as one")
    if attention.heads * attention.head != spec.width or {feed.epsilon, attention.epsilon} != {embed.epsilon}:
        raise BertkitError("Hugging Face's BERT has heads that share its width and one layer_norm_eps everywhere")
    if not attention.dropout == feed.dropout == embed.dropout:
        raise BertkitError("Hugging Face's BERT has one hidden_dropout_prob; this encoder has several")
    if any(head != Mlm(feed.activation, embed.epsilon) for head in network.heads.values() if isinstance(head, Mlm)):
        raise BertkitError("Hugging Face's BERT has one hidden_act and layer_norm_eps for encoder and Mlm head")
    rivals = [name for name in network.heads if look_up("head", name, HEAD_NAMES).get("dense") == "classifier"]
    if len(rivals) > 1:
        raise BertkitError(f"Hugging Face's files have one place for {' and '.join(rivals)}: keep one of them")
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    config: dict[str, Any] = {
        "architectures": [architecture(network)],
        "model_type": "bert",
        "vocab_size": embed.vocabulary,
        "hidden_size": spec.width,
        "num_hidden_layers": len(spec.order),
        "num_attention_heads": attention.heads,
        "intermediate_size": feed.inner,
        "hidden_act": names[feed.activation],
        "hidden_dropout_prob": embed.dropout,
        "attention_probs_dropout_prob": attention.look_dropout,
        "max_position_embeddings": embed.positions,
        "type_vocab_size": embed.segments,
        "initializer_range": spec.spread,
        "layer_norm_eps": embed.epsilon,
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
    }
    if embed.width != spec.width:
        config["embedding_size"] = embed.width
    for head in network.heads.values():
        config.update(_write_head(head))
    return config


def _write_head(head: Head) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if isinstance(head, (Classify, MultiLabel, Regress)):
        config["problem_type"] = next(name for name, kind in PROBLEMS.items() if kind is type(head))
    if isinstance(head, Labelled):
        config["id2label"] = {str(index): label for index, label in enumerate(head.labels)}
        config["label2id"] = {label: index for index, label in enumerate(head.labels)}
    if isinstance(head, (Labelled, Choice)):
        config["classifier_dropout"] = head.dropout
    return config


def architecture(network: Network) -> str:
    """The class of Hugging Face's that has this network's heads."""
    there = {"classify" if name == "regress" else name for name in network.heads}
    return next((name for name, heads in ARCHITECTURES.items() if there.issuperset(heads)), "BertModel")


def activation(config: Config) -> str:
    """Our name for the config's activation."""
    return look_up("hidden_act", config.get("hidden_act", "gelu"), ACTIVATIONS)


def need(config: Config, key: str) -> int:
    """A size that a config must state."""
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**24:
        given = f"is {value!r}" if key in config else "is missing"
        raise BertkitError(f"{key} {given}: it must be a whole number from 1 to {2**24 - 1}")
    return value


# Hugging Face's weight names ────────────────────────────────────────────────────────────────────────────────────────

ENCODER_NAMES: dict[str, str | tuple[str, ...]] = {
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

HEAD_NAMES: dict[str, dict[str, str]] = {
    "pooler": {"dense": "bert.pooler.dense"},
    "mlm": {"transform": "cls.predictions.transform.dense", "norm": "cls.predictions.transform.LayerNorm"},
    "next_sentence": {"dense": "cls.seq_relationship"},
    "span": {"dense": "qa_outputs"},
    **{name: {"dense": "classifier"} for name in ("classify", "regress", "choice", "tag")},
}
"""each a matrix and its bias; the masked language model has one more bias, on the vocabulary"""


def names(network: Network) -> Names:
    """The table for an encoder and the heads a network has."""
    rows = dict(ENCODER_NAMES)
    for head in network.heads:
        for ours, theirs in HEAD_NAMES[head].items():
            rows |= {f"heads.{head}.{ours}.{kind}": f"{theirs}.{kind}" for kind in ("weight", "bias")}
        if head == "mlm":
            rows["heads.mlm.bias"] = "cls.predictions.bias"
    return Names(rows)


_BARE = re.compile(r"(embeddings|encoder|pooler)\.")
_IGNORED = frozenset({"bert.embeddings.position_ids", "bert.embeddings.token_type_ids"})
"""counters that old versions saved"""

TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
"""names that some files give to a tensor once more"""


def canonical(name: str) -> str:
    """One spelling: no `module.`, always `bert.`, no `gamma` and `beta`; empty for what carries nothing.

    >>> canonical("module.encoder.layer.0.output.LayerNorm.gamma")
    'bert.encoder.layer.0.output.LayerNorm.weight'
    """
    name = name.removeprefix("module.")
    name = f"bert.{name}" if _BARE.match(name) else name
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    return "" if name in _IGNORED else name


def spell(network: Network, name: str) -> str:
    """An encoder alone is written without its prefix, as Hugging Face's BertModel writes itself."""
    return name.removeprefix("bert.") if architecture(network) == "BertModel" else name


def unopenable(network: Network) -> str:
    """Factorised embeddings have no place in Hugging Face's BERT."""
    width, embed = network.encoder.width, network.encoder.embed
    if embed.width == width:
        return ""
    return f"its embeddings are {embed.width} wide in a network of {width}, and transformers' BERT cannot have that"


FAMILY = Family(
    model_type="bert",
    sizes={size: partial(encoder, size) for size in SIZES},
    read_encoder=read_encoder,
    read_heads=read_heads,
    write=write,
    names=names,
    canonical=canonical,
    tied=TIED,
    spell=spell,
    ours=lambda name: name.startswith("bert."),
    layers=lambda config: need(config, "num_hidden_layers"),
    unopenable=unopenable,
)
