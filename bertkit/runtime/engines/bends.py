"""Activations as ONNX writes them: the network's, and those of Dense modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bertkit.runtime.engines.nodes import Nodes

Bend = Callable[[Nodes, str], str]


def _one(operator: str, **attributes: Any) -> Bend:
    return partial(_added, operator, attributes)


def _added(operator: str, attributes: dict[str, Any], nodes: Nodes, x: str) -> str:
    return nodes.add(operator, x, **attributes)


def _same(nodes: Nodes, x: str) -> str:
    return x


def _silu(nodes: Nodes, x: str) -> str:
    return nodes.add("Mul", x, nodes.add("Sigmoid", x))


BENDS: dict[str, Bend] = {
    "gelu": _one("Gelu"),
    "gelu_tanh": _one("Gelu", approximate="tanh"),
    "relu": _one("Relu"),
    "identity": _same,
    "tanh": _one("Tanh"),
    "sigmoid": _one("Sigmoid"),
    "silu": _silu,
    "elu": _one("Elu"),
    "leaky_relu": _one("LeakyRelu", alpha=0.01),
    "mish": _one("Mish"),
    "softplus": _one("Softplus"),
}
