"""Engines are chosen by what was measured, never take more cores than there are, and what is damaged is no obstacle."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import bertkit
from bertkit.batch import Example
from bertkit.errors import BertkitError
from bertkit.family import bert
from bertkit.parts.network import Network, NetworkModule
from bertkit.runtime import choose as choosing
from bertkit.runtime import tune
from bertkit.runtime.choose import choose
from bertkit.runtime.engines import ENGINES
from bertkit.runtime.engines.engine import Setup
from bertkit.runtime.runner import Runner
from bertkit.runtime.tune import Choice, Measured, Trial
from bertkit.text import Tokenizer

TEXTS = ["the cat sat on a mat", "a dog", "the slow dog runs fast , the cat sat .", "猫 坐", "", "house " * 60]


@pytest.fixture
def model(tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bertkit.Model:
    monkeypatch.setenv("BERTKIT_CACHE", str(tmp_path / "cache"))
    made = bertkit.create("bert-tiny", tokenizer, seed=0)
    for parameter in made.network.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    return made


def test_the_fastest_is_chosen_for_one_and_for_many() -> None:
    slow, bulk, single = (Setup("torch", workers=number) for number in (1, 2, 3))
    trials = [Trial(slow, 3.0, 3.0), Trial(bulk, 1.0, 2.0), Trial(single, 2.0, 1.0), Trial(Setup("x"), reason="absent")]
    assert Choice.of(trials) == Choice(single, bulk)
    assert Measured(tuple(trials), 1).choice("x") is None
    assert Measured(tuple(trials), 1).choice(precision="int8") is None


def test_engines_with_weights_of_their_own_have_to_be_faster_than_torch() -> None:
    torch, other = Setup("torch"), Setup("onnx")

    def bulk(seconds: float) -> Setup:
        return Choice.of([Trial(other, 1.0, 1.0), Trial(torch, seconds, 9.0)]).bulk

    assert (bulk(1.04), bulk(1.06)) == (torch, other)


def test_many_texts_have_a_batch_on_each_core_unless_sharing_is_clearly_faster() -> None:
    apart, shared = Setup("openvino", workers=2), Setup("openvino", threads=2)

    def chosen(seconds: float) -> Choice:
        return Choice.of([Trial(apart, 1.0, 1.0), Trial(shared, seconds, seconds)])

    assert chosen(0.92) == Choice(shared, apart)  # a query has all cores, and no neighbours
    assert chosen(0.9) == Choice(shared, shared)


def test_no_setup_takes_more_cores_than_there_are(model: bertkit.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    for cores in (1, 2, 3, 8):
        monkeypatch.setattr(tune, "cores", lambda cores=cores: cores)
        setups = [setup for setup, reason in tune.candidates(model.network) if not reason]
        assert setups
        assert all(setup.workers * setup.threads <= cores for setup in setups)


def test_what_was_measured_is_remembered_for_every_network_of_the_shape(
    model: bertkit.Model, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SECONDS", "PAUSE"):
        monkeypatch.setattr(tune, name, 0.0)
    assert tune.remembered(model.network) is None
    heard: list[tuple[Setup, str]] = []
    found = tune.tune(model.network, tell=lambda setup, reason: heard.append((setup, reason)))
    assert [(trial.setup, trial.reason) for trial in found.trials] == heard
    assert {setup.engine for setup, _ in heard} == set(ENGINES)
    assert all(trial.reason or (0 < trial.single < 60 and 0 < trial.bulk < 60) for trial in found.trials)
    assert not found.trials[0].reason
    assert tune.remembered(bertkit.create("bert-tiny", tokenizer, seed=1).network) == found
    assert tune.remembered(bertkit.create("bert-mini", tokenizer, seed=1).network) is None
    (kept,) = (tune.home() / "engines").iterdir()
    for damaged in (b"", b"{", b"[]", json.dumps({"trials": [{"setup": {"part": "Mean"}}], "tokens": 1}).encode()):
        kept.write_bytes(damaged)
        assert tune.remembered(model.network) is None


def test_auto_is_torch_until_something_was_measured(model: bertkit.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose(model.network, "auto") is None
    setup = Setup("torch", workers=1)
    monkeypatch.setattr(tune, "remembered", lambda network, precision: Measured((Trial(setup, 1.0, 1.0),), 1))
    chosen = choose(model.network, "auto")
    assert chosen is not None
    assert chosen.single == chosen.bulk == setup


def test_a_long_list_is_measured_for_once(model: bertkit.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "MUCH", 1000)
    measured: list[str] = []

    def measure(network: NetworkModule, precision: str) -> None:
        measured.append(precision)
        monkeypatch.setattr(tune, "remembered", lambda network, precision: Measured((Trial(setup, 1.0, 1.0),), 1))

    setup = Setup("torch", workers=1)
    monkeypatch.setattr(tune, "tune", measure)
    expected = model.use("torch").embed(TEXTS * 10)  # whoever named an engine has it
    model.use()
    with pytest.raises(BertkitError, match="text 1 is 7"):
        model.embed(["the cat", 7])  # type: ignore[list-item]
    model.embed(TEXTS)
    list(model.embed_stream(iter(TEXTS * 10)))  # how long it is nobody knows
    assert model.untuned
    assert not measured
    for _ in range(2):
        assert np.abs(model.embed(TEXTS * 10) - expected).max() < 1e-5
        assert measured == ["fp32"]
        assert model.runner.bulk == setup


def test_setups_are_measured_in_turns(model: bertkit.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layouts of one engine too; what is behind drops out, the sooner the farther it is."""
    setups = [Setup("torch"), Setup("onnx", workers=1), Setup("onnx", workers=2), Setup("openvino"), Setup("x")]
    seconds = {setups[0]: 1.8, setups[1]: 1.25, setups[2]: 1.1, setups[3]: 1.2}
    asked: dict[str, list[tuple[Setup, int]]] = {"single": [], "bulk": []}

    def taken(kind: str) -> Callable[[Runner, int], float]:
        def work(runner: Runner, turn: int = 0) -> float:
            asked[kind].append((runner.bulk, turn))
            slow = 1.5 if runner.bulk == setups[2] and not turn else 1.0  # a moment in which the machine was
            return seconds[runner.bulk] * slow

        return work

    monkeypatch.setattr(tune, "candidates", lambda network, precision: [(one, "") for one in setups[:4]])
    monkeypatch.setattr(tune, "PAUSE", 0.0)
    for name in ("BEHIND", "READ_BEHIND"):
        monkeypatch.setattr(tune, name, (1.45, 1.15, 1.05))
    monkeypatch.setattr(tune, "_ask", taken("single"))
    monkeypatch.setattr(tune, "_read", taken("bulk"))
    monkeypatch.setattr(tune, "_run", lambda runner, groups: 0.0)
    found = tune.tune(model.network)
    built, asked["single"] = asked["single"][:4], asked["single"][4:]
    assert built == [(one, 0) for one in setups[:4]]
    for order in asked.values():
        assert order[:4] == [(one, 0) for one in setups[:4]]
        assert order[4:7] == [(one, 1) for one in setups[1:4]]  # torch was far behind at once
        assert order[7:10] == [(one, 2) for one in setups[1:4]]
        assert order[10:] == [(one, turn) for turn in range(3, tune.TURNS) for one in setups[1:4]]
    for trial in found.trials:
        assert (trial.single, trial.bulk) == pytest.approx((seconds[trial.setup],) * 2, rel=0.15)
    assert found.choice() == Choice(setups[2], setups[2])


