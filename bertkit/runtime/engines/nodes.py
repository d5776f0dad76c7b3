"""An ONNX graph that grows node by node, and how it is handed over: whole, or as a file beside its weights.

Values are known by name, so a method that adds nodes takes names and returns one.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bertkit import packages
from bertkit.batch import Array

OPSET, FORMAT = 20, 9
"""the operators' version, and that of the file which belongs to it"""
LARGEST = 3 * 2**29
"""bytes of weights that are kept in one message: protobuf ends at 2 GB"""
SMALL = 1024
"""bytes that always stay in the message: shapes are read before any file is"""
PAGE = 4096
"""weights in a file begin at pages, so that they can be mapped into memory"""


class Nodes:
    """Nodes in the order of their work, and constants, of which each is stored once."""

    def __init__(self) -> None:
        self._onnx = packages.load("onnx")
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._constants: dict[str, Array] = {}
        self._counts: Counter[str] = Counter()
        self._part = ""

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What is added meanwhile is named as belonging to this part."""
        outside, self._part = self._part, f"{self._part}{name}/"
        try:
            yield
        finally:
            self._part = outside

    def input(self, name: str, kind: Any, axes: Sequence[str | int]) -> str:
        """Something that callers give, of a NumPy type."""
        self._inputs.append(self._described(name, kind, axes))
        return name

    def output(self, name: str, value: str, axes: Sequence[str | int], kind: Any = np.float32) -> None:
        """Tell callers a value, by this name."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name], name=name))
        self._outputs.append(self._described(name, kind, axes))

    def constant(self, name: str, make: Callable[[], Array]) -> str:
        """What is always the same; made when it is first asked for."""
        if name not in self._constants:
            self._constants[name] = np.asarray(make(), order="C")
        return name

    def number(self, value: float) -> str:
        """A single float, []."""
        return self.constant(f"number {value!r}", lambda: np.array(value, np.float32))

    def integer(self, value: int) -> str:
        """A single one, []."""
        return self.constant(f"integer {value}", lambda: np.array(value, np.int64))

    def integers(self, *values: int) -> str:
        """A row of them, as shapes and axes are: [values]."""
        return self.constant(f"integers {' '.join(map(str, values))}", lambda: np.array(values, np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output, which is returned."""
        return self.add_several(1, operator, *inputs, **attributes)[0]

    def add_several(self, count: int, operator: str, *inputs: str, **attributes: Any) -> list[str]:
        """A node with several."""
        stem = f"{self._part}{operator}"
        number, self._counts[stem] = self._counts[stem], self._counts[stem] + 1
        name = f"{stem}_{number}" if number else stem
        outputs = [name] if count == 1 else [f"{name}:{index}" for index in range(count)]
        self._nodes.append(self._onnx.helper.make_node(operator, list(inputs), outputs, name=name, **attributes))
        return outputs

    def model(self) -> Any:
        """The whole as a ModelProto, weights and all."""
        stored = [self._onnx.numpy_helper.from_array(value, name) for name, value in self._constants.items()]
        return self._wrapped(stored)

    def save(self, path: Path) -> None:
        """Write the graph, and its weights into one file beside it: for those too large for a message."""
        weights = path.with_name(f"{path.name}.data")
        with weights.open("wb") as file:
            stored = [self._stored(name, value, file, weights.name) for name, value in self._constants.items()]
        path.write_bytes(self._wrapped(stored).SerializeToString())

    def write(self, path: Path) -> None:
        """The graph as a file, weights and all; where that would be too large, with its weights beside it."""
        if self._is_large:
            self.save(path)
        else:
            path.write_bytes(self.model().SerializeToString())

    @property
    def _is_large(self) -> bool:
        return sum(value.nbytes for value in self._constants.values()) > LARGEST

    @contextmanager
    def readable(self) -> Iterator[str]:
        """What engines read: a file, with the weights beside it, which takes half the time of a message with them."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:  # some systems keep what is being read
            path = Path(home) / "model.onnx"
            self.save(path)
            yield str(path)

    def _described(self, name: str, kind: Any, axes: Sequence[str | int]) -> Any:
        helper = self._onnx.helper
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), axes)

    def _stored(self, name: str, value: Array, file: Any, location: str) -> Any:
        """A constant that says where in the file it is; its bytes are written there."""
        if value.nbytes <= SMALL:
            return self._onnx.numpy_helper.from_array(value, name)
        file.write(b"\0" * (-file.tell() % PAGE))
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        made = self._onnx.TensorProto(name=name, data_type=kind, dims=value.shape, data_location=1)  # external
        for key, entry in {"location": location, "offset": file.tell(), "length": value.nbytes}.items():
            made.external_data.add(key=key, value=str(entry))
        file.write(value.data)
        return made

    def _wrapped(self, stored: list[Any]) -> Any:
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "bertkit", self._inputs, self._outputs, stored)
        versions = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, producer_name="bertkit", opset_imports=versions, ir_version=FORMAT)
