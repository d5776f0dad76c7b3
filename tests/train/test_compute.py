"""How the work is done changes what is learned by rounding alone."""

from __future__ import annotations

import logging
from subprocess import CompletedProcess

import pytest
import torch
from torch import Tensor

from bertkit.corpus.examples import Examples
from bertkit.errors import BertkitError
from bertkit.objectives.learner import Learner
from bertkit.train import compute, loop
from bertkit.train.compute import Compute, Precision
from bertkit.train.feed import Reading, Request
from tests.train.test_loop import OBJECTIVE, Keep, network


def gradient(
    examples: Examples,
    compute: Compute,
    training: bool = True,
    precision: Precision | None = None,
) -> tuple[dict[str, Tensor], loop.Learned]:
    made, reading = network(examples, training), Reading(examples, OBJECTIVE)
    compute.equip(made)
    batches = [reading[Request(0, 0, 6)], reading[Request(0, 6, 12)]]
    kept = Keep(made)
    learned = loop.step(Learner(made, OBJECTIVE), OBJECTIVE, batches, kept, 1e9, seed=0, number=0, precision=precision)
    return kept.kept, learned


def test_what_is_computed_again_is_the_same_to_the_bit(examples: Examples) -> None:
    plain, learned = gradient(examples, Compute())
    again, same = gradient(examples, Compute(recompute=True))
    assert same == learned
    assert all(torch.equal(plain[name], again[name]) for name in plain)


def test_recomputing_keeps_less(examples: Examples) -> None:
    sizes = []
    for recompute in (False, True):
        made = network(examples, training=True)
        Compute(recompute=recompute).equip(made)
        kept = 0

        def pack(tensor: Tensor) -> Tensor:
            nonlocal kept
            kept += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            made(Reading(examples, OBJECTIVE)[Request(0, 0, 12)])
        sizes.append(kept)
    assert sizes[1] < sizes[0] / 2


def test_bfloat16_is_near(examples: Examples) -> None:
    plain, learned = gradient(examples, Compute(), training=False)
    rough, near = gradient(examples, Compute(), False, Precision("bfloat16"))
    assert near.losses == pytest.approx(learned.losses, rel=0.01)
    assert near.losses != learned.losses, "fewer bits were used"
    apart = torch.cat([(rough[name] - plain[name]).flatten() for name in plain])
    assert apart.norm() < 0.05 * learned.norm
    assert all(value.dtype == torch.float32 for value in rough.values())


def test_float16_is_scaled_and_unscaled(examples: Examples) -> None:
    _, learned = gradient(examples, Compute(), training=False)
    precision = Precision("float16")
    _, near = gradient(examples, Compute(), False, precision)
    assert near.norm == pytest.approx(learned.norm, rel=0.05)
    again = Precision("float16")
    again.restore(precision.state)
    assert again.state == precision.state != {}


@pytest.mark.parametrize(("ended", "kind"), [(0, torch.bfloat16), (-4, torch.float32)])
def test_what_a_machine_claims_is_tried_elsewhere(
    ended: int, kind: torch.dtype, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def run(command: list[str], **settings: object) -> CompletedProcess[bytes]:
        assert "dtype=torch.bfloat16" in command[-1]
        return CompletedProcess(command, ended)

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True})
    monkeypatch.setattr(compute.subprocess, "run", run)
    compute.survives.cache_clear()
    with caplog.at_level(logging.WARNING, "bertkit"):
        assert Precision.on(torch.device("cpu"), "bfloat16").kind == kind
    compute.survives.cache_clear()
    assert ("claims to multiply bfloat16, and dies of it" in caplog.text) == bool(ended)


def test_a_product_that_is_tried_is_a_product() -> None:
    compute.survives.cache_clear()
    assert compute.survives("float32")
    assert not compute.survives("no_such_kind")


def test_what_a_machine_lacks_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bertkit"):
        precision = Precision.on(torch.device("cpu"), "float16")
    assert precision.kind == torch.float32
    assert "this CPU does not multiply float16 faster: float32 is taken" in caplog.text


def test_unknown_precisions() -> None:
    with pytest.raises(BertkitError, match=r"precision 'bf16'.*Known: bfloat16, float16, float32"):
        Compute(precision="bf16")
