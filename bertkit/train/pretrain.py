"""Pre-training: the course that a recipe describes, from a corpus and its held-out text.

RUN/ has also `vocabulary/` and `corpus/`, made of the recipe's texts, where it names no corpus.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from bertkit import family, model
from bertkit.batch import Batch
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.repeats import repeated
from bertkit.errors import BertkitError, about
from bertkit.model import Model
from bertkit.objectives.learner import Learner
from bertkit.objectives.mask import MARK
from bertkit.objectives.objective import Objective
from bertkit.parts.encoder import with_dropout
from bertkit.parts.network import NetworkModule
from bertkit.spec import difference
from bertkit.train import checkpoint, exam
from bertkit.train.course import Course, Line, Pace, Stage
from bertkit.train.feed import Place, Portion, Reading, Request, portions
from bertkit.train.material import CORPUS, VOCABULARY
from bertkit.train.neighbours import begin_near_neighbours
from bertkit.train.page import BEST, MODEL
from bertkit.train.processes import Member, joined
from bertkit.train.recipe import Phase, Recipe, differences, read
from bertkit.train.run import Run, Tell, asked_to_end, owned
from bertkit.weights.find import find

log = logging.getLogger("bertkit")

SAMPLES = 10
"""sentences with a gap that are filled at every exam"""


def pretrain(recipe: Recipe, tell: Tell | None = None, say: Callable[[str], None] = log.info) -> Path:
    """Learn what a recipe says, from its beginning or from where it was; where the model is.

    `tell` hears of every step, `say` what else is done.
    """
    run = Path(recipe.output)
    own = owned(run, recipe, (VOCABULARY, CORPUS), partial(_refuse_another, recipe))
    with joined() as member, asked_to_end() as asked, own if member.leads else nullcontext():
        if member.leads:
            _advise(recipe, say)
            checkpoint.tidy(run)
            recipe.data.prepare(run, say)
        member.wait()
        return Run(Pretraining(recipe), member, asked, tell).finish()


class Pretraining(Course):
    """Masked tokens, pairs of sentences, and whatever else a recipe's objective asks of a corpus."""

    def __init__(self, recipe: Recipe) -> None:
        train = recipe.train
        self.output, self.seed = Path(recipe.output), recipe.seed
        self.objective, self.compute, self.workers = recipe.learned, recipe.compute, recipe.data.workers
        self.pace = Pace(
            train.steps,
            train.optimizer,
            train.schedule,
            train.clip,
            train.log_every,
            train.evaluate_every,
            train.checkpoint_every,
            train.keep_last,
            best=BEST if train.keep_best and train.evaluate_every else "",
            tensorboard=train.tensorboard,
        )
        self._recipe, self._corpus = recipe, Corpus(recipe.data.place(self.output))
        self._exam: _Exam | None = None

    def model(self) -> Model:
        recipe, corpus = self._recipe, self._corpus
        if not recipe.model.weights:
            encoder = with_dropout(family.encoder(recipe.model.size, len(corpus.tokenizer)), recipe.model.dropout)
            encoder = replace(encoder, spread=recipe.model.spread)
            return model.create(recipe.model.size, corpus.tokenizer, self.objective.heads, recipe.seed, encoder)
        made = model.load(recipe.model.weights, self.objective.heads)
        corpus.require(made.tokenizer)
        return made

    def prime(self, model: Model) -> None:
        start = self._recipe.model
        if start.neighbours and not start.weights:
            table = model.network.encoder.embed.tokens.weight
            begin_near_neighbours(table, self._corpus, start.neighbours, start.spread, self.seed)

    def learner(self, model: Model) -> Learner:
        """The network and what learns with it: drawn from the seed as well, or somebody's, where it lies beside."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            learner = self.objective.learner(model.network)
        weights = self._recipe.model.weights
        for name, network in learner.networks.items():
            beside = find(weights).with_name(name) if weights and name != MODEL else None
            if beside and beside.is_dir():
                _go_on(network, beside, weights)
        return learner

    def stages(self) -> list[Stage]:
        return [
            Stage(first, stop, {"length": phase.inputs.length}, partial(self._feed, phase))
            for phase, first, stop in phases(self._recipe)
        ]

    def _feed(self, phase: Phase, place: Place, member: Member) -> tuple[Dataset[Batch], Iterator[Portion]]:
        lexicons, copies = self.objective.lexicons, self._recipe.train.copies
        examples = Examples(self._corpus, phase.inputs, self.seed, lexicons, copies)
        portioned = portions(examples, place, phase.rows, phase.micro, member.rank, member.world)
        return Reading(examples, self.objective), portioned

    def facts(self) -> dict[str, Any]:
        corpus = self._corpus
        return {
            "corpus": {
                "path": str(corpus.path),
                "fingerprint": corpus.fingerprint,
                "tokens": int(corpus.tokens.sum()),
                "shards": len(corpus),
            },
            "tokenizer": corpus.tokenizer.fingerprint,
        }

    def recognise(self, facts: Mapping[str, Any]) -> None:
        own = self._corpus.fingerprint
        if facts.get("corpus", {}).get("fingerprint", own) != own:
            raise BertkitError(
                f"{self._corpus.path} is another corpus than the one that {self.output} began with. Put that one back, "
                "or give another output"
            )

    def beginning(self, learner: Learner) -> dict[str, Any]:
        corpus = self._corpus
        return {
            "parameters": sum(parameter.numel() for parameter in learner.parameters()),
            "unigram": exam.unigram(corpus),
            "unknown": corpus.index.get("unknown", 0) / int(corpus.tokens.sum()),
            "duplicates": repeated(corpus),
        }

    def examine(self, learner: Learner, models: Mapping[str, Model], step: int) -> list[Line]:
        self._exam = self._exam or _Exam(self._recipe, self._corpus, self.objective)
        told: list[Line] = []
        if self._exam.batches:
            result = exam.examine(learner, self._exam.batches, models[MODEL].device)
            told.append(("held-out", result._asdict()))
        filling = [made for made in models.values() if "mlm" in made.network.heads]
        if self._exam.gaps and filling:
            told.append(("samples", {"samples": [_filled(filling[0], gap) for gap in self._exam.gaps]}))
        return told

    def worth(self, line: Mapping[str, Any]) -> float | None:
        return -self.objective.weighed(line["losses"]) if line.get("kind") == "held-out" else None


def _go_on(network: NetworkModule, beside: Path, weights: str) -> None:
    """Fill a network that learns beside another with what it had learned."""
    stored = model.load(beside, network.spec.heads).network
    found = difference(network.spec, stored.spec)
    if found:
        raise BertkitError(f"{beside} cannot go on beside {weights}: here its {found}")
    network.load_state_dict(stored.state_dict())


def _filled(model: Model, gap: exam.Gap) -> dict[str, Any]:
    guesses = [[(guess.token, round(guess.score, 4)) for guess in row] for row in model.fill(gap.text, top=3)]
    return {"text": gap.text, "true": [gap.true], "guesses": guesses}


class _Exam:
    """The questions about held-out text; none where no text is held out."""

    def __init__(self, recipe: Recipe, corpus: Corpus, objective: Objective) -> None:
        self.batches: list[Batch] = []
        self.gaps: list[exam.Gap] = []
        if corpus.index["held_out"]:
            held = Corpus(corpus.path, held_out=True)
            phase = recipe.train.phases[0]
            with about("the held-out text"):
                examples = Examples(held, phase.inputs, recipe.seed, objective.lexicons)
            count, reading = min(examples.count(0), recipe.train.questions), Reading(examples, objective)
            self.batches = [
                reading[Request(0, first, min(first + phase.micro, count))] for first in range(0, count, phase.micro)
            ]
            self.gaps = exam.gaps(held, SAMPLES, recipe.seed) if MARK in objective.counts(self.batches[0]) else []


def phases(recipe: Recipe) -> list[tuple[Phase, int, int]]:
    """The phases, each with its first step and the one after its last: shares of all, in order."""
    given, steps = recipe.train.phases, recipe.train.steps
    shares = np.cumsum([0.0, *(phase.share for phase in given)])
    ends = np.rint(shares / shares[-1] * steps).astype(int).tolist()
    return list(zip(given, ends, ends[1:], strict=False))


def _refuse_another(recipe: Recipe, note: Path) -> None:
    """Refuse to go on with a run of another recipe."""
    other = differences(_deciding(read(note)), _deciding(recipe))
    if other:
        run = note.parent
        raise BertkitError(
            f"{run} holds a run of another recipe: {'; '.join(other[:3])}{'; …' if other[3:] else ''}. Repeat that "
            f"recipe: bertkit pretrain {note}. Or give another output; model.weights={run / MODEL} there goes on "
            "with what this one learned"
        )


def _advise(recipe: Recipe, say: Callable[[str], None]) -> None:
    """Say what is allowed and seldom meant."""
    steps, warmup = recipe.train.steps, getattr(recipe.train.schedule, "warmup", 0)
    if warmup >= steps:
        say(
            f"train.schedule.warmup is {warmup:,} of {steps:,} steps: the rate never comes to its top. Shorter: "
            f"train.schedule.warmup={max(steps // 10, 1)}"
        )


def _deciding(recipe: Recipe) -> Recipe:
    """The recipe without what changes nothing in the result."""
    data, train = replace(recipe.data, workers=0), replace(recipe.train, tensorboard=False, keep_last=1)
    return replace(recipe, data=data, train=train)
