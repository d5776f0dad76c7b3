"""How a graph multiplies by a matrix: in floats, or in whole numbers of 8 bits."""

from __future__ import annotations

from abc import ABC, abstractmethod

from bertkit.batch import Array
from bertkit.runtime.engines.engine import FP32
from bertkit.runtime.engines.nodes import Nodes


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


def _plus(nodes: Nodes, x: str, name: str, bias: Array | None) -> str:
    return x if bias is None else nodes.add("Add", x, nodes.constant(f"{name}.bias", lambda: bias))


PRODUCTS: dict[str, type[Product]] = {FP32: Floats}
"""by precision"""
