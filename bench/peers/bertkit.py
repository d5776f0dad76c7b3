"""bertkit itself, as its users call it."""

from __future__ import annotations

import os
from contextlib import nullcontext
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import bertkit
from bench.child import Call, Fresh, Job, by_turns, serve
from bench.corpus import rectangle
from bench.elsewhere import elsewhere
from bench.export import place
from bench.measure import weighed
from bench.peer import HOME
from bench.pipe import Array
from bench.share import Shares
from bench.startup import startup
from bertkit import objectives
from bertkit.batch import Batch, Example, Packed, collate, gather
from bertkit.compress.quantize import quantize
from bertkit.corpus import build, source
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.flat import Flat
from bertkit.corpus.inputs import FullSentences
from bertkit.model import Model
from bertkit.objectives import replaced
from bertkit.objectives.choose import Pieces, WholeWords
from bertkit.objectives.learner import Learner
from bertkit.objectives.mask import MARK, Mask, Vocabulary
from bertkit.objectives.objective import Objective
from bertkit.runtime import tune
from bertkit.runtime.engines.engine import FP32
from bertkit.runtime.stream import example
from bertkit.spec import from_json
from bertkit.tasks.lessons import Lessons
from bertkit.text import Tokenizer
from bertkit.train import loop
from bertkit.train.feed import Feed, Place
from bertkit.train.loop import Learned
from bertkit.train.optimizer import Adam
from bertkit.train.processes import Member

TOKENS = 8192
"""in memory at once, as a tuning has it"""


def hidden(model: str, array: Array) -> Call:
    encoder = bertkit.load(model).encoder

    @torch.inference_mode()
    def call() -> Array:
        batch = collate([example(row) for row in array])
        padded: Array = batch.restore(batch.layout.to_padded(encoder(batch))).numpy()
        return padded

    return call


def embed(model: str, texts: list[str]) -> Call:
    opened = bertkit.load(model)
    return lambda: opened.embed(texts)


def query(model: str, texts: list[str]) -> Call:
    opened = bertkit.load(model)
    return lambda: np.stack([opened.embed(text) for text in texts])


def jobs_of(engine: str) -> dict[str, Job]:
    """Vectors by one engine, or by those that were measured to be the fastest (auto)."""

    def vectors(model: str, pieces: list[list[str]], precision: str) -> Fresh:
        return by_turns(_opened(model, precision, engine).embed, pieces)

    def query(model: str, texts: list[str], precision: str) -> Call:
        opened = _opened(model, precision, engine)
        return lambda: np.stack([opened.embed(text) for text in texts])

    return {"vectors": vectors, "queries": query}


def _opened(model: str, precision: str, engine: str) -> Model:
    """Measured here before, as `bertkit tune` and `bertkit quantize` do it, by other processes and not timed."""
    path = model if precision == FP32 else str(int8(model))
    opened = bertkit.load(path)
    if tune.remembered(opened.network, precision) is None:
        elsewhere(_tune, path, precision)
    return opened.use(engine)


def _tune(path: str, precision: str) -> None:
    tune.tune(bertkit.load(path).network, precision)


def int8(model: str) -> Path:
    """Its quantised sibling, made once and kept, whatever the gates say of it: the row of the bench will tell."""
    path = place(model, "bertkit").with_suffix(".int8")
    if not path.exists():
        elsewhere(_quantize, model, path)
    return path


def _quantize(model: str, path: Path) -> None:
    quantize(model, path, force=True)


FIRST = """
import sys, numpy, bertkit
numpy.save(sys.argv[3], bertkit.load(sys.argv[1]).embed(sys.argv[2]))
"""


def tokenize(model: str, text: str, before: str = "") -> Fresh:
    shares = Shares(model, text, before, int(os.environ["OMP_NUM_THREADS"]))
    return Fresh(shares.renewed, lambda renewed: renewed.read(), np.concatenate)


def shards(model: str, text: str) -> Fresh:
    tokenizer, files, workers = Tokenizer.load(model), source.files([text]), int(os.environ["OMP_NUM_THREADS"])
    work = HOME / "work"
    work.mkdir(parents=True, exist_ok=True)

    def call(place: str) -> Corpus:
        made = Path(place, "corpus")
        build.build(files, tokenizer, made, workers=workers)
        return Corpus(made)

    return Fresh(lambda: TemporaryDirectory(dir=work), call, _ids)


def _ids(corpus: Corpus) -> Array:
    return np.concatenate([corpus.shard(number).ids for number in range(len(corpus))])


