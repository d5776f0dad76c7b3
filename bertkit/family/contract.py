"""What a family file says of its paper, so that loading, saving and listing work without being told its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bertkit.errors import BertkitError
from bertkit.family.dialect import Config, Dialect, need
from bertkit.parts.encoder import Encoder
from bertkit.parts.heads import Head
from bertkit.parts.network import Network
from bertkit.spec import difference

ALONE = "To use the encoder alone: transformers.AutoModel.from_pretrained(OLD).save_pretrained(NEW)"
"""how to go on without a head that is not read"""


@dataclass(frozen=True)
class Family:
    """One paper's networks: their sizes, and how Hugging Face's files speak of them."""

    model_type: str
    """`model_type` in config.json, and the first half of names such as bert-base"""
    sizes: Mapping[str, Callable[[int], Encoder]]
    """size -> the encoder for a vocabulary of so many tokens"""
    dialect: Dialect
    """names of weights and heads"""
    read_encoder: Callable[[Config], Encoder]
    write: Callable[[Network], dict[str, Any]]
    """config.json, as well as it can say it: `config` finds what is not said"""
    layers: Callable[[Config], int] = lambda config: need(config, "num_hidden_layers")
    """how many layers the weights must have by the config, read before anything is built"""
    numbered: str = r"\.layer\.(\d{1,9})\."
    """where a weight's name has the number of its layer"""
    unopenable: Callable[[Network], str] = lambda network: ""
    """why Hugging Face's class cannot open what `write` describes; empty where it can"""

    def heads(self, encoder: Encoder, heads: Mapping[str, Head]) -> dict[str, Head]:
        """Heads with what they leave open (None) as this family has it."""
        config = self.write(Network(encoder, heads))
        filed = {name: place.read(config) for name, place in self.dialect.heads.items() if name in heads}
        return {name: head.like(filed.get(name, head)) for name, head in heads.items()}

    def config(self, network: Network) -> dict[str, Any]:
        """config.json of a network; refused where it would be read as another one."""
        self.dialect.require_places(network)
        written, names = self.write(network), self.dialect.names(network).rows.values()
        spelled = frozenset(name for row in names for name in ((row,) if isinstance(row, str) else row))
        read = Network(self.read_encoder(written), self.dialect.read_heads(written, spelled))
        found = difference(network, read)
        if found:
            raise BertkitError(
                f"files of {self.model_type} cannot say this network: {found}, which is how it would be read again"
            )
        return written
