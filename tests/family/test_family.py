"""What must hold for every file in family/: a new one is tested by existing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

from bertkit import family
from bertkit.batch import Example, Packed, Padded, collate
from bertkit.family import bert, families
from bertkit.parts.heads import Choice, Classify, Mlm, NextSentence, Pooler, Regress, Span, Tag
from bertkit.parts.network import Network
from bertkit.spec import from_json, to_json
from bertkit.weights import directory
from tests.reference import in_order, worst

ALL_HEADS = {"pooler": Pooler(), "mlm": Mlm(), "next_sentence": NextSentence(), "span": Span(), "choice": Choice()}
SMALLEST = {
    name: min(family.sizes.values(), key=lambda size: size(40).width)(40) for name, family in families().items()
}


def examples() -> list[Example]:
    random = np.random.default_rng(0)
    return [
        Example({"ids": random.integers(1, 40, length), "segments": random.integers(0, 2, length)})
        for length in (5, 1, 9, 5, 3)
    ]


@pytest.mark.parametrize("name", families())
def test_packed_equals_padded(name: str) -> None:
    network = Network(SMALLEST[name], ALL_HEADS).build().eval()
    out = []
    for layout in (Padded, Packed):
        batch = collate(examples(), layout)
        hidden = network(batch)
        out.append([in_order(batch, hidden)] + [_ordered(network, head, hidden, batch) for head in ALL_HEADS])
    assert max(worst(a, b) for a, b in zip(*out, strict=True)) <= 1e-5


def _ordered(network, head, hidden, batch):
    logits = network.logits(head, hidden, batch.layout)
    return batch.restore(logits) if len(logits) == 5 and logits.dim() == 2 else in_order(batch, logits)


@pytest.mark.parametrize("name", families())
@pytest.mark.parametrize("layout", [Padded, Packed])
def test_gradients_reach_every_parameter(name: str, layout: type) -> None:
    network = Network(SMALLEST[name], ALL_HEADS).build().train()
    batch = collate(examples(), layout)
    hidden = network(batch)
    sum(network.logits(head, hidden, batch.layout).square().sum() for head in ALL_HEADS).backward()
    assert [name for name, parameter in network.named_parameters() if parameter.grad is None] == []
    idle = [name for name, parameter in network.named_parameters() if not parameter.grad.any()]
    assert idle == []


@pytest.mark.parametrize("name", families())
def test_spec_survives_json(name: str) -> None:
    spec = Network(SMALLEST[name], {**ALL_HEADS, "tag": Tag(("O", "人"))})
    assert from_json(to_json(spec)) == spec


@pytest.mark.parametrize("name", families())
@pytest.mark.parametrize("heads", [{}, {"pooler": Pooler()}, ALL_HEADS], ids=["none", "pooler", "all"])
def test_directory_round_trip_is_exact(name: str, heads: dict, tmp_path) -> None:
    network = Network(SMALLEST[name], heads).build()
    directory.write(network, {"model_type": name}, tmp_path)
    again, config, report = directory.read(tmp_path)
    assert again.spec == network.spec
    assert (report.taken, report.left, report.new) == (tuple(heads), (), ())
    assert config["model_type"] == name
    for (a, x), (b, y) in zip(network.named_parameters(), again.named_parameters(), strict=True):
        assert a == b
        assert torch.equal(x, y)


def count(spec: Network) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in spec.build().parameters())


@pytest.mark.parametrize(("size", "parameters"), {"base": 109_482_240, "large": 335_141_888}.items())
def test_parameter_counts_are_the_papers(size: str, parameters: int) -> None:
    assert count(Network(bert.encoder(size), {"pooler": Pooler()})) == parameters


@pytest.mark.parametrize("size", bert.SIZES)
def test_parameter_counts_are_those_of_transformers(size: str) -> None:
    layers, width = bert.SIZES[size]
    config = transformers.BertConfig(
        hidden_size=width, num_hidden_layers=layers, num_attention_heads=width // 64, intermediate_size=4 * width
    )
    with torch.device("meta"):
        reference = transformers.BertModel(config).num_parameters()
    assert count(Network(bert.encoder(size), {"pooler": Pooler()})) == reference


@pytest.mark.parametrize(
    ("vocabulary", "parameters"),
    {"cased": 108_310_272, "chinese": 102_267_648, "multilingual": 177_853_440}.items(),
)
def test_base_with_the_other_published_vocabularies(vocabulary: str, parameters: int) -> None:
    assert count(Network(bert.encoder("base", bert.VOCABULARIES[vocabulary]), {"pooler": Pooler()})) == parameters


def test_new_weights_are_a_normal_cut_at_two_deviations() -> None:
    torch.manual_seed(0)
    network = Network(
        bert.encoder("tiny"),
        {"pooler": Pooler(), "mlm": Mlm(), "classify": Classify(("no", "yes")), "regress": Regress()},
    ).build()
    table = network.encoder.embed.tokens.weight
    assert table.abs().max() <= 0.04
    assert table.std().item() == pytest.approx(0.02 * 0.8796, rel=0.01)  # the deviation left by the cut
    assert table.mean().abs() < 1e-4
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        else:
            assert parameter.std().item() == pytest.approx(0.0176, rel=0.2), name


def test_names_of_models_lead_to_encoders_and_errors_say_what_exists() -> None:
    assert family.encoder("bert-mini", 100).width == 256
    with pytest.raises(ValueError, match="did you mean 'bert-mini'"):
        family.encoder("bert-mni", 100)
    with pytest.raises(ValueError, match=r"model_type 'gpt2' is not supported; supported: .*bert"):
        family.family_of("gpt2")
