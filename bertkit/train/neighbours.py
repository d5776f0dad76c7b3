"""Neighbours: token vectors that begin near those of tokens with the same company in the corpus.

A network that knows nothing spends its first hours to find out which tokens are alike. Counting says it in seconds: how
much more often than by chance two tokens stand near each other, its logarithm where that is positive (PPMI, with
contexts smoothed), and the best factors of that matrix (Levy, Goldberg and Dagan, 2015). Learning begins with them in
the table of tokens; everything else is drawn at random as ever.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bertkit.corpus.chance import Array
from bertkit.corpus.corpus import Corpus

SMOOTHING = 0.75
"""power of a context's frequency: rare contexts say less than they seem to"""
LENGTH = 0.5
"""power of a factor's length that is left: frequent tokens have long ones, and would drown positions and the rest"""
TOKENS = 2**24
"""that are counted, at most, from shards spread over the corpus"""
SPARE, ROUNDS = 20, 4
"""columns more than asked for, and rounds, with which the factors are found"""


def begin_near_neighbours(table: Tensor, corpus: Corpus, window: int, spread: float, seed: int) -> None:
    """Give the tokens of a table [V, W] vectors of this deviation; those without neighbours keep theirs."""
    found = vectors(corpus, table.shape[1], window, seed)  # [V, ≤ W]
    seen = found.abs().sum(1) > 0  # [V]
    with torch.no_grad():
        table[seen, : found.shape[1]] = (found[seen] * (spread / found[seen].std())).to(table)


def vectors(corpus: Corpus, width: int, window: int, seed: int = 0) -> Tensor:
    """Of every token in the vocabulary: [V, W], fewer columns where the vocabulary is smaller; 0 for one never seen."""
    tokens = len(corpus.tokenizer)
    matrix = ppmi(*_pairs(corpus, window), tokens)  # [V, V]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        left, values, _ = torch.svd_lowrank(matrix, min(width + SPARE, tokens), ROUNDS)  # [V, W + SPARE], [W + SPARE]
    seen = matrix.indices()[0].bincount(minlength=tokens).nonzero().squeeze(1)  # [S]
    factors = (left * values.sqrt())[seen, :width]  # [S, W]
    factors = factors - factors.mean(0)
    placed = torch.zeros(tokens, factors.shape[1])
    placed[seen] = factors * factors.norm(dim=1, keepdim=True).clamp(min=1e-12) ** (LENGTH - 1)
    return placed


def ppmi(pairs: Array, counts: Array, tokens: int) -> Tensor:
    """Positive pointwise mutual information, [V, V] and mostly empty, of pairs [P, 2] seen so many times [P] together.

    >>> found = ppmi(np.array([[0, 1], [0, 2], [3, 2]]), np.array([4, 1, 3]), 4)
    >>> found.to_dense().double().numpy().round(2).tolist()
    [[0.0, 1.16, 0.0, 0.0], [1.22, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.31], [0.0, 0.0, 1.38, 0.0]]
    """
    both = torch.from_numpy(np.concatenate([pairs, pairs[:, ::-1]])).T  # [2, 2P]: either is the other's context
    times = torch.from_numpy(np.concatenate([counts, counts])).double()
    together = torch.sparse_coo_tensor(both, times, (tokens, tokens), check_invariants=False).coalesce()
    (token, context), times = together.indices(), together.values()  # [N] each
    often = torch.zeros(tokens, dtype=times.dtype).index_add(0, token, times)  # [V]
    chance = often**SMOOTHING / (often**SMOOTHING).sum()  # [V], of a context
    information = (times / (often[token] * chance[context])).log()  # [N]
    more = information > 0
    places = torch.stack([token, context])[:, more]  # [2, N]
    found, shape = information[more].float(), (tokens, tokens)
    return torch.sparse_coo_tensor(places, found, shape, check_invariants=False, is_coalesced=True)


def _pairs(corpus: Corpus, window: int) -> tuple[Array, Array]:
    """Tokens of one document that stand within a window, [P, 2], and how many times, [P]."""
    every = max(1, round(int(corpus.tokens.sum()) / TOKENS))
    tokens, pairs, counts = len(corpus.tokenizer), np.zeros(0, np.int64), np.zeros(0, np.int64)
    for place in range(0, len(corpus), every):
        found, times = np.unique(_neighbours(corpus, place, window, tokens), return_counts=True)
        pairs, where = np.unique(np.concatenate([pairs, found]), return_inverse=True)
        counts = np.bincount(where, np.concatenate([counts, times]), len(pairs)).astype(np.int64)
    return np.stack([pairs // tokens, pairs % tokens], 1), counts


def _neighbours(corpus: Corpus, place: int, window: int, tokens: int) -> Array:
    """A number for each pair in a shard: first · V + second."""
    shard = corpus.shard(place)
    ids = shard.ids.astype(np.int64)
    starts = shard.sentences[shard.documents].astype(np.int64)  # [D + 1]
    document = np.repeat(np.arange(len(starts) - 1), np.diff(starts))  # [T]
    pairs = []
    for distance in range(1, window + 1):
        together = document[:-distance] == document[distance:]
        pairs.append(ids[:-distance][together] * tokens + ids[distance:][together])
    return np.concatenate(pairs)
