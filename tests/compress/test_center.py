"""A centred network says the same, and what it rounds is nearer to zero."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bertkit
from bertkit.batch import Batch, collate
from bertkit.compress.center import _middle, _shares, center
from bertkit.compress.suffering import suffering
from bertkit.runtime.stream import example
from bertkit.text import Tokenizer

TEXTS = ["the cat sat on a mat .", "a dog runs fast", "slow house , playing !", "猫 坐", "the dog"]


def drawn(name: str, tokenizer: Tokenizer) -> bertkit.Model:
    """A network in which an error anywhere shows, with a dimension that is far from zero for every token."""
    model = bertkit.create(name, tokenizer, seed=0)
    torch.manual_seed(0)
    for parameter in model.network.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    with torch.no_grad():
        for part in (*model.encoder.attentions, *model.encoder.feeds):
            part.norm.bias[3] = 25.0
    return model


def batches(model: bertkit.Model) -> list[Batch]:
    return [collate([example(ids)]) for ids in model.tokenizer.ids_of_many(TEXTS)]


@pytest.mark.parametrize("name", ["bert-tiny", "roberta-tiny", "nezha-tiny", "electra-tiny"])
def test_it_says_the_same(name: str, tokenizer: Tokenizer) -> None:
    if name not in bertkit.list_models():
        pytest.skip(f"there is no size {name}")
    model = drawn(name, tokenizer)
    before = model.embed(TEXTS)
    assert center(model.network, batches(model))
    assert np.abs(model.embed(TEXTS) - before).max() < 1e-5 * np.abs(before).max()


def test_what_is_multiplied_is_nearer_to_zero(tokenizer: Tokenizer) -> None:
    model = drawn("bert-tiny", tokenizer)
    seen: list[float] = []
    model.encoder.feeds[1].up.register_forward_pre_hook(lambda module, given: seen.append(float(given[0].abs().max())))
    model.embed(TEXTS)
    before = max(seen)
    assert center(model.network, batches(model))
    seen.clear()
    model.embed(TEXTS)
    assert max(seen) < before / 2


def test_first_tokens_count_as_much_as_all_others() -> None:
    batch = collate([example([2, 5, 3]), example([2, 5, 6, 7, 3]), example([2])])
    firsts = batch.layout.positions(batch.order.device) == 0
    assert _shares(batch).tolist() == [2.0 if first else 1.0 for first in firsts.tolist()]


@pytest.mark.parametrize(("shares", "middle"), [([1.0, 1.0], 5.0), ([3.0, 1.0], 2.5)])
def test_a_middle_is_nearest_by_squares_and_shares(shares: list[float], middle: float) -> None:
    rows = torch.tensor([[0.0, 1.0], [10.0, 1.0]])
    assert _middle(rows, torch.tensor(shares))[0].item() == pytest.approx(middle, abs=0.02)


def test_shared_blocks_stay_as_they_are(tokenizer: Tokenizer) -> None:
    model = bertkit.create("albert-base", tokenizer, seed=0)
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    assert not center(model.network, batches(model))
    assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())


def test_the_matrix_that_suffers_most_is_named_first(tokenizer: Tokenizer) -> None:
    model = drawn("bert-tiny", tokenizer)
    with torch.no_grad():
        for part in (*model.encoder.attentions, *model.encoder.feeds):
            part.norm.bias[3] = 0.0
        model.encoder.attentions[1].norm.bias[7] = 500.0  # what the second block's `up` reads, and is not moved by
        model.encoder.feeds[1].up.weight[:, 7] = 0.0
    ranked = suffering(model.network, batches(model))
    assert ranked[0] == "encoder.feeds.1.up"
    assert sorted(ranked) == sorted(
        f"encoder.{part}" for step in (0, 1) for part in _names(step)
    )  # embeddings are looked up, not multiplied


def _names(step: int) -> list[str]:
    return [f"attentions.{step}.qkv", f"attentions.{step}.out", f"feeds.{step}.up", f"feeds.{step}.down"]
