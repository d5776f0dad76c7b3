"""bertkit itself, as its users call it."""

from __future__ import annotations

import os
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

import bertkit
from bench.child import Call, Fresh, serve
from bench.corpus import rectangle
from bench.measure import weighed
from bench.peer import HOME
from bench.pipe import Array
from bench.share import Shares
from bertkit.batch import Batch, Packed, collate, gather
from bertkit.corpus import build, source
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.flat import Flat
from bertkit.corpus.inputs import FullSentences
from bertkit.objectives.choose import Pieces, WholeWords
from bertkit.objectives.mask import MARK, Mask, Vocabulary
from bertkit.objectives.masked_lm import MaskedLm
from bertkit.objectives.pairs import Nsp
from bertkit.runtime.stream import example
from bertkit.text import Tokenizer
from bertkit.train import loop
from bertkit.train.learner import Learner
from bertkit.train.loop import Learned
from bertkit.train.optimizer import Adam


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


def pretrain(model: str, follows: list[list[int]], checked: int, clip: float, array: Array) -> Fresh:
    """The step of `bertkit pretrain`, as its loop calls it."""
    batches = [_packed(*planes, np.array(labels)) for planes, labels in zip(array, follows, strict=True)]
    network, objective = bertkit.load(model).network, Nsp() + MaskedLm()
    learner, optimizer, numbers = Learner(network, objective), Adam().build(network), count()

    def step() -> Learned:
        number = next(numbers)
        return loop.step(learner, objective, [batches[number % len(batches)]], optimizer, clip, seed=0, number=number)

    network.eval()  # without dropout
    losses = np.array([step().loss for _ in range(checked)])
    network.train()
    return Fresh(nullcontext, lambda _: step(), lambda _: losses)


def _packed(ids: Array, segments: Array, true: Array, follows: Array) -> Batch:
    there = ids > 0  # [B, L]
    tokens = {"ids": ids[there], "segments": segments[there]}
    asked = np.flatnonzero(true[there])
    marks = {MARK: (asked, true[there][asked])}
    return gather(tokens, there.sum(1), marks, {Nsp.label: follows}, Packed)


if __name__ == "__main__":
    jobs = {"hidden": hidden, "embed": embed, "query": query}
    jobs |= {"tokenize": tokenize, "shards": shards, "assemble": assemble}
    serve({**jobs, "pretrain": pretrain, "pretrain_memory": weighed(pretrain)}, ["bertkit"])
