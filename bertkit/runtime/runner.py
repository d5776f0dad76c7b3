"""A network on its engines: one for a batch that comes alone, one for many; each built when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from bertkit.batch import Batch, Example, collate
from bertkit.errors import look_up
from bertkit.parts.network import NetworkModule
from bertkit.runtime.engines import ENGINES
from bertkit.runtime.engines.engine import Engine, Setup
from bertkit.runtime.lanes import Lanes
from bertkit.runtime.stream import Rows
from bertkit.runtime.watch import Watch

Hidden = Callable[[Batch], Tensor]
"""a batch -> its last hidden states [..., W]"""
Function = Callable[[Hidden, Batch], Tensor]
"""what is made of a batch, whoever computes its hidden states"""
Result = TypeVar("Result")


class Runner:
    """Runs functions of batches. Who changes weights need not tell: engines that hold a copy are then built anew."""

    def __init__(self, network: NetworkModule, single: Setup, bulk: Setup) -> None:
        self.network, self.single, self.bulk = network, single, bulk
        self._built: dict[Setup, tuple[Watch, Engine]] = {}
        self._building = threading.Lock()

    @classmethod
    def of_torch(cls, network: NetworkModule) -> Runner:
        """torch, with a batch on each core."""
        lanes = Lanes.on(network.device)
        setup = Setup("torch", workers=lanes.count, tokens=lanes.tokens)
        return cls(network, setup, setup)

    def alone(self) -> Runner:
        """The same, each text in a batch of its own: what it gives for a text depends on nothing but the text."""
        setup = replace(self.bulk, tokens=1)
        return Runner(self.network, setup, setup)

    @property
    def lanes(self) -> Lanes:
        """How texts are put together."""
        return look_up("engine", self.bulk.engine, ENGINES).laned(self.bulk)

    def engine(self, batches: int) -> Engine:
        """For so many batches."""
        setup = self.single if batches < 2 else self.bulk
        with self._building:
            watch, engine = self._built.get(setup, (None, None))
            if engine is None or watch is None or (engine.copies and watch.changed()):
                watch = Watch(self.network)  # before it is copied: what is written meanwhile counts
                engine = look_up("engine", setup.engine, ENGINES)(self.network, setup)
                self._built[setup] = watch, engine
        return engine

    def states(self, example: Example) -> Rows:
        """The last hidden states [L, W] of one example, with as little around them as there can be."""
        return self.engine(1).states(example)

    def rows(self, function: Function, groups: Iterable[list[Example]], count: int) -> Iterator[Rows]:
        """What `function` makes of each of `count` groups, [B, ...], in the order of its examples."""
        return self._map(function, groups, count, _by_row)

    def tokens(self, function: Function, groups: Iterable[list[Example]], count: int) -> Iterator[list[Rows]]:
        """The same for values per token: [tokens, ...] for each example of each group."""
        return self._map(function, groups, count, _by_token)

    def _map(
        self,
        function: Function,
        groups: Iterable[list[Example]],
        count: int,
        told: Callable[[Tensor, Batch], Result],
    ) -> Iterator[Result]:
        engine, device = self.engine(count), self.network.device

        def run(batch: Batch) -> Result:
            with torch.inference_mode():
                moved = batch.to(device)
                return told(function(engine.hidden, moved), moved)

        with self.network.evaluating():
            yield from engine.lanes.map(run, (collate(group, engine.layout) for group in groups))


def _by_row(made: Tensor, batch: Batch) -> Rows:
    rows: Rows = batch.restore(made).float().cpu().numpy()
    return rows


def _by_token(made: Tensor, batch: Batch) -> list[Rows]:
    padded = batch.restore(batch.layout.to_padded(made)).float().cpu().numpy()  # [B, L, C]
    lengths = batch.restore(batch.layout.to_padded(torch.ones_like(batch.tokens["ids"]))).sum(1)  # [B]
    return [rows[:length] for rows, length in zip(padded, lengths.tolist(), strict=True)]
