"""Dropout: where it is, how much, and that it is gone at inference."""

from __future__ import annotations

import pytest
import torch

from bertkit.batch import Packed, Padded
from bertkit.family import bert
from tests.reference import inputs


@pytest.mark.parametrize("layout", [Padded, Packed])
def test_train_mode_draws_anew_and_eval_mode_does_not(layout: type) -> None:
    encoder = bert.encoder("tiny", 50).build()
    batch = inputs([7, 7, 3], 50).ours(layout)
    encoder.train()
    assert not torch.equal(encoder(batch), encoder(batch))
    encoder.eval()
    assert torch.equal(encoder(batch), encoder(batch))


@pytest.mark.parametrize("layout", [Padded, Packed])
def test_embeddings_lose_a_tenth_and_scale_the_rest(layout: type) -> None:
    torch.manual_seed(0)
    embed = bert.encoder("tiny", 50).build().embed
    batch = inputs([400] * 8, 50).ours(layout)
    kept = embed.eval()(batch)
    dropped = embed.train()(batch)
    zero = dropped == 0
    assert zero.float().mean().item() == pytest.approx(0.1, abs=0.005)
    torch.testing.assert_close(dropped[~zero], kept[~zero] / 0.9)


def test_every_place_of_the_paper_has_the_rate_of_its_spec() -> None:
    """Embeddings, attention output, feed-forward output: 1 + 2 per layer."""
    encoder = bert.encoder("tiny", 50).build()
    rates = [part.p for part in encoder.modules() if isinstance(part, torch.nn.Dropout)]
    assert rates == [0.1] * 5
    assert [attention.spec.look_dropout for attention in encoder.attentions] == [0.1] * 2
