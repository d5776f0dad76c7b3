"""Steps are those of the papers' formulas, and what an optimiser remembers goes to a file and back bit for bit."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bertkit.errors import BertkitError
from bertkit.family import encoder
from bertkit.parts.heads import Mlm, NextSentence, Pooler
from bertkit.parts.network import Network, NetworkModule
from bertkit.spec import from_json, to_json
from bertkit.train.optimizer import Adam, Lamb, Optimizer, restore, state_of

STEPS = 20


class Small(nn.Module):
    """A matrix, a table, a bias at 0 and a norm, in float64 so that formulas agree to the last digits."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.matrix = nn.Parameter(torch.randn(5, 4, dtype=torch.float64))
        self.table = nn.Parameter(torch.randn(9, 3, dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros(4, dtype=torch.float64))
        self.norm = nn.Parameter(torch.ones(3, dtype=torch.float64))


def gradient(weight: Tensor, step: int) -> Tensor:
    return (
        torch.randn(weight.shape, generator=torch.Generator().manual_seed(step), dtype=weight.dtype) * 0.1 + weight / 9
    )


def rate(step: int) -> float:
    """Another one in each step, as a schedule has it."""
    return 0.01 * (step + 1) / STEPS


def walk(optimizer: torch.optim.Optimizer, network: nn.Module, steps: range) -> None:
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        for parameter in network.parameters():
            parameter.grad = gradient(parameter.detach(), step)
        optimizer.step()


def written_out(update: Callable[[Tensor, Tensor, Tensor, int], Tensor], weight: Tensor) -> Tensor:
    """w ← w - rate·update(m, v, w, t), with the moments that all of these optimisers share."""
    m, v = torch.zeros_like(weight), torch.zeros_like(weight)
    for step in range(STEPS):
        g = gradient(weight, step)
        m = 0.9 * m + (1 - 0.9) * g
        v = 0.999 * v + (1 - 0.999) * g**2
        weight = weight - rate(step) * update(m, v, weight, step + 1)
    return weight


def adam(m: Tensor, v: Tensor, w: Tensor, t: int) -> Tensor:
    """Kingma and Ba's algorithm 1, with Loshchilov and Hutter's decay (of matrices and tables)."""
    return (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-6) + 0.01 * (w.dim() > 1) * w


def google(m: Tensor, v: Tensor, w: Tensor, t: int) -> Tensor:
    """What AdamWeightDecayOptimizer of Google's BERT subtracts: nothing is corrected."""
    return m / (v.sqrt() + 1e-6) + 0.01 * (w.dim() > 1) * w


def lamb(m: Tensor, v: Tensor, w: Tensor, t: int) -> Tensor:
    """You et al.'s algorithm 2 for one layer; biases and norms are Adam's, as in Google's code."""
    r = (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-6)
    if w.dim() == 1:
        return r
    return w.norm() / (r + 0.01 * w).norm() * (r + 0.01 * w)


@pytest.mark.parametrize(
    ("optimizer", "formula"),
    [(Adam(), adam), (Adam(correct=False), google), (Lamb(), lamb)],
    ids=["adam", "google", "lamb"],
)
def test_steps_are_the_formulas(optimizer: Optimizer, formula: Callable[[Tensor, Tensor, Tensor, int], Tensor]) -> None:
    network = Small()
    begun = deepcopy(network)
    walk(optimizer.build(network), network, range(STEPS))
    for parameter, before in zip(network.parameters(), begun.parameters(), strict=True):
        expected = written_out(formula, before.detach())
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-9, atol=1e-12)
        assert float((expected - before).detach().abs().min()) > 1e-6, "every value moved"


def test_without_correction_the_first_steps_are_others() -> None:
    """Google's first step is (1 - β1) / √(1 - β2) ≈ 3.2 times as long."""
    lengths = []
    for correct in (True, False):
        network = Small()
        walk(Adam(correct=correct).build(network), network, range(1))
        lengths.append(float((network.norm.detach() - 1).norm()))
    assert lengths[1] / lengths[0] == pytest.approx(0.1 / 0.001**0.5, rel=1e-2)


@pytest.mark.parametrize("beta2", [0.98, 0.99999])
def test_any_beta_is_left_uncorrected(beta2: float) -> None:
    network = Small()
    start, g = network.matrix.detach().clone(), gradient(network.matrix.detach(), 0)
    walk(Adam(beta2=beta2, decay=0.0, correct=False).build(network), network, range(1))
    expected = start - rate(0) * 0.1 * g / ((1 - beta2) ** 0.5 * g.abs() + 1e-6)
    torch.testing.assert_close(network.matrix.detach(), expected, rtol=1e-9, atol=1e-12)


def tiny(seed: int = 0) -> NetworkModule:
    torch.manual_seed(seed)
    heads = {"pooler": Pooler(), "next_sentence": NextSentence(), "mlm": Mlm()}
    return Network(encoder("bert-tiny", 60), heads).build()


