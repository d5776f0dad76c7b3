"""Cases, rounds and ratios.

In every round each contestant has one turn, and the order is reversed from one round to the next, so that a machine
which grows slower or faster favours nobody. Where a case says so, each round has new processes. A peer that takes four
times as long as we do in a turn of three seconds or more has that one turn, or none where its answer has told as much.
A round's ratio is the peer's time over ours. `ratio` is their median (above 1 bertkit is ahead), `spread` the range
that holds the middle 80 % of them (10th to 90th percentile).

Memory is another matter: every measurement has a new process, and the ratio is ours over the peer's (below 1 bertkit is
ahead).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from bench.child import Call, Fresh, Job
from bench.peer import AbsentError
from bench.pipe import Array

OURS = "bertkit"
TOLERANCE = 1e-4
NEAR = 0.99
"""the smallest cosine that our own vectors may have with the truth, where a case has one, to reach a bar"""
FAR = 4.0
"""a peer that takes so many times as long as we do, in turns of some seconds, has only one of them"""
LONG = 3.0
"""seconds of such a turn of ours"""
PAUSE = 0.25
"""seconds before a turn: thread pools that wait by spinning have stopped by then"""


@dataclass(frozen=True)
class Bar:
    """What a ratio shall reach: with its median, or, where it says so, with the upper end of its spread."""

    ratio: float
    within_spread: bool = False

    def __str__(self) -> str:
        return f"≥ {self.ratio:g}" + (" within spread" if self.within_spread else "")

    def reached(self, ratio: float, spread: tuple[float, float]) -> bool:
        """Whether a measured ratio does.

        >>> Bar(1.0, within_spread=True).reached(0.97, (0.94, 1.01)), Bar(1.0).reached(0.97, (0.94, 1.01))
        (True, False)
        """
        return (spread[1] if self.within_spread else ratio) >= self.ratio


@dataclass(frozen=True)
class AtMost(Bar):
    """What a ratio shall not be above."""

    def __str__(self) -> str:
        return f"≤ {self.ratio:g}"

    def reached(self, ratio: float, spread: tuple[float, float]) -> bool:
        """Whether a measured ratio is not.

        >>> AtMost(0.5).reached(0.4, (0.3, 0.6)), AtMost(0.5).reached(0.6, (0.4, 0.8))
        (True, False)
        """
        return ratio <= self.ratio


class Amount(NamedTuple):
    """What one call gets through where operations do not tell: megabytes of text, tokens."""

    count: float
    unit: str


@dataclass(frozen=True)
class Case:
    """One question that bertkit and its peers are all asked: `job` is a function that each of them has."""

    name: str
    job: str
    arguments: dict[str, Any]
    peers: tuple[str, ...]
    flops: float = 0.0
    """floating-point operations of one call that are of use: those of real tokens"""
    array: Array | None = None
    calls: int = 1
    """in one turn"""
    items: int = 1
    """in one call: times and operations are told for one of them"""
    bars: Mapping[str, Bar] = field(default_factory=dict)
    """ratios by peer; under our own name what `alone` shall reach in a second"""
    amount: Amount | None = None
    alone: bool = False
    """whether our own speed is a row as well"""
    truth: Callable[[], Array] | None = None
    """tells vectors that answers shall be near: where they are rounded, each in its own way, they need not be the same
    """
    precision: str = "fp32"
    """of products, and so of the peak they are a share of"""
    warm: int = 1
    """turns before the first round, beside the answer; none where an answer is as good as a turn"""
    rounds: int | None = None
    """in place of the workload's, where turns have pieces of one work"""
    anew: bool = False
    """whether every round has new processes: what waits for memory depends on where in it a process came to lie"""


@dataclass(frozen=True)
class Weighing(Case):
    """A case whose job, made by `weighed`, is asked for memory instead of time."""


