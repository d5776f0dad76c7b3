"""Every engine gives what torch gives, whatever the encoder, the lengths and the number of workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import bertkit
from bertkit import machine, packages
from bertkit.batch import Batch, Example, Packed, collate
from bertkit.errors import BertkitError
from bertkit.family import bert
from bertkit.parts.attention import Attention
from bertkit.parts.embed import Embed
from bertkit.parts.encoder import Encoder
from bertkit.parts.feed import Feed
from bertkit.parts.place import Placing
from bertkit.runtime.engines import ENGINES
from bertkit.runtime.engines.ctranslate2 import WIDE, widen
from bertkit.runtime.engines.engine import FP32, INT8, Engine, Setup
from bertkit.runtime.engines.nodes import Nodes
from bertkit.runtime.engines.products import Integers, Product
from bertkit.runtime.runner import Runner
from bertkit.weights import int8
from tests.runtime.networks import ENCODERS, SMALL, SMALL_RELATIVE, VOCABULARY, computed, examples, expected, network

OTHERS = sorted(set(ENGINES) - {"torch"})
LIBRARIES = [name for name in OTHERS if ENGINES[name].package != "torch"]
"""engines that are somebody else's"""
SENTENCES = [
    "The ferry was late again, so we walked along the harbour.",
    "A queue of gulls waited by the fish stall.",
    "How do I return a parcel that never arrived?",
    "Rain.",
    "Prices rose by four per cent in May, mostly because of rents, fuel and, to everybody's surprise, tomatoes.",
]


def built(name: str, net: Any, **settings: Any) -> Engine:
    """The engine, or the reason why there is none here."""
    kind = ENGINES[name]
    reason = kind.refusal(net.spec.encoder) or kind.absence()
    if reason:
        pytest.skip(f"{name}: {reason}")
    return kind(net, Setup(name, **settings))


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("name", ENGINES)
def test_hidden_states_are_those_of_torch(name: str, family: str) -> None:
    net = network(ENCODERS[family])
    engine = built(name, net)
    for lengths in ((128, 7, 1, 40, 2), (1,), (70,), (5, 5)):
        rows = examples(*lengths, segments=net.spec.encoder.embed.segments)
        assert float((computed(engine, rows) - expected(net, rows)).abs().max()) < 2e-5
    for row in examples(1, 9, 128, segments=net.spec.encoder.embed.segments):
        np.testing.assert_allclose(engine.states(row), expected(net, [row])[0].numpy(), rtol=0, atol=2e-5)


@cache
def of_small(name: str, relative: bool) -> tuple[Any, Engine]:
    net = network(SMALL_RELATIVE if relative else SMALL)
    return net, built(name, net)


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("name", OTHERS)
@settings(max_examples=15)
@given(lengths=st.lists(st.integers(1, 512), min_size=1, max_size=3))
def test_lengths_are_free(name: str, relative: bool, lengths: list[int]) -> None:
    net, engine = of_small(name, relative)
    rows = examples(*lengths)
    assert float((computed(engine, rows) - expected(net, rows)).abs().max()) < 2e-5


@pytest.mark.parametrize("name", ENGINES)
def test_workers_do_not_disturb_each_other(name: str) -> None:
    net = network(ENCODERS["bert"])
    engine = built(name, net, workers=2)
    batches = [examples(length, length + 3) for length in range(1, 60, 3)]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda rows: computed(engine, rows), batches))
    for rows, states in zip(batches, made, strict=True):
        assert float((states - expected(net, rows)).abs().max()) < 2e-5


@pytest.mark.parametrize("name", ENGINES)
def test_who_computes_padding_has_little_of_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(SMALL)
    setup = built(name, net, workers=2).setup
    runner, held = Runner(net, setup, setup), []
    rows = examples(*range(3, 90, 4))
    groups = list(runner.lanes.groups(list(map(len, rows))))
    engine = runner.engine(len(groups))
    hidden = engine.hidden

    def watched(batch: Batch) -> Tensor:
        states = hidden(batch)
        held.append(states.flatten(0, -2).shape[0])
        return states

    monkeypatch.setattr(engine, "hidden", watched)
    batches = [[rows[place] for place in group] for group in groups]
    made = runner.rows(lambda states, batch: batch.layout.mean(states(batch)), batches, len(groups))
    assert sum(map(len, made)) == len(rows)
    if name in ("onnx", "openvino"):
        tokens = sorted(sum(map(len, batch)) for batch in batches)
        assert all(places - real <= 16 for places, real in zip(sorted(held), tokens, strict=True))
    else:
        assert len(groups) == 1


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", OTHERS)
def test_engines_print_nothing(name: str, threads: int, capfd: pytest.CaptureFixture[str]) -> None:
    computed(built(name, network(SMALL), threads=threads, workers=2), examples(3, 2))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", OTHERS)