def test_adam_equals_torchs_on_a_network() -> None:
    ours, theirs = tiny(), tiny()
    decaying = {id(module.weight) for module in theirs.modules() if isinstance(module, (nn.Linear, nn.Embedding))}
    groups = [
        {"params": [p for p in theirs.parameters() if id(p) in decaying], "weight_decay": 0.01},
        {"params": [p for p in theirs.parameters() if id(p) not in decaying], "weight_decay": 0.0},
    ]
    walk(Adam().build(ours), ours, range(STEPS))
    walk(torch.optim.AdamW(groups, 1e-4, (0.9, 0.999), 1e-6, foreach=False), theirs, range(STEPS))
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimizer", [Adam(), Lamb()], ids=["adam", "lamb"])
def test_biases_and_norms_are_spared_decay_and_nothing_else_is(optimizer: Optimizer) -> None:
    network = tiny()
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    decaying, spared = optimizer.build(network).param_groups
    assert (decaying["weight_decay"], spared["weight_decay"]) == (0.01, 0.0)
    without = {names[id(parameter)] for parameter in spared["params"]}
    assert without == {name for name in names.values() if re.search(r"bias$|norm\.(weight|bias)$", name)}
    assert {names[id(parameter)] for parameter in decaying["params"]} == set(names.values()) - without
    assert "heads.mlm.bias" in without
    assert "encoder.embed.positions.weight" not in without


def test_what_is_frozen_stays() -> None:
    network = Small()
    network.matrix.requires_grad_(False)
    made = Adam().build(network)
    before = network.matrix.detach().clone()
    walk(made, network, range(3))
    assert torch.equal(network.matrix, before)
    assert {name.split("/")[0] for name in state_of(made, network)} == {"table", "bias", "norm"}


def test_lamb_leaves_a_matrix_of_zeros_to_adam() -> None:
    network = nn.Linear(3, 2)
    nn.init.zeros_(network.weight)
    made = Lamb(rate=0.1).build(network)
    network.weight.grad, network.bias.grad = torch.full((2, 3), 5.0), torch.zeros(2)
    before = network.bias.detach().clone()
    made.step()
    torch.testing.assert_close(network.weight.detach(), torch.full((2, 3), -0.1), rtol=1e-5, atol=0)
    assert torch.equal(network.bias, before)


OPTIMIZERS = [Adam(), Adam(correct=False), Lamb()]
NAMES = ["adam", "google", "lamb"]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=NAMES)
def test_a_saved_state_goes_on_bit_for_bit(optimizer: Optimizer, tmp_path: Path) -> None:
    whole, half = tiny(), tiny()
    walk(optimizer.build(whole), whole, range(6))
    first = optimizer.build(half)
    walk(first, half, range(3))
    save_file(state_of(first, half), tmp_path / "state.safetensors")
    fresh = tiny(seed=1)
    fresh.load_state_dict(half.state_dict())
    second = optimizer.build(fresh)
    restore(second, fresh, load_file(tmp_path / "state.safetensors"))
    walk(second, fresh, range(3, 6))
    for name, parameter in whole.named_parameters():
        assert torch.equal(parameter, fresh.get_parameter(name)), name


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=NAMES)
def test_a_state_is_whole_before_the_first_step(optimizer: Optimizer) -> None:
    network = Small()
    made = optimizer.build(network)
    state = state_of(made, network)
    kinds = ("step", "exp_avg", "exp_avg_sq")
    assert set(state) == {f"{name}/{kind}" for name, _ in network.named_parameters() for kind in kinds}
    assert state["matrix/step"].shape == ()
    walk(made, network, range(2))
    assert {name: value.data_ptr() for name, value in state_of(made, network).items()} == {
        name: value.data_ptr() for name, value in state.items()
    }, "torch goes on with these tensors and makes none of its own"
    torch.testing.assert_close(state["norm/exp_avg"], made.state[network.norm]["exp_avg"])


def test_a_state_of_another_network_is_refused() -> None:
    network = Small()
    made = Adam().build(network)
    walk(made, network, range(1))
    state = {name: value.clone() for name, value in state_of(made, network).items()}
    lacking = {name: value for name, value in state.items() if name != "bias/exp_avg"}
    for given, told in (
        (lacking, "lacks 'bias/exp_avg', unlike this network's: go on with"),
        ({}, "lacks 'bias/exp_avg' and 11 more"),
        (state | {"heads.x/step": torch.zeros(())}, "has 'heads.x/step', unlike"),
        (state | {"norm/exp_avg": torch.zeros(4).double()}, r"'norm/exp_avg' is torch.float64 \[4\], but .* \[3\]"),
        (state | {"norm/exp_avg": torch.zeros(3)}, "'norm/exp_avg' is torch.float32"),
    ):
        with pytest.raises(BertkitError, match=told):
            restore(made, network, given)
    assert all(torch.equal(value, state[name]) for name, value in state_of(made, network).items()), "untouched"


def test_specs_check_themselves_and_go_to_json_and_back() -> None:
    for optimizer in (Adam(3e-5, correct=False), Lamb(decay=0.0)):
        assert from_json(to_json(optimizer)) == optimizer
    assert Adam() == Adam(rate=1e-4, decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6, correct=True), (
        "as the paper has it"
    )
    with pytest.raises(BertkitError, match=r"Adam.beta2 is 1: it must be below 1"):
        Adam(beta2=1)
