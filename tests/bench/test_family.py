"""The workload `family`: both sides learn the same, and NEZHA stands beside a BERT."""

from __future__ import annotations

import numpy as np
import pytest

from bench import family, measure, peer
from bench.family import BERT, VARIANTS
from bench.peers import bertkit as ours
from bench.peers import bertkit_bert as bert
from bench.peers import transformers as theirs
from bench.pretrain import CHECKED, PEER, Shape

SHAPE = Shape(rows=3, length=24, batches=2)


@pytest.fixture(autouse=True)
def _place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "HOME", tmp_path_factory.getbasetemp() / "bench")  # weights are drawn once


@pytest.mark.parametrize("name", [name for name, variant in VARIANTS.items() if variant.peer == PEER])
def test_both_sides_learn_the_same(name: str) -> None:
    arguments, array = family.work(name, SHAPE, "tiny")
    jobs = [contestant.pretrain(**arguments, array=array) for contestant in (ours, theirs)]
    answers = [job.answer(None) for job in jobs]
    assert answers[0].shape == (CHECKED,)
    assert measure.agrees(*answers)
    for job in jobs:  # dropout is on, and tokens are drawn
        drawn = [getattr(found, "loss", found) for found in (job.call(None) for _ in range(CHECKED))]
        assert np.isfinite(drawn).all()
        assert not measure.agrees(np.array(drawn), answers[0])


def test_nezha_and_bert_learn_from_the_same_tokens() -> None:
    arguments, array = family.work("nezha", SHAPE, "tiny")
    jobs = [contestant.pretrain(**arguments, array=array) for contestant in (ours, bert)]
    answers = [job.answer(None) for job in jobs]
    assert answers[0].tolist() == [SHAPE.rows * SHAPE.length] * SHAPE.batches
    assert measure.agrees(*answers)
    losses = [job.call(None).loss for job in jobs]
    assert np.isfinite(losses).all()
    assert abs(losses[0] - losses[1]) > 1e-3, "they are two networks"


def test_every_variant_has_its_peer_and_its_bar() -> None:
    found = {case.name.split()[0]: case for case in family.cases(quick=True)}
    assert list(found) == ["roberta", "albert", "electra", "nezha"]
    assert [str(case.bars[case.peers[0]]) for case in found.values()] == ["≥ 2", "≥ 2", "≥ 1.5", "≥ 0.667"]
    assert found["nezha"].peers == (BERT,)
