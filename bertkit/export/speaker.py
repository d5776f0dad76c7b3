"""Whoever says something of texts, in the same words: a graph in a file, or a model in memory.

Texts of any number go through a window at a time, in batches of about equal length, and come out in their order.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from bertkit.batch import Array, Batch, Example, collate
from bertkit.errors import BertkitError, about
from bertkit.export.ending import Ending, Output, Vectors
from bertkit.model import Model
from bertkit.runtime.engines.engine import Engine
from bertkit.runtime.lanes import CHEAP, Lanes
from bertkit.runtime.runner import Runner
from bertkit.runtime.stream import Given, checked, example
from bertkit.text import Tokenizer
from bertkit.text import truncate as truncation
from bertkit.text.prompt import Prompted
from bertkit.text.reading import read
from bertkit.text.truncate import Chunk, Cut, Policy
from bertkit.text.window import windows

TOKENS = 1024
"""of a batch, about"""
HELD = 2**26
"""numbers that are held at a time, about: those of a masked language model are 30,000 for each token"""

log = logging.getLogger("bertkit")


class Speaker(ABC):
    """What there is to ask, and how texts are read."""

    tokenizer: Tokenizer
    limit: int
    """the most tokens of a text"""
    prompt: str
    """written before each text"""
    outputs: tuple[Output, ...]
    kind: str
    """of the head that speaks, by its class, or `sentence`"""
    labels: tuple[str, ...]
    """of the last axis, where it has names"""

    @abstractmethod
    def said(self, examples: Sequence[Example]) -> dict[str, Array]:
        """The outputs of a batch by name, rows in the order of the examples: [B, ...]."""

    def rows(
        self, texts: Iterable[Given], truncate: str | Policy = "head", cut: Cut | None = None
    ) -> Iterator[dict[str, Array]]:
        """For each text or pair its outputs by name: [...] of the whole, [tokens, ...] of tokens, special ones too.

        What is cut is counted in `cut`, or else logged.
        """
        policy, done, seen = self._policy(truncate), Cut(self.limit), 0
        if isinstance(texts, str):
            raise BertkitError(f"texts is one str: give a list, [{texts[:20]!r}]")
        for window in windows(checked(texts), lambda fields: sum(map(len, fields))):
            if self.prompt and any(len(fields) > 1 for fields in window):
                raise BertkitError(f"the prompt {self.prompt!r} stands before single texts: give no pairs")
            done.latest.clear()
            read = self.examples(window, policy, done, seen)
            seen += len(window)
            for group in self._fitting(read):
                yield from self._answers(group)
        if cut is not None:
            cut.add(done)
        elif done.texts:
            log.warning(done.among(seen))

    def examples(self, texts: Sequence[tuple[str, ...]], policy: Policy, cut: Cut, first: int = 0) -> Iterator[Example]:
        """Texts, or the fields of each, as a model reads them; errors name them by their number."""
        prompted = [(self.prompt + first, *rest) for first, *rest in texts]
        ids = iter(self.tokenizer.ids_of_many([text for fields in prompted for text in fields], special_tokens=False))
        for number, fields in enumerate(prompted, first):
            own = list(islice(ids, len(fields)))
            with about(f"texts[{number}]"):
                reading, *_ = read(own, self.tokenizer, self.limit, policy)
            cut.count(number, [len(field) for field in own], [reading.window])
            yield example(reading.ids, reading.segments)

    def _policy(self, truncate: str | Policy) -> Policy:
        policy = truncation.named(truncate)
        if isinstance(policy, Chunk):
            raise BertkitError("a graph reads one window of each text: truncate with head, tail, head+tail, or error")
        before = len(self.tokenizer.ids_of_many([self.prompt], special_tokens=False)[0]) if self.prompt else 0
        return Prompted(policy, before) if before else policy

    def _fitting(self, examples: Iterable[Example]) -> Iterator[list[Example]]:
        """The examples in groups whose outputs fit into memory together."""
        wide = sum(output.width for output in self.outputs if output.of_tokens)
        group: list[Example] = []
        held = 0
        for one in examples:
            group.append(one)
            held += len(one) * wide
            if held >= HELD:
                yield group
                group, held = [], 0
        if group:
            yield group

    def _answers(self, examples: Sequence[Example]) -> list[dict[str, Array]]:
        out: list[dict[str, Array]] = [{}] * len(examples)
        for group in Lanes(tokens=TOKENS, padding=CHEAP).groups(list(map(len, examples))):
            said = self.said([examples[index] for index in group])
            for row, index in enumerate(group):
                out[index] = {
                    output.name: said[output.name][row, : len(examples[index])]
                    if output.of_tokens
                    else said[output.name][row]
                    for output in self.outputs
                }
        return out


class Live(Speaker):
    """A model in memory, computed by its engine, or by torch where that is asked for."""

    def __init__(self, ending: Ending, runner: Runner | None = None) -> None:
        model = ending.model
        self.ending, self.tokenizer, self.limit = ending, model.tokenizer, model.limit
        self.outputs, self.kind, self.labels = ending.outputs, ending.kind, ending.labels
        self.prompt = prompt_of(model) if isinstance(ending, Vectors) else ""
        self._runner = runner or model.runner

    def said(self, examples: Sequence[Example]) -> dict[str, Array]:
        engine, model = self._runner.engine(batches=2), self.ending.model  # the one for many texts
        batch = collate(examples, engine.layout).to(model.device)
        with torch.inference_mode(), model.network.evaluating():
            found = self.ending.said(self._states(engine, batch), batch.layout)
        return {output.name: _rows(found[output.name], output, batch) for output in self.outputs}

    def _states(self, engine: Engine, batch: Batch) -> dict[int, Tensor]:
        wanted = set(self.ending.layers)
        if wanted == {self.ending.last}:
            return {self.ending.last: engine.hidden(batch)}
        steps = self.ending.model.encoder.steps(batch)
        return {layer: x for layer, x in enumerate(steps) if layer in wanted}


def _rows(x: Tensor, output: Output, batch: Batch) -> Array:
    x = batch.layout.to_padded(x) if output.of_tokens else x
    made: Array = batch.restore(x).float().cpu().numpy()
    return made


def prompt_of(model: Model) -> str:
    """What its vectors want written before each text; mostly nothing."""
    before = model.prompts[model.default_prompt] if model.default_prompt else ""
    if before and not model.include_prompt:
        raise BertkitError(
            f"its vectors leave out the prompt {before!r}, which a graph cannot: model.default_prompt = None drops it"
        )
    return before
