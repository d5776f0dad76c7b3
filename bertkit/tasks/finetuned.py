"""A model that learned a task: it answers, and is examined. Beside the weights lies what it needs for that.

MODEL/
    config.json …       an ordinary Hugging Face directory: AutoModelForSequenceClassification and others open it
    task.json           the task (labels, thresholds), what happens to long inputs, what it scored and on what
    README.md           the model card
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import bertkit
from bertkit import model as models
from bertkit import tasks
from bertkit.errors import BertkitError, about
from bertkit.evaluate.fingerprint import Fingerprint, digest
from bertkit.model import Model
from bertkit.spec import from_json, to_json
from bertkit.tasks.answering import QuestionAnswering
from bertkit.tasks.choosing import MultipleChoice
from bertkit.tasks.item import Item
from bertkit.tasks.layout import Layout, OptionsLayout, QuestionsLayout, TableLayout, WordsLayout
from bertkit.tasks.sets import Refusal, usable
from bertkit.tasks.tagging import Tagging
from bertkit.tasks.task import Asked, Scores, Task
from bertkit.tasks.texts import TextTask, watched
from bertkit.text.files import read_object
from bertkit.text.truncate import Cut, Policy
from bertkit.train.page import MODEL, RECIPE

TASK, CARD = "task.json", "README.md"
_LAYOUTS: dict[type[Task], type[Layout]] = {
    TextTask: TableLayout,
    Tagging: WordsLayout,
    QuestionAnswering: QuestionsLayout,
    MultipleChoice: OptionsLayout,
}
"""how files of each kind of task are read"""


Given = str | tuple[str, ...] | Mapping[str, Any]
"""what is asked: a text, a pair, or values by their names"""


@dataclass(frozen=True)
class Result:
    """What an exam came to."""

    scores: Scores
    main: str
    rows: int
    cut: Cut
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    only: str | None = None
    """the answer that all rows had, where there was but one"""

    def told(self) -> dict[str, Any]:
        """For a program to read."""
        cut = {"texts": self.cut.texts, "tokens": self.cut.tokens, "chunked": self.cut.chunked}
        told = {"scores": self.scores, "main": self.main, "rows": self.rows, "cut": cut}
        return told | {"fingerprint": dict(self.fingerprint)}


@dataclass(frozen=True)
class Finetuned:
    """A model and its task."""

    model: Model
    task: Task
    layout: Layout
    policy: Policy
    path: Path | None = None
    """where it lies, if it does"""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """what it was made with and what it scored"""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Finetuned:
        """Of a run's directory, or of the model in it."""
        home = Path(path)
        if not is_finetuned(home):
            raise _nothing(home)
        home = home / MODEL if (home / MODEL / TASK).is_file() else home
        model = models.load(home)
        tasks.learn_parts()
        told = read_object(home / TASK)
        with about(home / TASK):
            missing = {"task", "layout", "truncate", "limit"} - told.keys()
            if missing:
                raise BertkitError(f"it lacks {', '.join(sorted(missing))}: copy the model again, or fine-tune again")
            task, layout, policy = (from_json(told[name]) for name in ("task", "layout", "truncate"))
            if not (isinstance(task, Task) and isinstance(layout, Layout) and isinstance(policy, Policy)):
                raise BertkitError("task, layout or truncate is something else: copy the model again")
            _require_same(task, layout, model)
            if type(told["limit"]) is not int:
                raise BertkitError(f"limit is {told['limit']!r}: it must be a whole number, of tokens")
            model.limit = told["limit"]
        return cls(model, task, layout, policy, home, told)

    def save(
        self,
        path: str | os.PathLike[str],
        card: str,
        overwrite: bool = False,
        beside: Mapping[str, str] | None = None,
    ) -> Path:
        """Write it; whole or not at all. `beside` are further files of text, by name."""
        # how sentences become vectors is no part of it
        model = Model(self.model.network, self.model.tokenizer, None, self.model.config)
        with model.network.evaluating():
            return model.save(path, overwrite, beside={TASK: self.told(), CARD: card, **(beside or {})})

    def told(self) -> str:
        """What task.json says."""
        told = {
            **self.facts,
            "bertkit": bertkit.__version__,
            "task": to_json(self.task),
            "layout": to_json(self.layout),
            "truncate": to_json(self.policy),
            "limit": self.model.limit,
        }
        return json.dumps(told, indent=1, ensure_ascii=False) + "\n"

    def predict(self, inputs: Iterable[Given], cut: Cut | None = None) -> list[Any]:
        """What it says of texts, of pairs (tuples) or of objects with the task's own names."""
        return list(self.answers(self.items(inputs), cut))

    def items(self, inputs: Iterable[Given], first: int = 1) -> Iterator[Item]:
        """What was asked, as the task knows it, numbered from `first` on."""
        for number, given in enumerate(inputs, first):
            if isinstance(given, tuple) and len(given) == 2:
                given = {"text": given[0], "pair": given[1], "question": given[0], "context": given[1]}
            if not isinstance(given, (str, Mapping)):
                raise BertkitError(f"input {number} is {given!r}: give a str, a pair of them, or a dict")
            _require_characters(given, number)
            if isinstance(self.layout, TableLayout):
                given = self.layout.named(given, number)
            yield self.task.item(given, number, self.model.tokenizer)

    def answers(
        self, items: Iterable[Item], cut: Cut | None = None, progress: Callable[[int], None] | None = None
    ) -> Iterator[Any]:
        """An answer for each item, in order; items in any number."""
        return self.task.answers(Asked(self.model, self.policy, cut if cut is not None else Cut(), progress), items)

    def examine(self, items: Iterable[Item], progress: Callable[[int], None] | None = None) -> Result:
        """How good its answers are. Items may be any number: only scores are kept."""
        cut = Cut()
        waiting: deque[Item] = deque()
        answers = self.answers(watched(items, waiting), cut, progress)
        return _result(self.task, ((waiting.popleft(), answer) for answer in answers), cut)

    def tuned(self, items: Iterable[Item]) -> tuple[Finetuned, Result]:
        """With thresholds as these items say, and what it scores on them then; all answers are kept meanwhile."""
        if not self.task.tunes:
            return self, self.examine(items)
        cut = Cut()
        waiting: deque[Item] = deque()
        found = [(waiting.popleft(), answer) for answer in self.answers(watched(items, waiting), cut)]
        task = self.task.tuned(found)
        return replace(self, task=task), _result(task, ((item, task.decided(answer)) for item, answer in found), cut)

    def evaluate(
        self, path: str | os.PathLike[str], on_error: str = "stop", progress: Callable[[int], None] | None = None
    ) -> Result:
        """How good its answers to a file are, with the fingerprint of all that decides it."""
        data, refuse = Path(path), Refusal(on_error)
        found = self.examine((item for _, item in usable(data, self.layout, self.task, refuse)), progress)
        refuse.tell(data)
        return replace(found, fingerprint=self.fingerprint(data, found.rows))

    @property
    def decides(self) -> dict[str, Any]:
        """What decides its answers, whatever it is asked."""
        told = {name: to_json(getattr(self, name)) for name in ("task", "layout", "policy")}
        return {**self.model.fingerprint, **told, "bertkit": bertkit.__version__}

    def fingerprint(self, data: Path, rows: int) -> dict[str, Any]:
        """What decides a score: two scores are comparable where all but the weights is the same."""
        return Fingerprint(
            weights=_weights(self.path) if self.path else "",
            tokenizer=self.model.tokenizer.fingerprint,
            data=digest(data),
            rows=rows,
            task=to_json(self.task),
            layout=to_json(self.layout),
            limit=self.model.limit,
            truncate=to_json(self.policy),
            bertkit=bertkit.__version__,
        ).told()


