"""A run: a recipe at work in its directory. The same recipe again goes on where the run was, bit for bit.

RUN/
    recipe.toml         every setting
    facts.json          versions, the machine, fingerprints of corpus and tokenizer
    log.jsonl           what was measured, a line each
    vocabulary/ corpus/ made of the recipe's texts, where it names no corpus
    checkpoints/        to go on from
    best/               the network of the best exam on held-out text
    model/              the network at the end; both are ordinary Hugging Face directories
"""

from __future__ import annotations

import fcntl
import json
import logging
import math
import platform
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

import bertkit
from bertkit import artifact, family, model
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
from bertkit.spec import difference
from bertkit.text.files import read_object
from bertkit.train import checkpoint, exam, loop
from bertkit.train.board import Board
from bertkit.train.compute import Precision
from bertkit.train.feed import Feed, Place, Reading, Request, portions
from bertkit.train.health import Alarm, Health
from bertkit.train.journal import NAME as JOURNAL
from bertkit.train.journal import NOTHING, Journal, lines
from bertkit.train.loop import Learned
from bertkit.train.material import CORPUS, VOCABULARY
from bertkit.train.neighbours import begin_near_neighbours
from bertkit.train.optimizer import state_of
from bertkit.train.page import BEST, FACTS, MODEL, RECIPE
from bertkit.train.processes import Member, joined, put, shard, whole
from bertkit.train.recipe import Phase, Recipe, differences, read, to_toml
from bertkit.weights.find import find

log = logging.getLogger("bertkit")

SAMPLES = 10
"""sentences with a gap that are filled at every exam"""


class Told(NamedTuple):
    """What is said after a step."""

    step: int
    steps: int
    rate: float
    learned: Learned
    speed: float
    """tokens in a second"""
    waited: float
    """the share of the time in which there was nothing to learn from"""
    alarms: tuple[Alarm, ...] = ()


class Stage(NamedTuple):
    """A phase and the steps it has."""

    phase: Phase
    first: int
    stop: int


class StoppedError(BertkitError):
    """Somebody asked the run to end; what was learned is saved."""


class SickError(BertkitError):
    """What is learned is no longer a number; the checkpoint before it is kept."""


def pretrain(recipe: Recipe, tell: Callable[[Told], None] | None = None, say: Callable[[str], None] = log.info) -> Path:
    """Learn what a recipe says, from its beginning or from where it was; where the model is.

    `tell` hears of every step, `say` what else is done.
    """
    run = Path(recipe.output)
    with joined() as member, _asked_to_end() as asked, _own(run, recipe) if member.leads else nullcontext():
        if member.leads:
            _advise(recipe, say)
            checkpoint.tidy(run)
            recipe.data.prepare(run, say)
        member.wait()
        return _Run(run, recipe, member, asked, tell).finish()


