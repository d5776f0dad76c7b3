"""The encoder: embeddings, then attention and feed-forward blocks in a stated order.

Each step of `order` names its attention block and its feed-forward block: BERT has one of each per layer, and a network
that shares layers names the same block again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from torch import Tensor, is_grad_enabled, nn
from torch.utils.checkpoint import checkpoint

from bertkit.batch import Batch, Layout
from bertkit.errors import BertkitError
from bertkit.parts.attention import Attention
from bertkit.parts.embed import Embed
from bertkit.parts.feed import Feed
from bertkit.parts.init import SPREAD, draw
from bertkit.parts.place import Place, Placing, Unplaced
from bertkit.parts.tape import Tape
from bertkit.spec import Count, Positive, Spec


@dataclass(frozen=True)
class Encoder(Spec):
    """A network `width` wide whose step *i* runs `attentions[order[i][0]]`, then `feeds[order[i][1]]`."""

    width: Count
    embed: Embed
    attentions: tuple[Attention, ...]
    feeds: tuple[Feed, ...]
    order: tuple[tuple[int, int], ...]
    place: Placing = field(default_factory=Unplaced)
    spread: Positive = SPREAD
    """deviation of new weights"""

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = {("attention", a) for a, _ in self.order} | {("feed", f) for _, f in self.order}
        there = {("attention", a) for a in range(len(self.attentions))} | {("feed", f) for f in range(len(self.feeds))}
        if wanted != there:
            # a block that no step runs would never get a gradient
            odd = ", ".join(f"{kind} {index}" for kind, index in sorted(wanted ^ there)[:4])
            raise BertkitError(f"Encoder.order must run every block and no other: look at {odd}")

    @property
    def longest(self) -> int | None:
        """The longest sequence that it can read; None where there is no longest."""
        return self.embed.positions.longest

    def after(self, pad: int) -> Encoder:
        """The encoder for a vocabulary whose padding has this id."""
        return replace(self, embed=replace(self.embed, positions=self.embed.positions.after(pad)))

    def build(self) -> EncoderModule:
        module = EncoderModule(self)
        draw(module, self.spread)
        return module


def with_dropout(encoder: Encoder, rate: float) -> Encoder:
    """The same encoder with one rate everywhere."""
    return replace(
        encoder,
        embed=replace(encoder.embed, dropout=rate),
        attentions=tuple(replace(each, dropout=rate, look_dropout=rate) for each in encoder.attentions),
        feeds=tuple(replace(each, dropout=rate) for each in encoder.feeds),
    )


class EncoderModule(nn.Module):
    """Batch -> hidden states [..., W], in either layout."""

    def __init__(self, spec: Encoder) -> None:
        super().__init__()
        self.spec = spec
        self.embed = spec.embed.build(spec.width)
        self.attentions = nn.ModuleList(attention.build(spec.width) for attention in spec.attentions)
        self.feeds = nn.ModuleList(feed.build(spec.width) for feed in spec.feeds)
        self.place = spec.place.build()
        self.recompute = False
        """whether a step keeps its input only, and is run again for the gradient"""

    def forward(self, batch: Batch) -> Tensor:
        return deque(self.steps(batch), maxlen=1)[0]  # one step at a time stays in memory

    def steps(self, batch: Batch, tape: Tape | None = None) -> Iterator[Tensor]:
        """The embeddings' output, then each step's: [..., W]. Only what the caller keeps stays in memory."""
        x = self.embed(batch)  # [..., W]
        yield x
        place = self.place.prepare(batch)
        for blocks in self.spec.order:
            if self.recompute and is_grad_enabled():
                x = checkpoint(self._step, blocks, x, batch.layout, place, tape, use_reentrant=False)
            else:
                x = self._step(blocks, x, batch.layout, place, tape)
            yield x

    def _step(self, blocks: tuple[int, int], x: Tensor, layout: Layout, place: Place, tape: Tape | None) -> Tensor:
        attention, feed = blocks
        out: Tensor = self.feeds[feed](self.attentions[attention](x, layout, place, tape))
        return out
