"""Small networks of every kind, whose weights are drawn wide, so that a part left out shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from bertkit.batch import Example, Packed, collate
from bertkit.family import albert, bert, electra, nezha, roberta, xlm_roberta
from bertkit.parts.attention import Attention
from bertkit.parts.embed import Embed
from bertkit.parts.encoder import Encoder
from bertkit.parts.feed import Feed
from bertkit.parts.heads import Head
from bertkit.parts.network import Network, NetworkModule
from bertkit.parts.positions import Learned
from bertkit.runtime.engines.engine import Engine

VOCABULARY, SPREAD = 50, 0.15

ENCODERS: dict[str, Encoder] = {
    "bert": bert.encoder("tiny", VOCABULARY),
    "roberta": roberta.encoder("tiny", VOCABULARY),
    "xlm-roberta": xlm_roberta.FAMILY.sizes["tiny"](VOCABULARY),
    "electra": electra.encoder("tiny", VOCABULARY),
    "nezha": nezha.encoder("tiny", VOCABULARY),
    **{f"albert, {share} shared": albert.encoder("tiny", VOCABULARY, share) for share in albert.SHARED},
    "blocks of all kinds": Encoder(
        32,
        Embed(VOCABULARY, 32, Learned(130, first=2), segments=3, epsilon=1e-3),
        (Attention(3, 8), Attention(2, 16, epsilon=1e-5)),
        (Feed(40, "relu"), Feed(24, "gelu_tanh"), Feed(48)),
        ((0, 1), (1, 0), (0, 2), (1, 1)),
    ),
}
SMALL = bert.stack(1, 32, Embed(VOCABULARY, 32), Attention(2, 16), Feed(64))
SMALL_RELATIVE = replace(
    SMALL,
    embed=replace(SMALL.embed, positions=nezha.encoder("tiny").embed.positions),
    place=nezha.FunctionalRelative(16),
)


def network(encoder: Encoder, heads: Mapping[str, Head] | None = None) -> NetworkModule:
    """A network in which nothing is 0 or 1."""
    made = Network(encoder, heads or {}).build().eval()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for part in made.modules():
            for value in part.parameters(recurse=False):
                value.data.normal_(float(isinstance(part, nn.LayerNorm) and value is part.weight), SPREAD)
    return made


def examples(*lengths: int, segments: int = 1) -> list[Example]:
    """Sequences of these lengths."""
    random = np.random.default_rng(sum(lengths))
    return [
        Example({"ids": random.integers(0, VOCABULARY, size), "segments": random.integers(0, segments, size)})
        for size in lengths
    ]


@torch.inference_mode()
def computed(engine: Engine, rows: list[Example]) -> Tensor:
    """What an engine makes of them, [B, L, W], 0 under padding."""
    batch = collate(rows, engine.layout)
    return batch.restore(batch.layout.to_padded(engine.hidden(batch)))


@torch.inference_mode()
def expected(net: NetworkModule, rows: list[Example]) -> Tensor:
    """What torch makes of them, [B, L, W], 0 under padding."""
    batch = collate(rows, Packed)
    return batch.restore(batch.layout.to_padded(net(batch)))
