"""The first layers of an encoder's shape, which stand for all of them while engines are measured.

How long a layer takes depends on its shape, not on its weights, and layers of an encoder mostly are alike. So a few of
them, newly drawn, tell how long all take, and engines are built of them in a part of the time and of the memory.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import torch

from bertkit.parts.encoder import Encoder
from bertkit.parts.network import Network, NetworkModule

ENOUGH = 12 * 2**20
"""values of matrices: more than a cache holds, so that a query waits for memory as it does with all layers"""
ROWS = 1024
"""of the table of tokens, whose size costs no time"""


def excerpt(encoder: Encoder) -> NetworkModule:
    """A network of its own of so few layers; nothing else that draws at random notices."""
    embed = replace(encoder.embed, vocabulary=min(encoder.embed.vocabulary, ROWS))
    with torch.random.fork_rng(devices=[]):
        return Network(replace(shortened(encoder), embed=embed)).build().eval()


def shortened(encoder: Encoder) -> Encoder:
    """The first steps that have enough values, or all."""
    before = [0, *accumulate(sizes(encoder))]
    order = [step for step, held in zip(encoder.order, before, strict=False) if held < ENOUGH]
    attentions, feeds = (sorted(set(blocks)) for blocks in zip(*order, strict=True))
    return replace(
        encoder,
        attentions=tuple(encoder.attentions[place] for place in attentions),
        feeds=tuple(encoder.feeds[place] for place in feeds),
        order=tuple((attentions.index(attention), feeds.index(feed)) for attention, feed in order),
    )


def sizes(encoder: Encoder) -> list[int]:
    """How many values the matrices of each step have; each of them is multiplied once for each token."""
    blocks = ((encoder.attentions[attention], encoder.feeds[feed]) for attention, feed in encoder.order)
    return [encoder.width * (4 * attention.heads * attention.head + 2 * feed.inner) for attention, feed in blocks]
