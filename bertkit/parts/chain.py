"""A chain of tags: a linear-chain conditional random field (Lafferty, McCallum, Pereira 2001) over what a tagger says.

Lample et al. 2016 (https://arxiv.org/abs/1603.01360) put it on a neural tagger. The score of a path of tags is the sum
of its emissions, of a transition between each two neighbours, and of how well its first tag begins a sentence and its
last one ends it; p(path) is softmax over all paths. Sums and maxima over all of them take one step for each word.

The sentences of a batch lie one after another; they are laid side by side here, and a step is made for all at once.

Letters: W words of all sentences · S sentences · L the longest, in words · C tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bertkit.batch import Array


def surprise_of_paths(
    emissions: Tensor, tags: Tensor, lengths: Sequence[int], transitions: Tensor, first: Tensor, last: Tensor
) -> Tensor:
    """The sum over sentences of -log p(tags), []: of emissions [W, C], true tags [W] and each sentence's words.

    `transitions[i, j]` [C, C] is for tag j after tag i; `first` and `last` are [C]. Half precision is widened first.

    >>> nothing = torch.zeros(2, 2), torch.zeros(2), torch.zeros(2)  # without a chain words are judged one by one
    >>> round(float(surprise_of_paths(torch.tensor([[0.0, 1.0], [3.0, 1.0]]), torch.tensor([1, 1]), [2], *nothing)), 4)
    2.4402
    """
    emissions, transitions, first, last = _wide(emissions, transitions, first, last)
    # what all tags of a word share changes no path's chance: without it large numbers do not swallow small ones
    emissions = emissions.log_softmax(-1)
    sentences = _Sentences.of(lengths, emissions.device)
    every = _log_sum(sentences, emissions, transitions, first, last)  # [S]
    return (every - _score(sentences, emissions, tags, transitions, first, last)).sum()


@torch.no_grad()
def best_paths(emissions: Tensor, lengths: Sequence[int], transitions: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """The likeliest tags of each sentence (Viterbi), [W]; of paths that are equally good the lowest, as words are read.

    >>> emissions, swap = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0, 9.0], [9.0, 0.0]])
    >>> best_paths(emissions, [2, 1], swap, torch.zeros(2), torch.zeros(2))
    tensor([0, 1, 0])
    """
    emissions, transitions, first, last = _wide(emissions, transitions, first, last)
    sentences = _Sentences.of(lengths, emissions.device)
    padded, there = sentences.padded(emissions), sentences.there()  # [L, S, C], [L, S, 1]
    # from the last word to the first, so that tags are chosen from the first to the last
    rest = last.expand(padded.shape[1:])  # [S, C], the best of all that follows a tag
    choices = []
    for step in range(len(padded) - 1, 0, -1):
        ahead = transitions + (padded[step] + rest)[:, None]  # [S, C, C]
        best, choice = ahead.max(-1)  # [S, C]
        rest = torch.where(there[step], best, rest)
        choices.append(choice)
    path = [(first + padded[0] + rest).argmax(-1)]  # [S]
    for choice in reversed(choices):
        path.append(choice.gather(-1, path[-1][:, None]).squeeze(-1))
    return torch.stack(path)[sentences.steps, sentences.rows]


def decode(emissions: Array, transitions: Array, first: Array, last: Array) -> Array:
    """`best_paths` of one sentence in NumPy: [W, C] -> [W].

    >>> decode(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 9.0], [9.0, 0.0]]), np.zeros(2), np.zeros(2))
    array([0, 1])
    """
    path = np.zeros(len(emissions), np.int64)
    if not len(path):
        return path
    choices = np.zeros(emissions.shape, np.int64)  # [W, C], the best tag after each tag of the word before
    rest = last  # [C]
    for step in range(len(path) - 1, 0, -1):
        ahead = transitions + (emissions[step] + rest)  # [C, C]
        choices[step], rest = ahead.argmax(-1), ahead.max(-1)
    path[0] = (first + emissions[0] + rest).argmax()
    for step in range(1, len(path)):
        path[step] = choices[step, path[step - 1]]
    return path


class _Sentences(NamedTuple):
    """Where the words of a batch are: each word's sentence [W] and its place there [W]."""

    lengths: tuple[int, ...]
    rows: Tensor
    steps: Tensor

    @classmethod
    def of(cls, lengths: Sequence[int], device: torch.device) -> _Sentences:
        assert all(length > 0 for length in lengths), "a sentence has a word"
        sizes = np.asarray(lengths, np.int64)
        rows = np.repeat(np.arange(len(sizes)), sizes)  # [W]
        steps = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # [W]
        return cls(tuple(lengths), torch.from_numpy(rows).to(device), torch.from_numpy(steps).to(device))

    @property
    def longest(self) -> int:
        """At least 1, so that no sentences at all are summed and learned from like others."""
        return max(self.lengths, default=1)

    def padded(self, words: Tensor) -> Tensor:
        """[W, C] -> [L, S, C]; zeros where a sentence has ended."""
        blank = words.new_zeros(self.longest, len(self.lengths), words.shape[-1])
        return blank.index_put((self.steps, self.rows), words)

    def there(self) -> Tensor:
        """Whether a sentence has so many words, [L, S, 1]."""
        sizes = torch.tensor(self.lengths, device=self.rows.device)
        return (torch.arange(self.longest, device=self.rows.device)[:, None] < sizes)[..., None]


def _log_sum(sentences: _Sentences, emissions: Tensor, transitions: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """The logarithm of the sum of all paths' exponentials (the forward algorithm), [S]."""
    begin, *words = sentences.padded(emissions).unbind()  # L times [S, C]
    so_far = first + begin  # [S, C], of all paths that have come to a tag
    for word, there in zip(words, sentences.there()[1:], strict=True):
        reached = (so_far[..., None] + transitions).logsumexp(1) + word  # [S, C, C] -> [S, C]
        so_far = torch.where(there, reached, so_far)
    return (so_far + last).logsumexp(-1)


def _score(
    sentences: _Sentences, emissions: Tensor, tags: Tensor, transitions: Tensor, first: Tensor, last: Tensor
) -> Tensor:
    """The scores of paths [W], [S]."""
    rows = sentences.rows
    begins = sentences.steps == 0  # [W]
    ends = begins.roll(-1)  # [W]: the word before a sentence's first is the last of another, or of all
    inner = (~begins).nonzero().squeeze(-1)  # [W - S]
    words = emissions.gather(-1, tags[:, None]).squeeze(-1)  # [W]
    links = transitions[tags[inner - 1], tags[inner]]  # [W - S]
    edges = first[tags[begins]] + last[tags[ends]]  # [S]
    return edges.index_add(0, rows, words).index_add(0, rows[inner], links)


def _wide(*values: Tensor) -> list[Tensor]:
    """All in one type, of 32 bits or more."""
    kind = reduce(torch.promote_types, (x.dtype for x in values), torch.float32)
    return [x.to(kind) for x in values]