class _Run:
    """Everything that a run has open."""

    def __init__(
        self, run: Path, recipe: Recipe, member: Member, asked: list[int], tell: Callable[[Told], None] | None
    ) -> None:
        self._run, self._recipe, self._member, self._asked, self._tell = run, recipe, member, asked, tell
        self._corpus = Corpus(recipe.data.place(run))
        self._objective, compute = recipe.learned, recipe.compute
        self._model, found = _started(recipe, self._corpus), checkpoint.last(run)
        if recipe.model.neighbours and not recipe.model.weights and not found:
            table, near = self._model.network.encoder.embed.tokens.weight, recipe.model.neighbours
            begin_near_neighbours(table, self._corpus, near, recipe.model.spread, recipe.seed)
        self._learner = _learner(recipe, self._model).to(member.device).train()
        kind = family.family_of(self._model.config["model_type"])
        for network in self._learner.networks.values():
            kind.config(network.spec)  # what cannot be saved is refused before it learns
        self._sharded = compute.shard and member.world > 1
        for network in self._learner.networks.values():
            compute.equip(network)
        if self._sharded:
            shard(self._learner, member)
        self._precision = Precision.on(member.device, compute.precision)
        self._optimizer = recipe.train.optimizer.build(self._learner)
        self._step, self._place = 0, Place()
        if found:
            found.restore(self._learner, self._optimizer)
            self._precision.restore(found.state.get("precision", {}))
            self._step, self._place = found.step, Place(*found.state["place"])
        alone = member.world == 1 or self._sharded
        self._together = self._learner if alone else DistributedDataParallel(self._learner)
        if member.leads:
            _note_facts(run, recipe, self._corpus, member, self._precision)

    def finish(self) -> Path:
        """All steps that are left, then the model."""
        self._exam = _Exam(self._recipe, self._corpus, self._objective)
        with ExitStack() as stack:
            self._journal, self._board, self._health = None, None, Health()
            if self._member.leads:
                path, step = self._run / JOURNAL, self._step if self._step else NOTHING
                self._journal = stack.enter_context(Journal(path, step))
                self._health = Health.replay(lines(path))
                self._best = min(map(self._objective.weighed, _exams(path)), default=math.inf)
                if self._recipe.train.tensorboard:
                    self._board = stack.enter_context(Board(self._run, step))
            if not self._step:
                if self._member.leads:
                    self._write("start", **_beginning(self._learner, self._corpus))
                self._examine()
            for stage in stages(self._recipe):
                if self._step < stage.stop:
                    self._through(stage)
        learner = self._whole_learner()
        if learner:
            checkpoint.forget(self._run, self._recipe.train.keep_last)
            for name, made in self._models(learner).items():
                self._save_model(made, name)
        return self._run / MODEL

    def _through(self, stage: Stage) -> None:
        phase, train = stage.phase, self._recipe.train
        if self._step == stage.first:
            self._place = Place()
            # a line of the step to come, so that going on from here does not find it told already
            self._write("phase", 1, length=phase.inputs.length)
        examples = Examples(self._corpus, phase.inputs, self._recipe.seed, self._objective.lexicons, train.copies)
        portioned = portions(examples, self._place, phase.rows, phase.micro, self._member.rank, self._member.world)
        portioned = islice(portioned, stage.stop - self._step)
        clock = _Clock()
        for portion, batches in Feed(Reading(examples, self._objective), portioned, self._recipe.data.workers):
            clock.fed()
            rate = train.optimizer.rate * train.schedule.share(self._step, train.steps)
            for group in self._optimizer.param_groups:
                group["lr"] = rate
            learned = loop.step(
                self._together,
                self._objective,
                batches,
                self._optimizer,
                train.clip or math.inf,
                self._recipe.seed,
                self._step,
                self._member,
                self._precision,
            )
            self._step, self._place = self._step + 1, portion.after
            clock.learned(learned.tokens)
            self._after(Told(self._step, train.steps, rate, learned, clock.speed, clock.waited))
            clock.begin()

    def _after(self, told: Told) -> None:
        """Write, say, examine, save: whatever is due."""
        train, last = self._recipe.train, told.step == told.steps
        if last or _due(told.step, train.log_every):
            told = told._replace(alarms=tuple(self._write("step", **_measured(told))))
        if self._tell:
            self._tell(told)
        for alarm in told.alarms:
            if alarm.name == "nan":
                raise SickError(f"step {told.step:,}: {alarm.message}")
        if last or _due(told.step, train.evaluate_every):
            self._examine()
        asked = self._member.any(bool(self._asked))
        if last or asked or _due(told.step, train.checkpoint_every):
            self._save()
        if asked and not last:
            raise StoppedError(f"stopped after step {told.step:,}, which is saved. The same command goes on")

    def _save(self) -> None:
        weights = whole(dict(self._learner.named_parameters()))
        memory = whole(state_of(self._optimizer, self._learner))
        if self._member.leads:
            state = {"place": list(self._place), "precision": self._precision.state}
            checkpoint.save(self._run, self._step, weights, memory, state)
            checkpoint.forget(self._run, self._recipe.train.keep_last)

    def _whole_learner(self) -> Learner | None:
        """All that learned, put together in the process that leads where each has a part of it; None in the others."""
        weights = whole(dict(self._learner.named_parameters())) if self._sharded else {}
        if not self._member.leads:
            return None
        if not self._sharded:
            return self._learner
        made = _learner(self._recipe, _started(self._recipe, self._corpus))
        for name, parameter in made.named_parameters():
            put(weights[name], parameter)
        return made.to(self._member.device)

    def _models(self, learner: Learner) -> dict[str, Model]:
        """What learned, as models by the names under which they are kept."""
        own = self._model
        return {
            name: Model(network, own.tokenizer, own.sentence if name == MODEL else None, own.config)
            for name, network in learner.networks.items()
        }

    def _examine(self) -> None:
        """Ask what is asked of held-out text."""
        learner = self._whole_learner()
        if learner is None:
            return
        models = self._models(learner)
        if self._exam.batches:
            result = exam.examine(learner, self._exam.batches, self._member.device)
            self._write("held-out", **result._asdict())
            self._keep_best(models[MODEL], self._objective.weighed(result.losses))
        filling = [made for made in models.values() if "mlm" in made.network.heads]
        if self._exam.gaps and filling:
            self._write("samples", samples=[_filled(filling[0], gap) for gap in self._exam.gaps])

    def _keep_best(self, made: Model, loss: float) -> None:
        train = self._recipe.train
        if train.keep_best and train.evaluate_every and self._step and loss < self._best:
            self._best = loss
            self._save_model(made, BEST)

    def _save_model(self, made: Model, name: str) -> None:
        with made.network.evaluating():
            made.save(self._run / name, overwrite=True)

    def _write(self, kind: str, ahead: int = 0, **values: Any) -> list[Alarm]:
        """Put a line into the journal, and the alarms that it raises."""
        if self._journal is None:  # another process writes it
            return []
        step = self._step + ahead
        self._journal.write(kind, step, **values)
        if self._board:
            self._board.hear(kind, step, values)
        alarms = self._health.hear({"kind": kind, "step": step, **values})
        for alarm in alarms:
            self._journal.write("alarm", step, **alarm._asdict())
            log.warning("step %s: %s", self._step, alarm.message)
        return alarms