def test_weights_are_left_alone(name: str) -> None:
    net = network(SMALL)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    for precision in ENGINES[name].precisions:
        computed(built(name, net, precision=precision), examples(4, 9))
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())


def test_onednn_has_matrices_of_its_own_and_no_other_weights() -> None:
    net = network(SMALL).requires_grad_(True).train()
    engine = built("onednn", net)
    own = {each.data_ptr() for each in engine._encoder.parameters()}
    matrices = [part for part in net.encoder.modules() if isinstance(part, torch.nn.Linear)]
    others = {each.data_ptr() for each in net.encoder.parameters()} - {part.weight.data_ptr() for part in matrices}
    assert own == others
    made = engine.hidden(collate(examples(9, 4), Packed))
    assert not made.requires_grad
    assert all(part.training for part in net.modules())


def test_onednn_computes_in_32_bits_whatever_the_weights_have() -> None:
    net = network(SMALL).to(torch.bfloat16)
    wide, rows = deepcopy(net).float(), examples(9, 4)
    assert float((computed(built("onednn", net), rows) - expected(wide, rows)).abs().max()) < 2e-5
    assert net.encoder.embed.tokens.weight.dtype == torch.bfloat16


# whole numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [name for name in OTHERS if INT8 in ENGINES[name].precisions])
def test_int8_keeps_the_meaning_of_real_sentences(name: str) -> None:
    model = bertkit.load("minilm")
    rows = [
        Example({"ids": np.array(ids), "segments": np.zeros(len(ids), int)})
        for ids in (model.tokenizer.encode(sentence).ids for sentence in SENTENCES)
    ]
    engine = built(name, model.network, precision=INT8)
    exact, whole = (vectors(states, rows) for states in (expected(model.network, rows), computed(engine, rows)))
    assert float((exact * whole).sum(1).min()) > 0.99
    alone = torch.cat([vectors(computed(engine, [row]), [row]) for row in rows])
    assert float((exact * alone).sum(1).min()) > 0.99


@pytest.mark.parametrize("name", [name for name in OTHERS if INT8 in ENGINES[name].precisions])
def test_int8_of_a_text_does_not_depend_on_what_stands_beside_it(name: str) -> None:
    """Not by a bit, whatever the others say, for each token is rounded by itself.

    The shape of a batch is another matter: it changes the last digit of sums, now and then that changes to which whole
    number one is rounded, and then all that follows. Such vectors differ from each other as they do from fp32.
    """
    model, dice = bertkit.load("minilm"), np.random.default_rng(0)
    engine = built(name, model.network, precision=INT8)
    ids = np.array(model.tokenizer.encode(SENTENCES[0]).ids)
    others = [ids, np.full_like(ids, model.tokenizer.encode("Rain").ids[1]), dice.integers(0, 30000, len(ids))]
    pairs = [[Example({"ids": row, "segments": np.zeros_like(row)}) for row in (ids, other)] for other in others]
    first, *rest = [computed(engine, pair)[0] for pair in pairs]
    for states in rest:
        assert torch.equal(states, first)


def test_ctranslate2_cuts_no_sum_off() -> None:
    """Its products are those of whole numbers, as torch computes them in floats that hold them exactly.

    One layer, for a number that is rounded the other way changes what follows. Sums that are cut off leave 3e-2.
    """
    net, rows = network(bert.stack(1, 384, Embed(VOCABULARY, 384), Attention(12, 32), Feed(1536))), examples(40, 7, 90)
    made = computed(built("ctranslate2", net, precision=INT8), rows)

    def rounded(x: Tensor) -> Tensor:
        scale = x.abs().amax(-1, keepdim=True) / 127
        return (x / scale).round() * scale

    for name, module in net.encoder.named_modules():
        if name == "embed.tokens":
            module.weight.data = int8.restored(*int8.quantized(module.weight, multiplied=False))
        if isinstance(module, torch.nn.Linear):
            module.weight.data = int8.restored(*int8.quantized(module.weight))
            module.register_forward_pre_hook(lambda _, given: (rounded(given[0]),))
    assert float((made - expected(net, rows)).abs().mean()) < 1e-3


