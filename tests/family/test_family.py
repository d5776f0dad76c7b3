"""What must hold for every file in family/: a new one is tested by existing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import bertkit
from bertkit import family
from bertkit.batch import Batch, Example, Packed, Padded, collate, gather
from bertkit.corpus.flat import Flat
from bertkit.family import bert, families
from bertkit.objectives.mask import Vocabulary
from bertkit.objectives.masked_lm import MaskedLm
from bertkit.parts.heads import Choice, Classify, Head, Mlm, Pooler, Regress, Tag
from bertkit.parts.network import Network, NetworkModule
from bertkit.parts.tape import record
from bertkit.spec import from_json, to_json
from bertkit.text import Tokenizer
from bertkit.weights import directory, folder
from tests.reference import in_order, worst

SMALLEST = {name: min(one.sizes.values(), key=lambda size: size(40).width)(40) for name, one in families().items()}
"""an encoder of each family with a vocabulary of 40"""


def heads_of(name: str) -> dict[str, Head]:
    """Every head that files of a family have a place for, as the family has it."""
    one = families()[name]
    config = one.config(Network(SMALLEST[name]))
    filed = {head: place.read(config) for head, place in one.dialect.heads.items()}
    return {**filed, "choice": Choice()}


ALL_HEADS = {name: heads_of(name) for name in families()}


def examples(name: str) -> list[Example]:
    random, segments = np.random.default_rng(0), SMALLEST[name].embed.segments
    return [
        Example({"ids": random.integers(1, 40, length), "segments": random.integers(0, segments, length)})
        for length in (5, 1, 9, 5, 3)
    ]


@pytest.mark.parametrize("name", families())
def test_packed_equals_padded(name: str) -> None:
    network = Network(SMALLEST[name], ALL_HEADS[name]).build().eval()
    out = []
    for layout in (Padded, Packed):
        batch = collate(examples(name), layout)
        hidden = network(batch)
        out.append([in_order(batch, hidden)] + [_ordered(network, head, hidden, batch) for head in ALL_HEADS[name]])
    assert max(worst(a, b) for a, b in zip(*out, strict=True)) <= 1e-5


def _ordered(network: NetworkModule, head: str, hidden: Tensor, batch: Batch) -> Tensor:
    logits = network.logits(head, hidden, batch.layout)
    return in_order(batch, logits) if network.spec.heads[head].reads == "tokens" else batch.restore(logits)


@pytest.mark.parametrize("name", families())
@pytest.mark.parametrize("layout", [Padded, Packed])
def test_fast_equals_eager(name: str, layout: type) -> None:
    """What a tape records, probabilities spelled out, is what runs without one."""
    network = Network(SMALLEST[name]).build().eval()
    batch = collate(examples(name), layout)
    with torch.no_grad():
        tape = record(network.encoder, batch)
        fast = list(network.encoder.steps(batch))
    assert len(fast) == 1 + len(SMALLEST[name].order) == len(tape.hidden)
    real = torch.zeros(5, 9, dtype=torch.bool)
    for row, length in enumerate((5, 1, 9, 5, 3)):
        real[row, :length] = True
    for mine, taped in zip(fast, tape.hidden, strict=True):
        assert worst(in_order(batch, mine)[real], taped[real]) <= 1e-5


@pytest.mark.parametrize("name", families())
@pytest.mark.parametrize("layout", [Padded, Packed])
def test_gradients_reach_every_parameter(name: str, layout: type) -> None:
    network = Network(SMALLEST[name], ALL_HEADS[name]).build().train()
    batch = collate(examples(name), layout)
    hidden = network(batch)
    sum(network.logits(head, hidden, batch.layout).square().sum() for head in ALL_HEADS[name]).backward()
    assert [name for name, parameter in network.named_parameters() if parameter.grad is None] == []
    idle = [name for name, parameter in network.named_parameters() if not parameter.grad.any()]
    assert idle == []


@pytest.mark.parametrize("name", families())
def test_spec_survives_json(name: str) -> None:
    spec = Network(SMALLEST[name], {**ALL_HEADS[name], "tag": Tag(("O", "人"))})
    assert from_json(to_json(spec)) == spec


@pytest.mark.parametrize("name", families())
@pytest.mark.parametrize("heads", ["none", "pooler", "mlm", "all"])
def test_directory_round_trip_is_exact(name: str, heads: str, tmp_path) -> None:
    chosen = {head: spec for head, spec in ALL_HEADS[name].items() if heads in (head, "all")}
    network = Network(SMALLEST[name], chosen).build()
    directory.write(network, {"model_type": name}, tmp_path)
    again, config, report = directory.read(tmp_path)
    assert again.spec == network.spec
    assert (set(report.taken), report.left, report.new) == (set(chosen), (), ())
    assert config["model_type"] == name
    for (a, x), (b, y) in zip(network.named_parameters(), again.named_parameters(), strict=True):
        assert a == b
        assert torch.equal(x, y)


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, one in families().items() for kind in one.dialect.classes]
)
def test_every_class_comes_back_as_itself(name: str, kind: str, tmp_path) -> None:
    one = families()[name]
    config = one.config(Network(SMALLEST[name])) | {"architectures": [kind], "num_labels": 3}
    names = {"tag": one.dialect.classifier, "choice": one.dialect.classifier, "classify": one.dialect.classifier}
    wanted = one.dialect.classes[kind]
    held = {f"{names[head]}.weight" for head in wanted if head in names}
    held |= {row for head in wanted if head not in names for row in one.dialect.heads[head].rows(head).values()}
    heads = one.dialect.read_heads(config, frozenset(held))
    assert set(heads) == set(wanted)
    network = Network(SMALLEST[name], heads).build()
    directory.write(network, {"model_type": name}, tmp_path)
    again, written, report = directory.read(tmp_path)
    assert written["architectures"] == [kind]
    assert (again.spec, report.left) == (network.spec, ())


@pytest.mark.parametrize("name", families())
def test_every_size_can_be_written_and_read(name: str) -> None:
    one = families()[name]
    for build in one.sizes.values():
        spec = Network(build(1000), heads_of(name))
        assert one.read_encoder(one.config(spec)) == spec.encoder


WORDS = "the cat dog sat on a mat play ##ing ##ed un ##able runs fast slow house . , ! 猫 狗 坐"
TOKENIZER = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()])


@pytest.mark.parametrize("name", families())
def test_limits_are_told_without_the_network(name: str, tmp_path) -> None:
    directory.write(Network(SMALLEST[name]).build(), {"model_type": name}, tmp_path)
    for limit in (10, 10_000):
        tokenizer = Tokenizer.from_vocabulary(TOKENIZER.vocabulary, limit=limit)
        model = bertkit.Model(Network(SMALLEST[name]).build(), tokenizer)
        assert folder.limit_of(tmp_path, tmp_path, tokenizer) == model.limit


@pytest.mark.parametrize("name", families())
def test_a_saved_model_embeds_as_before(name: str, tmp_path) -> None:
    model = bertkit.Model(Network(SMALLEST[name]).build(), TOKENIZER, config={"model_type": name})
    texts = ["the cat sat on a mat .", "dog", "", "猫 坐 , playing !", "unable " * 300]
    vectors = model.embed(texts)
    assert vectors.shape == (5, SMALLEST[name].width)
    model.save(tmp_path / "model")
    again = bertkit.load(tmp_path / "model")
    assert np.array_equal(again.embed(texts), vectors)
    alone = np.concatenate([again.embed([text]) for text in texts])
    assert np.abs(alone - vectors).max() <= 1e-5


@pytest.mark.parametrize("name", families())
def test_it_learns_masked_tokens(name: str) -> None:
    """Sixty steps on twelve words in one order: the loss falls below what knowing the words alone would give."""
    torch.manual_seed(0)
    objective = MaskedLm()
    network = Network(SMALLEST[name], objective.heads).build().train()
    learner = objective.learner(network)
    optimizer = torch.optim.Adam(learner.parameters(), lr=2e-3)
    losses = []
    for step in range(60):
        flat = objective.corrupt(told(step), Vocabulary.of(TOKENIZER))
        batch = gather({"ids": flat.ids, "segments": flat.segments}, flat.lengths, flat.marks, flat.labels, Packed)
        asked = learner(batch)["mlm"]
        loss = asked.loss / objective.counts(batch)["mlm"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[:3]) > 3
    assert np.mean(losses[-10:]) < np.log(12) - 0.2


def told(step: int) -> Flat:
    """Sixteen times the same twelve words, as examples of a step."""
    row = np.array([2, *range(5, 17), 3], np.uint16)
    ids, starts = np.tile(row, 16), np.arange(17) * len(row)
    keys = np.random.default_rng(step).integers(0, 2**63, 16).astype(np.uint64)
    return Flat(ids, np.zeros(len(ids), np.uint8), np.ones(len(ids), bool), starts, keys)


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
