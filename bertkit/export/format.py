"""A format: how a model's graph is written to a file, and how the format's own runtime runs the file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from bertkit import packages
from bertkit.batch import Array
from bertkit.errors import BertkitError
from bertkit.export.ending import Ending
from bertkit.runtime.engines import graph
from bertkit.runtime.engines.graph import Graph
from bertkit.runtime.engines.products import Product

Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]
"""a graph: its inputs by name -> its outputs by name"""


class Format(ABC):
    """One kind of file."""

    name: ClassVar[str]
    file: ClassVar[str]
    """what to open"""
    needs: ClassVar[tuple[str, ...]] = ()
    """packages that write it and run it"""
    whole: ClassVar[bool] = False
    """whether it can hold products of whole numbers"""
    trusted: ClassVar[bool] = False
    """whether opening one may run code that is in it"""

    @abstractmethod
    def write(self, ending: Ending, product: Product, path: Path) -> None:
        """The graph, as a file of this name and perhaps others beside it."""

    @abstractmethod
    def open(self, path: Path, inputs: tuple[str, ...]) -> Run:
        """What runs the file."""

    def package(self, name: str) -> Any:
        """One that may be missing."""
        try:
            return packages.load(name)
        except ImportError:
            raise BertkitError(
                f"{self.name} needs {name}, which is not installed: pip install 'bertkit[engines]'"
            ) from None

    def require(self) -> None:
        """Raise where a package is missing."""
        for name in self.needs:
            self.package(name)


def graph_of(ending: Ending, product: Product) -> Graph:
    """The whole model, written as ONNX's nodes."""
    network = ending.model.network
    reason = graph.refusal(network.spec.encoder)
    if reason:
        raise BertkitError(f"this model cannot be written as a graph: {reason}")
    made = Graph(network, product)
    ending.write(made)
    return made
