"""Alarms: each is given for the series it is meant for, once, and none for a healthy run."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from bertkit.train.health import CALM, Alarm, Health

UNIGRAM, WARMUP, STEPS = 7.0, 500, 12_000
Line = dict[str, Any]
Change = Callable[[Line], Any]


def healthy(every: int = 10, change: Change | None = None, **start: float) -> list[Line]:
    """A run as the loop writes it: the loss falls to frequencies during warm-up, stays a while, and falls on."""
    chance = random.Random(0)
    lines: list[Line] = [{"kind": "start", "step": 0, "unigram": UNIGRAM, "parameters": 4_400_000, **start}]
    for step in range(every, STEPS + 1, every):
        late = 1 / (1 + math.exp((1500 - step) / 200))
        mlm = 7.0 + 3.3 * math.exp(-step / 80) - 3.0 * late + chance.gauss(0, 0.15)
        following = 0.69 - 0.3 * late + chance.gauss(0, 0.05)
        line: Line = {
            "kind": "step",
            "step": step,
            "losses": {"mlm": mlm, "next": following},
            "right": {"mlm": 0.3 * late, "next": 0.5 + 0.35 * late + chance.gauss(0, 0.09)},
            "norm": 1.2 + 3 * math.exp(-step / 200) + abs(chance.gauss(0, 0.4)),
            "rate": 1e-4 * min(step / WARMUP, (STEPS - step) / (STEPS - WARMUP)),
            "tokens": 2885,
            "tokens_per_second": 12_000.0,
            "waited": 0.9 if step % 500 == 0 else 0.02,  # one slow batch is no hunger
        }
        if change:
            change(line)
        lines.append({"loss": sum(line["losses"].values()), **line})
    return lines


def heard(lines: Iterable[Line]) -> list[tuple[int, Alarm]]:
    health = Health()
    return [(line["step"], alarm) for line in lines for alarm in health.hear(line)]


def named(lines: Iterable[Line]) -> list[tuple[int, str]]:
    return [(step, alarm.name) for step, alarm in heard(lines)]


def from_step(first: int, **values: Any) -> Change:
    """Other values from a step on; tables are changed key by key."""

    def change(line: Line) -> None:
        for name, value in values.items():
            if line["step"] >= first:
                new = value(line["step"]) if callable(value) else value
                line[name] = {**line[name], **new} if isinstance(new, dict) else new

    return change


@pytest.mark.parametrize("every", [1, 10, 100])
def test_a_healthy_run_gives_no_alarm(every: int) -> None:
    """Nor does its stay at the loss of frequencies, which all runs pass, on the way down."""
    assert heard(healthy(every, unknown=0.004, duplicates=0.01)) == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"losses": {"mlm": math.nan}}, "The loss is nan at step 3,000"),
        ({"norm": math.inf}, "The length of the gradient is inf at step 3,000"),
    ],
)
def test_what_is_not_finite(values: Line, said: str) -> None:
    (found,) = heard(healthy(change=from_step(3000, **values)))
    assert (found[0], found[1].name) == (3000, "nan")
    assert found[1].message.startswith(said)
    assert "train.optimizer.rate=3e-05" in found[1].message


def test_divergence() -> None:
    """From 4.4 the loss climbs by 1 in 500 steps."""
    climbing = from_step(6000, losses=lambda step: {"mlm": 4.0 + (step - 6000) / 500})
    ((step, alarm),) = heard(healthy(change=climbing))
    assert alarm.name == "divergence"
    assert 6200 < step < 6600
    assert alarm.message.startswith("The loss is 4.")
    assert "train.schedule.warmup" in alarm.message


def test_a_loss_that_jumps_once_is_no_divergence() -> None:
    def jump(line: Line) -> None:
        if line["step"] in (6000, 6010, 6020):
            line["losses"]["mlm"] = 50.0

    assert heard(healthy(change=jump)) == []


def test_another_phase_begins_anew() -> None:
    """Longer inputs may have a higher loss for a while: that is only held against a run that did not change them."""
    lines = healthy(change=from_step(6010, losses={"mlm": 5.0}))
    place = next(place for place, line in enumerate(lines) if line["step"] == 6000) + 1
    assert [name for _, name in named(lines)] == ["divergence"]
    assert named([*lines[:place], {"kind": "phase", "step": 6000}, *lines[place:]]) == []


def test_a_gradient_that_jumps() -> None:
    """Told once for neighbours, and again when it comes back after it was over."""
    jumps = {5000: 40.0, 5010: 30.0, 5010 + 10 * CALM + 20: 60.0}
    lines = healthy(change=lambda line: line.update(norm=jumps.get(line["step"], line["norm"])))
    found = heard(lines)
    assert [(step, alarm.name) for step, alarm in found] == [(5000, "gradient"), (5530, "gradient")]
    assert "The gradient of step 5,000 is 40 long, " in found[0][1].message
    assert "bertkit corpus audit" in found[0][1].message


@pytest.mark.parametrize(("level", "said"), [(7.1, "close to 7.00"), (6.9, "close to 7.00"), (7.6, "no better than 7")])
@pytest.mark.parametrize("every", [1, 10])
def test_a_plateau_at_the_unigram_loss(every: int, level: float, said: str) -> None:
    """A thousand steps after the warm-up, which ends at step 500."""
    found = heard(healthy(every, from_step(400, losses=lambda step: {"mlm": level + 0.1 * math.sin(step)})))
    assert [alarm.name for _, alarm in found] == ["plateau"]
    assert 1500 <= found[0][0] <= 1800
    assert said in found[0][1].message
    assert "repeated lines (bertkit corpus audit TEXTS" in found[0][1].message
    assert "too small a batch" in found[0][1].message


def test_no_plateau_during_a_long_warm_up_or_without_a_unigram() -> None:
    warming = from_step(0, losses={"mlm": 7.0}, rate=lambda step: step * 1e-8)
    assert heard(healthy(change=warming)) == []
    assert heard(healthy(change=from_step(0, losses={"mlm": 7.0}))[1:]) == []


def test_a_loader_that_starves_the_model() -> None:
    ((step, alarm),) = heard(healthy(change=from_step(2000, waited=0.4)))
    assert alarm.name == "starved"
    assert 2050 <= step <= 2150
    assert "data.workers=2" in alarm.message


def test_one_answer_for_all_pairs() -> None:
    """Judged over 3,000 steps, for single steps say little."""
    chance = random.Random(1)
    found = heard(healthy(change=from_step(0, right=lambda _: {"next": 0.5 + chance.gauss(0, 0.09)})))
    assert [(step, alarm.name) for step, alarm in found] == [(3500, "one-answer")]
    assert found[0][1].message.startswith("Next-sentence prediction was right in ")
    order = healthy(change=lambda line: line["right"].update(order=0.51))
    assert "Sentence-order" in heard(order)[0][1].message


def test_what_the_corpus_is_like() -> None:
    found = heard(healthy(unknown=0.08, duplicates=0.3))
    assert [(step, alarm.name) for step, alarm in found] == [(0, "unknown"), (0, "copies")]
    assert "8.0% of the corpus is [UNK]" in found[0][1].message
    assert "bertkit vocab train TEXTS" in found[0][1].message
    assert "30.0% of the sentences" in found[1][1].message


def test_lines_of_other_kinds_and_lines_that_say_little() -> None:
    lines: list[Line] = [{}, {"kind": "held-out", "step": 0, "losses": {}}, {"kind": "step", "step": 1}]
    lines += [{"kind": "step", "step": step, "losses": None, "norm": None} for step in range(2, 5000)]
    assert heard(lines) == []


def test_replaying_equals_feeding() -> None:
    """A run that was killed and goes on gives the alarms of one that was not, and none twice."""
    sick = from_step(7000, losses=lambda step: {"mlm": 7.0 + max(step - 9000, 0) / 1000}, waited=0.4)
    lines = healthy(change=sick, unknown=0.2)
    jumping = [{**line, "norm": 90.0} if line["step"] % 900 == 0 and line["step"] else line for line in lines]
    jumping[-50]["loss"] = math.nan
    whole = heard(jumping)
    names = {alarm.name for _, alarm in whole}
    assert names == {"unknown", "gradient", "starved", "divergence", "plateau", "nan"}
    for cut in (1, 2, 90, 91, 500, 707, 750, 1000, 1160):
        health = Health.replay(jumping[:cut])
        assert health.hear(jumping[0]) == []  # a start that is written again
        rest = [(line["step"], alarm) for line in jumping[cut:] for alarm in health.hear(line)]
        assert rest == [(step, alarm) for step, alarm in whole if step > jumping[cut - 1]["step"]]
