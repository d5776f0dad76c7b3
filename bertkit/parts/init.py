"""Matrices and tables that are drawn by BERT's truncated normal, once, and multiply a few rows as fast as many."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SPREAD = 0.02
FEW_ROWS, SHARES = 128, 4


class Linear(nn.Linear):
    """torch's, but not drawn when made: `draw` does it, or weights are about to be loaded.

    A CPU's matrix library hardly uses its second thread for the few rows of a short query, where reading the matrix is
    the work. Without gradients they are multiplied with quarters of it side by side: about 1.5 × as fast on 2 threads.
    """

    def reset_parameters(self) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        few = x.dim() == 2 and len(x) <= FEW_ROWS and not self.out_features % SHARES
        if few and x.is_cpu and not torch.is_grad_enabled() and torch.get_num_threads() > 1:
            return self._in_shares(x)
        return super().forward(x)

    def _in_shares(self, x: Tensor) -> Tensor:
        """[T, I] -> [T, O], the outputs cut into S shares."""
        share = self.out_features // SHARES
        weight = self.weight.view(SHARES, share, self.in_features).transpose(1, 2)  # [S, I, O/S]
        out = torch.baddbmm(self.bias.view(SHARES, 1, share), x.expand(SHARES, *x.shape), weight)  # [S, T, O/S]
        return out.transpose(0, 1).reshape(len(x), self.out_features)


class Embedding(nn.Embedding):
    """torch's, but not drawn when made: `draw` does it, or weights are about to be loaded."""

    def reset_parameters(self) -> None:
        pass


def draw(module: nn.Module, spread: float = SPREAD) -> None:
    """Draw every matrix of a module from a normal cut off at two deviations; biases 0, norms 1.

    Matrices that are only described (on the meta device) are left alone.
    """
    for part in module.modules():
        if isinstance(part, (Linear, Embedding)) and not part.weight.is_meta:
            _truncated_normal(part.weight.data.view(-1), spread)
        if isinstance(part, Linear) and not part.bias.is_meta:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.LayerNorm):
            part.reset_parameters()


def _truncated_normal(values: Tensor, spread: float) -> None:
    """Draw again what falls beyond two deviations, as TensorFlow does; several times faster than torch's inversion."""
    values.normal_(0, spread)
    beyond = (values.abs() > 2 * spread).nonzero().squeeze(1)
    while len(beyond):
        values[beyond] = torch.empty(len(beyond), dtype=values.dtype, device=values.device).normal_(0, spread)
        beyond = beyond[values[beyond].abs() > 2 * spread]
