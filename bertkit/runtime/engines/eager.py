"""torch itself, operator by operator: takes every network, and packed batches, which hold no padding."""

from __future__ import annotations

from torch import Tensor

from bertkit.batch import Batch, Packed
from bertkit.parts.encoder import Encoder
from bertkit.parts.network import NetworkModule
from bertkit.runtime.engines.engine import FP32, Engine, Setup


class Eager(Engine):
    """The network as it is: what is learned meanwhile counts at once."""

    name = package = "torch"
    precisions = (FP32,)
    copies = False
    layout = Packed
    divides = False

    def __init__(self, network: NetworkModule, setup: Setup) -> None:
        super().__init__(network, setup)
        self._network = network

    @classmethod
    def refusal(cls, encoder: Encoder) -> str:
        return ""

    def hidden(self, batch: Batch) -> Tensor:
        with self._network.evaluating():
            out: Tensor = self._network(batch.to(self._network.device))
        return out
