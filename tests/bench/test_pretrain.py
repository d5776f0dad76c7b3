"""The workload `pretrain`: both sides learn the same, operations are those that torch counts, time has its parts."""

from __future__ import annotations

import numpy as np
import pytest
from torch.utils.flop_counter import FlopCounterMode

from bench import measure, peer, pretrain
from bench.child import Fresh
from bench.measure import Weighing
from bench.peers import bertkit as ours
from bench.peers import transformers as theirs
from bench.pretrain import CHECKED, PEER, Shape, Work
from bertkit import family

SHAPE = Shape(rows=3, length=24, batches=2)


@pytest.fixture(autouse=True)
def _place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "HOME", tmp_path_factory.getbasetemp() / "bench")  # weights are drawn once


@pytest.fixture
def work(without_shared: None) -> Work:
    """Sentences of many lengths, for the smallest network."""
    return pretrain.work("tiny-mixed", SHAPE)


def opened(contestant: object, work: Work) -> Fresh:
    made: Fresh = contestant.pretrain(**work.arguments, array=work.array)  # type: ignore[attr-defined]
    return made


def test_both_sides_learn_the_same(work: Work) -> None:
    answers = [opened(contestant, work).answer(None) for contestant in (ours, theirs)]
    assert answers[0].shape == (CHECKED,)
    assert measure.agrees(*answers)

    arguments = {**work.arguments, "labels": work.arguments["labels"][::-1]}
    turned = opened(ours, work._replace(array=work.array[::-1].copy(), arguments=arguments)).answer(None)
    assert abs(answers[0][1] - turned[0]) > 10 * measure.TOLERANCE  # the second loss is one after an update


def test_dropout_is_on_while_time_is_taken(work: Work) -> None:
    for contestant in (ours, theirs):
        job = opened(contestant, work)
        drawn = [job.call(None) for _ in range(2 * SHAPE.batches)]
        losses = [getattr(found, "loss", found) for found in drawn]
        assert np.isfinite(losses).all()
        assert not measure.agrees(np.array(losses[:CHECKED]), job.answer(None))


def test_batches_are_the_examples(work: Work) -> None:
    for planes, follows in zip(work.array, work.arguments["labels"], strict=True):
        there = planes[0] > 0
        lengths = there.sum(1)
        assert len(set(lengths.tolist())) > 1
        packed, padded = ours._packed(*planes, {}), theirs._padded(*planes, {"next": follows})
        assert packed.layout.rows == SHAPE.rows
        assert len(packed.tokens["ids"]) == there.sum() == padded["attention_mask"].sum()
        assert padded["input_ids"].shape == (SHAPE.rows, lengths.max())
        at, true = packed.marks["mlm"]
        wanted = padded["labels"][padded["labels"] != -100]
        assert sorted(true.tolist()) == sorted(wanted.tolist())
        assert len(at) == len(wanted)
        assert set(planes[1][there].tolist()) == {0, 1}
        assert not planes[1:, ~there].any()
    assert work.tokens == (work.array[:, 0] > 0).sum() / SHAPE.batches


def test_operations_of_a_step_are_those_that_torch_counts(work: Work) -> None:
    job = opened(ours, work)
    with FlopCounterMode(display=False) as counter:
        for _ in range(SHAPE.batches):
            job.call(None)
    assert work.flops == counter.get_total_flops() / SHAPE.batches


def test_rectangles_are_full() -> None:
    full = pretrain.work("tiny", SHAPE)
    ids, segments, true = full.array.swapaxes(0, 1)
    assert (ids > 0).all()
    assert full.tokens == SHAPE.rows * SHAPE.length
    assert 0.1 < (true > 0).mean() < 0.2
    assert set(segments.ravel().tolist()) == {0, 1}
    assert full.real
    encoder = family.encoder("bert-tiny", 30_522)
    assert full.array[:, 2].max() < encoder.embed.vocabulary


@pytest.mark.usefixtures("without_shared")
def test_bars_hold_for_real_lengths_and_memory_only() -> None:
    full, memory, mixed = pretrain.cases(quick=True)
    assert str(full.bars[PEER]) == "≥ 2.7"
    assert "python-docs" in mixed.name
    assert not mixed.bars
    assert isinstance(memory, Weighing)
    assert str(memory.bars[PEER]) == "≤ 0.5"


def test_the_parts_of_a_step_are_all_of_it(work: Work) -> None:
    job = opened(ours, work)
    parts = pretrain.profiled(lambda: job.call(None), calls=2)
    for name in ("matrix products", "attention", "GELU", "layer norm", "vocabulary loss", "optimizer and clipping"):
        assert parts[name].seconds > 0, name
    dropout = parts["dropout, with the sums around blocks"]
    assert dropout.operators >= 2 * 3 + 1  # two blocks of each layer, probabilities, and the embeddings
    assert parts["matrix products"].flops + parts["attention"].flops == pytest.approx(work.flops, rel=0.05)
    assert all(part.seconds >= 0 for part in parts.values())
    shown = pretrain.to_markdown(work.title, parts, seconds=0.1, peak=1e11)
    shares = [float(line.split("|")[3].strip(" %")) for line in shown.splitlines()[4:]]
    assert sum(shares) == pytest.approx(100, abs=1)
    assert shares == sorted(shares, reverse=True)


def test_an_unknown_case_is_told_what_exists(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        pretrain.main(["--profile", "huge"])
    assert "mini-mixed" in capsys.readouterr().err
