"""The torch engine: a function of batches, run without gradients where the network is."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bertkit.batch import Batch
from bertkit.runtime.stream import Engine, Rows


def torch_engine(function: Callable[[Batch], Tensor], device: torch.device) -> Engine:
    """`function` gives rows [B, ...] in the batch's own order; the engine gives them in the order of the examples."""

    @torch.inference_mode()
    def run(batch: Batch) -> Rows:
        moved = batch.to(device)
        rows: Rows = moved.restore(function(moved)).float().cpu().numpy()
        return rows

    return run
