"""Which engine is fastest for a network on this machine? Measured for some seconds, then remembered.

No engine wins everywhere: many texts want batches without padding on every core, a single query wants little overhead.
So two setups are chosen, one for each. Speed depends on the shape of a network, not on its weights, so that what was
measured once holds for every network of the shape, on the same processor with the same versions.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from itertools import cycle, islice
from pathlib import Path
from statistics import NormalDist, median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertkit import artifact, machine
from bertkit.batch import Batch, Example
from bertkit.errors import BertkitError
from bertkit.parts.network import NetworkModule
from bertkit.runtime.engines import ENGINES
from bertkit.runtime.engines.engine import FP32, Setup
from bertkit.runtime.excerpt import excerpt, sizes
from bertkit.runtime.runner import Hidden, Runner
from bertkit.runtime.stream import example
from bertkit.spec import from_json, to_json

log = logging.getLogger("bertkit")

QUERY = 11
"""tokens of a short query"""
QUERIES = 6
"""that are asked one after the other in a turn"""
MEDIAN, DEVIATION, LONGEST = 25, 0.85, 256
"""of the lengths of texts, and of the logarithm of lengths"""
TEXTS = 2000
"""in the collection that is read in part: so many that batches of like lengths hold little padding"""
SHARE = 4096
"""tokens that each core reads in a turn, some batches: one alone tells how a core begins, and torch begins slower than
it goes on; MOST times so many of a small network"""
SECONDS, MOST = 0.3, 16
"""that a turn takes on a fast engine, about"""
PLACES = (0.5, 0.2, 0.8, 0.35, 0.65)
"""of the batches of each turn in that collection: 0 has the longest texts, 1 the shortest"""
TURNS, FEW = len(PLACES), 3
"""of setups that are compared; FEW where they take long"""
ENOUGH = 3.0
"""seconds of comparing after which FEW turns must do"""
BEHIND = (1.3, 1.15, 1.05)
"""times the fastest of a turn: what never took less, in one turn, in two or in more, is not asked again"""
READ_BEHIND = (1.1, 1.05)
"""the same for many texts, whose turns are longer and differ less"""
PAUSE = 0.1
"""seconds before a turn: threads that wait for more to do by spinning have stopped by then"""
NEAR = 1.3
"""times the fastest: what takes no longer with a few layers is asked a query with all of them"""
EVEN = 0.95
"""of the fastest's speed is enough for torch, which holds no weights a second time and has nothing to build"""
SHARED = 1.1
"""times as long count many texts where cores share a batch: the one that is disturbed keeps the others waiting, in a
long run more than in the moments that are measured"""
FORMAT = 7
"""of what is remembered; another one is measured anew"""


@dataclass(frozen=True)
class Trial:
    """What a setup took; or why it was not tried."""

    setup: Setup
    bulk: float = math.inf
    """seconds for texts of mixed lengths"""
    single: float = math.inf
    """seconds for a short query"""
    reason: str = ""


@dataclass(frozen=True)
class Choice:
    """The fastest of some trials, for a single batch and for many."""

    single: Setup
    bulk: Setup

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> Choice:
        """Of trials that have times.

        Where they are as good as even, the engine that needs no weights of its own, and for many texts the layout with
        a batch on each core.
        """
        timed = [trial for trial in trials if not trial.reason]
        assert timed, "torch is always tried"
        price = {trial: 1.0 if ENGINES[trial.setup.engine].copies else EVEN for trial in timed}
        single = min(timed, key=lambda trial: price[trial] * trial.single)
        bulk = min(timed, key=lambda trial: price[trial] * trial.bulk * (SHARED if trial.setup.threads > 1 else 1.0))
        return cls(single.setup, bulk.setup)


@dataclass(frozen=True)
class Measured:
    """A table of trials, and how many tokens its texts had."""

    trials: tuple[Trial, ...]
    tokens: int

    def choice(self, engine: str | None = None, precision: str = FP32) -> Choice | None:
        """The fastest setups, of one engine or of all; None where there is none."""
        fitting = [
            trial
            for trial in self.trials
            if not trial.reason and trial.setup.precision == precision and engine in (None, trial.setup.engine)
        ]
        return Choice.of(fitting) if fitting else None