def vectors(states: Tensor, rows: list[Example]) -> Tensor:
    """Means over tokens, of length 1."""
    return F.normalize(states.sum(1) / torch.tensor([[len(row)] for row in rows]))


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_sums_of_products_are_exact(rows: int) -> None:
    """The largest numbers there are, side by side: 16 bits for two products would cut them off."""
    random = np.random.default_rng(0)
    x = random.choice([-127.0, 127.0, 126.0], (rows, 384)).astype(np.float32)
    x[0] = 127.0
    pairs = [(64, 64), (127, 1), (1, 127), (-64, -64), (-127, -1), (127, -127), (63, 65), (-100, -28)]
    weight = random.choice(np.array(pairs, np.float32), (96, 192)).reshape(96, 384)
    weight[0], weight[:, :2] = 64.0, 64.0
    np.testing.assert_allclose(multiplied(Integers(), x, weight), x @ weight.T, rtol=1e-6)


def test_layers_that_are_kept_stay_floats() -> None:
    random = np.random.default_rng(0)
    x, weight = random.normal(size=(3, 20)).astype(np.float32), random.normal(size=(5, 20)).astype(np.float32)
    np.testing.assert_allclose(multiplied(Integers(frozenset({"layer"})), x, weight), x @ weight.T, atol=1e-5)
    assert np.abs(multiplied(Integers(), x, weight) - x @ weight.T).max() > 1e-3


