"""A network: one encoder and the named heads on it, so that heads share what they need (the pooler serves several)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from torch import Tensor, nn

from bertkit.batch import Batch, Layout
from bertkit.errors import BertkitError
from bertkit.parts.encoder import Encoder, EncoderModule
from bertkit.parts.heads import Head, MlmModule
from bertkit.parts.init import draw
from bertkit.spec import Spec

# one for all networks: a lock of its own would keep a network from being copied or pickled
_SWITCHING = threading.Lock()


@dataclass(frozen=True)
class Network(Spec):
    """An encoder and its heads by name."""

    encoder: Encoder
    heads: Mapping[str, Head] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        # a copy, for the caller's may change, in which nothing is left open
        object.__setattr__(self, "heads", {name: head.on(self.encoder) for name, head in self.heads.items()})
        pooled = [name for name, head in self.heads.items() if head.reads == "pooled"]
        if pooled and "pooler" not in self.heads:
            raise BertkitError(f"the head {pooled[0]!r} reads the pooled vector: add 'pooler': Pooler() to the heads")

    def build(self) -> NetworkModule:
        return NetworkModule(self)


class NetworkModule(nn.Module):
    """`network(batch)` gives hidden states, `network.logits(head, hidden, layout)` what a head makes of them."""

    def __init__(self, spec: Network) -> None:
        super().__init__()
        self.spec = spec
        self.encoder: EncoderModule = spec.encoder.build()
        self.heads = nn.ModuleDict({name: head.build(self.encoder) for name, head in spec.heads.items()})
        draw(self.heads, spec.encoder.spread)
        self._evaluators = 0
        self._learning: list[nn.Module] = []

    def forward(self, batch: Batch) -> Tensor:
        hidden: Tensor = self.encoder(batch)  # [..., W]
        return hidden

    def logits(self, name: str, hidden: Tensor, layout: Layout) -> Tensor:
        """What the head says: [B, C] where it reads sequences, [..., C] where it reads tokens."""
        if name not in self.heads:
            there = ", ".join(self.heads) or "none"
            raise BertkitError(f"this model has no {name!r} head. Its heads: {there}. Load one that has it.")
        match self.spec.heads[name].reads:
            case "tokens":
                x = hidden
            case "first":
                x = layout.first(hidden)
            case "pooled":
                x = self.logits("pooler", hidden, layout)
        out: Tensor = self.heads[name](x)
        return out

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Eval mode for a while; every module is as it was once the last thread that asked for it is done."""
        with _SWITCHING:
            if not self._evaluators:
                self._learning = _learning(self)
                _set_training(self._learning, False)
            self._evaluators += 1
        try:
            yield
        finally:
            with _SWITCHING:
                self._evaluators -= 1
                if not self._evaluators:
                    _set_training(self._learning, True)
                    self._learning = []

    def grow(self, vocabulary: int) -> None:
        """Make room for new tokens in the embedding table and in the heads that are tied to it."""
        self.encoder.embed.grow(vocabulary, self.spec.encoder.spread)
        for head in self.heads.values():
            if isinstance(head, MlmModule):
                head.grow()
        embed = replace(self.spec.encoder.embed, vocabulary=vocabulary)
        encoder = replace(self.spec.encoder, embed=embed)
        self.encoder.embed.spec, self.encoder.spec, self.spec = embed, encoder, replace(self.spec, encoder=encoder)


def _learning(network: nn.Module) -> list[nn.Module]:
    """The modules in training mode; `modules()` would take three times as long, which a single query feels."""
    found, rest = [], [network]
    while rest:
        module = rest.pop()
        if module.training:
            found.append(module)
        rest.extend(part for part in module._modules.values() if part is not None)
    return found


def _set_training(modules: list[nn.Module], training: bool) -> None:
    for module in modules:
        module.training = training