class Contestant(Protocol):
    """`bench.peer.Peer`, or whatever answers the same questions."""

    versions: dict[str, str]
    answered: float
    """seconds of the call that gave the last answer"""

    def open(self, job: str, arguments: dict[str, Any], array: Array | None = None) -> Array: ...
    def seconds(self, calls: int) -> float: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Row:
    """bertkit against one peer in one case. Without a ratio there is a reason."""

    case: str
    peer: str
    ratio: float | None = None
    spread: tuple[float, float] | None = None
    seconds: float | None = None
    """our median time for one item of the case"""
    peer_seconds: float | None = None
    flops: float = 0.0
    difference: float | None = None
    """the largest between the answers"""
    cosine: float | None = None
    """the smallest between a vector of ours and the peer's; of the peer's and the truth, where the case has one"""
    rounds: int = 0
    bar: Bar | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    amount: Amount | None = None
    own_cosine: float | None = None
    """the smallest between a vector of ours and the truth, where the case has one"""
    precision: str = "fp32"

    def __str__(self) -> str:
        if self.ratio is None or self.spread is None:
            return f"{self.case}, {self.peer}: none, {self.reason}"
        return f"{self.case}, {self.peer}: {self.ratio:.2f} ({self.spread[0]:.2f} to {self.spread[1]:.2f})"

    @property
    def reached(self) -> bool | None:
        """Whether the bar is, with vectors that are near enough; None where there is no bar or no ratio."""
        if self.bar is None or self.ratio is None or self.spread is None:
            return None
        near = self.own_cosine is None or self.own_cosine >= NEAR
        return near and self.bar.reached(self.ratio, self.spread)


@dataclass(frozen=True)
class Speed:
    """bertkit alone: what it gets through in a second, the median of the rounds. Without a speed there is a reason."""

    case: str
    unit: str
    speed: float | None = None
    spread: tuple[float, float] | None = None
    rounds: int = 0
    bar: Bar | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.speed is None or self.spread is None:
            return f"{self.case}, alone: none, {self.reason}"
        low, high = self.spread
        return f"{self.case}, alone: {self.speed:,.0f} {self.unit}/s ({low:,.0f} to {high:,.0f})"

    @property
    def reached(self) -> bool | None:
        """Whether the bar is; None where there is no bar or no speed."""
        if self.bar is None or self.speed is None or self.spread is None:
            return None
        return self.bar.reached(self.speed, self.spread)


@dataclass(frozen=True)
class Weight:
    """The memory that bertkit and one peer took for the same work, in bytes. Without a ratio there is a reason."""

    case: str
    peer: str
    ratio: float | None = None
    spread: tuple[float, float] | None = None
    grown: int = 0
    """the most that our process had beyond what it had when its libraries were imported, median"""
    peer_grown: int = 0
    whole: int = 0
    """the most that our process had, libraries and all, median"""
    peer_whole: int = 0
    rounds: int = 0
    bar: Bar | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    def __str__(self) -> str:
        if self.ratio is None:
            return f"{self.case}, {self.peer}: none, {self.reason}"
        return (
            f"{self.case}, {self.peer}: {self.ratio:.2f} ({self.grown / 1e6:,.0f} of {self.peer_grown / 1e6:,.0f} MB)"
        )

    @property
    def reached(self) -> bool | None:
        """Whether the bar is; None where there is no bar or no ratio."""
        if self.bar is None or self.ratio is None or self.spread is None:
            return None
        return self.bar.reached(self.ratio, self.spread)


def compare(
    case: Case,
    contestants: Mapping[str, Contestant],
    rounds: int,
    pause: float = PAUSE,
    told: Callable[[str], None] = lambda what: None,
) -> list[Row | Speed]:
    """A row for each peer of a case: those that answer as we do are timed, the others say why not.

    Where the case asks for it, the last row is our own speed.
    """
    answers: dict[str, Array] = {}
    reasons: dict[str, str] = {}
    for name in (OURS, *case.peers):
        told(f"{case.name}: {name} opens")
        try:
            answers[name] = contestants[name].open(case.job, case.arguments, case.array)
            reason = _other(case, name, answers)
            if reason:
                reasons[name] = f"it gives other values: {reason}"
        except AbsentError as absent:
            reasons[name] = str(absent)
        if OURS in reasons:
            failed = [Row(case.name, peer, reason=f"bertkit: {reasons[OURS]}") for peer in case.peers]
            return [*failed, *_alone(case, [], reasons)]
    playing = [name for name in (OURS, *case.peers) if name not in reasons]
    times: dict[str, list[float]] = {name: [] for name in playing}
    far = set() if case.warm else {name for name in playing if _is_far(*_answered(contestants, OURS, name))}
    for name in far:
        times[name].append(contestants[name].answered)
    for number in range(-case.warm, rounds):
        if case.anew and number > 0:
            for name in playing:
                told(f"{case.name}: round {number + 1} of {rounds}, {name} opens")
                _renew(case, name, contestants, reasons)
        for name in playing if number % 2 else playing[::-1]:
            if name in reasons or name in far or _is_far(times[OURS], times[name]):
                continue
            told(
                f"{case.name}: round {number + 1} of {rounds}, {name}"
                if number >= 0
                else f"{case.name}: {name} warms up"
            )
            time.sleep(pause)
            try:
                seconds = contestants[name].seconds(case.calls)
            except AbsentError as absent:
                reasons[name] = str(absent)
                continue
            if number >= 0:
                times[name].append(seconds)
    rows = [_row(case, name, contestants[name].versions, answers, times, reasons) for name in case.peers]
    return [*rows, *_alone(case, times[OURS], reasons)]


