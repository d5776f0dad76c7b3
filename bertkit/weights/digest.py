"""One name for all weights of a network, wherever its files lie and whatever holds them."""

from __future__ import annotations

import hashlib

import torch
from torch import nn


def digest(*modules: nn.Module) -> str:
    """SHA-256 of every tensor's name, kind, shape and bytes.

    >>> ours, theirs = nn.Linear(2, 2), nn.Linear(2, 2)
    >>> digest(ours) == digest(theirs), digest(ours) == digest(ours)
    (False, True)
    """
    found = hashlib.sha256()
    for number, module in enumerate(modules):
        for name, tensor in module.state_dict().items():
            found.update(f"{number} {name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
            found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return found.hexdigest()
