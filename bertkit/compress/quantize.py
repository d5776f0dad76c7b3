"""int8 behind two gates: a quantised model is kept if it is faster on this machine and answers as well as before.

What is quantised are the matrices of the encoder, each row with its own scale, and what they multiply, each token with
its own. States are centred first (`center`), by texts like those the model will see. Engines are tried in the order of
their speed, until one is right enough; where none is, the matrices that suffer most stay in fp32.
"""

from __future__ import annotations

import copy
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from bertkit import artifact
from bertkit.batch import Batch, collate
from bertkit.compress.center import center
from bertkit.compress.exam import Exam, Subject, exam, model_of, opened
from bertkit.compress.sample import SENTENCES
from bertkit.compress.suffering import suffering
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.parts.network import NetworkModule
from bertkit.runtime import tune
from bertkit.runtime.engines import ENGINES
from bertkit.runtime.engines.engine import FP32, INT8
from bertkit.runtime.stream import example
from bertkit.runtime.tune import Measured
from bertkit.tasks.card import card
from bertkit.tasks.finetuned import Finetuned
from bertkit.weights import int8
from bertkit.weights.int8 import CONFIG, Quantization

log = logging.getLogger("bertkit")

LOSS = 0.01
"""the share of a score that may be lost"""
TOKENS = 3000
"""that states are centred by"""
REPORT = "quantization.json"
"""the table beside the weights"""


@dataclass(frozen=True)
class Line:
    """A model in the table."""

    name: str
    megabytes: float
    tokens_per_second: float
    score: float
    engine: str


@dataclass(frozen=True)
class Verdict:
    """What was found, and why it is not kept, if it is not."""

    measure: str
    before: Line
    after: Line
    kept_in_fp32: tuple[str, ...]
    refusals: tuple[str, ...]
    path: Path | None = None

    @property
    def lost(self) -> float:
        """The share of the score that is gone; below 0 where it grew."""
        return (self.before.score - self.after.score) / max(abs(self.before.score), 1e-9)

    def told(self) -> dict[str, Any]:
        """For a program to read."""
        facts = {"lost": self.lost, "faster": self.after.tokens_per_second / self.before.tokens_per_second}
        rows = {"before": asdict(self.before), "after": asdict(self.after)}
        kept = {"kept_in_fp32": list(self.kept_in_fp32), "refusals": list(self.refusals)}
        return {"measure": self.measure, **rows, **facts, **kept}


def quantize(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    data: Path | None = None,
    loss: float = LOSS,
    calibrate: bool = True,
    force: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None] = log.info,
) -> Verdict:
    """Quantise a model, measure it beside what it was, and keep it in `output` if it passes both gates, or by force.

    `data` are rows as the model was learned from, pairs of sentences with scores, or texts; without it sentences of our
    own stand in. `calibrate` centres states by them.
    """
    artifact.require_free(output, overwrite=overwrite)
    subject = _floating(source)
    judge, texts = exam(subject, data, SENTENCES)
    say(f"judged by {judge.measure}" + (f" on {data}" if data else ", on sentences of our own: give --data for yours"))
    network = copy.deepcopy(model_of(subject).network)
    if calibrate and not center(network, _batches(model_of(subject), texts)):
        say("its layers share their matrices, so that its states stay as they are")
    say("measuring speed in fp32 and in int8")
    speeds = {precision: _speeds(model_of(subject).network, precision) for precision in (FP32, INT8)}
    before = _line("fp32", subject, _bytes(subject), speeds[FP32], None, judge.score(subject))
    made, after = _best(subject, network, judge, speeds[INT8], before.score * (1 - loss), texts, say)
    kept = Quantization.of(model_of(made).config)
    assert kept is not None, "it was just made so"
    before, after = _timed(model_of(subject).network, speeds, before, after, kept)
    verdict = Verdict(judge.measure, before, after, kept.kept, ())
    verdict = replace(verdict, refusals=tuple(_refusals(verdict, loss)))
    if verdict.refusals and not force:
        return verdict
    return replace(verdict, path=_save(made, output, verdict, overwrite))


def _best(
    subject: Subject,
    network: NetworkModule,
    judge: Exam,
    speeds: Measured,
    wanted: float,
    texts: Sequence[str],
    say: Callable[[str], None],
) -> tuple[Subject, Line]:
    """The fastest that is right enough; else the most right."""
    tried: list[tuple[Subject, Line]] = []
    for quantization in _quantizations(network, speeds, lambda: _batches(model_of(subject), texts)):
        made = _changed(subject, network, quantization)
        line = _line("int8", made, _bytes(made), speeds, quantization.engine, judge.score(made))
        say(f"{quantization.engine}, {len(quantization.kept)} matrices kept in fp32: {judge.measure} {line.score:.4f}")
        tried.append((made, line))
        if line.score >= wanted:
            return tried[-1]
    return max(tried, key=lambda one: one[1].score)


