"""Replaced-token detection (ELECTRA, https://arxiv.org/abs/2003.10555): a small generator fills masks, and the network
judges of every token whether it is the one that stood there.

Both learn together: the generator names masked tokens as in BERT; tokens drawn from what it says take their places;
the network, here called the discriminator, is asked about all tokens, so that it learns from each of them and never
sees a [MASK]. No gradient goes through the drawing. Generator and discriminator share their embeddings.

Letters: M masked tokens · T tokens · V vocabulary · W width.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bertkit.batch import Batch
from bertkit.corpus.flat import Flat
from bertkit.errors import BertkitError
from bertkit.objectives.learner import Learner
from bertkit.objectives.mask import MARK, Mask, Vocabulary
from bertkit.objectives.objective import Asked, SelfSupervised
from bertkit.parts.encoder import Encoder
from bertkit.parts.heads import Detect, Head, Mlm
from bertkit.parts.network import Network, NetworkModule
from bertkit.parts.surprise import surprise
from bertkit.spec import Count, Positive

DETECT = "replaced"
"""the head of the discriminator, and the question"""
HEAD = 64
"""width of an attention head in a generator"""


@dataclass(frozen=True)
class ReplacedTokens(SelfSupervised):
    """Tokens that `mask` hides are filled by a generator; the network finds those that it changed.

    The generator has as many layers, a `shrink`-th as wide: 4 for ELECTRA-small and -large, 3 for -base. Google's code
    leaves 15 % of the masked tokens as they are (`mask = { keep = 0.15 }`); the paper's formula hides all of them.
    """

    mask: Mask = field(default_factory=lambda: Mask(random=0.0, keep=0.0))
    shrink: Count = 4
    weight: Positive = 50.0
    """of the discriminator's question, beside the generator's"""

    @property
    def lexicons(self) -> tuple[str, ...]:
        return self.mask.choose.lexicons

    @property
    def weights(self) -> dict[str, float]:
        return {DETECT: self.weight}

    @property
    def heads(self) -> dict[str, Head]:
        return {DETECT: Detect()}

    def corrupt(self, flat: Flat, vocabulary: Vocabulary) -> Flat:
        masked, every = self.mask.corrupt(flat, vocabulary), np.arange(len(flat.ids))
        return replace(masked, marks={**masked.marks, DETECT: (every, flat.ids.astype(np.int64))})

    def counts(self, batch: Batch) -> dict[str, int]:
        return {name: len(batch.marks[name][0]) for name in (MARK, DETECT)}

    def learner(self, network: NetworkModule) -> Learner:
        return ReplacedLearner(network, self)

    def generator(self, encoder: Encoder) -> Network:
        """The network that fills masks for a discriminator."""
        width = encoder.width // self.shrink
        heads = max(1, width // HEAD)
        if encoder.width % self.shrink or width % heads:
            raise BertkitError(
                f"ReplacedTokens.shrink is {self.shrink}: a network {encoder.width} wide has no generator of that "
                f"share with heads about {HEAD} wide. Take one that divides the width, such as 4"
            )
        smaller = replace(
            encoder,
            width=width,
            attentions=tuple(replace(one, heads=heads, head=width // heads) for one in encoder.attentions),
            feeds=tuple(replace(one, inner=one.inner // self.shrink) for one in encoder.feeds),
        )
        return Network(smaller, {MARK: Mlm("gelu", encoder.embed.epsilon)})


class ReplacedLearner(Learner):
    """A discriminator and its generator, whose tables of tokens, positions and segments are one."""

    def __init__(self, network: NetworkModule, objective: ReplacedTokens) -> None:
        super().__init__(network, objective)
        self.generator = objective.generator(network.spec.encoder).build()
        own, theirs = self.generator.encoder.embed, network.encoder.embed
        own.tokens, own.positions, own.segments = theirs.tokens, theirs.positions, theirs.segments
        own.norm = theirs.norm

    @property
    def networks(self) -> dict[str, NetworkModule]:
        return {**super().networks, "generator": self.generator}

    def forward(self, batch: Batch) -> dict[str, Asked]:
        at, true = batch.marks[MARK]  # [M], [M]
        masked = batch.layout.flat(self.generator(batch)).index_select(0, at)  # [M, W]
        logits = self.generator.logits(MARK, masked, batch.layout)  # [M, V]
        drawn = drawn_from(logits.detach())  # [M]
        named = Asked(*surprise(logits, true))
        seen = with_tokens(batch, at, drawn)
        return {MARK: named, DETECT: self._judged(seen)}

    def _judged(self, seen: Batch) -> Asked:
        at, true = seen.marks[DETECT]  # [T], [T]: all tokens
        hidden = seen.layout.flat(self.network(seen)).index_select(0, at)  # [T, W]
        logits = self.network.logits(DETECT, hidden, seen.layout)  # [T]
        changed = seen.layout.flat(seen.tokens["ids"]).index_select(0, at) != true  # [T]
        loss = F.binary_cross_entropy_with_logits(logits.float(), changed.float(), reduction="sum")
        return Asked(loss, ((logits.detach() > 0) == changed).sum())


def drawn_from(logits: Tensor) -> Tensor:
    """A token for each row [M, V], as likely as the logits say: the largest after Gumbel's noise, [M]."""
    noise = torch.empty_like(logits, dtype=torch.float32).exponential_().log_()  # its negative is Gumbel's
    return (logits - noise).argmax(-1)


def with_tokens(batch: Batch, at: Tensor, ids: Tensor) -> Batch:
    """The batch with these ids [M] at these flat places [M]."""
    there = batch.tokens["ids"]
    flat = batch.layout.flat(there).index_copy(0, at, ids)  # [T]
    return replace(batch, tokens={**batch.tokens, "ids": flat.view(there.shape)})