def _require_characters(given: str | Mapping[str, Any], number: int) -> None:
    """Refuse half a character, which no tokenizer reads, while it is known which input has it."""
    values = [given] if isinstance(given, str) else given.values()
    for text in (text for value in values for text in (value if isinstance(value, list) else [value])):
        try:
            if isinstance(text, str):
                text.encode()
        except UnicodeEncodeError as error:
            raise BertkitError(
                f"input {number} has a lone surrogate {text[error.start]!a} at character {error.start}, which is not a "
                "character, but half of one: write the whole, or leave it out"
            ) from None


def is_finetuned(path: Path) -> bool:
    """Whether a directory is a run of bertkit finetune that has a model, or such a model."""
    return any((place / TASK).is_file() for place in (path, path / MODEL))


def layout_beside(path: Path) -> Layout | None:
    """How the files of a task are read that a model, or an export of one, learned; None where it learned none."""
    home = next((place for place in (path, path / MODEL) if (place / TASK).is_file()), None)
    if home is None:
        return None
    tasks.learn_parts()
    with about(home / TASK):
        layout = from_json(read_object(home / TASK).get("layout", {}))
    return layout if isinstance(layout, Layout) else None


def _nothing(path: Path) -> BertkitError:
    """The error for a path without a model that learned a task."""
    several = sorted(str(found.parent.parent) for found in path.glob(f"*/{MODEL}/{TASK}"))
    if not path.exists():
        return BertkitError(f"there is no {path}: give a run of bertkit finetune, or the model in it")
    if several:
        return BertkitError(f"{path} holds several runs: give one of {', '.join(several[:5])}")
    if (path / RECIPE).is_file():
        return BertkitError(f"{path} has no model yet, for no exam was held: the same bertkit finetune goes on there")
    return BertkitError(
        f"{path} holds no model that learned a task: there is no {TASK} in it. Make one: bertkit finetune --model "
        "minilm --train FILE --output RUN"
    )


def _require_same(task: Task, layout: Layout, model: Model) -> None:
    """Refuse a task that is not the one of the network, or not one of such files."""
    for name, wanted in task.objective.heads.items():
        there, labels = model.network.spec.heads.get(name), getattr(wanted, "labels", None)
        if type(there) is not type(wanted):
            raise BertkitError(
                f"{type(task).__name__} needs a head {name!r}, and the model has {', '.join(model.network.spec.heads)}:"
                " copy the model again"
            )
        if labels is not None and labels != getattr(there, "labels", None):
            raise BertkitError(
                f"its labels are {', '.join(labels)}, but those of config.json are "
                f"{', '.join(getattr(there, 'labels', ()))}: both must be the same, in the same order"
            )
    fitting = next(layouts for kind, layouts in _LAYOUTS.items() if isinstance(task, kind))
    if not isinstance(layout, fitting):
        raise BertkitError(f"{type(task).__name__} is read by {fitting.__name__}, not by {type(layout).__name__}")


def _result(task: Task, answered: Iterable[tuple[Item, Any]], cut: Cut) -> Result:
    """What answers are worth; only counts are kept of them."""
    scorer, rows, different = task.scorer(), 0, set[str]()
    for item, answer in answered:
        scorer.add(item, answer)
        rows += 1
        if len(different) < 2:
            different.add(answer.short)
    if not rows:
        raise BertkitError("there are no rows to examine it with")
    only = next(iter(different)) if len(different) == 1 else None
    return Result(scorer.scores(), task.main, rows, cut, only=only)


def _weights(home: Path) -> str:
    """One name for all files of weights."""
    found = [digest(path) for path in sorted(home.glob("*.safetensors"))]
    return found[0] if len(found) == 1 else hashlib.sha256("".join(found).encode()).hexdigest()
