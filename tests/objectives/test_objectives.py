"""Losses and gradients are those of transformers' BertForPreTraining; objectives add up, each with its own count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

import bertkit
from bertkit.batch import Batch, Packed, gather
from bertkit.corpus.flat import Flat
from bertkit.errors import BertkitError
from bertkit.family import bert
from bertkit.model import Model
from bertkit.objectives.mask import Mask, Vocabulary
from bertkit.objectives.masked_lm import MaskedLm
from bertkit.objectives.objective import Objective, Sum
from bertkit.objectives.pairs import Nsp, Sop
from bertkit.parts.attention import Attention
from bertkit.parts.embed import Embed
from bertkit.parts.feed import Feed
from bertkit.parts.heads import Mlm, NextSentence, Pooler
from bertkit.parts.network import Network, NetworkModule
from bertkit.parts.positions import Learned
from bertkit.spec import from_json, to_json
from bertkit.text import Tokenizer
from tests.reference import LAYOUTS, gradients, worst

TOLERANCE = 1e-5
LENGTHS = [9, 14, 5, 14, 23, 6]


def pairs(tokenizer: Tokenizer, label: str, lengths: list[int] = LENGTHS) -> Flat:
    """Pairs of random tokens of these lengths: [CLS] A [SEP] B [SEP]."""
    random = np.random.default_rng(0)
    ids, segments = [], []
    for length in lengths:
        row, middle = random.integers(5, len(tokenizer), length), int(random.integers(2, length - 2))
        row[0], row[middle], row[-1] = tokenizer.cls_id, tokenizer.sep_id, tokenizer.sep_id
        ids.append(row.astype(np.uint16))
        segments.append((np.arange(length) > middle).astype(np.uint8))
    starts, keys = np.cumsum([0, *lengths]), random.integers(0, 2**63, len(lengths)).astype(np.uint64)
    flat, labels = np.concatenate(ids), {label: random.integers(0, 2, len(lengths))}
    return Flat(flat, np.concatenate(segments), np.ones(len(flat), bool), starts, keys, labels)


def batch_of(flat: Flat, layout: type = Packed) -> Batch:
    return gather({"ids": flat.ids, "segments": flat.segments}, flat.lengths, flat.marks, flat.labels, layout)


def drawn_wide(tokenizer: Tokenizer, objective: Objective) -> Model:
    """A small BERT without dropout, its weights drawn wide, so that an error anywhere shows."""
    embed = Embed(len(tokenizer), 32, Learned(40), dropout=0.0)
    attention, feed = Attention(2, 16, dropout=0.0, look_dropout=0.0), Feed(64, dropout=0.0)
    torch.manual_seed(0)
    encoder = bert.stack(2, 32, embed, attention, feed, spread=0.15)
    network = Network(encoder, objective.heads).build()
    for parameter in network.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=0.5, std=0.15)
    return Model(network, tokenizer)


def means(objective: Objective, network: NetworkModule, batch: Batch) -> dict[str, Tensor]:
    """The mean loss of each question."""
    asked, counts = objective.loss(network, network(batch), batch), objective.counts(batch)
    assert asked.keys() == counts.keys()
    return {name: asked[name].loss / counts[name] for name in asked}


def theirs(flat: Flat, label: str) -> dict[str, Tensor]:
    """The same examples as transformers takes them."""
    rows, longest = len(flat), int(flat.lengths.max())
    ids, segments, mask = (torch.zeros(rows, longest, dtype=torch.int64) for _ in range(3))
    wanted = torch.full((rows, longest), -100)
    at, true = flat.marks["mlm"]
    for row, (start, stop) in enumerate(pairwise(flat.starts)):
        ids[row, : stop - start] = torch.from_numpy(flat.ids[start:stop].astype(np.int64))
        segments[row, : stop - start] = torch.from_numpy(flat.segments[start:stop].astype(np.int64))
        mask[row, : stop - start] = 1
        inside = (at >= start) & (at < stop)
        wanted[row, at[inside] - start] = torch.from_numpy(true[inside])
    given = {"input_ids": ids, "token_type_ids": segments, "attention_mask": mask, "labels": wanted}
    return given | {"next_sentence_label": torch.from_numpy(flat.labels[label])}


@pytest.mark.parametrize(
    ("objective", "label"), [(MaskedLm() + Nsp(), "next"), (Sop() + MaskedLm(), "order")], ids=["mlm+nsp", "sop+mlm"]
)
def test_loss_and_gradients_equal_transformers(
    objective: Sum, label: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    made = drawn_wide(tokenizer, objective)
    reference = transformers.BertForPreTraining.from_pretrained(made.save(tmp_path / "model")).train()
    flat = objective.corrupt(pairs(tokenizer, label), Vocabulary.of(tokenizer))
    expected = reference(**theirs(flat, label))
    expected.loss.backward()
    answers = {"mlm": expected.prediction_logits.argmax(-1), label: expected.seq_relationship_logits.argmax(-1)}
    wanted = {"mlm": theirs(flat, label)["labels"], label: theirs(flat, label)["next_sentence_label"]}

    network = made.network.train()
    for layout in LAYOUTS:
        batch = batch_of(flat, layout)
        network.zero_grad()
        found = means(objective, network, batch)
        assert abs(float(sum(found.values()).detach() - expected.loss.detach())) <= TOLERANCE
        sum(found.values()).backward()
        mine = gradients(network)
        for name, parameter in reference.named_parameters():
            assert worst(mine[name], parameter.grad) <= TOLERANCE, (layout, name)
            apart = float((mine[name] - parameter.grad).norm())
            assert apart <= TOLERANCE * float(parameter.grad.norm()) + 1e-7, "also where gradients are small"
        for name, asked in objective.loss(network, network(batch), batch).items():
            assert int(asked.right) == int((answers[name] == wanted[name]).sum())


def test_a_new_model_of_a_published_size_learns_as_transformers_does(tokenizer: Tokenizer, tmp_path: Path) -> None:
    objective = MaskedLm() + Nsp()
    heads = objective.heads
    made = bertkit.create("bert-tiny", tokenizer, heads, seed=0)  # not training, so that nothing is dropped
    reference = transformers.BertForPreTraining.from_pretrained(made.save(tmp_path / "model")).eval()
    flat = objective.corrupt(pairs(tokenizer, "next"), Vocabulary.of(tokenizer))
    expected = reference(**theirs(flat, "next"))
    expected.loss.backward()
    found = sum(means(objective, made.network, batch_of(flat)).values())
    found.backward()
    assert abs(float(found.detach() - expected.loss.detach())) <= TOLERANCE
    mine = gradients(made.network)
    assert max(worst(mine[name], parameter.grad) for name, parameter in reference.named_parameters()) <= TOLERANCE


def test_counts_are_known_before_the_network_runs(tokenizer: Tokenizer) -> None:
    objective = Sop() + MaskedLm(Mask(rate=0.3))
    flat = objective.corrupt(pairs(tokenizer, "order"), Vocabulary.of(tokenizer))
    inner = [length - 3 for length in LENGTHS]
    assert objective.counts(batch_of(flat)) == {"order": 6, "mlm": sum(max(1, round(0.3 * count)) for count in inner)}
    assert list(flat.labels) == ["order"], "what others asked is kept"


def test_small_batches_add_up_to_a_large_one(tokenizer: Tokenizer) -> None:
    """Sums over counts of the whole are its mean, also where small batches ask for unequal numbers, or for nothing."""
    objective = MaskedLm() + Nsp()
    made = drawn_wide(tokenizer, objective).network
    parts = list(small(objective, tokenizer))
    whole = means(objective, made, batch_of(together(parts)))
    sum(whole.values()).backward()
    expected = {name: parameter.grad.clone() for name, parameter in made.named_parameters()}
    made.zero_grad()
    counts = {name: sum(objective.counts(batch_of(part))[name] for part in parts) for name in ("mlm", "next")}
    for part in parts:
        asked = objective.loss(made, made(batch_of(part)), batch_of(part))
        sum(asked[name].loss / counts[name] for name in counts).backward()
    for name, parameter in made.named_parameters():
        assert float((parameter.grad - expected[name]).norm()) <= 1e-6 * float(expected[name].norm()) + 1e-8, name


def small(objective: Objective, tokenizer: Tokenizer) -> Iterator[Flat]:
    """Batches of 3, 1 and 2 examples; nothing is masked in the second."""
    vocabulary = Vocabulary.of(tokenizer)
    for lengths in ([9, 30, 5], [7], [14, 14]):
        flat = objective.corrupt(pairs(tokenizer, "next", lengths), vocabulary)
        if len(lengths) == 1:
            flat.marks["mlm"] = tuple(values[:0] for values in flat.marks["mlm"])
        yield flat


def together(parts: list[Flat]) -> Flat:
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ("ids", "segments", "words", "keys")
    }
    starts = np.cumsum([0, *np.concatenate([part.lengths for part in parts])])
    offsets = np.cumsum([0, *(len(part.ids) for part in parts)])
    at = np.concatenate([part.marks["mlm"][0] + offset for part, offset in zip(parts, offsets, strict=False)])
    marks = {"mlm": (at, np.concatenate([part.marks["mlm"][1] for part in parts]))}
    labels = {"next": np.concatenate([part.labels["next"] for part in parts])}
    return Flat(starts=starts, labels=labels, marks=marks, **columns)


def test_heads_are_shared_by_name() -> None:
    encoder = replace(bert.encoder("tiny"), feeds=(Feed(512, "relu"),) * 2)
    assert (Nsp() + MaskedLm()).heads == {"pooler": Pooler(), "next_sentence": NextSentence(), "mlm": Mlm()}
    assert MaskedLm().heads == {"mlm": Mlm()}, "RoBERTa's has no pooler"
    on = Network(encoder, MaskedLm().heads).heads
    assert on == {"mlm": Mlm("relu", encoder.embed.epsilon)}, "the encoder fills in what is left open"


def test_an_objective_is_asked_once() -> None:
    with pytest.raises(BertkitError, match=r"MaskedLm is in MaskedLm \+ Nsp \+ MaskedLm more than once"):
        MaskedLm() + Nsp() + MaskedLm(Mask(rate=0.4))
    with pytest.raises(BertkitError, match=r"Nsp is in Nsp \+ Nsp more than once"):
        Nsp() + Nsp()


def test_sums_are_flat_and_go_to_json_and_back() -> None:
    total = Sop() + (MaskedLm(Mask(rate=0.3)) + Nsp())
    assert total.parts == (Sop(), MaskedLm(Mask(rate=0.3)), Nsp())
    assert from_json(to_json(total)) == total


def test_a_question_that_the_inputs_cannot_answer(tokenizer: Tokenizer) -> None:
    flat, vocabulary = pairs(tokenizer, "next"), Vocabulary.of(tokenizer)
    with pytest.raises(
        BertkitError, match=r"Sop asks for the label 'order', but these inputs have next. Take OrderPairs"
    ):
        (Sop() + MaskedLm()).corrupt(flat, vocabulary)
    assert Nsp().corrupt(flat, vocabulary) is flat


def test_a_network_without_the_head_says_so(tokenizer: Tokenizer) -> None:
    made = drawn_wide(tokenizer, Nsp())
    flat = MaskedLm().corrupt(pairs(tokenizer, "next"), Vocabulary.of(tokenizer))
    batch = batch_of(flat)
    with pytest.raises(BertkitError, match=r"no 'mlm' head. Its heads: pooler, next_sentence"):
        MaskedLm().loss(made.network, made.network(batch), batch)
