"""A network that is watched while some batches go through it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch.utils.hooks import RemovableHandle

from bertkit.batch import Batch
from bertkit.parts.network import NetworkModule


def watch(network: NetworkModule, batches: Iterable[Batch], hooks: Sequence[RemovableHandle]) -> None:
    """Run the batches, then take the hooks away, whatever happens."""
    try:
        with network.evaluating():
            for batch in batches:
                network(batch)
    finally:
        for hook in hooks:
            hook.remove()
