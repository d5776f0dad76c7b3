"""OpenVINO: the same graph as Intel's two files, one of XML and one of weights, which stay in 32 bits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bertkit.batch import Array
from bertkit.export.ending import Ending
from bertkit.export.format import Format, Run, graph_of
from bertkit.runtime.engines.openvino import core
from bertkit.runtime.engines.products import Product


class OpenVino(Format):
    """Run by OpenVINO on the processor."""

    name, file, needs = "openvino", "openvino_model.xml", ("onnx", "openvino")

    def write(self, ending: Ending, product: Product, path: Path) -> None:
        self.require()
        library = self.package("openvino")
        with graph_of(ending, product).nodes.readable() as model:
            library.save_model(core(library).read_model(model), str(path), compress_to_fp16=False)

    def open(self, path: Path, inputs: tuple[str, ...]) -> Run:
        compiled = core(self.package("openvino")).compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

        def run(given: Mapping[str, Array]) -> Mapping[str, Array]:
            said = compiled(dict(given)).items()
            return {name: values for output, values in said for name in output.get_names()}  # ours is one of them

        return run
