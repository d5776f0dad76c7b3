"""Positions: what a token's embedding knows of its place. What attention knows of it is a Place.

Letters: L longest · T tokens · E width of the embedding tables · `...` as in batch.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn

from bertkit.batch import Layout
from bertkit.errors import BertkitError
from bertkit.parts.init import Embedding
from bertkit.spec import Bounds, Count, Spec


@dataclass(frozen=True)
class Positions(Spec):
    """The base of all ways to tell an embedding its place."""

    @property
    def longest(self) -> int | None:
        """The longest sequence; None where there is no longest."""
        raise NotImplementedError

    def after(self, pad: int) -> Positions:
        """The same for a vocabulary whose padding has this id, where that makes a difference."""
        return self

    def build(self, width: int) -> nn.Module:
        """[..., E] and a layout -> [..., E]."""
        raise NotImplementedError


@dataclass(frozen=True)
class Learned(Positions):
    """A table of `rows`, of which the one numbered `first` is that of the first token."""

    rows: Count = 512
    first: Annotated[int, Bounds(0, 2**24)] = 0
    """the rows before it are never read; where there are some, they are those up to the id of padding (fairseq)"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first >= self.rows:
            raise BertkitError(f"Learned.first is {self.first}, but there are only {self.rows} rows")

    @property
    def longest(self) -> int:
        return self.rows - self.first

    def after(self, pad: int) -> Learned:
        return Learned(self.longest + pad + 1, pad + 1) if self.first else self

    def build(self, width: int) -> nn.Module:
        return LearnedModule(self, width)


class LearnedModule(Embedding):
    """x + the row of each token's place."""

    def __init__(self, spec: Learned, width: int) -> None:
        super().__init__(spec.rows, width)
        self.spec = spec

    def forward(self, x: Tensor, layout: Layout) -> Tensor:  # type: ignore[override]
        if layout.longest > self.spec.longest:
            raise BertkitError(
                f"a sequence of {layout.longest} tokens is longer than the {self.spec.longest} this model has "
                "positions for: shorten it, or split it into several"
            )
        places = layout.positions(x.device) + self.spec.first if self.spec.first else layout.positions(x.device)
        return x + super().forward(places)  # [L, E] or [T, E]


@dataclass(frozen=True)
class Unnumbered(Positions):
    """Embeddings do not know their place: attention does."""

    @property
    def longest(self) -> None:
        return None

    def build(self, width: int) -> nn.Module:
        return UnnumberedModule()


class UnnumberedModule(nn.Module):
    """x as it is."""

    def forward(self, x: Tensor, layout: Layout) -> Tensor:
        return x
