"""Example, Batch and the two layouts: the vocabulary every room shares.

An `Example` is one sequence in NumPy. `collate` makes a `Batch` of them in one of two layouts, which answer the same
questions; `gather` makes it of examples that lie in a row. Only this file knows how tokens lie in memory.

Letters: B rows (sequences) · L longest · T tokens without padding · W width · `...` is [B, L] padded or [T] packed.

>>> examples = [Example({"ids": np.array(ids)}) for ids in ([5, 6], [7, 8, 9], [1, 2])]
>>> collate(examples, Padded).tokens["ids"]
tensor([[5, 6, 0],
        [7, 8, 9],
        [1, 2, 0]])
>>> batch = collate(examples, Packed)
>>> batch.tokens["ids"], batch.layout.runs       # longest first: one row of three tokens, then two of two
(tensor([7, 8, 9, 5, 6, 1, 2]), ((1, 3), (2, 2)))
>>> batch.restore(batch.layout.first(batch.tokens["ids"]))
tensor([5, 7, 1])
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from bertkit.errors import BertkitError

Array = np.ndarray[Any, np.dtype[Any]]
_FIRST = torch.zeros(1, dtype=torch.long)
"""the order of a batch of one"""


@dataclass(frozen=True)
class Example:
    """One sequence: values per token (`ids`, `segments`, …), marks (positions and values), labels for the whole."""

    tokens: Mapping[str, Array]
    marks: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens["ids"])


@dataclass(frozen=True)
class Block:
    """A rectangle of rows that attention handles at once; `mask` [B, 1, 1, L] is None where nothing is padding."""

    rows: int
    length: int
    mask: Tensor | None = None


class Layout(Protocol):
    """How the tokens of a batch lie in memory. Both layouts answer the same questions."""

    @property
    def rows(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """[B, L] or [T]: the `...` of every tensor that holds a value per token."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The rectangles for attention, in order."""

    def positions(self, device: torch.device) -> Tensor:
        """The place of each token in its own sequence: [L] padded, [T] packed."""

    def first(self, x: Tensor) -> Tensor:
        """The first token of each row: [..., W] -> [B, W]."""

    def mean(self, x: Tensor) -> Tensor:
        """The mean over the tokens of each row: [..., W] -> [B, W]."""

    def max(self, x: Tensor) -> Tensor:
        """The maximum over the tokens of each row: [..., W] -> [B, W]."""

    def flat(self, x: Tensor) -> Tensor:
        """All tokens in one row, as marks count them: [..., W] -> [B·L, W] or [T, W]."""

    def to_padded(self, x: Tensor) -> Tensor:
        """[..., W] -> [B, L, W]; zeros where there is no token."""

    def split(self, x: Tensor) -> list[Tensor]:
        """One view [rows, length, ...] for each block."""

    def join(self, parts: list[Tensor]) -> Tensor:
        """Undo `split`."""

    def to(self, device: torch.device) -> Layout: ...


@dataclass(frozen=True)
class Padded:
    """Rows of equal length, filled up on the right. `mask` [B, L] is True at tokens, None where every row is full."""

    rows: int
    longest: int
    mask: Tensor | None = None

    @classmethod
    def of(cls, lengths: Sequence[int]) -> tuple[Padded, list[int], list[int]]:
        """The layout for rows of these lengths, the order it puts them in, and where each starts in `flat`."""
        longest = max(lengths)
        full = min(lengths) == longest
        mask = None if full else torch.arange(longest) < torch.tensor(lengths)[:, None]  # [B, L]
        made = cls(len(lengths), longest, mask)
        return made, list(range(len(lengths))), list(range(0, len(lengths) * longest, longest))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows, self.longest

    @property
    def blocks(self) -> tuple[Block, ...]:
        mask = None if self.mask is None else self.mask[:, None, None, :]  # [B, 1, 1, L]
        return (Block(self.rows, self.longest, mask),)

    def positions(self, device: torch.device) -> Tensor:
        return torch.arange(self.longest, device=device)  # [L]

    def first(self, x: Tensor) -> Tensor:
        return x[:, 0]

    def mean(self, x: Tensor) -> Tensor:
        if self.mask is None:
            return x.mean(1)
        weights = self.mask.to(x.dtype)[..., None]  # [B, L, 1]
        return (x * weights).sum(1) / weights.sum(1)

    def max(self, x: Tensor) -> Tensor:
        if self.mask is None:
            return x.amax(1)
        return x.masked_fill(~self.mask[..., None], -torch.inf).amax(1)

    def flat(self, x: Tensor) -> Tensor:
        return x.flatten(0, 1)

    def to_padded(self, x: Tensor) -> Tensor:
        return x if self.mask is None else x * self.mask.to(x.dtype).view(*self.mask.shape, *[1] * (x.dim() - 2))

    def split(self, x: Tensor) -> list[Tensor]:
        return [x]

    def join(self, parts: list[Tensor]) -> Tensor:
        return parts[0]

    def to(self, device: torch.device) -> Padded:
        return self if self.mask is None else replace(self, mask=self.mask.to(device))