def _filled(model: Model, gap: exam.Gap) -> dict[str, Any]:
    guesses = [[(guess.token, round(guess.score, 4)) for guess in row] for row in model.fill(gap.text, top=3)]
    return {"text": gap.text, "true": [gap.true], "guesses": guesses}


def _exams(journal: Path) -> list[dict[str, float]]:
    """The losses of all exams after the first step."""
    return [line["losses"] for line in lines(journal) if line.get("kind") == "held-out" and line.get("step", 0) > 0]


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


class _Clock:
    """How fast steps go, and how much of the time batches are waited for."""

    def __init__(self) -> None:
        self.begin()
        self.speed = self.waited = 0.0

    def begin(self) -> None:
        """A step begins here."""
        self._since = time.perf_counter()

    def fed(self) -> None:
        """A batch is there."""
        self._fed = time.perf_counter()

    def learned(self, tokens: int) -> None:
        """It was learned from."""
        now = time.perf_counter()
        self.speed, self.waited = tokens / (now - self._since), (self._fed - self._since) / (now - self._since)


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def stages(recipe: Recipe) -> list[Stage]:
    """The phases with their steps: shares of all, in order."""
    phases, steps = recipe.train.phases, recipe.train.steps
    shares = np.cumsum([0.0, *(phase.share for phase in phases)])
    ends = np.rint(shares / shares[-1] * steps).astype(int).tolist()
    return [Stage(phase, first, stop) for phase, first, stop in zip(phases, ends, ends[1:], strict=False)]


