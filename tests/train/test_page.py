"""The page of a run: what it says stands in the journal, whatever state the run is in."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import BertkitError
from bertkit.train import page as pages
from bertkit.train import run as runs
from bertkit.train.page import page
from tests.report.test_report import Reader

START = {"kind": "start", "step": 0, "unigram": 7.125, "parameters": 4_385_000}
RECIPE = """output = "first"
seed = 3
objective = [{ part = "Nsp" }]

[data]
corpus = "my shards"

[train]
steps = 40
optimizer = { part = "Adam", rate = 0.001 }
phases = [{ rows = 32 }]

[model]
size = "bert-tiny"
weights = ""
"""


def step(number: int, mlm: float, **values: Any) -> dict[str, Any]:
    measured = {"losses": {"mlm": mlm, "next": 0.69}, "right": {"mlm": 0.25, "next": 0.5}, "loss": mlm + 0.69}
    course = {"norm": 1.5, "rate": 1e-4 * number, "tokens": 3000, "tokens_per_second": 12_345.6, "waited": 0.01}
    return {"kind": "step", "step": number, **measured, **course, **values}


def samples(number: int, guesses: list[tuple[str, float]]) -> dict[str, Any]:
    one = {"text": "the [MASK] sat on <b>", "true": ["cat"], "guesses": [guesses]}
    return {"kind": "samples", "step": number, "samples": [one]}


def written(run: Path, *lines: dict[str, Any], end: str = "") -> Path:
    run.mkdir()
    (run / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    (run / "facts.json").write_text('{"bertkit": "0.9", "torch": "2.13", "corpus": {"tokens": 240006}}', "utf-8")
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + end, encoding="utf-8")
    return run


def test_names_are_those_of_a_run() -> None:
    assert (pages.RECIPE, pages.FACTS, pages.MODEL) == (runs.RECIPE, runs.FACTS, runs.MODEL)


def test_a_finished_run(tmp_path: Path) -> None:
    run = written(
        tmp_path / "first",
        START,
        {"kind": "held-out", "step": 0, "losses": {"mlm": 9.0, "next": 0.7}, "right": {"mlm": 0.0, "next": 0.5}},
        samples(0, [("the", 0.1), (",", 0.05)]),
        step(10, 8.5),
        step(20, 7.5),
        samples(20, [("the", 0.1), ("cat", 0.05)]),
        step(30, 6.5),
        step(40, 5.5),
        {"kind": "held-out", "step": 40, "losses": {"mlm": 5.75, "next": 0.65}, "right": {"mlm": 0.31, "next": 0.6}},
        samples(40, [("cat", 0.4567), ("the", 0.05)]),
    )
    (run / "model").mkdir()
    html = page(run).html()
    reader = Reader(html)
    assert reader.said("h1") == ["Run first"]
    assert "bert-tiny on my shards, seed 3. Made with bertkit 0.9, torch 2.13." in reader.said("p")
    assert reader.said("dd") == ["40", "40", "4,385,000", "12,346"]
    assert [said for said in reader.said("p") if "bertkit fill" in said] == [
        f" Finished. Next: bertkit fill {run / 'model'} 'a text with a [MASK] in it'"
    ]
    assert any("masked tokens is 5.75; knowing only frequencies gives 7.12" in said for said in reader.said("p"))
    cells = "".join(f'<td class="number">{cell}</td>' for cell in ("7.000", "25.0%", "5.750", "31.0%"))
    assert f'<th scope="row">Masked tokens</th>{cells}' in html
    assert "<title>frequencies alone: 7.125</title>" in html
    assert "<title>one answer for all: 0.6931</title>" in html
    assert "<title>learned from: 6.5 at 30 steps</title>" in html
    assert "<title>held out: 5.75 at 40 steps</title>" in html
    titles = reader.said("figcaption")
    assert titles[:4] == [
        f"{question}: {what}" for question in ("Masked tokens", "Next sentence") for what in ("loss", "right answers")
    ]
    assert len(titles) == 8
    row = "<td>cat</td><td>the 10%</td><td>the 10% · cat 5.0%</td><td>✓ cat 46%</td>"
    assert f'<th scope="row">the [MASK] sat on &lt;b&gt;</th>{row}' in html
    assert '<th scope="row">train.optimizer</th><td>Adam</td>' in html
    assert '<th scope="row">train.phases[0].rows</th><td>32</td>' in html
    assert '<th scope="row">corpus.tokens</th><td>240,006</td>' in html
    assert " No alarm was given." in reader.said("p")


def test_alarms_worst_first_and_once_each(tmp_path: Path) -> None:
    def alarm(number: int, name: str) -> dict[str, Any]:
        return {"kind": "alarm", "step": number, "name": name, "message": f"words of {name} {number}."}

    run = written(tmp_path / "run", START, step(5, 9.0), alarm(5, "starved"), alarm(7, "nan"), alarm(1005, "starved"))
    notes = [said.strip() for said in Reader(page(run).html()).said("p") if "words of" in said]
    assert notes == [
        "nan at step 7. words of nan 7.",
        "starved at step 1,005 (given 2 times at 5, 1,005). words of starved 1005.",
    ]


def test_a_run_that_is_under_way_and_whose_last_line_is_cut(tmp_path: Path) -> None:
    run = written(tmp_path / "run", START, step(1, 9.25), end='{"kind": "step", "step": 2, "loss": 9.')
    html = page(run).html()
    assert f" Step 1 of 40 so far. If the run is not at work any more, this goes on: bertkit pretrain {run}" in html
    assert "<title>learned from: 9.25 at 1 steps</title>" in html
    assert "2 steps" not in html
    assert "makes no use of the words around a gap" in html
    assert "No sentences were filled in" in html


def test_a_run_that_never_came_to_a_step(tmp_path: Path) -> None:
    assert "No step is written yet." in page(written(tmp_path / "one", START)).html()
    run = written(tmp_path / "two")
    for name in ("log.jsonl", "facts.json"):
        (run / name).unlink()
    assert "No step is written yet." in page(run).html()


def test_a_journal_with_gaps_nan_and_strange_lines(tmp_path: Path) -> None:
    """A run that went on without forgetting tells a step twice: the last word counts."""
    strange: list[Any] = [7, {"kind": "step"}, {"kind": "step", "step": "x"}, {"kind": "samples", "step": 1}]
    run = written(
        tmp_path / "run", *strange, step(10, 8.0), step(30, math.nan), step(20, 7.0), {"kind": "step", "step": 25}
    )
    with (run / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(step(20, 6.75, norm=math.inf)) + "\nnot json\n")
    html = page(run).html()
    Reader(html)
    assert "<title>learned from: 6.75 at 20 steps</title>" in html
    assert "at 25 steps" not in html
    assert '<th scope="row">Masked tokens</th><td class="number">–</td>' in html  # what it came to is NaN


def test_many_lines_are_smoothed_and_no_line_is_a_problem(tmp_path: Path) -> None:
    losses = [5.0 + (number % 2) for number in range(1, 1001)]
    run = written(tmp_path / "run", START, *(step(number, loss) for number, loss in enumerate(losses, 1)))
    html = page(run).html()
    assert "learned from (middle of 20 lines of the log): 5.5 at 1,000 steps" in html
    assert len(html) < 1_500_000


def test_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"nowhere does not exist\. Give the output of a bertkit pretrain"):
        page(tmp_path / "nowhere")
    written(tmp_path / "first", START)
    with pytest.raises(BertkitError, match=r"is no run: it has no log.jsonl and no recipe.toml. Runs in it: .*first"):
        page(tmp_path)
