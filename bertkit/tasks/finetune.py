"""Fine-tuning: the course that a tuning describes. The best network on the development set is kept, ready to answer."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset

from bertkit import model as models
from bertkit.batch import Batch
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.objectives.learner import Learner
from bertkit.tasks.card import card
from bertkit.tasks.finetuned import Finetuned, Result
from bertkit.tasks.lessons import Lessons, lessons_of
from bertkit.tasks.sets import Sets, sets
from bertkit.tasks.task import Reader, Task
from bertkit.tasks.tuning import Tuning, read
from bertkit.text.truncate import Cut
from bertkit.train import checkpoint
from bertkit.train.course import Course, Line, Pace, Stage
from bertkit.train.feed import Place, Portion
from bertkit.train.page import MODEL
from bertkit.train.processes import Member, joined
from bertkit.train.recipe import differences
from bertkit.train.run import Run, Tell, asked_to_end, is_finished, owned
from bertkit.train.schedule import Linear

log = logging.getLogger("bertkit")

SAME = 20
"""rows from which on one answer for all of them is worth a word"""
EXAM = "exam"
"""the journal's lines about the development set"""


def finetune(tuning: Tuning, tell: Tell | None = None, say: Callable[[str], None] = log.info) -> Path:
    """Learn what a tuning says, from its beginning or from where it was; where the best model is.

    `tell` hears of every step, `say` what else is done.
    """
    run = Path(tuning.output)
    own = owned(run, tuning, (MODEL,), partial(_refuse_another, tuning))
    with joined() as member, asked_to_end() as asked, own if member.leads else nullcontext():
        if is_finished(run):
            say(f"{run} is finished already: its model is {run / MODEL}")
            return run / MODEL
        if member.leads:
            checkpoint.tidy(run)
        member.wait()
        found = sets(tuning)
        say(found.told)
        return Run(Finetuning(tuning, found, member.world, say), member, asked, tell).finish()


