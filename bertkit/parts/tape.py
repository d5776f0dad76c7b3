"""Tape: what one forward pass looked like inside, for views and explanations.

>>> from bertkit.batch import Example, collate
>>> from bertkit.family import bert
>>> import numpy as np, torch
>>> encoder = bert.encoder("tiny", vocabulary=50).build().eval()
>>> tape = record(encoder, collate([Example({"ids": np.array([2, 9, 3]), "segments": np.zeros(3, dtype=int)})]))
>>> len(tape.hidden), len(tape.probabilities), tape.probabilities[0].shape
(3, 2, torch.Size([1, 2, 3, 3]))
>>> bool(torch.allclose(tape.probabilities[0].sum(-1), torch.ones(1, 2, 3)))
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from bertkit.batch import Batch

if TYPE_CHECKING:
    from bertkit.parts.encoder import EncoderModule


class Tape:
    """Hidden states of the embeddings and each step, and queries, keys and probabilities of each attention.

    Everything is padded and in the order of the examples: `hidden` [B, L, W], `queries` and `keys` [B, N, L, H],
    `probabilities` [B, N, L, L], zero where there is no token.
    """

    def __init__(self, batch: Batch) -> None:
        self.hidden: list[Tensor] = []
        self.queries: list[Tensor] = []
        self.keys: list[Tensor] = []
        self.probabilities: list[Tensor] = []
        self._batch = batch
        self._blocks: list[tuple[Tensor, Tensor, Tensor]] = []

    def attention(self, q: Tensor, k: Tensor, probabilities: Tensor) -> None:
        """Note one block of one attention: [B, N, Q, H] twice and [B, N, Q, K]."""
        self._blocks.append((q, k, probabilities))
        if len(self._blocks) == len(self._batch.layout.blocks):
            queries, keys, weights = zip(*self._blocks, strict=True)
            self._blocks = []
            self.queries.append(self._lay_out(queries))
            self.keys.append(self._lay_out(keys))
            self.probabilities.append(self._lay_out(weights, square=True))

    def step(self, hidden: Tensor) -> None:
        """Note the embeddings' output, then each layer's."""
        self.hidden.append(self._batch.restore(self._batch.layout.to_padded(hidden)))

    def _lay_out(self, blocks: tuple[Tensor, ...], square: bool = False) -> Tensor:
        layout = self._batch.layout
        heads, width = blocks[0].shape[1], layout.longest if square else blocks[0].shape[-1]
        out = blocks[0].new_zeros(layout.rows, heads, layout.longest, width)
        row = 0
        for block, piece in zip(layout.blocks, blocks, strict=True):
            mask = 1 if block.mask is None else block.mask.transpose(-1, -2)  # rows of padding become zero
            out[row : row + block.rows, :, : block.length, : piece.shape[-1]] = piece * mask
            row += block.rows
        return self._batch.restore(out)


def record(encoder: EncoderModule, batch: Batch) -> Tape:
    """Run the encoder once and keep what happened inside."""
    tape = Tape(batch)
    for hidden in encoder.steps(batch, tape):
        tape.step(hidden)
    return tape
