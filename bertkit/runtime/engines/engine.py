"""What an engine is: it computes the hidden states of a batch. Pools, heads and decoding follow in torch, whoever did.

An engine says which encoders it takes before it is built (`refusal`), and is built from an encoder's weights as they
are then. Batches are computed `workers` at a time, each on `threads` cores.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from bertkit import packages
from bertkit.batch import Array, Batch, Example, Packed, Padded, collate
from bertkit.errors import BertkitError, unknown
from bertkit.parts.encoder import Encoder
from bertkit.parts.network import NetworkModule
from bertkit.runtime.lanes import Lanes
from bertkit.spec import Count, Spec

FP32, INT8 = "fp32", "int8"
PRECISIONS = (FP32, INT8)


@dataclass(frozen=True)
class Setup(Spec):
    """How a network is run: by which engine, how exactly, and on how many cores.

    >>> str(Setup("ctranslate2", "int8", workers=2))
    'ctranslate2 int8, 2 × 1 thread'
    """

    engine: str = "torch"
    precision: str = FP32
    workers: Count = 1
    """batches at a time"""
    threads: Count = 1
    """cores for each of them"""
    tokens: Count = 1024
    """of a batch, about"""
    kept: tuple[str, ...] = ()
    """matrices of an int8 network that stay in fp32, by the names of its modules"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.precision not in PRECISIONS:
            raise BertkitError(f"precision is {self.precision!r}: give one of {', '.join(PRECISIONS)}")

    def __str__(self) -> str:
        return f"{self.engine} {self.precision}, {self.workers} × {self.threads} thread{'s' * (self.threads > 1)}"


class Engine(ABC):
    """One way to run a network's encoder."""

    name: ClassVar[str]
    package: ClassVar[str]
    """what must be installed"""
    besides: ClassVar[tuple[str, ...]] = ()
    """what must be installed with it"""
    precisions: ClassVar[tuple[str, ...]] = PRECISIONS
    keeps: ClassVar[bool] = False
    """whether some matrices of an int8 network can stay in fp32"""
    copies: ClassVar[bool] = True
    """whether it holds weights of its own, which are as they were when it was built"""
    divides: ClassVar[bool] = True
    """whether each of several workers can have several cores; torch's have one, and all of them for a batch alone"""
    layout: ClassVar[type[Padded] | type[Packed]] = Padded
    """how it wants its batches"""
    tokens: ClassVar[dict[str, int]] = dict.fromkeys(PRECISIONS, Setup.tokens)
    """how large it wants them in a precision, about"""
    padding: ClassVar[float] = math.inf
    """tokens of it in a batch from which on another batch costs less; none where it computes nothing of it"""

    def __init__(self, network: NetworkModule, setup: Setup) -> None:
        self.require(network.spec.encoder, setup.precision)
        if setup.kept and not self.keeps:
            raise BertkitError(f"the engine {self.name} keeps no matrix in fp32: take another, or quantise all of them")
        matrices = [name for name, part in network.named_modules() if isinstance(part, nn.Linear)]
        for name in setup.kept:
            if name not in matrices:
                raise unknown("matrix", name, matrices)
        self.setup = setup
        self.lanes = self.laned(setup)

    @classmethod
    def arranged(cls, precision: str, workers: int, threads: int) -> Setup:
        """The setup with batches of the size it wants."""
        return Setup(cls.name, precision, workers, threads, cls.tokens[precision])

    @classmethod
    def laned(cls, setup: Setup) -> Lanes:
        """How texts are put together for it."""
        return Lanes(setup.workers, setup.tokens, cls.padding)

    @classmethod
    def require(cls, encoder: Encoder, precision: str) -> None:
        """Raise where it cannot run such an encoder here."""
        reason = cls.refusal(encoder) or cls.absence()
        if reason:
            raise BertkitError(f"the engine {cls.name} cannot run this model: {reason}")
        if precision not in cls.precisions:
            raise BertkitError(f"the engine {cls.name} has {', '.join(cls.precisions)}, not {precision}")

    @classmethod
    @abstractmethod
    def refusal(cls, encoder: Encoder) -> str:
        """Why it does not take such an encoder; empty where it does."""

    @classmethod
    def absence(cls) -> str:
        """Why it cannot be used here; empty where it can."""
        for package in (cls.package, *cls.besides):
            try:
                packages.load(package)
            except ImportError:
                return f"{package} is not installed: pip install 'bertkit[engines]'"
            except Exception as error:  # a broken installation may raise anything
                return f"{package} cannot be imported: {error}"
        return ""

    @abstractmethod
    def hidden(self, batch: Batch) -> Tensor:
        """The last hidden states [..., W] of a batch in this engine's layout, rows in the batch's own order.

        Called from as many threads at a time as there are workers.
        """

    def states(self, example: Example) -> Array:
        """The last hidden states [L, W] of one example, in NumPy: around a single query, even torch takes its time."""
        with torch.inference_mode():
            states: Array = self.hidden(collate([example], self.layout)).flatten(0, -2).float().cpu().numpy()
        return states

    def _package(self) -> Any:
        return packages.load(self.package)


def weights(encoder: torch.nn.Module) -> dict[str, Any]:
    """A module's parameters as float32 NumPy arrays by name, sharing memory where they can: copy what is written to."""
    return {name: value.detach().cpu().float().numpy() for name, value in encoder.state_dict().items()}


def mask_of(batch: Batch) -> Tensor:
    """Which places of a padded batch hold tokens, [B, L]."""
    assert isinstance(batch.layout, Padded), "only padded batches have a mask"
    ids = batch.tokens["ids"]
    return torch.ones_like(ids, dtype=torch.bool) if batch.layout.mask is None else batch.layout.mask
