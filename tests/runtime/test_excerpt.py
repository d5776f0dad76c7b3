"""A few layers stand for a network: those of its shape, and no fewer than wait for memory as all of them do."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertkit.family import albert, bert
from bertkit.parts.encoder import Encoder
from bertkit.runtime.excerpt import ENOUGH, excerpt, shortened
from tests.runtime.networks import ENCODERS


@pytest.mark.parametrize(
    ("size", "layers"), [("tiny", 2), ("mini", 4), ("small", 4), ("medium", 6), ("base", 3), ("large", 2)]
)
def test_layers_are_so_many_that_no_cache_holds_them_or_all(size: str, layers: int) -> None:
    encoder = bert.encoder(size, 30522)
    made = excerpt(encoder)
    spec = made.spec.encoder
    assert len(spec.order) == len(spec.attentions) == len(spec.feeds) == layers
    blocks = [*made.encoder.attentions.parameters(), *made.encoder.feeds.parameters()]
    held = sum(4 * value.numel() for value in blocks if value.dim() == 2)
    assert held >= ENOUGH or layers == len(encoder.order)
    assert held * (layers - 1) / layers < ENOUGH
    assert replace(spec, attentions=(), feeds=(), order=(), embed=encoder.embed) == replace(
        encoder, attentions=(), feeds=(), order=()
    )


@pytest.mark.parametrize(("share", "blocks"), [("all", (1, 1)), ("attention", (1, 3)), ("feed", (3, 1))])
def test_blocks_that_are_shared_stay_so(share: str, blocks: tuple[int, int]) -> None:
    spec = shortened(albert.encoder("base", 30000, share))
    assert (len(spec.attentions), len(spec.feeds), len(spec.order)) == (*blocks, 3)


def test_where_blocks_differ_none_is_left_out() -> None:
    encoder = ENCODERS["blocks of all kinds"]
    assert shortened(encoder) == encoder


@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())
def test_nothing_else_that_is_drawn_notices(encoder: Encoder) -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    excerpt(encoder)
    assert torch.equal(torch.rand(3), expected)
