"""How a graph multiplies by a matrix: in floats, or in whole numbers of 8 bits.

Letters: I values in · O values out · `...` [B, L], or [B] for finished vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch

from bertkit.batch import Array
from bertkit.runtime.engines.nodes import Nodes
from bertkit.weights import int8


class Product(ABC):
    """One way to write x·Wᵀ + b."""

    @abstractmethod
    def linear(self, nodes: Nodes, x: str, name: str, weight: Array, bias: Array | None) -> str:
        """[..., I] -> [..., O], by a matrix [O, I] and perhaps a bias [O] that are called `name`."""

    @abstractmethod
    def tied(self, nodes: Nodes, x: str, name: str, table: str, weight: Array, bias: Array) -> str:
        """The same by an embedding table [O, I] that the graph may hold already, under the name `table`."""


class Floats(Product):
    """As it was learned."""

    def linear(self, nodes: Nodes, x: str, name: str, weight: Array, bias: Array | None) -> str:
        matrix = nodes.constant(f"{name}.weight", lambda: weight.T)  # [I, O]
        return _plus(nodes, nodes.add("MatMul", x, matrix), name, bias)

    def tied(self, nodes: Nodes, x: str, name: str, table: str, weight: Array, bias: Array) -> str:
        matrix = nodes.add("Transpose", nodes.constant(table, lambda: weight), perm=[1, 0])  # [I, O]
        return _plus(nodes, nodes.add("MatMul", x, matrix), name, bias)


class Integers(Product):
    """In whole numbers: a scale for each token and for each output, and floats for the layers that are `kept`.

    Kept are also those whose names do not begin with `within`: with `encoder.` heads stay as they were learned.
    Each token is measured by itself, so that what stands beside it in a batch changes nothing. Tokens become 1 to 255
    around a zero of 128, and two neighbours of a matrix at most 128 together, so that every sum is exact: see
    `bertkit.weights.int8`.
    """

    def __init__(self, kept: frozenset[str] = frozenset(), within: str = "") -> None:
        self.kept, self.within = kept, within

    def _keeps(self, name: str) -> bool:
        return name in self.kept or not name.startswith(self.within)

    def linear(self, nodes: Nodes, x: str, name: str, weight: Array, bias: Array | None) -> str:
        if self._keeps(name):
            return Floats().linear(nodes, x, name, weight, bias)
        matrix = nodes.constant(f"{name}.weight_quantized", lambda: _whole(weight)[0].T)  # [I, O]
        scale = nodes.constant(f"{name}.weight_scale", lambda: _whole(weight)[1])  # [O]
        zero = nodes.constant("zero", lambda: np.array(ZERO, np.uint8))
        step = self._step(nodes, x)  # [..., 1]
        tokens = nodes.add("QuantizeLinear", nodes.add("Div", x, step), nodes.number(1.0), zero)  # [..., I]
        sums = nodes.add("Cast", nodes.add("MatMulInteger", tokens, matrix, zero), to=1)  # [..., O], to float
        return _plus(nodes, nodes.add("Mul", nodes.add("Mul", sums, scale), step), name, bias)

    def tied(self, nodes: Nodes, x: str, name: str, table: str, weight: Array, bias: Array) -> str:
        if self._keeps(name):
            return Floats().tied(nodes, x, name, table, weight, bias)
        return self.linear(nodes, x, name, weight, bias)

    def _step(self, nodes: Nodes, x: str) -> str:
        """What one is worth in each token: the 127th part of its largest value."""
        largest = nodes.add("ReduceMax", nodes.add("Abs", x), nodes.integers(-1))  # [..., 1]
        return nodes.add("Mul", nodes.add("Max", largest, nodes.number(TINY)), nodes.number(1 / (ZERO - 1)))


ZERO = 128
"""what stands for 0 in tokens"""
TINY = 1e-30
"""for tokens that are 0 altogether"""


def _whole(weight: Array) -> tuple[Array, Array]:
    """A matrix [O, I] in whole numbers, and what one of them is worth in each row [O]."""
    numbers, worth = int8.quantized(torch.tensor(weight))
    return numbers.numpy(), worth.numpy()


def _plus(nodes: Nodes, x: str, name: str, bias: Array | None) -> str:
    return x if bias is None else nodes.add("Add", x, nodes.constant(f"{name}.bias", lambda: bias))
