"""Health: what a run's measurements say about it while there is still time to act.

`Health.hear` takes the lines of the journal one after the other, those and no others. A run that goes on from a
checkpoint hears the lines before it again (`Health.replay`), and says from there on what it would have said.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean, median
from typing import Any, NamedTuple

from bertkit.objectives.mask import MARK

WHILE = 20
"""lines that are a while: what is judged is the middle or the mean of so many"""
LONG = 1000
"""steps that are long for masked tokens to be guessed by frequencies alone, after the warm-up"""
LATE, LEAST = 3000, 50
"""steps of which the pairs are judged together, and the fewest lines that these must have left"""
CALM = 50
"""lines after which what has not been seen again is over"""
NORMS, SPIKE = 100, 10.0
"""lines of which the middle gradient is the usual one, and how many times longer a spike is"""
GROWN, GROWN_NATS = 0.1, 0.3
"""of the best loss, and in nats: what a loss must have grown by, both"""
NEAR = 0.02
"""of the unigram entropy: what a loss must have come below it to have learned more than frequencies"""
STARVED, UNKNOWN, COPIES = 0.2, 0.05, 0.2
"""shares that are too much: of the time, of the tokens, of the sentences"""
CHANCE = 0.53
"""of two answers right: no better than one answer for all"""
PAIRS = {"next": "Next-sentence prediction", "order": "Sentence-order prediction"}
"""questions with two answers, as the journal calls them"""

Line = Mapping[str, Any]


class _Keys(NamedTuple):
    """What one types to change a setting."""

    rate: str
    warmup: str
    rows: str


RECIPE = _Keys("train.optimizer.rate=", "more steps in train.schedule.warmup", "more rows in train.phases")
TUNING = _Keys("--rate ", "a longer warm-up (warmup=0.2 beside --recipe)", "more rows in a --batch")


class Alarm(NamedTuple):
    """What was seen, the likely causes, and what to change or type next."""

    name: str
    message: str


class Health:
    """Listens to a run. An alarm is given once, and again only after what it tells of was over.

    >>> health = Health()
    >>> health.hear({"kind": "step", "step": 7, "loss": 9.1, "norm": 1.0})
    []
    >>> [alarm.name for alarm in health.hear({"kind": "step", "step": 8, "loss": float("nan"), "norm": 1.0})]
    ['nan']
    """

    def __init__(self) -> None:
        self._started, self._keys = False, RECIPE
        self._begin(None)

    def _begin(self, unigram: float | None, keys: _Keys | None = None) -> None:
        self._keys = keys or self._keys
        self._unigram, self._pace = unigram, _Pace(self._keys)
        self._watches: list[_Watch] = [_NotFinite(), _Divergence(), _Spike(), _Plateau(unigram), _Starved()]
        self._watches += [_OneAnswer(question) for question in PAIRS]
        self._quiet: dict[int, int] = {}  # alarms that were given, and the lines since they last held

    @classmethod
    def replay(cls, lines: Iterable[Line]) -> Health:
        """One that has heard the lines of a journal; their alarms were given when they were written."""
        health = cls()
        for line in lines:
            health.hear(line)
        return health

    def hear(self, line: Line) -> list[Alarm]:
        """The alarms that a line gives rise to. Of lines that measure nothing there are none."""
        match line.get("kind"):
            case "start" if not self._started:
                self._started = True
                # only a fine-tuning counts its examples
                self._begin(_number(line, "unigram"), TUNING if "examples" in line else None)
                return list(_at_start(line))
            case "phase":
                self._begin(self._unigram)  # inputs of another length have other losses
            case "step":
                self._pace.hear(line)
                return list(self._watched(line))
        return []

    def _watched(self, line: Line) -> Iterator[Alarm]:
        for place, watch in enumerate(self._watches):
            message = watch.hear(line, self._pace)
            if message:
                if place not in self._quiet:
                    yield Alarm(watch.name, message)
                self._quiet[place] = 0
            elif place in self._quiet:
                self._quiet[place] += 1
                if self._quiet[place] >= CALM:
                    del self._quiet[place]


class _Pace:
    """How far the run is: warm-up lasts while the rate reaches new heights, whatever the schedule."""

    def __init__(self, keys: _Keys) -> None:
        self.keys, self.step, self.top, self.warm = keys, 0, 0.0, 0

    def hear(self, line: Line) -> None:
        self.step = int(_number(line, "step") or 0)
        rate = _number(line, "rate") or 0.0
        if rate > self.top:
            self.top, self.warm = rate, self.step

    @property
    def slower(self) -> str:
        """A lower rate, as one types it."""
        return f"{self.keys.rate}{self.top / 3:.0e}" if self.top else f"a lower {self.keys.rate.rstrip(' =')}"

    @property
    def rate(self) -> str:
        return f" (at most {self.top:.1e} so far)" if self.top else ""


class _Watch:
    """Looks for one thing that goes wrong: `hear` gives words as long as it holds."""

    name: str

    def hear(self, line: Line, pace: _Pace) -> str:
        raise NotImplementedError


class _NotFinite(_Watch):
    name = "nan"

    def hear(self, line: Line, pace: _Pace) -> str:
        losses = {f"the loss of {name}": value for name, value in _table(line, "losses").items()}
        measured = {"the loss": line.get("loss"), **losses, "the length of the gradient": line.get("norm")}
        for what, value in measured.items():
            if isinstance(value, float) and not math.isfinite(value):
                return (
                    f"{_capital(what)} is {value} at step {pace.step:,}: from here on nothing is learned. Likely "
                    f"causes: a rate that is too high{pace.rate}, too short a warm-up, or 16-bit numbers that overflow."
                    f" The same recipe would come here again: begin in another output, with {pace.slower} or "
                    f"{pace.keys.warmup}."
                )
        return ""


class _Divergence(_Watch):
    """The loss has been well above its best for most of a while."""

    name = "divergence"

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=WHILE)
        self._best, self._at = math.inf, 0

    def hear(self, line: Line, pace: _Pace) -> str:
        loss = _number(line, "loss")
        if loss is not None:
            self._losses.append(loss)
        if len(self._losses) < WHILE:
            return ""
        now = median(self._losses)
        if now < self._best:
            self._best, self._at = now, pace.step
        if now <= self._best + max(GROWN * self._best, GROWN_NATS):
            return ""
        return (
            f"The loss is {now:.2f} around step {pace.step:,} and was {self._best:.2f} around step {self._at:,}: it "
            f"grows instead of falling. Likely causes: a rate that is too high{pace.rate}, too short a warm-up, or too "
            f"small a batch. Where it does not come down again, begin in another output, with {pace.slower}, "
            f"{pace.keys.warmup}, or {pace.keys.rows}."
        )


class _Spike(_Watch):
    """A gradient many times longer than usual."""

    name = "gradient"

    def __init__(self) -> None:
        self._norms: deque[float] = deque(maxlen=NORMS)

    def hear(self, line: Line, pace: _Pace) -> str:
        norm = _number(line, "norm")
        if norm is None:
            return ""
        usual = median(self._norms) if len(self._norms) >= WHILE else math.inf
        self._norms.append(norm)
        if norm <= SPIKE * usual:
            return ""
        return (
            f"The gradient of step {pace.step:,} is {norm:.3g} long, {norm / max(usual, 1e-12):,.0f} times the usual "
            f"{usual:.2g}. It was clipped, so that one alone does no harm; several come before a divergence. Likely "
            f"causes: odd text, such as one line repeated many times (bertkit corpus audit TEXTS shows it), too small "
            f"a batch, or a rate that is too high{pace.rate}. If the loss rises with it: {pace.slower}."
        )


class _Plateau(_Watch):
    """Long after the warm-up, masked tokens are guessed by their frequencies alone: still, or again."""

    name = "plateau"

    def __init__(self, unigram: float | None) -> None:
        self._unigram = unigram
        self._losses: deque[float] = deque(maxlen=WHILE)
        self._since: int | None = None
        self._was_below = False

    def hear(self, line: Line, pace: _Pace) -> str:
        loss = _number(_table(line, "losses"), MARK)
        if loss is not None:
            self._losses.append(loss)
        if not self._unigram or len(self._losses) < WHILE:
            return ""
        now = median(self._losses)
        below, near = now < self._unigram * (1 - NEAR), now <= self._unigram * (1 + NEAR)
        self._was_below |= below
        if below or pace.step <= pace.warm or (self._was_below and not near):  # the last is a divergence
            self._since = None
            return ""
        self._since = pace.step if self._since is None else self._since
        if pace.step - self._since < LONG:
            return ""
        return (
            f"The loss of masked tokens is {now:.2f} around step {pace.step:,}, and has been "
            f"{'close to' if near else 'no better than'} {self._unigram:.2f} for {pace.step - self._since:,} steps: "
            "what a model reaches that knows how frequent each token is and nothing of its neighbours. Likely causes: "
            "thousands of repeated lines (bertkit corpus audit TEXTS shows them), too small a batch (more rows in "
            "train.phases), weights that were drawn too small for a narrow network (model.spread=0.06), or a rate that "
            f"is too high or too low{pace.rate}: try {pace.slower} and ten times that in short runs, each with an "
            "output of its own."
        )


class _Starved(_Watch):
    name = "starved"

    def __init__(self) -> None:
        self._waited: deque[float] = deque(maxlen=WHILE)

    def hear(self, line: Line, pace: _Pace) -> str:
        waited = _number(line, "waited")
        if waited is not None:
            self._waited.append(waited)
        share = fmean(self._waited) if len(self._waited) == WHILE else 0.0
        if share <= STARVED:
            return ""
        return (
            f"The model waited for its batches during {share:.0%} of the time around step {pace.step:,}. Likely "
            "causes: too few processes that read ahead, other programs on the same cores, or a slow or remote disk. "
            "Stop the other programs, copy the corpus to a disk of this machine, or read ahead with data.workers=2 or "
            "more."
        )


class _OneAnswer(_Watch):
    """Of many pairs about half are judged rightly, which one answer for all would reach; stretches are judged whole."""

    name = "one-answer"

    def __init__(self, question: str) -> None:
        self._question, self._message = question, ""
        self._first, self._right = 0, list[float]()

    def hear(self, line: Line, pace: _Pace) -> str:
        right = _number(_table(line, "right"), self._question)
        if right is None or pace.step <= pace.warm:
            self._first, self._right = pace.step, []
            return self._message
        self._right.append(right)
        steps = pace.step - self._first
        if steps >= LATE and len(self._right) >= LEAST:
            share = fmean(self._right)
            self._message = self._words(share, steps, pace) if abs(share - 0.5) < CHANCE - 0.5 else ""
            self._first, self._right = pace.step, []
        return self._message

    def _words(self, share: float, steps: int, pace: _Pace) -> str:
        return (
            f"{PAIRS[self._question]} was right in {share:.1%} of the pairs of {steps:,} steps, up to step "
            f"{pace.step:,}: one answer for all pairs would do as well. Small models and small batches often learn it "
            "late. Likely causes otherwise: documents so short or so alike that pairs cannot be told apart (bertkit "
            f"corpus inspect SHARDS shows them), too small a batch, or a rate that is too high{pace.rate}. Wait, try "
            f"{pace.slower}, or do without it, as RoBERTa does: objective='[{{part=\"MaskedLm\"}}]'."
        )


def _at_start(line: Line) -> Iterator[Alarm]:
    """What is known of the corpus before anything is learned."""
    unknown, copies = _number(line, "unknown"), _number(line, "duplicates")
    if unknown is not None and unknown > UNKNOWN:
        message = (
            f"{unknown:.1%} of the corpus is [UNK]: the vocabulary cannot spell these words, and a model never learns "
            "them. Likely causes: a vocabulary of another language or domain, or text that was decoded wrongly "
            "(bertkit corpus audit TEXTS --tokenizer MODEL shows both). Make one that fits: bertkit vocab train TEXTS "
            "--output vocabulary, then build the corpus again with --tokenizer vocabulary."
        )
        yield Alarm("unknown", message)
    if copies is not None and copies > COPIES:
        message = (
            f"{copies:.1%} of the sentences were said before, word for word: a model learns them by heart, and its "
            "loss looks better than it is, or stays where frequencies alone bring it. Likely causes: files that were "
            "given twice, lines that stand on every page, or generated text. bertkit corpus audit TEXTS shows them; "
            "keep one of each, and build the corpus again."
        )
        yield Alarm("copies", message)


def _number(line: Line, name: str) -> float | None:
    """A finite number, or nothing."""
    value = line.get(name)
    usable = isinstance(value, int | float) and math.isfinite(value)
    return value if usable else None


def _table(line: Line, name: str) -> Line:
    value = line.get(name)
    return value if isinstance(value, Mapping) else {}


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