@dataclass(frozen=True)
class Packed:
    """Tokens only, sorted by length: a row of runs (how many, how long) of equal-length sequences, each run a view.

    On a CPU this is the least code and the fastest way to spend nothing on padding: no mask, no scatter, no gather.
    """

    runs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, lengths: Sequence[int]) -> tuple[Packed, list[int], list[int]]:
        """The layout for rows of these lengths, the order it puts them in, and where each starts in `flat`."""
        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        ordered = [lengths[index] for index in order]
        runs = tuple((len(list(run)), length) for length, run in groupby(ordered))
        return cls(runs), order, list(accumulate(ordered[:-1], initial=0))

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(count * length for count, length in self.runs),)

    @property
    def rows(self) -> int:
        return sum(count for count, _ in self.runs)

    @property
    def longest(self) -> int:
        return max(length for _, length in self.runs)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(Block(count, length) for count, length in self.runs)

    def positions(self, device: torch.device) -> Tensor:
        steps = torch.arange(self.longest, device=device)
        return self.join([steps[:length].expand(count, length) for count, length in self.runs])  # [T]

    def first(self, x: Tensor) -> Tensor:
        return torch.cat([part[:, 0] for part in self.split(x)])

    def mean(self, x: Tensor) -> Tensor:
        return torch.cat([part.mean(1) for part in self.split(x)])

    def max(self, x: Tensor) -> Tensor:
        return torch.cat([part.amax(1) for part in self.split(x)])

    def flat(self, x: Tensor) -> Tensor:
        return x

    def to_padded(self, x: Tensor) -> Tensor:
        out = x.new_zeros(self.rows, self.longest, *x.shape[1:])
        row = 0
        for part in self.split(x):
            out[row : row + len(part), : part.shape[1]] = part
            row += len(part)
        return out

    def split(self, x: Tensor) -> list[Tensor]:
        parts = x.split_with_sizes([count * length for count, length in self.runs]) if len(self.runs) > 1 else (x,)
        return [part.view(*run, *part.shape[1:]) for part, run in zip(parts, self.runs, strict=True)]

    def join(self, parts: list[Tensor]) -> Tensor:
        return torch.cat([part.flatten(0, 1) for part in parts]) if len(parts) > 1 else parts[0].flatten(0, 1)

    def to(self, device: torch.device) -> Packed:
        return self


@dataclass(frozen=True)
class Batch:
    """Sequences side by side. `order[row]` is the place that row had in the list of examples."""

    tokens: dict[str, Tensor]  # each [...]
    layout: Layout
    order: Tensor  # [B]
    marks: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)  # flat indices [M], values [M]
    labels: dict[str, Tensor] = field(default_factory=dict)  # each [B, ...]

    def restore(self, rows: Tensor) -> Tensor:
        """Results [B, ...] in the order of the examples."""
        return rows if len(rows) == 1 else torch.empty_like(rows).index_copy(0, self.order, rows)

    def to(self, device: torch.device | str) -> Batch:
        device = torch.device(device)
        if self.order.device == device:
            return self
        return Batch(
            {name: values.to(device) for name, values in self.tokens.items()},
            self.layout.to(device),
            self.order.to(device),
            {name: (at.to(device), values.to(device)) for name, (at, values) in self.marks.items()},
            {name: values.to(device) for name, values in self.labels.items()},
        )