def _quantizations(
    network: NetworkModule, speeds: Measured, batches: Callable[[], Iterator[Batch]]
) -> Iterator[Quantization]:
    """Ways to quantise, the fastest first; then with more and more matrices in fp32, up to half of them."""
    fast = sorted((trial for trial in speeds.trials if not trial.reason), key=lambda trial: trial.bulk)
    engines = list(dict.fromkeys(trial.setup.engine for trial in fast))
    if not engines:
        reasons = "; ".join(f"{trial.setup.engine}: {trial.reason}" for trial in speeds.trials)
        raise BertkitError(f"no engine here computes this model in int8: {reasons}")
    yield from map(Quantization, engines)
    keeping = next((engine for engine in engines if ENGINES[engine].keeps), None)
    if keeping is None:
        return
    ranked = suffering(network, batches())
    count = 1
    while count <= len(ranked) // 2:
        yield Quantization(keeping, tuple(sorted(ranked[:count])))
        count *= 2


def _refusals(verdict: Verdict, loss: float) -> Iterator[str]:
    if not verdict.lost <= loss:  # NaN too
        yield f"it loses {verdict.lost:.1%} of {verdict.measure}, more than {loss:.1%}"
    if not verdict.after.tokens_per_second > verdict.before.tokens_per_second:
        share = verdict.after.tokens_per_second / verdict.before.tokens_per_second
        yield f"it is slower here: {share:.2f} times the speed of fp32"


def _floating(source: str | os.PathLike[str]) -> Subject:
    subject = opened(source)
    if Quantization.of(model_of(subject).config):
        raise BertkitError(f"{os.fspath(source)} is quantised already: give the model that it was made from")
    return subject


def _changed(subject: Subject, network: NetworkModule, quantization: Quantization) -> Subject:
    """The same with another network, rounded as it will be stored, and computed in int8."""
    model, network = model_of(subject), copy.deepcopy(network)
    with torch.no_grad():
        for name, value in network.named_parameters():
            if quantization.takes(name, value):
                value.copy_(int8.restored(*int8.quantized(value, not int8.is_table(name))))
    made = Model(network, model.tokenizer, model.sentence, {**model.config, CONFIG: quantization.told()})
    made.limit = model.limit
    made.use()
    return replace(subject, model=made, path=None) if isinstance(subject, Finetuned) else made


def _speeds(network: NetworkModule, precision: str) -> Measured:
    return tune.remembered(network, precision) or tune.tune(network, precision)


def _timed(
    network: NetworkModule, speeds: Mapping[str, Measured], before: Line, after: Line, kept: Quantization
) -> tuple[Line, Line]:
    """Both with their speeds in turns, by which the gate decides: earlier ones are of other moments."""
    floats, whole = speeds[FP32].choice(), speeds[INT8].choice(kept.engine, INT8)
    assert floats is not None and whole is not None, "both were measured"  # noqa: PT018
    setups = floats.bulk, replace(whole.bulk, kept=kept.kept)
    rates = [speeds[FP32].tokens / seconds for seconds in tune.side_by_side(network, *setups)]
    return replace(before, tokens_per_second=rates[0]), replace(after, tokens_per_second=rates[1])


def _line(name: str, subject: Subject, size: int, speeds: Measured, engine: str | None, score: float) -> Line:
    timed = [trial for trial in speeds.trials if not trial.reason and engine in (None, trial.setup.engine)]
    best = min(timed, key=lambda trial: trial.bulk)
    return Line(name, size / 1e6, speeds.tokens / best.bulk, score, str(best.setup))


def _bytes(subject: Subject) -> int:
    """Of the weights on disk."""
    model = model_of(subject)
    with tempfile.TemporaryDirectory() as home:
        model.save(Path(home) / "model")
        return sum(path.stat().st_size for path in (Path(home) / "model").glob("*.safetensors"))


@torch.no_grad()
def _batches(model: Model, texts: Sequence[str]) -> Iterator[Batch]:
    """The texts one after the other, up to some thousand tokens; every so many of them, that all kinds are there."""
    step = max(len(texts) * 16 // TOKENS, 1)
    left = TOKENS
    for ids in model.tokenizer.ids_of_many(list(islice(texts, 0, None, step))[:TOKENS]):
        own = ids[: min(model.limit, left)]
        if not own:
            return
        yield collate([example(own)])
        left -= len(own)


def _save(made: Subject, output: str | os.PathLike[str], verdict: Verdict, overwrite: bool) -> Path:
    text = json.dumps(verdict.told(), indent=1, ensure_ascii=False, default=str) + "\n"
    if isinstance(made, Finetuned):
        return made.save(output, card(made), overwrite, beside={REPORT: text})
    return made.save(output, overwrite, beside={REPORT: text})
