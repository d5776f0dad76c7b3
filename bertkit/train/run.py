"""A run: a recipe at work in its directory. The same recipe again goes on where the run was, bit for bit.

RUN/
    recipe.toml         every setting
    facts.json          versions, the machine, fingerprints of corpus and tokenizer
    log.jsonl           what was measured, a line each
    checkpoints/        to go on from
    model/              the network as an ordinary Hugging Face directory, at the end
"""

from __future__ import annotations

import fcntl
import json
import platform
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import bertkit
from bertkit import artifact, model
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.train import checkpoint, loop
from bertkit.train.feed import Feed, Place, Reading, portions
from bertkit.train.journal import NAME as JOURNAL
from bertkit.train.journal import Journal
from bertkit.train.learner import Learner
from bertkit.train.loop import Learned
from bertkit.train.recipe import Phase, Recipe, to_toml

RECIPE, FACTS, MODEL = "recipe.toml", "facts.json", "model"


class Told(NamedTuple):
    """What is said after a step."""

    step: int
    steps: int
    rate: float
    learned: Learned


class Stage(NamedTuple):
    """A phase and the steps it has."""

    phase: Phase
    first: int
    stop: int


class StoppedError(BertkitError):
    """Somebody asked the run to end; what was learned is saved."""


def pretrain(recipe: Recipe, tell: Callable[[Told], None] | None = None) -> Path:
    """Learn what a recipe says, from its beginning or from where it was; where the model is."""
    run = Path(recipe.output)
    with _own(run, recipe), _asked_to_end() as asked:
        corpus = Corpus(recipe.data.corpus)
        made = _started(recipe, corpus)
        network, objective = made.network.train(), recipe.learned
        learner, optimizer = Learner(network, objective), recipe.train.optimizer.build(network)
        found = checkpoint.last(run)
        done, place = 0, Place()
        if found:
            found.restore(network, optimizer)
            done, place = found.step, Place(*found.state["place"])
        _note_facts(run, recipe, corpus)
        with Journal(run / JOURNAL, done) as journal:
            for stage in stages(recipe):
                if done >= stage.stop:
                    continue
                if done == stage.first:
                    place = Place()
                examples = Examples(corpus, stage.phase.inputs, recipe.seed)
                steps = islice(portions(examples, place, stage.phase.rows, stage.phase.micro), stage.stop - done)
                for portion, batches in Feed(Reading(examples, objective), steps, recipe.data.workers):
                    rate = recipe.train.optimizer.rate * recipe.train.schedule.share(done, recipe.train.steps)
                    for group in optimizer.param_groups:
                        group["lr"] = rate
                    learned = loop.step(learner, objective, batches, optimizer, recipe.train.clip, recipe.seed, done)
                    done, place = done + 1, portion.after
                    last = done == recipe.train.steps
                    if last or done % recipe.train.log_every == 0:
                        journal.write("step", done, **_measured(learned), rate=rate)
                    if tell:
                        tell(Told(done, recipe.train.steps, rate, learned))
                    if last or asked or done % recipe.train.checkpoint_every == 0:
                        checkpoint.save(run, done, network, optimizer, {"place": list(place)})
                        checkpoint.forget(run, recipe.train.keep_last)
                    if asked and not last:
                        raise StoppedError(f"stopped after step {done:,}, which is saved. The same command goes on")
        network.eval()
        made.save(run / MODEL, overwrite=True)
    return run / MODEL


def stages(recipe: Recipe) -> list[Stage]:
    """The phases with their steps: shares of all, in order."""
    phases, steps = recipe.train.phases, recipe.train.steps
    shares = np.cumsum([0.0, *(phase.share for phase in phases)])
    ends = np.rint(shares / shares[-1] * steps).astype(int).tolist()
    return [Stage(phase, first, stop) for phase, first, stop in zip(phases, ends, ends[1:], strict=False)]


def _started(recipe: Recipe, corpus: Corpus) -> Model:
    """The network that learning begins with: drawn from the seed, or somebody's."""
    heads = recipe.learned.heads()
    if not recipe.model.weights:
        return model.create(recipe.model.size, corpus.tokenizer, heads, recipe.seed)
    made = model.load(recipe.model.weights, heads)
    corpus.require(made.tokenizer)
    return made


def _note_facts(run: Path, recipe: Recipe, corpus: Corpus) -> None:
    """Write down what the run was made with."""
    facts: dict[str, Any] = {
        "bertkit": bertkit.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "corpus": {"path": recipe.data.corpus, "tokens": int(corpus.tokens.sum()), "shards": len(corpus)},
        "tokenizer": corpus.tokenizer.fingerprint,
    }
    with artifact.file(run / FACTS, overwrite=True) as file:
        file.write(json.dumps(facts, indent=1, ensure_ascii=False).encode())


def _measured(learned: Learned) -> dict[str, Any]:
    return {
        "loss": learned.loss,
        "losses": learned.losses,
        "right": learned.right,
        "norm": learned.norm,
        "tokens": learned.tokens,
    }


@contextmanager
def _own(run: Path, recipe: Recipe) -> Iterator[None]:
    """The run's directory, ours alone; one with another recipe is not touched."""
    run.mkdir(parents=True, exist_ok=True)
    with (run / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BertkitError(f"{run} is being written by another process. Wait for it, or stop it") from None
        note, text = run / RECIPE, to_toml(recipe)
        if not note.is_file():
            with artifact.file(note) as file:
                file.write(text.encode())
        elif note.read_text(encoding="utf-8") != text:
            raise BertkitError(
                f"{run} holds a run of another recipe: compare {note}. Give another output, or repeat that recipe: "
                f"bertkit pretrain {note}"
            )
        yield


@contextmanager
def _asked_to_end() -> Iterator[list[int]]:
    """Signals that ask the process to end, as they come; the second Ctrl-C ends it at once."""
    asked: list[int] = []

    def hear(number: int, frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