def collate(examples: Sequence[Example], layout: type[Padded] | type[Packed] = Packed) -> Batch:
    """Examples side by side in the given layout; token values under padding are 0."""
    lengths = [len(example) for example in examples]
    _require_tokens(lengths)
    if len(examples) == 1:
        return _alone(examples[0], layout)
    made, order, starts = layout.of(lengths)
    rows = [examples[index] for index in order]

    def column(name: str) -> Tensor:
        values = _blank(made, rows[0].tokens[name])
        for start, example in zip(starts, rows, strict=True):
            assert len(example.tokens[name]) == len(example), f"{name} must have a value for every token"
            values[start : start + len(example)] = example.tokens[name]
        return torch.from_numpy(values).view(made.shape)

    def mark(name: str) -> tuple[Tensor, Tensor]:
        at = np.concatenate([start + row.marks[name][0] for start, row in zip(starts, rows, strict=True)])
        return torch.from_numpy(at), torch.from_numpy(np.concatenate([row.marks[name][1] for row in rows]))

    def label(name: str) -> Tensor:
        return torch.from_numpy(np.stack([np.asarray(row.labels[name]) for row in rows]))

    return Batch(
        {name: column(name) for name in rows[0].tokens},
        made,
        torch.tensor(order),
        {name: mark(name) for name in rows[0].marks},
        {name: label(name) for name in rows[0].labels},
    )


def _alone(example: Example, layout: type[Padded] | type[Packed]) -> Batch:
    """A batch of one example, without what only several need: a query waits for it."""
    made, _, _ = layout.of([len(example)])

    def column(values: Array) -> Tensor:
        assert len(values) == len(example), "there must be a value for every token"
        return torch.from_numpy(np.array(values, _kind(values))).view(made.shape)

    return Batch(
        {name: column(values) for name, values in example.tokens.items()},
        made,
        _FIRST,
        {name: (torch.tensor(at), torch.tensor(values)) for name, (at, values) in example.marks.items()},
        {name: torch.from_numpy(np.array(value)[None]) for name, value in example.labels.items()},
    )


def gather(
    tokens: Mapping[str, Array],
    lengths: Array,
    marks: Mapping[str, tuple[Array, Array]],
    labels: Mapping[str, Array],
    layout: type[Padded] | type[Packed] = Packed,
) -> Batch:
    """What `collate` makes, of examples that lie in a row already: tokens [T], and the length of each example [B].

    Marks count tokens in the row. Nothing is done example by example, so that a batch of many costs hardly more.

    >>> ids, lengths, marks = np.array([5, 6, 7, 8, 9]), np.array([2, 3]), {"mlm": (np.array([1]), np.array([4]))}
    >>> batch = gather({"ids": ids}, lengths, marks, labels={})
    >>> batch.tokens["ids"], batch.marks["mlm"]
    (tensor([7, 8, 9, 5, 6]), (tensor([4]), tensor([4])))
    """
    _require_tokens(lengths.tolist())
    made, order, starts = layout.of(lengths.tolist())
    start = np.empty(len(order), np.int64)
    start[order] = starts  # [B], of each example where it will lie
    place = np.repeat(start - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())  # [T], of each token

    def column(values: Array) -> Tensor:
        laid = _blank(made, values)
        laid[place] = values
        return torch.from_numpy(laid).view(made.shape)

    def mark(at: Array, values: Array) -> tuple[Tensor, Tensor]:
        moved = place[at]
        ascending = np.argsort(moved, kind="stable")
        return torch.from_numpy(moved[ascending]), torch.from_numpy(values[ascending])

    return Batch(
        {name: column(values) for name, values in tokens.items()},
        made,
        torch.tensor(order),
        {name: mark(*pair) for name, pair in marks.items()},
        {name: torch.from_numpy(values[order]) for name, values in labels.items()},
    )


def _require_tokens(lengths: Sequence[int]) -> None:
    if not lengths or min(lengths) == 0:
        empty = f"example {lengths.index(0)} has no tokens" if lengths else "there are no examples"
        raise BertkitError(f"cannot make a batch: {empty}. Encode texts with special tokens, or leave it out.")


def _blank(layout: Layout, values: Array) -> Array:
    """Zeros for values such as these; torch indexes with int64 only, and shards may hold fewer bits."""
    return np.zeros(math.prod(layout.shape), _kind(values))


def _kind(values: Array) -> Any:
    return np.int64 if values.dtype.kind in "iu" else values.dtype
