"""Optimisers: how a gradient becomes a step. Decay is decoupled, and spares biases and norms, as in BERT.

Adam    BERT's (https://arxiv.org/abs/1810.04805; decay as in https://arxiv.org/abs/1711.05101)
Lamb    for batches of thousands, each matrix with a rate of its own (https://arxiv.org/abs/1904.00962)

What they remember is there from the beginning, for every parameter that learns, and goes to a file and back by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bertkit.errors import BertkitError
from bertkit.spec import Positive, Rate, Spec
from bertkit.train.processes import put

Group = dict[str, Any]


@dataclass(frozen=True)
class Optimizer(Spec):
    """The base of all optimisers; `rate` is the highest that the schedule reaches."""

    rate: Positive = 1e-4
    decay: Rate = 0.01
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    epsilon: Positive = 1e-6

    def build(self, network: nn.Module) -> torch.optim.Optimizer:
        raise NotImplementedError

    def groups(self, network: nn.Module) -> list[Group]:
        """Matrices and tables, which decay, and what has one dimension, which does not: biases and norms."""
        learning = [parameter for parameter in network.parameters() if parameter.requires_grad]
        return [
            {"params": [parameter for parameter in learning if parameter.dim() > 1], "weight_decay": self.decay},
            {"params": [parameter for parameter in learning if parameter.dim() <= 1], "weight_decay": 0.0},
        ]


@dataclass(frozen=True)
class Adam(Optimizer):
    """BERT's own. `correct=False` leaves out the correction of the first steps, as Google's code does."""

    correct: bool = True

    def build(self, network: nn.Module) -> torch.optim.Optimizer:
        betas = (self.beta1, self.beta2)
        made = torch.optim.AdamW(self.groups(network), self.rate, betas, self.epsilon, self.decay, fused=True)
        _begin(made, 0 if self.correct else math.inf)  # after endless steps there is nothing to correct
        return made


@dataclass(frozen=True)
class Lamb(Optimizer):
    """Adam's step for each matrix, scaled to a share of the matrix's own length."""

    rate: Positive = 1e-3

    def build(self, network: nn.Module) -> torch.optim.Optimizer:
        made = LambSteps(self.groups(network), self.rate, (self.beta1, self.beta2), self.epsilon)
        _begin(made, 0)
        return made


class LambSteps(torch.optim.Optimizer):
    """r = m̂ / (√v̂ + ε) + decay·w; w ← w - rate·(|w| / |r|)·r, where both lengths are above 0.

    Biases and norms take r as it is, as in Google's code: a bias begins at 0, and a share of that is nothing.
    """

    def __init__(self, groups: Iterable[Group], rate: float, betas: tuple[float, float], epsilon: float) -> None:
        super().__init__(groups, {"lr": rate, "betas": betas, "eps": epsilon, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step(parameter, parameter.grad, group)

    def _step(self, weight: Tensor, gradient: Tensor, group: Group) -> None:
        state, (beta1, beta2) = self.state[weight], group["betas"]
        state["step"] += 1
        state["exp_avg"].lerp_(gradient, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        step = float(state["step"])
        mean, square = state["exp_avg"] / (1 - beta1**step), state["exp_avg_sq"] / (1 - beta2**step)
        change = mean.div_(square.sqrt_().add_(group["eps"])).add_(weight, alpha=group["weight_decay"])
        if weight.dim() > 1:
            size, length = weight.norm(), change.norm()
            change.mul_(torch.where((size > 0) & (length > 0), size / length, 1.0))
        weight.sub_(change, alpha=group["lr"])


def _begin(optimizer: torch.optim.Optimizer, step: float) -> None:
    """Give every parameter its state now, as torch would in the first step, so that a saved one is always whole."""
    for parameter in (parameter for group in optimizer.param_groups for parameter in group["params"]):
        optimizer.state[parameter] = {
            "step": torch.tensor(step, dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }


def state_of(optimizer: torch.optim.Optimizer, network: nn.Module) -> dict[str, Tensor]:
    """What an optimiser remembers of each parameter, by name; the tensors themselves, not copies.

    >>> network = nn.Linear(2, 1)
    >>> sorted(state_of(Adam().build(network), network))[:3]
    ['bias/exp_avg', 'bias/exp_avg_sq', 'bias/step']
    """
    return {
        f"{name}/{key}": value
        for name, parameter in network.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore(optimizer: torch.optim.Optimizer, network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Make an optimiser remember what `state_of` gave, in place; all names must agree."""
    own = state_of(optimizer, network)
    for what, names in (("lacks", own.keys() - tensors.keys()), ("has", tensors.keys() - own.keys())):
        if names:
            more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
            raise BertkitError(
                f"the optimiser's state {what} {min(names)!r}{more}, unlike this network's: "
                "go on with the objective and the optimiser that it was saved with"
            )
    for name, value in own.items():
        given = tensors[name]
        if (given.shape, given.dtype) != (value.shape, value.dtype):
            raise BertkitError(
                f"the optimiser's state {name!r} is {given.dtype} {list(given.shape)}, but this network's is "
                f"{value.dtype} {list(value.shape)}: go on with the network that it was saved with"
            )
        put(given, value)
