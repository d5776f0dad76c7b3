"""ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators
(Clark, Luong, Le, Manning 2020), https://arxiv.org/abs/2003.10555

BERT's network learns to tell tokens that a smaller network replaced (`ReplacedTokens`, objectives/replaced.py), and is
what is kept: fine-tuning takes the discriminator. Small has tables 128 wide and a matrix that widens them. There is no
pooler: a classifier has a matrix of its own on the first token, which bends by GELU.

| size | layers | width | generator | masked |
|---|---|---|---|---|
| small | 12 | 256 | 1/4 | 15 % |
| base | 12 | 768 | 1/3 | 15 % |
| large | 24 | 1024 | 1/4 | 25 % |
"""

from __future__ import annotations

from functools import partial
from typing import Any

from bertkit.errors import look_up
from bertkit.family import bert
from bertkit.family.contract import ALONE, Family
from bertkit.family.dialect import Config, Dialect, Filed, classes, renamed, require_tied
from bertkit.parts.attention import Attention
from bertkit.parts.embed import Embed
from bertkit.parts.encoder import Encoder
from bertkit.parts.feed import Feed
from bertkit.parts.heads import Detect, Head, Mlm, Pooler
from bertkit.parts.network import Network
from bertkit.parts.positions import Learned

VOCABULARY = bert.VOCABULARIES["uncased"]
EMBEDDING = 128
SIZES = {
    "tiny": (2, 128, 64),
    "mini": (4, 256, EMBEDDING),
    "small": (12, 256, EMBEDDING),
    "base": (12, 768, 768),
    "large": (24, 1024, 1024),
}
"""layers, width, and the tables' width; the paper has those from small on"""


def encoder(size: str, vocabulary: int = VOCABULARY) -> Encoder:
    """One of the sizes.

    >>> small = encoder("small")
    >>> len(small.order), small.width, small.embed.width
    (12, 256, 128)
    """
    layers, width, narrow = look_up("size of ELECTRA", size, SIZES)
    return bert.stack(layers, width, Embed(vocabulary, narrow), Attention(width // 64, 64), Feed(4 * width))


def read_encoder(config: Config) -> Encoder:
    """The encoder that a config.json describes."""
    bert.require_plain(config, "ELECTRA")
    positions = Learned(config.get("max_position_embeddings", 512))
    return bert.read_stack(config, positions, config.get("embedding_size", EMBEDDING))


def read_mlm(config: Config) -> Head:
    """A generator's bends by GELU, whatever its encoder does."""
    require_tied(config, ALONE)
    return Mlm("gelu", config.get("layer_norm_eps", 1e-12))


def read_pooler(config: Config) -> Head:
    """The matrix on the first token: a classifier's drops before it, that of multiple choice does not."""
    return Pooler("gelu", bert.DIALECT.pooler_dropout(config))


def write(network: Network) -> dict[str, Any]:
    """config.json."""
    spec = network.encoder
    return bert.write_encoder(spec) | {
        "architectures": [DIALECT.architecture(network)],
        "model_type": "electra",
        "embedding_size": spec.embed.width,
        "max_position_embeddings": bert.learned(spec).rows,
        **DIALECT.write_heads(network),
    }


def _names() -> dict[str, str | tuple[str, ...]]:
    rows = renamed(bert.ENCODER_NAMES, "bert.", "electra.")
    return rows | {f"encoder.embed.widen.{kind}": f"electra.embeddings_project.{kind}" for kind in ("weight", "bias")}


DIALECT = Dialect(
    prefix="electra.",
    classes=classes("Electra", {"PreTraining": ("replaced",), "MaskedLM": ("mlm",)}),
    encoder=_names(),
    heads={
        **bert.DIALECT.heads,
        "pooler": Filed({"dense": "electra.pooler.dense"}, read_pooler),
        "mlm": Filed(
            {
                "transform": "generator_predictions.dense",
                "norm": "generator_predictions.LayerNorm",
                "bias": "generator_lm_head.bias",
            },
            read_mlm,
        ),
        "replaced": Filed(
            {"dense": "discriminator_predictions.dense", "out": "discriminator_predictions.dense_prediction"},
            lambda config: Detect(bert.activation(config)),
        ),
    },
    tied={"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"},
    respelled={
        "ElectraForSequenceClassification": {
            "electra.pooler.dense": "classifier.dense",
            "classifier": "classifier.out_proj",
        },
        "ElectraForMultipleChoice": {"electra.pooler.dense": "sequence_summary.summary"},
    },
)

FAMILY = Family(
    model_type="electra",
    sizes={size: partial(encoder, size) for size in SIZES},
    dialect=DIALECT,
    read_encoder=read_encoder,
    write=write,
)
