"""Questions about words, asked of each word's first token.

TagQuestion      which tag has each word? (BERT, https://arxiv.org/abs/1810.04805)
ChainQuestion    which path of tags has each sentence? (Lample et al. 2016, https://arxiv.org/abs/1603.01360)

Letters: B rows · M words of all rows · S rows that have words · W width · C tags.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from bertkit.batch import Batch
from bertkit.corpus.flat import Flat
from bertkit.errors import BertkitError
from bertkit.objectives.mask import Vocabulary
from bertkit.objectives.objective import Asked, Objective
from bertkit.parts.chain import best_paths, surprise_of_paths
from bertkit.parts.heads import Chain, ChainModule, Head, Tag
from bertkit.parts.network import NetworkModule
from bertkit.parts.surprise import surprise

TAG = "tag"
"""the head, and the marks: where the first token of each word is, and the number of its tag"""
WORDS = "words"
"""the label of a row: how many of its words are marked"""
PATHS = "tags"
"""the question about whole sentences"""


@dataclass(frozen=True)
class TagQuestion(Objective):
    """The tag of each marked word, one by one; tokens that are not marked are not asked."""

    labels: tuple[str, ...]

    @property
    def heads(self) -> dict[str, Head]:
        return {TAG: Tag(self.labels)}

    def corrupt(self, flat: Flat, vocabulary: Vocabulary) -> Flat:
        if TAG not in flat.marks:
            there = ", ".join(flat.marks) or "none"
            raise BertkitError(
                f"{type(self).__name__} asks for words that are marked {TAG!r}, but these inputs have the marks "
                f"{there}: take examples whose words have tags"
            )
        return flat

    def counts(self, batch: Batch) -> dict[str, int]:
        at, _ = batch.marks[TAG]
        return {TAG: len(at)}

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        _, true = batch.marks[TAG]  # [M]
        return {TAG: Asked(*surprise(logits(network, hidden, batch), true))}


@dataclass(frozen=True)
class ChainQuestion(TagQuestion):
    """The tags of each row's marked words as one path; a row is right if its best path is right at every word.

    Rows without words are not asked.
    """

    @property
    def heads(self) -> dict[str, Head]:
        return {TAG: Chain(self.labels)}

    def counts(self, batch: Batch) -> dict[str, int]:
        return {PATHS: len(sentences(batch))}

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        _, true = batch.marks[TAG]  # [M]
        lengths, emissions = sentences(batch), logits(network, hidden, batch)  # S of them, [M, C]
        links = chain(network).links
        wrong = best_paths(emissions, lengths, *links) != true  # [M]
        right = sum((~part.any() for part in wrong.split_with_sizes(lengths)), wrong.new_zeros((), dtype=true.dtype))
        return {PATHS: Asked(surprise_of_paths(emissions, true, lengths, *links), right)}


def logits(network: NetworkModule, hidden: Tensor, batch: Batch) -> Tensor:
    """What the head says of each marked word, [M, C]."""
    at, _ = batch.marks[TAG]  # [M]
    words = batch.layout.flat(hidden).index_select(0, at)  # [M, W]
    return network.logits(TAG, words, batch.layout)


def sentences(batch: Batch) -> list[int]:
    """How many words each row has, in the order of the marks, without rows that have none."""
    counted: list[int] = batch.labels[WORDS].tolist()
    assert sum(counted) == len(batch.marks[TAG][0]), "every marked word is of one row"
    return [count for count in counted if count]


def chain(network: NetworkModule) -> ChainModule:
    """The head, with its links."""
    head = network.heads[TAG]
    if not isinstance(head, ChainModule):
        kind = type(network.spec.heads[TAG]).__name__
        raise BertkitError(f"the head {TAG!r} of this model is {kind}, without links between labels: load it as Chain")
    return head
