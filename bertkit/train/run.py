"""A run: a course at work in its directory. The same course again goes on where the run was, bit for bit.

RUN/
    recipe.toml     every setting
    facts.json      versions, the machine, fingerprints of what is learned from
    log.jsonl       what was measured, a line each
    checkpoints/    to go on from
    best/           the network of the best exam
    model/          the network at the end; both are ordinary Hugging Face directories
"""

from __future__ import annotations

import fcntl
import json
import logging
import math
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn.parallel import DistributedDataParallel

import bertkit
from bertkit import artifact, family
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.objectives.learner import Learner
from bertkit.spec import Spec
from bertkit.text.files import read_object
from bertkit.train import checkpoint, loop
from bertkit.train.board import Board
from bertkit.train.compute import Precision
from bertkit.train.course import Course, Stage
from bertkit.train.feed import Feed, Place
from bertkit.train.health import Alarm, Health
from bertkit.train.journal import NAME as JOURNAL
from bertkit.train.journal import NOTHING, Journal, lines
from bertkit.train.loop import Learned
from bertkit.train.optimizer import state_of
from bertkit.train.page import FACTS, MODEL, RECIPE
from bertkit.train.processes import Member, put, shard, whole
from bertkit.train.recipe import to_toml

log = logging.getLogger("bertkit")

Tell = Callable[["Told"], None]


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


class StoppedError(BertkitError):
    """Somebody asked the run to end; what was learned is saved."""


class SickError(BertkitError):
    """What is learned is no longer a number; the checkpoint before it is kept."""


class Run:
    """Everything that a run has open."""

    def __init__(self, course: Course, member: Member, asked: list[int], tell: Tell | None = None) -> None:
        self._course, self._pace, self._member, self._asked, self._tell = course, course.pace, member, asked, tell
        self._run, compute = course.output, course.compute
        self._model, found = course.model(), checkpoint.last(self._run)
        if not found:
            course.prime(self._model)
        self._learner = course.learner(self._model).to(member.device).train()
        kind = family.family_of(self._model.config["model_type"])
        for network in self._learner.networks.values():
            kind.config(network.spec)  # what cannot be saved is refused before it learns
        self._sharded = compute.shard and member.world > 1
        for network in self._learner.networks.values():
            compute.equip(network)
        if self._sharded:
            shard(self._learner, member)
        self._precision = Precision.on(member.device, compute.precision)
        self._optimizer = self._pace.optimizer.build(self._learner)
        self._step, self._place = 0, Place()
        if found:
            found.restore(self._learner, self._optimizer)
            self._precision.restore(found.state.get("precision", {}))
            self._step, self._place = found.step, Place(*found.state["place"])
        alone = member.world == 1 or self._sharded
        self._together = self._learner if alone else DistributedDataParallel(self._learner)
        if member.leads:
            _note_facts(course, member, self._precision)

    def finish(self) -> Path:
        """All steps that are left, then the model."""
        with ExitStack() as stack:
            self._journal, self._board, self._health = None, None, Health()
            self._worths: list[float] = []
            if self._member.leads:
                path, step = self._run / JOURNAL, self._step if self._step else NOTHING
                self._journal = stack.enter_context(Journal(path, step))
                self._health = Health.replay(lines(path))
                self._worths = _worths(self._course, path)
                if self._pace.tensorboard:
                    self._board = stack.enter_context(Board(self._run, step))
            if not self._step:
                if self._member.leads:
                    self._write("start", **self._course.beginning(self._learner))
                self._examine()
            self._since = time.monotonic()
            for stage in self._course.stages():
                if self._step < stage.stop and not self._enough():
                    self._through(stage)
            self._keep()
        self._member.wait()  # others may look for what is kept
        return self._run / MODEL

    def _keep(self) -> None:
        """Write what was learned, where the best of it is not kept under the same name already."""
        learner = self._whole_learner()
        if learner is None:
            return
        for name, made in self._models(learner).items():
            if not (name == self._pace.best and self._worths):
                self._course.save(made, self._run / name)
        if not self._pace.keep_last:
            self._write("end")
        checkpoint.forget(self._run, self._pace.keep_last)

    def _through(self, stage: Stage) -> None:
        if self._step == stage.first:
            self._place = Place()
            if stage.note:
                # a line of the step to come, so that going on from here does not find it told already
                self._write("phase", 1, **stage.note)
        pace = self._pace
        examples, portions = stage.feed(self._place, self._member)
        clock = _Clock()
        for portion, batches in Feed(examples, islice(portions, stage.stop - self._step), self._course.workers):
            clock.fed()
            rate = pace.optimizer.rate * pace.schedule.share(self._step, pace.steps)
            for group in self._optimizer.param_groups:
                group["lr"] = rate
            learned = loop.step(
                self._together,
                self._course.objective,
                batches,
                self._optimizer,
                pace.clip or math.inf,
                self._course.seed,
                self._step,
                self._member,
                self._precision,
            )
            self._step, self._place = self._step + 1, portion.after
            clock.learned(learned.tokens)
            self._after(Told(self._step, pace.steps, rate, learned, clock.speed, clock.waited))
            if self._enough():
                return
            clock.begin()

    def _after(self, told: Told) -> None:
        """Write, say, examine, save: whatever is due."""
        pace, last = self._pace, told.step == told.steps
        if last or _due(told.step, pace.log_every):
            told = told._replace(alarms=tuple(self._write("step", **_measured(told))))
        if self._tell:
            self._tell(told)
        for alarm in told.alarms:
            if alarm.name == "nan":
                raise SickError(f"step {told.step:,}: {alarm.message}")
        if last or _due(told.step, pace.evaluate_every):
            self._examine()
        asked = self._member.any(bool(self._asked))
        if (last and pace.keep_last) or asked or _due(told.step, pace.checkpoint_every) or self._is_late():
            self._save()
        if asked and not last:
            raise StoppedError(f"stopped after step {told.step:,}, which is saved. The same command goes on")

    def _is_late(self) -> bool:
        """Whether the last checkpoint is older than it may be; the process that leads has the watch."""
        if not self._pace.checkpoint_minutes:
            return False
        return self._member.any(
            self._member.leads and time.monotonic() - self._since >= 60 * self._pace.checkpoint_minutes
        )

    def _enough(self) -> bool:
        """Whether exams have not become better for too long; all processes hear the same."""
        if not self._pace.patience:
            return False
        worths = self._worths
        return self._member.any(bool(worths) and len(worths) - 1 - worths.index(max(worths)) >= self._pace.patience)

    def _save(self) -> None:
        weights = whole(dict(self._learner.named_parameters()))
        memory = whole(state_of(self._optimizer, self._learner))
        if self._member.leads:
            state = {"place": list(self._place), "precision": self._precision.state}
            checkpoint.save(self._run, self._step, weights, memory, state)
            checkpoint.forget(self._run, max(self._pace.keep_last, 1))
        self._since = time.monotonic()

    def _whole_learner(self) -> Learner | None:
        """All that learned, put together in the process that leads where each has a part of it; None in the others."""
        weights = whole(dict(self._learner.named_parameters())) if self._sharded else {}
        if not self._member.leads:
            return None
        if not self._sharded:
            return self._learner
        made = self._course.learner(self._course.model())
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
        """Ask what the course asks, and keep the best."""
        learner = self._whole_learner()
        if learner is None:
            return
        models = self._models(learner)
        for kind, values in self._course.examine(learner, models, self._step):
            self._write(kind, **values)
            worth = self._course.worth({"kind": kind, "step": self._step, **values})
            if worth is None or not self._step:
                continue
            if self._pace.best and (not self._worths or worth > max(self._worths)):  # the first, whatever it is worth
                self._course.save(models[MODEL], self._run / self._pace.best)
            self._worths.append(worth)

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