def tune(network: NetworkModule, precision: str = FP32, tell: Callable[[Setup, str], None] | None = None) -> Measured:
    """Try every engine that takes the network, in every layout of threads, and remember what was found.

    A few layers stand for all, but for a query where it is close. Setups are measured in turns, so that what disturbs
    one of them disturbs all, and those that are behind drop out. `tell` hears of each when it was built, and why it
    cannot be measured, or "".
    """
    few = excerpt(network.spec.encoder)
    trials: dict[Setup, Trial] = {}
    runners: list[Runner] = []
    for setup, reason in candidates(network, precision):
        runner = Runner(few, setup, setup)
        why = reason or _failure(runner)
        trials[setup] = Trial(setup, reason=why)
        if not why:
            runners.append(runner)
        if tell:
            tell(setup, why)
    layers, texts = _operations(network) / _operations(few), _amount(network) / _amount(few)
    bulks = [taken * layers * texts for taken in _in_turns(_read, runners, READ_BEHIND)]
    singles = [taken * layers for taken in _in_turns(_ask, runners, BEHIND)]
    if layers > 1:
        singles = _with_all_layers(network, runners, singles)
    for runner, single, bulk in zip(runners, singles, bulks, strict=True):
        trials[runner.bulk] = Trial(runner.bulk, bulk, single)
    found = Measured(tuple(trials.values()), _amount(network))
    _remember(network, precision, found)
    return found


def candidates(network: NetworkModule, precision: str = FP32) -> Iterator[tuple[Setup, str]]:
    """All setups, each with a reason if it cannot be tried; torch first."""
    for name, kind in ENGINES.items():
        reason = kind.refusal(network.spec.encoder) or kind.absence()
        if precision not in kind.precisions:
            reason = reason or f"it has no {precision}"
        layouts = [Setup(name, precision)] if reason else list(_layouts(name, precision))
        yield from ((setup, reason) for setup in layouts)


