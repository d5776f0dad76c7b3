"""A network: one encoder and the named heads on it, so that heads share what they need (the pooler serves several)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor, nn

from bertkit.batch import Batch, Layout
from bertkit.errors import BertkitError
from bertkit.parts.encoder import Encoder, EncoderModule
from bertkit.parts.heads import Head, MlmModule
from bertkit.parts.init import draw
from bertkit.spec import Spec


@dataclass(frozen=True)
class Network(Spec):
    """An encoder and its heads by name."""

    encoder: Encoder
    heads: Mapping[str, Head] = field(default_factory=dict)

    def build(self) -> NetworkModule:
        return NetworkModule(self)


class NetworkModule(nn.Module):
    """`network(batch)` gives hidden states, `network.logits(head, hidden, layout)` what a head makes of them."""

    def __init__(self, spec: Network) -> None:
        super().__init__()
        self.spec = spec
        self.encoder: EncoderModule = spec.encoder.build()
        self.heads = nn.ModuleDict()
        for name, head in spec.heads.items():
            self.heads[name] = head.build(self.encoder)
            draw(self.heads[name], spec.encoder.spread)

    def forward(self, batch: Batch) -> Tensor:
        hidden: Tensor = self.encoder(batch)  # [..., W]
        return hidden

    def logits(self, name: str, hidden: Tensor, layout: Layout) -> Tensor:
        """What the head says: [B, C] where it reads sequences, [..., C] where it reads tokens."""
        head = self._head(name)
        if head.reads == "tokens":
            x = hidden
        elif head.reads == "first":
            x = layout.first(hidden)
        else:
            x = self.logits("pooler", hidden, layout)
        out: Tensor = head(x)
        return out

    def grow(self, vocabulary: int) -> None:
        """Make room for new tokens in the embedding table and whatever is tied to it."""
        self.encoder.embed.grow(vocabulary, self.spec.encoder.spread)
        self.tie()
        embed = replace(self.spec.encoder.embed, vocabulary=vocabulary)
        encoder = replace(self.spec.encoder, embed=embed)
        self.encoder.embed.spec, self.encoder.spec, self.spec = embed, encoder, replace(self.spec, encoder=encoder)

    def tie(self) -> None:
        """Point tied heads at the encoder's table again, after it was replaced."""
        for head in self.heads.values():
            if isinstance(head, MlmModule):
                head.tie(self.encoder)

    def _head(self, name: str) -> nn.Module:
        if name not in self.heads:
            there = ", ".join(self.heads) or "none"
            raise BertkitError(f"this model has no {name!r} head. Its heads: {there}. Load one that has it.")
        return self.heads[name]