def _renew(case: Case, name: str, contestants: Mapping[str, Contestant], reasons: dict[str, str]) -> None:
    """A new process in place of a contestant's last one, as warm as that was."""
    if name in reasons:
        return
    contestants[name].close()
    try:
        contestants[name].open(case.job, case.arguments, case.array)
        for _ in range(case.warm):
            contestants[name].seconds(case.calls)
    except AbsentError as absent:
        reasons[name] = str(absent)


def _answered(contestants: Mapping[str, Contestant], *names: str) -> list[list[float]]:
    return [[contestants[name].answered] for name in names]


def _is_far(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether one turn has told enough of a peer."""
    return bool(ours and theirs) and ours[0] > LONG and theirs[0] > FAR * ours[0]


def _other(case: Case, name: str, answers: Mapping[str, Array]) -> str:
    """How an answer differs by more than rounding; empty where it does not."""
    ours, given = answers[OURS], answers[name]
    if case.truth is None:
        return "" if agrees(ours, given) else _told(ours, given)
    if given.shape != case.truth().shape or not np.isfinite(given).all():
        return _told(case.truth(), given)
    return ""  # how near it is stands in its row


def weighed(job: Callable[..., Fresh]) -> Job:
    """A job that does another's work `calls` times, and answers with bytes: before the work, and at most in all."""

    def opened(calls: int, **asked: Any) -> Call:
        before = _memory("VmRSS")
        work = job(**asked)
        for _ in range(calls):
            with work.made() as given:
                work.call(given)
        return lambda: np.array([before, _memory("VmHWM")])

    return opened


def _memory(name: str) -> int:
    """Bytes that the process has now (VmRSS) or had at most (VmHWM).

    Not `getrusage`, whose maximum a process inherits from the one that started it.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        raise LookupError("the system does not tell the memory of a process: it has no /proc") from None
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def weigh(
    case: Weighing,
    contestants: Mapping[str, Contestant],
    rounds: int,
    told: Callable[[str], None] = lambda what: None,
) -> list[Weight]:
    """A row for each peer of a case; every measurement is of a process that has done nothing before."""
    bytes_: dict[str, list[Array]] = {name: [] for name in (OURS, *case.peers)}
    reasons: dict[str, str] = {}
    for number in range(rounds):
        for name in (OURS, *case.peers):
            told(f"{case.name}: round {number + 1} of {rounds}, {name}")
            contestants[name].close()
            try:
                bytes_[name].append(
                    contestants[name].open(case.job, {**case.arguments, "calls": case.calls}, case.array)
                )
            except AbsentError as absent:
                reasons[name] = str(absent)
            contestants[name].close()
    return [_weight(case, name, contestants[name].versions, bytes_, reasons) for name in case.peers]


def _weight(
    case: Weighing,
    name: str,
    versions: Mapping[str, str],
    bytes_: Mapping[str, Sequence[Array]],
    reasons: Mapping[str, str],
) -> Weight:
    bar = case.bars.get(name)
    reason = f"bertkit: {reasons[OURS]}" if OURS in reasons else reasons.get(name)
    if reason:
        return Weight(case.name, name, bar=bar, versions=versions, reason=reason)
    ours, theirs = np.stack(bytes_[OURS]), np.stack(bytes_[name])  # [rounds, 2]: before, at most
    ratio, spread = ratios(theirs[:, 1] - theirs[:, 0], ours[:, 1] - ours[:, 0])
    (grown, whole), (peer_grown, peer_whole) = (
        (int(np.median(found[:, 1] - found[:, 0])), int(np.median(found[:, 1]))) for found in (ours, theirs)
    )
    return Weight(case.name, name, ratio, spread, grown, peer_grown, whole, peer_whole, len(theirs), bar, versions)


def _alone(case: Case, times: Sequence[float], reasons: Mapping[str, str]) -> list[Speed]:
    if not case.alone:
        return []
    assert case.amount is not None, "a speed is an amount in a second"
    bar = case.bars.get(OURS)
    if OURS in reasons:
        return [Speed(case.name, case.amount.unit, bar=bar, reason=reasons[OURS])]
    low, middle, high = np.quantile(case.amount.count / np.asarray(times), (0.1, 0.5, 0.9)).tolist()
    return [Speed(case.name, case.amount.unit, middle, (low, high), len(times), bar)]


def _row(
    case: Case,
    name: str,
    versions: Mapping[str, str],
    answers: Mapping[str, Array],
    times: Mapping[str, Sequence[float]],
    reasons: Mapping[str, str],
) -> Row:
    bar = case.bars.get(name)
    reason = reasons.get(name) or (f"bertkit: {reasons[OURS]}" if OURS in reasons else "")
    if reason:
        return Row(case.name, name, bar=bar, versions=versions, reason=reason)
    ratio, spread = ratios(times[OURS], times[name])
    expected = answers[OURS] if case.truth is None else case.truth()
    return Row(
        case.name,
        name,
        ratio,
        spread,
        float(np.median(times[OURS])) / case.items,
        float(np.median(times[name])) / case.items,
        case.flops / case.items,
        difference(expected, answers[name]),
        cosine(expected, answers[name]),
        len(times[name]),
        bar,
        versions,
        amount=case.amount and case.amount._replace(count=case.amount.count / case.items),
        own_cosine=None if case.truth is None else cosine(case.truth(), answers[OURS]),
        precision=case.precision,
    )


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The median of the rounds' ratios, and their 10th and 90th percentile.

    >>> ratios([1.0, 2.0, 1.0], [2.0, 4.0, 3.0])
    (2.0, (2.0, 2.8))
    """
    each = np.asarray(theirs) / np.asarray(ours[: len(theirs)])
    low, middle, high = np.quantile(each, (0.1, 0.5, 0.9)).tolist()
    return middle, (low, high)


def agrees(ours: Array, theirs: Array) -> bool:
    """Whether two answers are the same but for rounding; a NaN is never the same, and whole numbers are not rounded."""
    if _whole(ours, theirs):
        return np.array_equal(ours, theirs)
    return ours.shape == theirs.shape and bool(difference(ours, theirs) <= TOLERANCE)


def difference(ours: Array, theirs: Array) -> float:
    """The largest between two answers."""
    return float(np.abs(ours.astype(np.float64) - theirs).max())


def cosine(ours: Array, theirs: Array) -> float | None:
    """The smallest between two vectors of the same place; None of whole numbers, which are no vectors.

    >>> round(cosine(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 0.0], [0.0, 1.0]])), 3)
    0.707
    """
    if _whole(ours, theirs):
        return None
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return float(((a * b).sum(-1) / norms).min())


def _whole(ours: Array, theirs: Array) -> bool:
    return ours.dtype.kind in "iu" and theirs.dtype.kind in "iu"


def _told(ours: Array, theirs: Array) -> str:
    if ours.shape != theirs.shape:
        return f"shape {list(theirs.shape)} instead of {list(ours.shape)}"
    if _whole(ours, theirs):
        at = np.flatnonzero(ours.ravel() != theirs.ravel())
        return f"{len(at):,} of {ours.size:,}, first {theirs.flat[at[0]]} instead of {ours.flat[at[0]]} at {at[0]:,}"
    return (
        f"up to {difference(ours, theirs):.1e} off (at most {TOLERANCE:g}), smallest cosine {cosine(ours, theirs):.4f}"
    )
