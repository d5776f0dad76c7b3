"""A few layers stand for a network: those of its shape, and no fewer than have enough to multiply."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertkit.family import albert, bert
from bertkit.parts.encoder import Encoder
from bertkit.runtime.excerpt import ENOUGH, excerpt, shortened, sizes
from tests.runtime.networks import ENCODERS


@pytest.mark.parametrize(
    ("size", "layers"), [("tiny", 2), ("mini", 4), ("small", 4), ("medium", 4), ("base", 2), ("large", 1)]
)
def test_layers_are_so_many_that_they_have_enough_or_all(size: str, layers: int) -> None:
    encoder = bert.encoder(size, 30522)
    made = excerpt(encoder)
    spec = made.spec.encoder
    assert len(spec.order) == len(spec.attentions) == len(spec.feeds) == layers
    blocks = [*made.encoder.attentions.parameters(), *made.encoder.feeds.parameters()]
    held = sum(value.numel() for value in blocks if value.dim() == 2)
    assert sum(sizes(spec)) == held
    assert held >= ENOUGH or layers == len(encoder.order)
    assert held * (layers - 1) / layers < ENOUGH
    assert replace(spec, attentions=(), feeds=(), order=(), embed=encoder.embed) == replace(
        encoder, attentions=(), feeds=(), order=()
    )


@pytest.mark.parametrize(("share", "blocks"), [("all", (1, 1)), ("attention", (1, 2)), ("feed", (2, 1))])
def test_blocks_that_are_shared_stay_so(share: str, blocks: tuple[int, int]) -> None:
    encoder = albert.encoder("base", 30000, share)
    spec = shortened(encoder)
    assert (len(spec.attentions), len(spec.feeds), len(spec.order)) == (*blocks, 2)
    assert sum(sizes(encoder)) == len(encoder.order) * sizes(spec)[0]


def test_blocks_that_differ_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = ENCODERS["blocks of all kinds"]
    assert shortened(encoder) == encoder
    assert sizes(encoder) == [32 * (4 * 24 + 2 * 24), 32 * (4 * 32 + 2 * 40), 32 * (4 * 24 + 2 * 48), 32 * (128 + 48)]
    monkeypatch.setattr("bertkit.runtime.excerpt.ENOUGH", sizes(encoder)[0] + 1)
    few = shortened(encoder)
    one, two = encoder.feeds[0], encoder.feeds[1]
    assert (few.attentions, few.feeds, few.order) == (encoder.attentions, (one, two), ((0, 1), (1, 0)))


@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())
def test_nothing_else_that_is_drawn_notices(encoder: Encoder) -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    excerpt(encoder)
    assert torch.equal(torch.rand(3), expected)
