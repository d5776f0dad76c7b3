"""Dropout: where it is, how much, and that it is gone at inference."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertkit.batch import Packed, Padded
from bertkit.family import bert
from bertkit.parts.attention import Attention
from bertkit.parts.embed import Embed
from bertkit.parts.feed import Feed
from bertkit.parts.residual import add
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
    """Embeddings, attention probabilities, attention output, feed-forward output; each alone is felt."""
    spec = bert.encoder("tiny", 50)
    rates = [spec.embed.dropout]
    rates += [rate for block in spec.attentions for rate in (block.dropout, block.look_dropout)]
    rates += [block.dropout for block in spec.feeds]
    assert rates == [0.1] * 7
    embed, attention, feed = spec.embed, spec.attentions[0], spec.feeds[0]
    none = replace(embed, dropout=0.0), replace(attention, dropout=0.0, look_dropout=0.0), replace(feed, dropout=0.0)

    def felt(embed: Embed, attention: Attention, feed: Feed) -> bool:
        torch.manual_seed(0)
        made = replace(spec, embed=embed, attentions=(attention, none[1]), feeds=(feed, none[2])).build()
        return not torch.equal(made.train()(batch), made.eval()(batch))

    batch = inputs([7, 7, 3], 50).ours(Packed)
    assert not felt(*none)
    assert felt(embed, *none[1:])
    assert felt(none[0], replace(none[1], dropout=0.1), none[2])
    assert felt(none[0], replace(none[1], look_dropout=0.1), none[2])
    assert felt(*none[:2], feed)


def test_a_residual_loses_its_share_and_scales_the_rest() -> None:
    torch.manual_seed(0)
    x, out = torch.randn(100, 200), torch.full((100, 200), 3.0)
    added = add(x, out, dropout=0.25) - x
    zero = added.abs() < 1e-5
    assert zero.float().mean().item() == pytest.approx(0.25, abs=0.01)
    torch.testing.assert_close(added[~zero], out[~zero] / 0.75)
