"""A few layers of an encoder's shape, which stand for all of them while engines are measured.

Layers that are alike take as long as each other, whatever their weights are. So a few of them, newly drawn, tell how
long all take, and engines are built of them in a part of the time and of the memory.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import torch

from bertkit.parts.encoder import Encoder
from bertkit.parts.network import Network, NetworkModule

ENOUGH = 64 * 2**20
"""bytes of matrices: more than a processor mostly keeps near, so that they wait for memory as all of them would"""
ROWS = 1024
"""of the table of tokens, whose size costs no time"""


def excerpt(encoder: Encoder) -> NetworkModule:
    """A network of its own of so few layers; nothing else that draws at random notices."""
    embed = replace(encoder.embed, vocabulary=min(encoder.embed.vocabulary, ROWS))
    with torch.random.fork_rng(devices=[]):
        return Network(replace(shortened(encoder), embed=embed)).build().eval()


def shortened(encoder: Encoder) -> Encoder:
    """The first steps that have enough matrices; all where blocks differ, for then some do not stand for others."""
    if len({*encoder.attentions}) > 1 or len({*encoder.feeds}) > 1:
        return encoder
    order = encoder.order[: ceil(ENOUGH / _bytes(encoder))]
    attentions, feeds = (sorted(set(blocks)) for blocks in zip(*order, strict=True))
    return replace(
        encoder,
        attentions=encoder.attentions[: len(attentions)],
        feeds=encoder.feeds[: len(feeds)],
        order=tuple((attentions.index(attention), feeds.index(feed)) for attention, feed in order),
    )


def _bytes(encoder: Encoder) -> int:
    """Of the matrices of one step, in fp32."""
    attention, feed = encoder.attentions[0], encoder.feeds[0]
    return 4 * encoder.width * (4 * attention.heads * attention.head + 2 * feed.inner)
