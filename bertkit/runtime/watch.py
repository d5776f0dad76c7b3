"""Has a network changed since something was made of it? Asked with every query, so nothing here is a loop in Python."""

from __future__ import annotations

from operator import attrgetter, getitem, is_
from typing import Any

from torch import Tensor, nn

_versions = attrgetter("_version")


class Watch:
    """Remembers a network's parts and weights: which they are, where they lie, and how often each was written to.

    >>> layer = nn.Linear(2, 2)
    >>> watch = Watch(layer)
    >>> watch.changed()
    False
    >>> _ = layer.requires_grad_(False).bias.mul_(2)
    >>> watch.changed()
    True
    """

    def __init__(self, network: nn.Module) -> None:
        parts = list(network.modules())
        places = [place for part in parts for place in (part._modules, part._parameters)]
        slots = [(place, name) for place in places for name in place]
        self._places: list[dict[str, Any]] = [place for place, _ in slots]
        self._names = [name for _, name in slots]
        self._held = list(map(getitem, self._places, self._names))
        self._weights = [value for value in self._held if isinstance(value, Tensor)]
        self._counted = [weight for weight in self._weights if not weight.is_inference()]
        self._state = self._now()

    def changed(self) -> bool:
        """Whether a part or a weight is another one, lies elsewhere, or was written to in a way that torch counts."""
        try:
            same = all(map(is_, map(getitem, self._places, self._names), self._held))
        except KeyError:  # one was taken out
            return True
        return not same or self._now() != self._state

    def _now(self) -> tuple[list[int], list[int]]:
        return list(map(Tensor.data_ptr, self._weights)), list(map(_versions, self._counted))
