"""What a family file says of its paper, so that loading, saving and listing work without being told its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bertkit.names import Names
from bertkit.parts.encoder import Encoder
from bertkit.parts.heads import Head
from bertkit.parts.network import Network

Config = Mapping[str, Any]
"""A foreign config.json."""
ALONE = "To use the encoder alone: transformers.AutoModel.from_pretrained(OLD).save_pretrained(NEW)"
"""how to go on without a head that is not read"""


@dataclass(frozen=True)
class Family:
    """One paper's networks: their sizes, and how Hugging Face's files speak of them."""

    model_type: str
    """`model_type` in config.json, and the first half of names such as bert-base"""
    sizes: Mapping[str, Callable[[int], Encoder]]
    """size -> the encoder for a vocabulary of so many tokens"""
    read_encoder: Callable[[Config], Encoder]
    read_heads: Callable[[Config, frozenset[str]], dict[str, Head]]
    """the heads that a file with these (canonical) names holds"""
    write: Callable[[Network], dict[str, Any]]
    """config.json, or a BertkitError where Hugging Face has no way to say it"""
    names: Callable[[Network], Names]
    canonical: Callable[[str], str]
    """the name as the table knows it: old spellings and lost prefixes repaired"""
    tied: Mapping[str, str]
    """canonical names of copies -> the tensor each must equal"""
    spell: Callable[[Network, str], str]
    """the canonical name as Hugging Face's class for this network writes it"""
    ours: Callable[[str], bool]
    """whether a canonical name must be understood (the encoder's own), or may be a stranger's head"""
    layers: Callable[[Config], int]
    """how many layers the config promises, read before anything is built"""
    unopenable: Callable[[Network], str] = lambda network: ""
    """why Hugging Face's class cannot open what `write` describes; empty where it can"""
