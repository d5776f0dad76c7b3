"""Centred states: a network rewritten so that what is quantised has its middle at zero; in fp32 it says the same.

A few dimensions of BERT's hidden states are far from zero for every token. Whole numbers that must reach so far are
coarse for all other dimensions. So what a norm gives is moved by a fixed vector, which is added back where it is read:
in the biases of the matrices that multiply it, and in the bias that is summed with it on the way around the block.
Values are moved in the same way: attention mixes them with shares that sum to 1, and so moves them all alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.compress.watching import watch
from bertkit.parts.attention import AttentionModule
from bertkit.parts.feed import FeedModule
from bertkit.parts.network import NetworkModule

STEPS = 150
"""towards a middle"""


@torch.no_grad()
def center(network: NetworkModule, batches: Iterable[Batch]) -> bool:
    """Rewrite a network in place, by the middles that some texts have; False where its blocks are shared.

    Memory holds what every block multiplies, so that a few thousand tokens are enough and as many as it should be.
    """
    steps = network.spec.encoder.order
    if list(steps) != [(step, step) for step in range(len(steps))]:
        return False  # what leaves the last layer must stay where it is, and so all that leaves a shared one
    encoder = network.encoder
    blocks = cast("list[tuple[AttentionModule, FeedModule]]", list(zip(encoder.attentions, encoder.feeds, strict=True)))
    middles = _middles(network, [part for one, two in blocks for part in (one.qkv, one.out, two.up)], batches)
    before = encoder.embed.norm if isinstance(encoder.embed.widen, nn.Identity) else encoder.embed.widen
    for attention, feed in blocks:
        values = middles[attention.out]
        _move(before, middles[attention.qkv], attention.qkv, attention.out)
        attention.qkv.bias[-len(values) :].sub_(values)
        attention.out.bias.add_(attention.out.weight @ values)
        _move(attention.norm, middles[feed.up], feed.up, feed.down)
        before = feed.norm
    return True


def _move(norm: nn.Module, middle: Tensor, reader: nn.Linear, around: nn.Linear) -> None:
    """Take a vector [W] from what a norm gives, and give it back to who reads that and to the sum behind the block."""
    assert isinstance(norm.bias, Tensor)
    norm.bias.sub_(middle)
    reader.bias.add_(reader.weight @ middle)
    around.bias.add_(middle)


def _middles(network: NetworkModule, readers: Sequence[nn.Module], batches: Iterable[Batch]) -> dict[nn.Module, Tensor]:
    """Of what each matrix multiplies, over all tokens: [W]."""
    seen: dict[nn.Module, list[Tensor]] = {reader: [] for reader in readers}
    shares: list[Tensor] = []

    def see(module: nn.Module, given: tuple[Any, ...]) -> None:
        seen[module].append(given[0].flatten(0, -2))

    def told() -> Iterator[Batch]:
        for batch in batches:
            shares.append(_shares(batch))
            yield batch

    watch(network, told(), [reader.register_forward_pre_hook(see) for reader in readers])
    return {reader: _middle(torch.cat(rows), torch.cat(shares)) for reader, rows in seen.items()}


def _shares(batch: Batch) -> Tensor:
    """How much each token of a packed batch counts, [T]: first tokens together as much as all others.

    [CLS] is farther from the rest than any other token and reached for by all of them, so that what it loses is felt
    everywhere, most of all in short texts.
    """
    first = batch.layout.positions(batch.order.device) == 0  # [T]
    return torch.where(first, (~first).sum() / first.sum(), 1.0).clamp(min=1.0)


@torch.enable_grad()
def _middle(rows: Tensor, shares: Tensor) -> Tensor:
    """The vector [W] that is nearest to the tokens [T, W], by the square of each one's largest distance, by its share.

    A token's largest number decides how coarse its whole numbers are, and what is lost grows with its square.
    """
    rows, shares = rows.detach(), shares / shares.sum()
    middle = rows.median(0).values.requires_grad_()
    rate = 0.1 * float(rows.std())
    optimizer = torch.optim.Adam([middle], rate)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = rate * (1 - step / STEPS)
        lost = ((rows - middle).abs().amax(1).square() * shares).sum()
        (middle.grad,) = torch.autograd.grad(lost, middle)
        optimizer.step()
    return middle.detach()