def _started(recipe: Recipe, corpus: Corpus) -> Model:
    """The network that learning begins with: drawn from the seed, or somebody's."""
    if not recipe.model.weights:
        encoder = with_dropout(family.encoder(recipe.model.size, len(corpus.tokenizer)), recipe.model.dropout)
        encoder = replace(encoder, spread=recipe.model.spread)
        return model.create(recipe.model.size, corpus.tokenizer, recipe.learned.heads(encoder), recipe.seed, encoder)
    made = model.load(recipe.model.weights)
    corpus.require(made.tokenizer)
    return model.load(recipe.model.weights, recipe.learned.heads(made.network.spec.encoder))


def _learner(recipe: Recipe, made: Model) -> Learner:
    """The network and what learns with it: drawn from the seed as well, or somebody's, where it lies beside."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        learner = recipe.learned.learner(made.network)
    for name, network in learner.networks.items():
        beside = find(recipe.model.weights).with_name(name) if recipe.model.weights and name != MODEL else None
        if beside and beside.is_dir():
            stored = model.load(beside, network.spec.heads).network
            found = difference(network.spec, stored.spec)
            if found:
                raise BertkitError(f"{beside} cannot go on beside {recipe.model.weights}: here its {found}")
            network.load_state_dict(stored.state_dict())
    return learner


def _beginning(learner: Learner, corpus: Corpus) -> dict[str, Any]:
    """What is known before the first step."""
    return {
        "parameters": sum(parameter.numel() for parameter in learner.parameters()),
        "unigram": exam.unigram(corpus),
        "unknown": corpus.index.get("unknown", 0) / int(corpus.tokens.sum()),
        "duplicates": repeated(corpus),
    }


def _note_facts(run: Path, recipe: Recipe, corpus: Corpus, member: Member, precision: Precision) -> None:
    """Write down what the run was made with."""
    facts: dict[str, Any] = {
        "bertkit": bertkit.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "device": torch.cuda.get_device_name(member.device) if member.device.type == "cuda" else "cpu",
        "precision": str(precision.kind).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "processes": member.world,
        "corpus": {
            "path": str(corpus.path),
            "fingerprint": corpus.fingerprint,
            "tokens": int(corpus.tokens.sum()),
            "shards": len(corpus),
        },
        "tokenizer": corpus.tokenizer.fingerprint,
    }
    before = read_object(run / FACTS).get("corpus", {}) if (run / FACTS).is_file() else {}
    if before.get("fingerprint", corpus.fingerprint) != corpus.fingerprint:
        raise BertkitError(
            f"{corpus.path} is another corpus than the one that {run} began with. Put that one back, or give another "
            "output"
        )
    with artifact.file(run / FACTS, overwrite=True) as file:
        file.write(json.dumps(facts, indent=1, ensure_ascii=False).encode())


def _measured(told: Told) -> dict[str, Any]:
    learned = told.learned
    return {
        "loss": learned.loss,
        "losses": learned.losses,
        "right": learned.right,
        "norm": learned.norm,
        "rate": told.rate,
        "tokens": learned.tokens,
        "tokens_per_second": round(told.speed, 1),
        "waited": round(told.waited, 4),
    }


@contextmanager
def _own(run: Path, recipe: Recipe) -> Iterator[Path]:
    """The run's directory, ours alone; one with another recipe is not touched."""
    run.mkdir(parents=True, exist_ok=True)
    with (run / "lock").open("w") as lock:
        try:
            # of the process: one that its loader's workers had too would outlive a kill
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BertkitError(f"{run} is being written by another process. Wait for it, or stop it") from None
        note = run / RECIPE
        begun = any((run / name).exists() for name in (JOURNAL, checkpoint.HOME, VOCABULARY, CORPUS))
        other = differences(_deciding(read(note)), _deciding(recipe)) if begun and note.is_file() else []
        if other:
            raise BertkitError(
                f"{run} holds a run of another recipe: {'; '.join(other[:3])}{'; …' if other[3:] else ''}. Repeat that "
                f"recipe: bertkit pretrain {note}. Or give another output; model.weights={run / MODEL} there goes on "
                "with what this one learned"
            )
        if not note.is_file() or not begun:
            with artifact.file(note, overwrite=True) as file:
                file.write(to_toml(recipe).encode())
        yield run


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
