"""Inference mode may write over tensors nobody can want again; everything else sees the formula."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from bertkit.batch import Packed, collate
from bertkit.family import encoder
from bertkit.parts.feed import ACTIVATIONS
from bertkit.parts.residual import add
from bertkit.runtime.stream import example


def test_add_keeps_its_inputs_unless_in_inference_mode() -> None:
    x, out = torch.randn(3, 4), torch.randn(3, 4)
    expected, kept = x + out, out.clone()
    with torch.no_grad():
        assert torch.equal(add(x, out), expected)
        assert torch.equal(out, kept)
    with torch.inference_mode():
        assert torch.equal(add(x, out.clone()), expected)
        assert add(x, out.bfloat16()).dtype == torch.float32, "never narrower than what went in"


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_the_same_in_every_mode(name: str) -> None:
    x = torch.linspace(-4, 4, 999)
    expected = {"gelu": F.gelu(x), "gelu_tanh": F.gelu(x, approximate="tanh"), "relu": F.relu(x)}[name]
    with torch.no_grad():
        kept = x.clone()
        assert torch.equal(ACTIVATIONS[name](kept), expected)
        assert torch.equal(kept, x), "a hook may still hold it"
    with torch.inference_mode():
        assert torch.equal(ACTIVATIONS[name](x.clone()), expected)


def test_an_encoder_gives_the_same_bits_in_every_mode() -> None:
    torch.manual_seed(0)
    network = encoder("bert-tiny", 99).build().eval()
    batch = collate([example(range(1, length)) for length in (9, 5, 5, 30)], Packed)
    expected = network(batch).detach()
    with torch.inference_mode():
        assert torch.equal(network(batch), expected)
        assert torch.equal(network(batch), expected), "the weights are as they were"