def multiplied(product: Product, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x·Wᵀ, as ONNX Runtime computes it."""
    runtime = pytest.importorskip("onnxruntime")
    made = Nodes()
    out = product.linear(made, made.input("x", np.float32, ("B", x.shape[1])), "layer", weight, None)
    made.output("out", out, ("B", len(weight)))
    return runtime.InferenceSession(made.model().SerializeToString()).run(None, {"x": x})[0]


# what cannot be ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Elsewhere(Placing):
    """Positions that no engine knows."""


@pytest.mark.parametrize("name", LIBRARIES)
def test_unknown_positions_are_refused(name: str) -> None:
    assert ENGINES[name].refusal(replace(SMALL, place=Elsewhere())) == "it does not know its positions"
    assert ENGINES[name].refusal(SMALL) == ""


REFUSED: dict[str, Callable[[Encoder], Encoder]] = {
    "its embeddings are narrower than the network": lambda _: ENCODERS["electra"],
    "its norms have several epsilons": lambda e: replace(e, feeds=(replace(e.feeds[0], epsilon=0.1),)),
    "its heads are not all of one kind, as wide together as the network": lambda e: replace(
        e, attentions=(replace(e.attentions[0], heads=3),)
    ),
    "it bends by gelu, relu": lambda e: replace(
        e, feeds=(e.feeds[0], replace(e.feeds[0], activation="relu")), order=((0, 0), (0, 1))
    ),
}


def test_ctranslate2_computes_on_512_bits_where_that_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, told in ((WIDE, "AVX512"), (WIDE - {"avx512_vbmi2"}, None), (frozenset({"avx2"}), None)):
        monkeypatch.setattr(machine, "instructions", lambda found=found: found)
        environment: dict[str, str] = {}
        widen(environment)
        assert environment.get("CT2_FORCE_CPU_ISA") == told
        own = {"CT2_FORCE_CPU_ISA": "AVX2"}
        widen(own)
        assert own == {"CT2_FORCE_CPU_ISA": "AVX2"}


def test_ctranslate2_listens() -> None:
    missing = WIDE - machine.instructions()
    reason = ENGINES["ctranslate2"].absence() or f"this processor lacks {', '.join(sorted(missing))}" * bool(missing)
    if reason:
        pytest.skip(reason)
    program = """
from bertkit.runtime.engines import ENGINES
from bertkit.runtime.engines.engine import Setup
from tests.runtime.networks import SMALL, network
ENGINES["ctranslate2"](network(SMALL), Setup("ctranslate2"))
"""
    free = {name: value for name, value in os.environ.items() if name != "CT2_FORCE_CPU_ISA"}
    told = {**free, "CT2_VERBOSE": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=told, capture_output=True, text=True, check=True)
    assert "Selected ISA: AVX512" in done.stderr


@pytest.mark.parametrize("reason", REFUSED)
def test_ctranslate2_says_what_it_does_not_take(reason: str) -> None:
    encoder = REFUSED[reason](SMALL)
    assert ENGINES["ctranslate2"].refusal(encoder) == reason
    with pytest.raises(BertkitError, match=f"the engine ctranslate2 cannot run this model: {reason}"):
        ENGINES["ctranslate2"](network(encoder), Setup("ctranslate2"))


@pytest.mark.parametrize("name", ENGINES)
def test_precisions_that_an_engine_lacks_are_named(name: str) -> None:
    if INT8 in ENGINES[name].precisions:
        pytest.skip(f"{name} has both")
    with pytest.raises(BertkitError, match=f"the engine {name} has {FP32}, not {INT8}"):
        built(name, network(SMALL), precision=INT8)


def test_matrices_that_are_not_there_cannot_be_kept() -> None:
    with pytest.raises(BertkitError, match=r"unknown matrix 'encoder.feeds.0.upp': did you mean 'encoder.feeds.0.up'"):
        built("onnx", network(SMALL), precision=INT8, kept=("encoder.feeds.0.upp",))


@pytest.mark.parametrize(
    ("name", "missing"),
    [(name, package) for name in LIBRARIES for package in (ENGINES[name].package, *ENGINES[name].besides)],
)
def test_what_is_not_installed_is_named(name: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(package: str) -> Any:
        if package == missing:
            raise ImportError(package)

    monkeypatch.setattr(packages, "load", load)
    reason = rf"{missing} is not installed: pip install 'bertkit\[engines\]'"
    with pytest.raises(BertkitError, match=f"the engine {name} cannot run this model: {reason}"):
        ENGINES[name](network(SMALL), Setup(name))


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(("workers", "threads"), [(2, 1), (1, 2)])
def test_torch_keeps_its_threads(name: str, workers: int, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        ENGINES[name](network(SMALL), Setup(name, workers=workers, threads=threads))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


RACE = """
import os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import bertkit
from bertkit import machine, packages
from bertkit.batch import Padded, collate
from bertkit.runtime.engines.engine import Setup
from bertkit.runtime.engines.openvino import OpenVino
from tests.runtime.networks import SMALL, examples, network

packages.load("openvino"), packages.load("onnx")

def race():
    engine, together = OpenVino(network(SMALL), Setup("openvino", workers=2)), threading.Barrier(2)
    sys.setswitchinterval(1e-6)
    def first():
        batch = collate(examples(5), Padded)
        together.wait()
        engine.hidden(batch)
    with ThreadPoolExecutor(2) as pool:
        for asked in [pool.submit(first) for _ in range(2)]: asked.result()

for number in range(8):
    child = os.fork()
    if not child:
        try:
            race()
        finally:
            os._exit(sys.exc_info()[0] is not None)
    until = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, 9)
            sys.exit(f"race {number}: both wait for ever")
        time.sleep(0.01)
    assert ended == (child, 0), ended
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that begin as copies")
def test_two_workers_may_be_the_first_to_ask_openvino() -> None:
    """Its table of types is filled by whom it is asked first; of two at once each waited for the other."""
    if ENGINES["openvino"].absence():
        pytest.skip(ENGINES["openvino"].absence())
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


SIGNAL = """
import os, signal
from bertkit import packages
from bertkit.runtime.engines.engine import Setup
from bertkit.runtime.engines.openvino import OpenVino
from tests.runtime.networks import SMALL, network

packages.load("openvino"), packages.load("onnx")
made = [OpenVino(network(SMALL), Setup("openvino")) for _ in range(2)]
made.pop(0)
made.pop(0)
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("heard")
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_is_heard_when_openvinos_engines_are_gone() -> None:
    """On processors with AMX: its cores left signals a stack that was gone, and the process died of the next one."""
    if ENGINES["openvino"].absence():
        pytest.skip(ENGINES["openvino"].absence())
    done = subprocess.run([sys.executable, "-c", SIGNAL], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "heard\n"), done.stderr
