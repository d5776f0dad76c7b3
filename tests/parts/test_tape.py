"""The probe shows what transformers shows: hidden states, probabilities, queries and keys of every layer."""

from __future__ import annotations

import pytest
import torch
import transformers

from bertkit.batch import Packed, Padded
from bertkit.parts.tape import record
from bertkit.weights import directory
from tests.reference import inputs, save, worst


@pytest.mark.parametrize("layout", [Padded, Packed])
def test_a_recording_equals_transformers(layout: type, tmp_path) -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=12,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=20,
        attn_implementation="eager",
    )
    model = transformers.BertModel(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    network, _, _ = directory.read(save(model, tmp_path))
    data = inputs([4, 9, 2, 4], 50)
    keys = []
    for layer in model.encoder.layer:
        layer.attention.self.key.register_forward_hook(lambda _, __, out: keys.append(out))
    expected = model(**data.theirs(), output_hidden_states=True, output_attentions=True)
    tape = record(network.encoder, data.ours(layout))

    assert (len(tape.hidden), len(tape.probabilities), len(tape.keys)) == (4, 3, 3)
    real = data.mask.bool()
    for mine, reference in zip(tape.hidden, expected.hidden_states, strict=True):
        assert worst(mine[real], reference[real]) <= 1e-5
        assert not mine[~real].any()
    both = real[:, None, :, None] & real[:, None, None, :]  # query and key are tokens
    for mine, reference in zip(tape.probabilities, expected.attentions, strict=True):
        assert worst(mine, reference * both) <= 1e-5
    for mine, reference in zip(tape.keys, keys, strict=True):
        heads = reference.view(4, 9, 3, 4).transpose(1, 2)  # [B, N, L, H]
        assert worst(mine, heads * real[:, None, :, None]) <= 1e-5
    scores = tape.queries[1] @ tape.keys[1].transpose(-1, -2) / 2  # √4
    again = scores.masked_fill(~real[:, None, None, :], -torch.inf).softmax(-1)
    assert worst(again * both, tape.probabilities[1]) <= 1e-5


def test_recording_changes_nothing() -> None:
    from bertkit.family import bert

    encoder = bert.encoder("tiny", 50).build().eval()
    batch = inputs([4, 9], 50).ours(Packed)
    plain = encoder(batch)
    tape = record(encoder, batch)
    torch.testing.assert_close(tape.hidden[-1], batch.restore(batch.layout.to_padded(plain)), rtol=0, atol=1e-6)
