"""Whatever changes in a network is seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bertkit.parts.network import NetworkModule
from bertkit.runtime.watch import Watch
from tests.runtime.networks import ENCODERS, network

Change = Callable[[NetworkModule], object]


@torch.no_grad()
def _learn(net: NetworkModule) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for weight in net.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()


def _other_weight(net: NetworkModule) -> None:
    net.encoder.feeds[0].up.bias = nn.Parameter(net.encoder.feeds[0].up.bias.detach().clone())


def _other_part(net: NetworkModule) -> None:
    net.encoder.feeds[0].norm = nn.LayerNorm(net.spec.encoder.width)


def _other_data(net: NetworkModule) -> None:
    net.encoder.attentions[1].out.weight.data = net.encoder.attentions[1].out.weight.data.clone()


CHANGES: dict[str, Change] = {
    "a step of an optimizer": _learn,
    "one value written": lambda net: net.encoder.feeds[1].down.bias.detach().__setitem__(3, 1.0),
    "weights read from a file": lambda net: net.load_state_dict(net.state_dict()),
    "another kind of numbers": lambda net: net.double(),
    "a new vocabulary": lambda net: net.grow(net.spec.encoder.embed.vocabulary + 1),
    "another weight": _other_weight,
    "another part": _other_part,
    "another tensor's values": _other_data,
    "a part less": lambda net: net.encoder.feeds.__delitem__(1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_seen(change: str) -> None:
    net = network(ENCODERS["bert"])
    watch = Watch(net)
    assert not watch.changed()
    CHANGES[change](net)
    assert watch.changed()
    assert not Watch(net).changed()


def test_weights_made_in_inference_mode_are_watched_by_their_place() -> None:
    with torch.inference_mode():
        net = network(ENCODERS["bert"])
    watch = Watch(net)
    assert not watch.changed()
    _other_weight(net)
    assert watch.changed()
