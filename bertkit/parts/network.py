"""A network: one encoder and the named heads on it, so that heads share what they need (the pooler serves several)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch
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
        self._switch = _Switch()

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.encoder.embed.tokens.weight.device

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
        switch = self._switch
        with _SWITCHING:
            if not switch.asked:
                switch.learning = [part for part in _modules(self) if part.training]
                _set_training(switch.learning, False)
            switch.asked += 1
        try:
            yield
        finally:
            with _SWITCHING:
                switch.asked -= 1
                if not switch.asked:
                    _set_training(switch.learning, True)
                    switch.learning = []

    def grow(self, vocabulary: int) -> None:
        """Make room for new tokens in the embedding table and in the heads that are tied to it."""
        self.encoder.embed.grow(vocabulary, self.spec.encoder.spread)
        for head in self.heads.values():
            if isinstance(head, MlmModule):
                head.grow()
        embed = replace(self.spec.encoder.embed, vocabulary=vocabulary)
        encoder = replace(self.spec.encoder, embed=embed)
        self.encoder.embed.spec, self.encoder.spec, self.spec = embed, encoder, replace(self.spec, encoder=encoder)


@dataclass
class _Switch:
    """How many threads want eval mode, and which modules learn again when none does."""

    asked: int = 0
    learning: list[nn.Module] = field(default_factory=list)

    def __deepcopy__(self, memory: object) -> _Switch:
        return _Switch()  # nobody has asked a copy for anything


def _modules(network: nn.Module) -> list[nn.Module]:
    """What `network.modules()` gives, in a tenth of the time, which a single query feels."""
    found = [network]
    for module in found:  # which grows meanwhile
        if module._modules:
            found += [part for part in module._modules.values() if part is not None]
    return found


def _set_training(modules: list[nn.Module], training: bool) -> None:
    for module in modules:
        module.training = training
