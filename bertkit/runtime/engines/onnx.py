"""ONNX Runtime: the graph is rewritten into larger operators when it is read, and run by Microsoft's kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bertkit.batch import Array, Batch, Example
from bertkit.parts.encoder import Encoder
from bertkit.parts.network import NetworkModule
from bertkit.runtime.engines import graph
from bertkit.runtime.engines.engine import FP32, INT8, Engine, Setup
from bertkit.runtime.engines.products import Floats, Integers
from bertkit.runtime.lanes import CHEAP

ERRORS = 3
"""the least severe message that it may print"""


class Onnx(Engine):
    """One session for all workers."""

    name, package, besides = "onnx", "onnxruntime", ("onnx",)
    keeps = True
    tokens = Engine.tokens | {FP32: 512}  # 3 % faster than with twice as many, on Zen 5
    padding = CHEAP

    def __init__(self, network: NetworkModule, setup: Setup) -> None:
        super().__init__(network, setup)
        library = self._package()
        be_quiet(library)
        self._encoder = network.spec.encoder
        product = Integers(frozenset(setup.kept)) if setup.precision == INT8 else Floats()
        made = graph.Graph(network, product).tell_hidden()
        with made.nodes.readable() as model:
            self._session = library.InferenceSession(model, _options(library, setup), ["CPUExecutionProvider"])

    @classmethod
    def refusal(cls, encoder: Encoder) -> str:
        return graph.refusal(encoder)

    def hidden(self, batch: Batch) -> Tensor:
        return torch.from_numpy(self._run(graph.arrays(batch, self._encoder)))

    def states(self, example: Example) -> Array:
        states: Array = self._run(graph.row(example, self._encoder))[0]  # [L, W]
        return states

    def _run(self, given: dict[str, Array]) -> Array:
        states: Array = self._session.run(None, given)[0]  # [B, L, W]
        return states


def _options(library: Any, setup: Setup) -> Any:
    """Workers are threads of the caller's; those that help them are shared."""
    options = library.SessionOptions()
    options.graph_optimization_level = library.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = 1 + setup.workers * (setup.threads - 1)
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS
    if setup.workers > 1:  # one who spins takes the core of another
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def be_quiet(library: Any) -> None:
    """No reports to anybody, and no warnings about what it will do on its own."""
    library.set_default_logger_severity(ERRORS)
    getattr(library, "disable_telemetry_events", lambda: None)()