class Finetuning(Course):
    """A task, learned from one set and examined with another."""

    def __init__(self, tuning: Tuning, found: Sets, world: int = 1, say: Callable[[str], None] = log.info) -> None:
        self._tuning, self._sets, self._say = tuning, found, say
        self.output, self.seed, self.compute, self.workers = Path(tuning.output), tuning.seed, tuning.compute, 0
        self.objective = tuning.task.objective
        self._began: Model | None = self._begun()
        self._tokenizer, self._limit = self._began.tokenizer, self._began.limit
        self._task = tuning.task
        self._result: Result | None = None
        if tuning.limit > self._limit:
            say(f"inputs have at most {self._limit} tokens, not {tuning.limit}: the model takes no more")
        cut = Cut(self._limit)
        reader = Reader(self._tokenizer, self._limit, tuning.policy, cut)
        self._lessons = Lessons(lessons_of(tuning.task, found.train, reader), tuning.rows, tuning.seed)
        if cut.texts or cut.chunked:
            say(cut.among(len(found.train)))
        epoch = self._lessons.steps(world)
        steps = math.ceil(epoch * tuning.epochs)
        self.pace = Pace(
            steps=steps,
            optimizer=tuning.optimizer,
            schedule=Linear(warmup=round(tuning.warmup * steps)),
            clip=tuning.clip,
            log_every=tuning.log_every,
            evaluate_every=(tuning.evaluate_every or epoch) if found.dev else 0,
            checkpoint_every=0,
            keep_last=0,
            best=MODEL if found.dev else "",
            patience=tuning.patience if found.dev else 0,
            checkpoint_minutes=tuning.checkpoint_minutes,
        )

    def model(self) -> Model:
        made, self._began = self._began or self._begun(), None  # what was given away is learned with
        return made

    def _begun(self) -> Model:
        """What learning begins with: somebody's encoder, with heads drawn from the seed where it has none."""
        tuning = self._tuning
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(tuning.seed)
            made = models.load(tuning.model, self.objective.heads)
        model = Model(made.network, made.tokenizer, None, made.config, made.report)
        longest = made.network.spec.encoder.longest
        model.limit = min(tuning.limit or made.limit, longest or tuning.limit or made.limit)
        return model

    def learner(self, model: Model) -> Learner:
        return self.objective.learner(model.network)

    def stages(self) -> list[Stage]:
        return [Stage(0, self.pace.steps, {}, self._feed)]

    def _feed(self, place: Place, member: Member) -> tuple[Dataset[Batch], Iterator[Portion]]:
        return self._lessons, self._lessons.portions(place, self._tuning.tokens, member)

    def facts(self) -> dict[str, Any]:
        return {
            "data": self._sets.prints(),
            "tokenizer": self._tokenizer.fingerprint,
            "rows": len(self._sets.train),
            "examples": len(self._lessons),
            "tokens": self._lessons.tokens,
        }

    def recognise(self, facts: Mapping[str, Any]) -> None:
        for path, now in self._sets.prints().items():
            if facts.get("data", {}).get(path, now) != now:
                raise BertkitError(
                    f"{path} is another file than the one that {self.output} began with. Put that one back, or give "
                    "another --output"
                )

    def beginning(self, learner: Learner) -> dict[str, Any]:
        parameters = sum(parameter.numel() for parameter in learner.parameters())
        rows, examples = len(self._sets.train), len(self._lessons)
        return {"parameters": parameters, "rows": rows, "examples": examples, "tokens": self._lessons.tokens}

    def examine(self, learner: Learner, models: Mapping[str, Model], step: int) -> list[Line]:
        if not step or self._sets.dev is None:
            return []
        now = self._finetuned(models[MODEL], self._tuning.task)
        tuned, self._result = now.tuned(self._sets.dev)
        self._task = tuned.task
        scores = ", ".join(f"{name} {value:.4g}" for name, value in self._result.scores.items())
        self._say(f"step {step:,}, {self._result.rows:,} rows for exams: {scores}")
        told: list[Line] = [
            (EXAM, {"scores": self._result.scores, "main": self._result.main, "rows": self._result.rows})
        ]
        if self._result.only is not None and self._result.rows >= SAME:
            message = (
                f"all {self._result.rows:,} rows had the answer {self._result.only!r}: it has learned nothing yet. If "
                "it stays so, try another seed (--seed 1), a lower rate (--rate 2e-5) or more epochs"
            )
            self._say(message)
            told.append(("alarm", {"name": "one answer", "message": message}))
        return told

    def worth(self, line: Mapping[str, Any]) -> float | None:
        if line.get("kind") != EXAM:
            return None
        worth = float(line["scores"][line["main"]])
        return -math.inf if math.isnan(worth) else worth

    def save(self, model: Model, path: Path) -> None:
        facts = {
            "model": self._tuning.model,
            "data": self._sets.prints(),
            "told": self._sets.told,
            "scores": self._result.scores if self._result else {},
            "main": self._tuning.task.main,
            "settings": {
                "epochs": self._tuning.epochs,
                "rows": self._tuning.rows,
                "rate": self._tuning.optimizer.rate,
                "seed": self._tuning.seed,
            },
        }
        made = replace(self._finetuned(model, self._task), facts=facts)
        made.save(path, card(made), overwrite=True)

    def _finetuned(self, model: Model, task: Task) -> Finetuned:
        model.limit = self._limit
        return Finetuned(model, task, self._tuning.layout, self._tuning.policy)


def _refuse_another(tuning: Tuning, note: Path) -> None:
    """Refuse to go on with a run of another tuning."""
    same = {"log_every": 1, "checkpoint_minutes": 0.0}
    other = differences(replace(read(note), **same), replace(tuning, **same))  # type: ignore[arg-type]
    if other:
        raise BertkitError(
            f"{note.parent} holds a run with other settings: {'; '.join(other[:3])}{'; …' if other[3:] else ''}. "
            "Repeat these, or give another --output"
        )
