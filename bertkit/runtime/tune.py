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
from pathlib import Path
from statistics import NormalDist
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
from bertkit.runtime.runner import Hidden, Runner
from bertkit.runtime.stream import example
from bertkit.spec import from_json, to_json

log = logging.getLogger("bertkit")

QUERY = 11
"""tokens of a short query"""
QUERIES = 8
"""that are asked one after the other in a turn"""
BULK = 4096
"""tokens of texts of mixed lengths, at least"""
SECONDS = 0.2
"""that all texts take on a fast engine, about: more of them on a small network"""
TURNS = 3
"""of setups that are compared, of which the fastest counts, for others may use the machine"""
LEADERS = 2
"""setups that are compared in turns when all were tried"""
FAR = 1.3
"""times the fastest: what takes so long is not among them"""
FORMAT = 2
"""of what is remembered; another one is measured anew"""


@dataclass(frozen=True)
class Trial:
    """What a setup took; or why it was not tried."""

    setup: Setup
    bulk: float = math.inf
    """seconds for the texts of mixed lengths"""
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
        """Of trials that have times."""
        timed = [trial for trial in trials if not trial.reason]
        assert timed, "torch is always tried"
        single, bulk = min(timed, key=lambda trial: trial.single), min(timed, key=lambda trial: trial.bulk)
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


def tune(network: NetworkModule, precision: str = FP32, tell: Callable[[Trial], None] | None = None) -> Measured:
    """Try every engine that takes the network, in every layout of threads, and remember what was found.

    Each is tried once; then those that lead are measured in turns, so that what disturbs one of them disturbs all.
    """
    trials: dict[Setup, Trial] = {}
    for setup, reason in candidates(network, precision):
        trials[setup] = Trial(setup, reason=reason) if reason else _tried(network, setup)
        if tell:
            tell(trials[setup])
    singles = _leaders({setup: trial.single for setup, trial in trials.items()})
    for setup, seconds in zip(singles, _in_turns(network, _ask, singles), strict=True):
        trials[setup] = replace(trials[setup], single=seconds)
    bulks = _leaders({setup: trial.bulk for setup, trial in trials.items()})
    for setup, seconds in zip(bulks, side_by_side(network, *bulks), strict=True):
        trials[setup] = replace(trials[setup], bulk=seconds)
    found = Measured(tuple(trials.values()), int(sum(map(len, _texts(network)))))
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
        if name == "torch" and threads > 1:
            continue  # its lanes have a core each, and all of them where a batch comes alone
        yield Setup(name, precision, workers=max(cores() // threads, 1), threads=threads)


def cores() -> int:
    """How many may be kept busy: those that are there, or fewer if torch was told so (OMP_NUM_THREADS)."""
    return min(machine.cores(), torch.get_num_threads())


def _tried(network: NetworkModule, setup: Setup) -> Trial:
    """Once, and for many texts with half of them."""
    try:
        runner = Runner(network, setup, setup)
        _warm(runner)
        return Trial(setup, 2 * _read(runner, step=2), min(_ask(runner), _ask(runner)))
    except Exception as error:  # whatever an engine raises, there are others
        log.debug("%s", setup, exc_info=True)
        return Trial(setup, reason=f"{type(error).__name__}: {error}")


def _leaders(seconds: Mapping[Setup, float]) -> list[Setup]:
    """The fastest setups; none where one is far ahead."""
    fastest = min(seconds.values())
    near = [setup for setup, taken in seconds.items() if math.isfinite(taken) and taken <= FAR * fastest]
    near.sort(key=lambda setup: seconds[setup])
    return near[:LEADERS] if len(near) > 1 else []


def side_by_side(network: NetworkModule, *setups: Setup) -> list[float]:
    """The seconds of each setup for the texts of mixed lengths, measured in turns: what disturbs one disturbs all."""
    return _in_turns(network, _read, setups)


def _in_turns(network: NetworkModule, work: Callable[[Runner], float], setups: Sequence[Setup]) -> list[float]:
    runners = [Runner(network, setup, setup) for setup in setups]
    for runner in runners:
        _warm(runner)
    turns = [[work(runner) for runner in runners] for _ in range(TURNS)]
    return [min(goes) for goes in zip(*turns, strict=True)]


def _warm(runner: Runner) -> None:
    """Build its engine, and show it texts: the first batches of a new length are slower in some."""
    _read(runner, step=4)
    _ask(runner)


def _ask(runner: Runner) -> float:
    """The seconds of a short query."""
    query = [_text(runner.network, QUERY)]
    begun = time.perf_counter()
    for _ in range(QUERIES):
        _run(runner, query)
    return (time.perf_counter() - begun) / QUERIES


def _read(runner: Runner, step: int = 1) -> float:
    """The seconds of the texts of mixed lengths, or of each second, third, … of them."""
    texts = _texts(runner.network)[::step]
    begun = time.perf_counter()
    _run(runner, texts)
    return time.perf_counter() - begun


def _run(runner: Runner, texts: Sequence[Example]) -> None:
    groups = [[texts[place] for place in group] for group in runner.lanes.groups([len(text) for text in texts])]
    for _ in runner.rows(_mean, groups, len(groups)):
        pass


def _mean(hidden: Hidden, batch: Batch) -> Tensor:
    return batch.layout.mean(hidden(batch))


def _texts(network: NetworkModule) -> list[Example]:
    """Mixed lengths as real collections have them, with a median of 25 and a long tail; for a time that can be told."""
    spec = network.spec.encoder
    token = 2.0 * sum((value.numel() for name, value in network.encoder.named_parameters() if value.dim() == 2), 0)
    token -= 2.0 * spec.embed.vocabulary * spec.embed.width  # whose table is read, not multiplied
    token *= len(spec.order) / max(len(spec.attentions), len(spec.feeds))  # blocks that several layers share
    wanted = max(BULK, int(SECONDS * 100e9 / max(token, 1.0)))
    wanted = min(wanted, 16 * BULK)
    count = wanted // 36  # tokens of such a text on average
    normal, most = NormalDist(math.log(25), 0.85), min(spec.longest or 256, 256)
    lengths = [math.exp(normal.inv_cdf((place + 0.5) / count)) for place in range(count)]
    return [_text(network, min(max(round(length), 6), most)) for length in lengths]


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
    if not isinstance(setup, Setup):
        raise ValueError("no setup")
    if "reason" in told:
        return Trial(setup, reason=str(told["reason"]))
    return Trial(setup, float(told["bulk"]), float(told["single"]))


def _place(network: NetworkModule, precision: str) -> Path:
    """A file for each shape of network, machine and set of versions."""
    spec = network.spec.encoder
    shape = to_json(replace(spec, embed=replace(spec.embed, vocabulary=1)))  # whose size costs no time
    packages = {kind.package: _installed(kind.package) for kind in ENGINES.values()}
    what = [FORMAT, precision, shape, machine.processor(), cores(), packages]
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
