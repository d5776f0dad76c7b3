"""ONNX: one message of protobuf; weights that are too large for it lie in a file beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bertkit.batch import Array
from bertkit.export.ending import Ending
from bertkit.export.format import Format, Run, graph_of
from bertkit.runtime.engines.onnx import be_quiet
from bertkit.runtime.engines.products import Product


class Onnx(Format):
    """Run by ONNX Runtime."""

    name, file, needs = "onnx", "model.onnx", ("onnx", "onnxruntime")
    whole = True

    def write(self, ending: Ending, product: Product, path: Path) -> None:
        self.require()
        graph_of(ending, product).nodes.write(path)

    def open(self, path: Path, inputs: tuple[str, ...]) -> Run:
        library = self.package("onnxruntime")
        be_quiet(library)
        session = library.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]

        def run(given: Mapping[str, Array]) -> Mapping[str, Array]:
            return dict(zip(names, session.run(names, dict(given)), strict=True))

        return run