def _layouts(name: str, precision: str) -> Iterator[Setup]:
    """The ways to share the cores among batches, none of which takes more than there are."""
    for threads in sorted({1, 2, cores()} & set(range(1, cores() + 1))):
        if threads > 1 and not ENGINES[name].divides:
            continue
        yield ENGINES[name].arranged(precision, max(cores() // threads, 1), threads)


def cores() -> int:
    """How many may be kept busy: those that are there, or fewer if torch was told so (OMP_NUM_THREADS)."""
    return min(machine.cores(), torch.get_num_threads())


def _failure(runner: Runner) -> str:
    """Why an engine cannot be measured; "" where it was built, and has found its memory."""
    try:
        _ask(runner)
        _run(runner, _groups(runner, min(runner.bulk.tokens, SHARE), cores()))
    except Exception as error:  # whatever an engine raises, there are others
        log.debug("%s", runner.bulk, exc_info=True)
        return f"{type(error).__name__}: {error}"
    return ""


def _with_all_layers(network: NetworkModule, runners: Sequence[Runner], seconds: Sequence[float]) -> list[float]:
    """The seconds of a short query, where those that are near the fastest are measured with the network as it is.

    A query waits for memory, and engines differ in how long: of a few layers a part is still in the cache.
    """
    near = [place for place, taken in enumerate(seconds) if taken <= NEAR * min(seconds)]
    whole = [Runner(network, runners[place].single, runners[place].bulk) for place in near]
    asked = dict(zip(near, _in_turns(_ask, whole, BEHIND), strict=True))
    slowest = max(asked.values())
    return [asked.get(place, max(taken, slowest)) for place, taken in enumerate(seconds)]


def side_by_side(network: NetworkModule, *setups: Setup) -> list[float]:
    """The seconds of each setup for many texts, measured in turns: what disturbs one disturbs all."""
    runners = [Runner(network, setup, setup) for setup in setups]
    for runner in runners:
        _ask(runner)  # which builds its engine
    return _in_turns(_read, runners, (math.inf,))


def _in_turns(work: Callable[[Runner, int], float], runners: Sequence[Runner], behind: Sequence[float]) -> list[float]:
    """The seconds that each takes for a turn: times the fastest of a turn, in the middle of its turns.

    A moment in which the machine was slow, or its batches long, changes no such number; one that hit a single turn is
    not in the middle. What was `behind` in each of its turns so far, in the first by more than later, has no more.
    """
    begun = time.perf_counter()
    fastest: list[float] = []  # of each turn, seconds
    times: list[list[float]] = [[] for _ in runners]  # of the turns of each, times the fastest
    going: Sequence[int] = range(len(runners))
    while len(fastest) < FEW or (len(fastest) < TURNS and time.perf_counter() - begun < ENOUGH):
        taken: dict[int, float] = {}
        for place in going:
            time.sleep(PAUSE)
            taken[place] = work(runners[place], len(fastest))
        near = behind[min(len(fastest), len(behind) - 1)]
        fastest.append(min(taken.values()))
        for place, seconds in taken.items():
            times[place].append(seconds / fastest[-1])
        going = [place for place in going if min(times[place]) < near]
        if len(going) == 1:
            break
    return [median(turns) * median(fastest) for turns in times]


def _ask(runner: Runner, turn: int = 0) -> float:
    """The seconds of a short query, the same in every turn, on the path of a text that comes alone."""
    query, taken = _text(runner.network, QUERY), []
    for _ in range(1 + QUERIES):  # the first may have to build an engine
        begun = time.perf_counter()
        runner.states(query)
        taken.append(time.perf_counter() - begun)
    return median(taken[1:])


def _read(runner: Runner, turn: int = 0) -> float:
    """The seconds of texts of mixed lengths, others in every turn: some engines are slower with a new length."""
    amount = _amount(runner.network)
    size = min(runner.bulk.tokens, amount // cores())
    groups = _groups(runner, size, amount // size, turn)
    return _run(runner, groups) * amount / _tokens(groups)


def _run(runner: Runner, groups: Sequence[list[Example]]) -> float:
    begun = time.perf_counter()
    for _ in runner.rows(_mean, groups, len(groups)):
        pass
    return time.perf_counter() - begun


def _mean(hidden: Hidden, batch: Batch) -> Tensor:
    return batch.layout.mean(hidden(batch))


def _groups(runner: Runner, tokens: int, count: int, turn: int = 0) -> list[list[Example]]:
    """Batches of so many tokens as a large collection of texts has them, neighbours in length.

    Each has its share of padding: of few texts, whose neighbours differ much in length, batches would hold far more.
    And as neighbours take as long as each other, cores end together, as they do where batches are many.
    """
    network = runner.network
    normal, most = NormalDist(math.log(MEDIAN), DEVIATION), min(network.spec.encoder.longest or LONGEST, LONGEST)
    quantiles = (math.exp(normal.inv_cdf((place + 0.5) / TEXTS)) for place in range(TEXTS))
    lengths = [min(max(round(length), 6), most) for length in quantiles]
    groups = list(replace(runner.lanes, count=1, tokens=tokens).groups(lengths))
    begin = round(PLACES[turn] * max(len(groups) - count, 0))
    picked = islice(cycle(groups), begin, begin + count)  # from the first again, where there are many cores
    return [[_text(network, lengths[index]) for index in group] for group in picked]


def _amount(network: NetworkModule) -> int:
    """Tokens of a turn: a share for each core, or many for a small network."""
    once = cores() * SHARE
    return once * min(max(round(SECONDS * 100e9 / (_operations(network) * once)), 1), MOST)


def _tokens(groups: Sequence[list[Example]]) -> int:
    return sum(len(text) for group in groups for text in group)


def _operations(network: NetworkModule) -> float:
    """Of the matrices, for each token."""
    return 2.0 * sum(sizes(network.spec.encoder))


def _text(network: NetworkModule, length: int) -> Example:
    vocabulary, longest = network.spec.encoder.embed.vocabulary, network.spec.encoder.longest
    length = min(length, longest or length)
    return example(np.random.default_rng(length).integers(vocabulary // 2, vocabulary, length).tolist())


def remembered(network: NetworkModule, precision: str = FP32) -> Measured | None:
    """What was measured before for such a network here; None where nothing was."""
    try:
        told = json.loads(_place(network, precision).read_bytes())
        return Measured(tuple(_trial(one) for one in told["trials"]), int(told["tokens"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # what somebody damaged is measured again
        return None


def _remember(network: NetworkModule, precision: str, found: Measured) -> None:
    trials = [
        {"setup": to_json(one.setup), "bulk": one.bulk, "single": one.single}
        if not one.reason
        else {"setup": to_json(one.setup), "reason": one.reason}
        for one in found.trials
    ]
    place = _place(network, precision)
    try:
        with artifact.file(place, overwrite=True) as file:
            file.write(json.dumps({"tokens": found.tokens, "trials": trials}, indent=1).encode())
    except (BertkitError, OSError) as error:  # a home that cannot be written to costs time, not the work
        log.warning("what was measured cannot be remembered: %s", error)


def _trial(told: Mapping[str, Any]) -> Trial:
    setup = from_json(told["setup"])
    if not isinstance(setup, Setup) or setup.engine not in ENGINES:
        raise ValueError("no setup")
    if "reason" in told:
        return Trial(setup, reason=str(told["reason"]))
    return Trial(setup, float(told["bulk"]), float(told["single"]))


def _place(network: NetworkModule, precision: str) -> Path:
    """A file for each shape of network, machine and set of versions."""
    spec = network.spec.encoder
    shape = to_json(replace(spec, embed=replace(spec.embed, vocabulary=1)))  # whose size costs no time
    packages = {kind.package: _installed(kind.package) for kind in ENGINES.values()}
    what = [FORMAT, precision, shape, machine.processor(), sorted(machine.instructions()), cores(), packages]
    key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:24]
    return home() / "engines" / f"{key}.json"


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def home() -> Path:
    """Where things are remembered: BERTKIT_CACHE, or the user's cache."""
    told = os.environ.get("BERTKIT_CACHE")
    return Path(told) if told else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bertkit"