def test_neither_a_slow_moment_nor_a_disturbed_turn_decides(
    monkeypatch: pytest.MonkeyPatch, model: bertkit.Model
) -> None:
    monkeypatch.setattr(tune, "PAUSE", 0.0)
    runners = [Runner.of_torch(model.network), Runner.of_torch(model.network)]
    seconds = {0: [1.0, 2.0, 1.0, 9.0, 1.0], 1: [1.5, 3.0, 1.5, 1.5, 1.5]}  # of both; then of the first alone
    found = tune._in_turns(lambda runner, turn: seconds[runners.index(runner)][turn], runners, (math.inf,))
    assert found == pytest.approx([1.0, 1.5])


def test_turns_that_take_long_are_few(monkeypatch: pytest.MonkeyPatch, model: bertkit.Model) -> None:
    monkeypatch.setattr(tune, "PAUSE", 0.0)
    monkeypatch.setattr(tune, "ENOUGH", 0.0)
    asked: list[int] = []

    def work(runner: Runner, turn: int) -> float:
        asked.append(turn)
        return 1.0

    assert tune._in_turns(work, [Runner.of_torch(model.network)] * 2, tune.BEHIND) == [1.0, 1.0]
    assert asked == [turn for turn in range(tune.FEW) for _ in range(2)]


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_batches_that_are_read_are_those_of_a_large_collection(
    model: bertkit.Model, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighbours in length, in batches of equal size: little of them is padding, and each takes as long."""
    for tokens in (512, 1024):
        groups = tune._groups(Runner.of_torch(model.network), tokens, cores)
        longest = [max(map(len, group)) for group in groups]
        held = [sum(map(len, group)) for group in groups]
        assert len(groups) == cores
        assert longest == sorted(longest, reverse=True)
        assert longest[-1] > 0.6 * longest[0]
        assert all(0.9 * tokens < one < tokens + 256 for one in held)
        assert sum(held) > 0.85 * sum(len(group) * most for group, most in zip(groups, longest, strict=True))
        turns = [tune._groups(Runner.of_torch(model.network), tokens, cores, turn) for turn in range(tune.TURNS)]
        lengths = {tuple(map(len, group)) for groups in turns for group in groups}
        assert len(lengths) == cores * tune.TURNS  # others in every turn
    monkeypatch.setattr(tune, "cores", lambda: cores)
    monkeypatch.setattr(tune, "SECONDS", 0.0)
    assert tune._amount(model.network) == tune.SHARE * cores
    monkeypatch.setattr(tune, "SECONDS", 1e9)
    assert tune._amount(model.network) == tune.SHARE * cores * tune.MOST


@pytest.mark.parametrize("turn", range(tune.TURNS))
def test_every_core_has_its_batch_however_many_there_are(model: bertkit.Model, turn: int) -> None:
    assert [len(tune._groups(Runner.of_torch(model.network), 1024, count, turn)) for count in (1, 64, 256)] == [
        1,
        64,
        256,
    ]


def test_setups_with_other_batches_read_as_much(model: bertkit.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def run(runner: Runner, groups: list[list[Example]]) -> float:
        read.append(len(groups))
        return float(sum(len(text) for group in groups for text in group))  # a second for each token

    monkeypatch.setattr(tune, "_run", run)
    monkeypatch.setattr(tune, "cores", lambda: 2)
    monkeypatch.setattr(tune, "SECONDS", 0.0)
    for tokens in (512, 1024):
        setup = Setup("torch", tokens=tokens)
        assert tune._read(Runner(model.network, setup, setup), turn=0) == pytest.approx(2 * tune.SHARE)
    assert read == [2 * tune.SHARE // 512, 2 * tune.SHARE // 1024]


def test_a_few_layers_tell_of_all(model: bertkit.Model, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token of one layer takes a microsecond here: what is told is the time of all layers of BERT's base size."""

    def run(runner: Runner, groups: list[list[Example]]) -> float:
        tokens = sum(len(text) for group in groups for text in group)
        return 1e-6 * tokens * len(runner.network.spec.encoder.order)

    def states(runner: Runner, query: Example) -> None:
        time.sleep(1e-4 * len(runner.network.spec.encoder.order))

    monkeypatch.setattr(tune, "_run", run)
    monkeypatch.setattr(Runner, "states", states)
    monkeypatch.setattr(tune, "cores", lambda: 2)
    monkeypatch.setattr(tune, "PAUSE", 0.0)
    with torch.device("meta"):
        network = Network(bert.encoder("base", 100)).build()
    found = tune.tune(network)
    assert found.tokens == 2 * tune.SHARE  # more than a second of work for two cores
    for trial in found.trials:
        assert trial.bulk == pytest.approx(12e-6 * 2 * tune.SHARE), trial
        assert trial.single >= 12e-4, trial


def test_a_query_is_asked_with_all_layers_where_it_is_close(
    model: bertkit.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of BERT's base size leave onnx a little ahead, in the cache; all twelve do not fit into it."""
    setups = [Setup("torch"), Setup("onnx", threads=2), Setup("openvino", threads=2)]
    taken = {("torch", 2): 2.0, ("onnx", 2): 1.0, ("openvino", 2): 1.2, ("onnx", 12): 9.0, ("openvino", 12): 8.0}
    asked: list[tuple[str, int]] = []

    def ask(runner: Runner, turn: int = 0) -> float:
        asked.append((runner.bulk.engine, len(runner.network.spec.encoder.order)))
        return taken[asked[-1]]

    monkeypatch.setattr(tune, "candidates", lambda network, precision: [(one, "") for one in setups])
    monkeypatch.setattr(tune, "PAUSE", 0.0)
    monkeypatch.setattr(tune, "_ask", ask)
    monkeypatch.setattr(tune, "_read", lambda runner, turn=0: 1.0)
    with torch.device("meta"):
        network = Network(bert.encoder("base", 100)).build()
    found = tune.tune(network)
    assert set(asked) == taken.keys()
    assert [trial.single for trial in found.trials] == pytest.approx([12.0, 9.0, 8.0])
    assert found.choice() == Choice(setups[2], setups[0])


def test_a_name_that_is_no_engine_is_told(model: bertkit.Model) -> None:
    with pytest.raises(BertkitError, match="unknown engine 'toch': did you mean 'torch'"):
        model.use("toch")


def test_an_engine_that_fails_is_a_row_with_its_reason(model: bertkit.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, *given: object) -> None:
        raise RuntimeError("no such instruction")

    for name in ("SECONDS", "PAUSE"):
        monkeypatch.setattr(tune, name, 0.0)
    monkeypatch.setattr(ENGINES["ctranslate2"], "__init__", fails)
    monkeypatch.setattr(ENGINES["ctranslate2"], "absence", lambda: "")
    rows = [trial for trial in tune.tune(model.network).trials if trial.setup.engine == "ctranslate2"]
    assert {row.reason for row in rows} == {"RuntimeError: no such instruction"}


@pytest.mark.parametrize("engine", ENGINES)
def test_neighbours_change_no_bit_of_a_vector(model: bertkit.Model, engine: str) -> None:
    reason = ENGINES[engine].absence()
    if reason:
        pytest.skip(reason)
    model.use(engine, batch_invariant=True)
    together = model.embed(TEXTS)
    for order in np.random.default_rng(0).permuted(np.tile(np.arange(len(TEXTS)), (3, 1)), axis=1):
        assert np.array_equal(model.embed([TEXTS[place] for place in order]), together[order])
    for text, row in zip(TEXTS, together, strict=True):
        assert np.array_equal(model.embed(text), row)
        assert np.array_equal(model.embed([text, text])[1], row)
    assert np.abs(together - model.use("torch").embed(TEXTS)).max() < 1e-4


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_that_change_count_at_once(model: bertkit.Model, engine: str) -> None:
    reason = ENGINES[engine].absence()
    if reason:
        pytest.skip(reason)
    model.use(engine)
    before = model.embed(TEXTS)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.mul_(0.5)
    after = model.embed(TEXTS)
    assert np.abs(after - before).max() > 0.01
    assert np.abs(after - model.use("torch").embed(TEXTS)).max() < 1e-4


@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_that_is_exchanged_counts_at_once(model: bertkit.Model, engine: str) -> None:
    reason = ENGINES[engine].absence()
    if reason:
        pytest.skip(reason)
    before = model.use(engine).embed(TEXTS)
    old = model.encoder.feeds[-1].norm
    model.encoder.feeds[-1].norm = torch.nn.LayerNorm(old.weight.shape, eps=old.eps)
    torch.nn.init.normal_(model.encoder.feeds[-1].norm.weight)
    after = model.embed(TEXTS)
    assert np.abs(after - before).max() > 0.01
    assert np.abs(after - model.use("torch").embed(TEXTS)).max() < 1e-4


def test_pools_of_other_layers_are_torchs(model: bertkit.Model) -> None:
    expected = model.embed(TEXTS, pool="first-last")
    setup = Setup("no such engine")
    model._runner = Runner(model.network, setup, setup)
    assert np.array_equal(model.embed(TEXTS, pool="first-last"), expected)
