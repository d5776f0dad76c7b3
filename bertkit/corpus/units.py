"""Units: what examples are put together from. A sentence is one; a very long sentence is several.

Letters: U units · D documents · H shards · N units that are asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bertkit.corpus.chance import Array
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.shard import Shard
from bertkit.text.ranges import ranges
from bertkit.text.template import Template

BACK = 8
"""how many tokens before the even place of a cut a word may start"""


class Units:
    """The units of some shards in a row, their tokens counted through all of these shards.

    None is longer than `longest`; the parts of a longer sentence are about equal, and start with words.
    """

    def __init__(self, corpus: Corpus, numbers: Sequence[int], longest: int) -> None:
        self._corpus, self._numbers = corpus, list(numbers)
        parts = [_cut(corpus.shard(number), longest) for number in numbers]
        self.shards = np.cumsum([0, *corpus.tokens[self._numbers]])
        """[H + 1] the first token of each shard, then their number"""
        before = np.cumsum([0, *(len(starts) for starts, _ in parts)])
        starts = [starts + shift for (starts, _), shift in zip(parts, self.shards, strict=False)]
        documents = [documents + shift for (_, documents), shift in zip(parts, before, strict=False)]
        self.starts = np.concatenate([*starts, self.shards[-1:]])
        """[U + 1] the first token of each unit, then their number"""
        self.documents = np.concatenate([*documents, before[-1:]])
        """[D + 1] the first unit of each document, then their number"""

    @property
    def template(self) -> Template:
        """Which special tokens an example of them has."""
        return self._corpus.tokenizer.template

    def __len__(self) -> int:
        return len(self.starts) - 1

    def document_of(self, units: Array) -> Array:
        """The document of each unit, [N]."""
        return np.searchsorted(self.documents, units, "right") - 1

    def words(self, start: int, stop: int) -> Array:
        """Whether a word starts at each of the tokens from `start` to before `stop`, all of one shard."""
        at = int(np.searchsorted(self.shards, start, "right")) - 1
        shift = int(self.shards[at])
        return self._corpus.shard(self._numbers[at]).words(start - shift, stop - shift)

    def copy(
        self, start: Array, lengths: Array, ids: Array, words: Array, at: Array, phrases: Mapping[str, Array] = {}
    ) -> None:
        """Put so many tokens from each start on to the places from `at` on: their ids, whether a word starts, and for
        each of these lexicons whether a word or a phrase does.
        """
        which = np.searchsorted(self.shards, start, "right") - 1
        for number in np.unique(which).tolist():
            chosen = np.flatnonzero(which == number)
            shard = self._corpus.shard(self._numbers[number])
            source = ranges(start[chosen] - self.shards[number], lengths[chosen])
            place = ranges(at[chosen], lengths[chosen])
            ids[place] = shard.ids[source]
            words[place] = shard.starts_word(source)
            for lexicon, starts in phrases.items():
                starts[place] = shard.starts_unit(lexicon, source)


def _cut(shard: Shard, longest: int) -> tuple[Array, Array]:
    """The first token of each unit [U], and the first unit of each document [D]."""
    sentences, documents = shard.sentences.astype(np.int64), shard.documents.astype(np.int64)
    lengths = np.diff(sentences)
    if lengths.max() <= longest:
        return sentences[:-1], documents[:-1]
    back = min(BACK, longest // 4)
    parts = np.where(lengths > longest, -(-lengths // (longest - back)), 1)
    firsts = np.cumsum(parts) - parts  # the first unit of each sentence, [S]
    sentence = np.repeat(np.arange(len(parts)), parts)  # of each unit, [U]
    part = np.arange(len(sentence)) - firsts[sentence]
    starts = sentences[sentence] + part * lengths[sentence] // parts[sentence]
    inner = np.flatnonzero(part)
    starts[inner] = _word_before(shard, starts[inner], back)
    return starts, firsts[documents[:-1]]


def _word_before(shard: Shard, at: Array, back: int) -> Array:
    """The start of the word that each token is in; the token itself if its word began long before."""
    found, open_ = at.copy(), np.arange(len(at))
    for step in range(back + 1):
        here = at[open_] - step
        starts = shard.starts_word(here)
        found[open_[starts]] = here[starts]
        open_ = open_[~starts]
    return found