def assemble(model: str, corpus: str, words: bool, array: Array) -> Fresh:
    """The examples of the array, then those that follow them, epoch after epoch."""
    examples = Examples(Corpus(corpus), FullSentences(array.shape[1]))
    mask, vocabulary = Mask(WholeWords() if words else Pieces()), Vocabulary.of(examples.corpus.tokenizer)
    batches, rows = examples.count(0) // len(array), len(array)
    turns = count()

    def call(_: None) -> Flat:
        epoch, batch = divmod(next(turns), batches)
        batch %= examples.count(epoch) // rows  # epochs differ a little
        return mask.corrupt(examples.read(epoch, range(batch * rows, (batch + 1) * rows)), vocabulary)

    return Fresh(nullcontext, call, lambda flat: _restored(flat, array.shape[1]))


def _restored(flat: Flat, length: int) -> Array:
    """What was there before it was masked."""
    at, true = flat.marks[MARK]
    ids = flat.ids.copy()
    ids[at] = true
    return rectangle(ids, flat.starts, length)


def pretrain(
    model: str, objective: dict[str, Any], label: str, labels: list[list[int]], checked: int, clip: float, array: Array
) -> Fresh:
    """The step of `bertkit pretrain`, as its loop calls it."""
    objectives.learn_parts()
    rows = [{label: np.array(row)} if label else {} for row in labels]
    batches = [_packed(*planes, row) for planes, row in zip(array, rows, strict=True)]
    asked: Objective = from_json(objective)
    learner = asked.learner(bertkit.load(model).network)
    for name, network in learner.networks.items():
        network.load_state_dict(bertkit.load(Path(model).with_name(name)).network.state_dict())
    optimizer, numbers = Adam().build(learner), count()

    def step() -> Learned:
        number = next(numbers)
        return loop.step(learner, asked, [batches[number % len(batches)]], optimizer, clip, seed=0, number=number)

    learner.eval()  # without dropout, and tokens that a generator draws are its first choice
    with patch.object(replaced, "drawn_from", lambda logits: logits.argmax(-1)):
        losses = np.array([step().loss for _ in range(checked)])
    learner.train()
    answer = losses if checked else (array[:, 0] > 0).sum((1, 2))  # tokens, where losses are not to be the same
    return Fresh(nullcontext, lambda _: step(), lambda _: answer)


def finetune(
    model: str,
    objective: dict[str, Any],
    labels: dict[str, list[int]],
    batch: int,
    parts: int,
    checked: int,
    trainer: dict[str, Any],
    array: Array,
) -> Fresh:
    """An epoch over one part of the rows, the next one at each call, as `bertkit finetune` learns."""
    objectives.learn_parts()
    asked: Objective = from_json(objective)
    learner, numbers, steps = asked.learner(bertkit.load(model).network), count(), count()
    rows = [
        _example(*planes, {name: values[place] for name, values in labels.items()})
        for place, planes in enumerate(array)
    ]
    pieces = [Lessons(([row] for row in rows[part::parts]), batch, seed=0) for part in range(parts)]
    optimizer = Adam(rate=5e-5).build(learner)

    def epoch() -> None:
        lessons = pieces[next(numbers) % parts]
        portions = islice(lessons.portions(Place(), TOKENS, Member()), lessons.steps())
        for _, batches in Feed(lessons, portions):
            loop.step(learner, asked, batches, optimizer, 1.0, seed=0, number=next(steps))

    learner.eval()
    losses = [_loss(learner, collate([row])) for row in rows[:checked]]
    learner.train()
    return Fresh(nullcontext, lambda _: epoch(), lambda _: np.array(losses))


@torch.no_grad()
def _loss(learner: Learner, batch: Batch) -> float:
    counts, asked = learner.objective.counts(batch), learner(batch)
    return learner.objective.weighed({name: float(one.loss) / counts[name] for name, one in asked.items()})


def _example(ids: Array, segments: Array, labels: dict[str, int]) -> Example:
    there = ids > 0
    return Example({"ids": ids[there], "segments": segments[there]}, labels=labels)


def _packed(ids: Array, segments: Array, true: Array, labels: dict[str, Array]) -> Batch:
    there = ids > 0  # [B, L]
    tokens, whole = {"ids": ids[there], "segments": segments[there]}, np.where(true > 0, true, ids)[there]
    asked = np.flatnonzero(true[there])
    marks = {MARK: (asked, true[there][asked]), replaced.DETECT: (np.arange(len(whole)), whole)}
    return gather(tokens, there.sum(1), marks, labels, Packed)


if __name__ == "__main__":
    jobs = {"hidden": hidden, "embed": embed, "query": query}
    jobs |= {"tokenize": tokenize, "shards": shards, "assemble": assemble}
    jobs |= {"finetune": finetune, "startup": startup(FIRST), **jobs_of("auto")}
    serve({**jobs, "pretrain": pretrain, "pretrain_memory": weighed(pretrain)}, ["bertkit"])
