"""Answers that are no numbers: a model with NaN or infinity among its weights must say so, not answer.

Only answers are looked at, which are few beside what makes them; weights are searched once an answer is not finite.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from bertkit.errors import BertkitError
from bertkit.runtime.stream import Rows


def require_finite(rows: Rows, name: str, **modules: nn.Module) -> Rows:
    """The rows as they are; where they hold what is no number, an error that says which tensor of `modules` does.

    >>> layer = nn.Linear(2, 2)
    >>> _ = layer.bias.data.fill_(torch.inf)
    >>> require_finite(np.array([torch.nan]), "runs/mine", head=layer)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bertkit.errors.BertkitError: runs/mine answers with NaN or infinity: 2 of 2 values of its head.bias are ...
    """
    if np.isfinite(rows).all():
        return rows
    raise BertkitError(f"{name} answers with NaN or infinity: {_reason(modules)}")


def _reason(modules: dict[str, nn.Module]) -> str:
    largest, where = 0.0, "none"
    for prefix, module in modules.items():
        for name, tensor in module.state_dict().items():
            bad = int((~torch.isfinite(tensor)).sum())
            if bad:
                return (
                    f"{bad:,} of {tensor.numel():,} values of its {prefix}.{name} are not finite. Copy or download the "
                    "model again, or take one from before they came about in training"
                )
            most = float(tensor.abs().max()) if tensor.numel() else 0.0
            if most > largest:
                largest, where = most, f"{prefix}.{name}"
    return (
        f"its weights are finite, but what is made of them is not. The largest is {largest:.3g}, in {where}. Copy or "
        "download the model again, or train it with a lower rate"
    )
