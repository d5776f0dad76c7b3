"""Repeats: how much of a corpus was said before. Thousands of equal lines keep a model from learning anything else."""

from __future__ import annotations

import numpy as np

from bertkit.corpus.chance import Array, key, number
from bertkit.corpus.corpus import Corpus

SHORTEST = 8
"""tokens of a sentence that counts; shorter ones are often said again by chance"""
LOOKED_AT = 64
"""shards at most, spread over the corpus: about two hundred megabytes of text"""


def repeated(corpus: Corpus) -> float:
    """The share of sentences that are a copy of an earlier one."""
    places = np.unique(np.linspace(0, len(corpus) - 1, min(LOOKED_AT, len(corpus))).astype(int))
    hashes = np.concatenate([_hashes(corpus, place) for place in places.tolist()])
    return 1 - len(np.unique(hashes)) / len(hashes) if len(hashes) else 0.0


def _hashes(corpus: Corpus, place: int) -> Array:
    """One number for each sentence of a shard: the sum of its tokens' random numbers, each for its token and place."""
    shard = corpus.shard(place)
    bounds = shard.sentences.astype(np.int64)
    lengths = np.diff(bounds)
    within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], lengths)
    values = number(key(0), shard.ids[: bounds[-1]].astype(np.int64) + (within << 32))
    sums = np.add.reduceat(values, bounds[:-1][lengths > 0])
    return sums[lengths[lengths > 0] >= SHORTEST]
