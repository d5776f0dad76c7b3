"""An exam: what a network says about text that it never learns from.

The questions of a run are the same at every exam: the first examples of the held-out text with one mask, and a few
short sentences in which one word is hidden, for people to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import torch

from bertkit.batch import Batch
from bertkit.corpus.chance import below, key, number
from bertkit.corpus.corpus import Corpus
from bertkit.objectives.learner import Learner
from bertkit.objectives.objective import Asked

SHORTEST, LONGEST = 6, 24
"""tokens of a sentence that is shown"""
LETTERS = 2
"""of a word that is hidden, at least"""
_SENTENCE, _WORD = range(2)
"""what chance is asked for"""


class Gap(NamedTuple):
    """A sentence with a [MASK], and the token that stood there."""

    text: str
    true: str


class Result(NamedTuple):
    """Of each question: the mean loss, and the share of right answers."""

    losses: dict[str, float]
    right: dict[str, float]


def examine(learner: Learner, batches: Sequence[Batch], device: torch.device | str = "cpu") -> Result:
    """What comes of the questions of these batches, together. Whoever draws on the way draws the same every time."""
    sums: dict[str, list[float]] = {}
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        stack.enter_context(torch.random.fork_rng(devices=[]))
        torch.manual_seed(0)
        for network in learner.networks.values():
            stack.enter_context(network.evaluating())
        for batch in batches:
            asked: dict[str, Asked] = learner(batch.to(device))
            for name, count in learner.objective.counts(batch).items():
                found = sums.setdefault(name, [0.0, 0.0, 0.0])
                for place, value in enumerate((float(asked[name].loss), float(asked[name].right), float(count))):
                    found[place] += value
    losses, right = ({name: row[place] / max(row[2], 1) for name, row in sums.items()} for place in (0, 1))
    return Result(losses, right)


def gaps(corpus: Corpus, count: int, seed: int) -> list[Gap]:
    """Some short sentences of a corpus, each without one of its whole words."""
    tokenizer, found = corpus.tokenizer, list[Gap]()
    shard = corpus.shard(0)
    bounds = shard.sentences.astype(np.int64)
    fitting = np.flatnonzero((np.diff(bounds) >= SHORTEST) & (np.diff(bounds) <= LONGEST))
    order = np.argsort(number(key(seed, _SENTENCE), fitting))
    for sentence in fitting[order].tolist():
        ids = shard.ids[bounds[sentence] : bounds[sentence + 1]].astype(np.int64)
        words = np.append(shard.words(int(bounds[sentence]), int(bounds[sentence + 1])), True)
        whole = [
            place
            for place, token in enumerate(map(tokenizer.token, ids.tolist()))
            if words[place] and words[place + 1] and _is_word(tokenizer.pieces.shown(token).strip())
        ]
        if whole:
            place = whole[int(below(number(key(seed, _WORD), sentence), len(whole))[0])]
            true = tokenizer.token(int(ids[place]))
            ids[place] = tokenizer.mask_id
            found.append(Gap(tokenizer.decode(ids.tolist(), skip_special=False), true))
        if len(found) == count:
            break
    return found


def _is_word(shown: str) -> bool:
    return shown.isalpha() and len(shown) >= LETTERS


def unigram(corpus: Corpus) -> float:
    """The entropy of single tokens in nats: the loss of who knows nothing but how frequent each token is."""
    counts = np.zeros(len(corpus.tokenizer), np.int64)
    for place in range(len(corpus)):
        counts += np.bincount(corpus.shard(place).ids, minlength=len(counts))
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())
