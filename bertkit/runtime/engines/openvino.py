"""OpenVINO: the same graph, compiled by Intel's library for the processor that is there.

Whole numbers come out right, but it multiplies them as floats after all, which is slower than floats from the start.
"""

from __future__ import annotations

from functools import cache
from queue import SimpleQueue
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertkit.batch import Array, Batch, Example
from bertkit.parts.encoder import Encoder
from bertkit.parts.network import NetworkModule
from bertkit.runtime.engines import graph
from bertkit.runtime.engines.engine import FP32, Engine, Setup
from bertkit.runtime.engines.products import Floats
from bertkit.runtime.lanes import CHEAP


class OpenVino(Engine):
    """One compiled model, with a request for each worker."""

    name, package, besides = "openvino", "openvino", ("onnx",)
    precisions = (FP32,)
    tokens = Engine.tokens | {FP32: 512}  # base size takes a tenth less time than with twice as many
    padding = CHEAP

    def __init__(self, network: NetworkModule, setup: Setup) -> None:
        super().__init__(network, setup)
        intel = core(self._package())
        self._encoder = network.spec.encoder
        made = graph.Graph(network, Floats()).tell_hidden()
        with made.nodes.readable() as model:
            compiled = intel.compile_model(intel.read_model(model), "CPU", _settings(setup))
        self._idle: SimpleQueue[Any] = SimpleQueue()  # workers come and go: requests, which hold memory, stay
        for _ in range(setup.workers):
            self._idle.put(compiled.create_infer_request())

    @classmethod
    def refusal(cls, encoder: Encoder) -> str:
        return graph.refusal(encoder)

    def hidden(self, batch: Batch) -> Tensor:
        return torch.from_numpy(self._run(graph.arrays(batch, self._encoder)))

    def states(self, example: Example) -> Array:
        states: Array = self._run(graph.row(example, self._encoder))[0]  # [L, W]
        return states

    def _run(self, given: dict[str, Array]) -> Array:
        request = self._idle.get()
        try:
            # its own output, copied: what it shares it would still know of when the memory is somebody else's
            states: Array = request.infer(given, share_inputs=False)[0]  # [B, L, W]
        finally:
            self._idle.put(request)
        return states


def core(library: Any) -> Any:
    """Its one core, made by one thread and kept.

    Two threads that both come first wait for each other for ever, at its table of types. And where a processor has
    AMX, every core gives signals a stack of its own, and puts back the one before it when it goes: of two that go in
    the order in which they came the second puts back what is gone, and Ctrl-C is a segmentation fault from then on.
    """
    with _MAKING:
        return _core(library)


@cache
def _core(library: Any) -> Any:
    _ = library.Tensor(np.zeros(1, np.float32)).data  # fills its table of types
    return library.Core()


_MAKING = Lock()


def _settings(setup: Setup) -> dict[str, Any]:
    return {
        "PERFORMANCE_HINT": "LATENCY" if setup.workers == 1 else "THROUGHPUT",
        "NUM_STREAMS": setup.workers,
        "INFERENCE_NUM_THREADS": setup.workers * setup.threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "ENABLE_CPU_PINNING": False,  # other programs may hold the core that it would stick to
    }
