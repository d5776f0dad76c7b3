"""A learner: a network and what it learns, as one module that turns a batch into sums of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from bertkit.batch import Batch
from bertkit.parts.network import NetworkModule

if TYPE_CHECKING:
    from bertkit.objectives.objective import Asked, Objective


class Learner(nn.Module):
    """The encoder runs once, whatever the objective asks. Several processes wrap this module."""

    def __init__(self, network: NetworkModule, objective: Objective) -> None:
        super().__init__()
        self.network, self.objective = network, objective

    @property
    def networks(self) -> dict[str, NetworkModule]:
        """All that learn, by the names under which a run keeps them."""
        return {"model": self.network}

    def forward(self, batch: Batch) -> dict[str, Asked]:
        return self.objective.loss(self.network, self.network(batch), batch)
