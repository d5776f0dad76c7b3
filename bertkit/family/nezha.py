"""NEZHA: Neural Contextualized Representation for Chinese Language Understanding
(Wei, Ren, Li, Huang, Liao, Wang, Lin, Jiang, Chen, Liu 2019), https://arxiv.org/abs/1909.00204

BERT without a table of positions. Attention knows how far a key is from its query instead: a fixed vector of sines and
cosines for the distance is added to the key when they are compared, and to the value when values are mixed. Distances
beyond 64 count as 64, so that a text may be longer than any it was trained on. Whole words are masked (`WholeWords`),
and it learns with LAMB.

The vector of a distance d has sin(d / 10000^(2k/H)) and cos(d / 10000^(2k/H)) in turn. The code that was released, and
so every published weight, counts distances from the smallest one, -64: d + 64 stands in the place of d (`origin`).

Letters: B rows of the block · N heads · Q, K its length as queries and as keys · H head width · L longest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertkit.batch import Batch, Block
from bertkit.errors import BertkitError
from bertkit.family import bert
from bertkit.family.contract import Family
from bertkit.family.dialect import Config, Dialect, Filed, classes, need, renamed
from bertkit.parts.encoder import Encoder
from bertkit.parts.heads import Pooler
from bertkit.parts.network import Network
from bertkit.parts.place import Place, Placing
from bertkit.parts.positions import Unnumbered
from bertkit.spec import Bounds, Count

VOCABULARY = 21_128
CLIP = 64
POSITIONS = 512
"""what config.json says of the longest text; nothing depends on it"""


@dataclass(frozen=True)
class FunctionalRelative(Placing):
    """Sines and cosines of clipped distances, in keys and in values."""

    head: Count
    """width of a head"""
    clip: Count = CLIP
    """the largest distance"""
    origin: Annotated[int, Bounds(0, 2**24)] = CLIP
    """added to every distance; 0 is the paper's formula as it is printed"""

    def build(self) -> Place:
        return RelativePlace(self)


class RelativePlace(Place):
    """The vectors of all distances in a batch, made once for it."""

    scores = mixes = True

    def __init__(self, spec: FunctionalRelative, table: Tensor | None = None) -> None:
        super().__init__()
        self.spec = spec
        self._table = table

    def prepare(self, batch: Batch) -> Place:
        longest = batch.layout.longest
        distances = torch.arange(-longest, longest + 1, device=batch.tokens["ids"].device)  # [2L + 1]
        return RelativePlace(self.spec, vectors(distances, self.spec))

    def score(self, q: Tensor, k: Tensor, block: Block) -> Tensor:
        return turned_in(q @ self._of(block, q).T)  # [B, N, Q, 2Q + 1] -> [B, N, Q, K]

    def mix(self, probabilities: Tensor, block: Block) -> Tensor:
        return turned_out(probabilities) @ self._of(block, probabilities)  # [B, N, Q, 2Q + 1] -> [B, N, Q, H]

    def _of(self, block: Block, like: Tensor) -> Tensor:
        """The distances from -Q to Q, [2Q + 1, H]."""
        assert self._table is not None, "prepare makes the table"
        longest = self._table.shape[0] // 2  # len would be a number that torch.export keeps for good
        return self._table[longest - block.length : longest + block.length + 1].to(like.dtype)


def vectors(distances: Tensor, spec: FunctionalRelative) -> Tensor:
    """[D] -> [D, H].

    >>> vectors(torch.tensor([0, 70]), FunctionalRelative(head=2, clip=1, origin=0))
    tensor([[0.0000, 1.0000],
            [0.8415, 0.5403]])
    """
    angle = distances.clamp(-spec.clip, spec.clip) + spec.origin  # [D]
    rates = torch.exp(torch.arange(0, spec.head, 2, device=distances.device) * (-math.log(10_000) / spec.head))
    turns = angle[:, None] * rates  # [D, H / 2]
    return torch.stack([turns.sin(), turns.cos()], -1).flatten(1)[:, : spec.head]


def turned_in(x: Tensor) -> Tensor:
    """What is told by distance, told by key: [..., Q, 2Q + 1] -> [..., Q, Q]; a view.

    In a row of all values the key of a query stands one place nearer to the beginning with each query.

    >>> turned_in(torch.arange(-2, 3).expand(2, 5))
    tensor([[ 0,  1],
            [-1,  0]])
    """
    size = x.shape[-2]
    rows = x.flatten(-2)[..., size : size + 2 * size * size]
    return rows.view(*x.shape[:-1], 2 * size)[..., :size]


def turned_out(x: Tensor) -> Tensor:
    """The other way round, 0 for distances that no key has: [..., Q, Q] -> [..., Q, 2Q + 1].

    >>> turned_out(torch.tensor([[1, 2], [3, 4]]))
    tensor([[0, 0, 1, 2, 0],
            [0, 3, 4, 0, 0]])
    """
    size = x.shape[-1]
    rows = F.pad(x, (0, size)).flatten(-2)  # [..., Q · 2Q]
    return F.pad(rows, (size, 0)).view(*x.shape[:-1], 2 * size + 1)


def encoder(size: str, vocabulary: int = VOCABULARY) -> Encoder:
    """BERT's sizes; base and large were published.

    >>> encoder("base").longest is None
    True
    """
    made = bert.encoder(size, vocabulary)
    return replace(
        made,
        embed=replace(made.embed, positions=Unnumbered()),
        place=FunctionalRelative(made.attentions[0].head),
    )


def read_encoder(config: Config) -> Encoder:
    """The encoder that a config.json describes."""
    if config.get("use_relative_position", True) is not True:
        raise BertkitError("use_relative_position is not true: NEZHA is read with relative positions only")
    read = bert.read_stack(config, Unnumbered())
    clip = need(config, "max_relative_position") if "max_relative_position" in config else CLIP
    return replace(read, place=FunctionalRelative(read.attentions[0].head, clip, clip))


def write(network: Network) -> dict[str, Any]:
    """config.json."""
    spec, place = network.encoder, network.encoder.place
    clip = place.clip if isinstance(place, FunctionalRelative) else CLIP
    return bert.write_encoder(spec) | {
        "architectures": [DIALECT.architecture(network)],
        "model_type": "nezha",
        "max_relative_position": clip,
        "max_position_embeddings": POSITIONS,
        "use_relative_position": True,
        **DIALECT.write_heads(network),
    }


DIALECT = Dialect(
    prefix="nezha.",
    idle=bert.DIALECT.idle + r"|encoder\.layer\.\d+\.attention\.self\.relative_positions_encoding\.positions_encoding",
    classes=classes(
        "Nezha",
        {
            "PreTraining": ("pooler", "mlm", "next_sentence"),
            "NextSentencePrediction": ("pooler", "next_sentence"),
            "MaskedLM": ("mlm",),
        },
    ),
    encoder={
        ours: theirs
        for ours, theirs in renamed(bert.ENCODER_NAMES, "bert.", "nezha.").items()
        if ours != "encoder.embed.positions.weight"
    },
    heads={**bert.DIALECT.heads, "pooler": Filed({"dense": "nezha.pooler.dense"}, lambda config: Pooler())},
    tied={
        "cls.predictions.decoder.weight": "nezha.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
)

FAMILY = Family(
    model_type="nezha",
    sizes={size: partial(encoder, size) for size in bert.SIZES},
    dialect=DIALECT,
    read_encoder=read_encoder,
    write=write,
)