def _worths(course: Course, journal: Path) -> list[float]:
    """Of all exams after the first step."""
    found = [course.worth(line) for line in lines(journal) if line.get("step", 0) > 0]
    return [worth for worth in found if worth is not None]


def is_finished(run: Path) -> bool:
    """Whether a run that keeps no checkpoint has come to its end."""
    return (run / MODEL).is_dir() and any(line.get("kind") == "end" for line in lines(run / JOURNAL))


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


def _note_facts(course: Course, member: Member, precision: Precision) -> None:
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
        **course.facts(),
    }
    note = course.output / FACTS
    if note.is_file():
        course.recognise(read_object(note))
    with artifact.file(note, overwrite=True) as file:
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
def owned(run: Path, recipe: Spec, begun: Sequence[str], refuse: Callable[[Path], None]) -> Iterator[Path]:
    """The run's directory, ours alone. Where one of the things in `begun` is there, `refuse` looks at its recipe."""
    run.mkdir(parents=True, exist_ok=True)
    with (run / "lock").open("w") as lock:
        try:
            # of the process: one that its loader's workers had too would outlive a kill
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BertkitError(f"{run} is being written by another process. Wait for it, or stop it") from None
        note = run / RECIPE
        if note.is_file() and any((run / name).exists() for name in (JOURNAL, checkpoint.HOME, *begun)):
            refuse(note)
        else:
            with artifact.file(note, overwrite=True) as file:
                file.write(to_toml(recipe).encode())
        yield run


@contextmanager
def asked_to_end() -> Iterator[list[int]]:
    """Signals that ask the process to end, as they come; the second Ctrl-C ends it at once."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main one may hear signals
        yield asked
        return

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
