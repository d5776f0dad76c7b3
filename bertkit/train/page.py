"""A run as one page for a browser: what it came to, its curves, what it fills in, and what it was made with.

A run may be under way, stopped or finished: the page shows what its directory holds so far. Only files are read, so
that a page is made in a moment, beside a run that is at work.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from bertkit.errors import BertkitError
from bertkit.objectives.mask import MARK
from bertkit.report import Column, Facts, Level, Line, Lines, Note, Page, Part, Section, Table, Text
from bertkit.report.number import is_number, shown
from bertkit.text import Tokenizer
from bertkit.text.files import read_object, read_text
from bertkit.train.health import NEAR, PAIRS, WHILE
from bertkit.train.journal import NAME as JOURNAL
from bertkit.train.journal import lines

RECIPE, FACTS, MODEL, BEST = "recipe.toml", "facts.json", "model", "best"
QUESTIONS = {
    **{MARK: "Masked tokens", "next": "Next sentence", "order": "Sentence order", "replaced": "Replaced tokens"},
    **{"label": "Labels", "labels": "Labels, each for itself", "number": "Numbers (squared error)"},
    **{"start": "Where answers begin", "end": "Where answers end", "choice": "Choices"},
    **{"tag": "Tags of words", "tags": "Tags of sentences"},
}
ONE_ANSWER, FREQUENCIES = "one answer for all", "frequencies alone"
SERIOUS = ("nan", "divergence", "plateau", "unknown")
"""alarms after which a run is seldom worth its time"""
MOST_RAW = 200
"""points of a curve that are drawn as they are"""
MOST_SAMPLED = 5
"""steps whose guesses stand beside each other"""

Entry = Mapping[str, Any]


def page(run: Path) -> Page:
    """The page of a run's directory."""
    require_run(run)
    told = _Told(run)
    recipe, facts = _recipe(run / RECIPE), _facts(run / FACTS)
    sections = [
        Section("At a glance", [_glance(told, recipe), *_answers(told), *_notes(told, run, recipe)]),
        *([Section("Exams", _exams(told))] if told.exams else []),
        *(Section(QUESTIONS.get(name, name), _question(told, name)) for name in told.questions),
        Section("How it went", _course(told)),
        *([] if told.exams else [Section("What it fills in", _samples(told.samples))]),
        Section("Recipe", [_table("Every setting, by the key that changes it", recipe, _setting)]),
        Section("Machine and versions", [_table("What the run was made with", facts, shown)]),
        Section("How this was measured", [Text(METHOD)]),
    ]
    return Page(f"Run {run.resolve().name}", sections, _intro(recipe, facts))


def require_run(run: Path) -> None:
    """Refuse what no run wrote, and say where runs are."""
    if any((run / name).is_file() for name in (JOURNAL, RECIPE)):
        return
    found = sorted(str(path.parent) for path in run.glob(f"*/{RECIPE}"))[:5] if run.is_dir() else []
    what = "is no run: it has no log.jsonl and no recipe.toml" if run.exists() else "does not exist"
    how = f"Runs in it: {', '.join(found)}" if found else "Give the output of a bertkit pretrain or finetune"
    raise BertkitError(f"{run} {what}. {how}")


class _Told:
    """The lines of a journal by what they tell, each step once."""

    def __init__(self, run: Path) -> None:
        found = [line for line in lines(run / JOURNAL) if isinstance(line, dict) and _is_step(line.get("step"))]
        self.start: Entry = next((line for line in reversed(found) if line.get("kind") == "start"), {})
        self.alarms = [line for line in found if line.get("kind") == "alarm"]
        self.steps, self.held_out, self.samples = (_by_step(found, kind) for kind in ("step", "held-out", "samples"))
        self.exams = _by_step(found, "exam")
        self.ended = any(line.get("kind") == "end" for line in found)
        named = {name: None for line in (*self.steps, *self.held_out) for name in _entries(line, "losses")}
        self.questions = sorted(named, key=lambda name: (name not in QUESTIONS, [*QUESTIONS, name].index(name)))

    @property
    def step(self) -> int:
        """How far it came."""
        return max((int(line["step"]) for line in (*self.steps, *self.held_out)), default=0)

    def late(self, *names: str) -> float:
        """The middle of the last values; NaN where the very last is no number."""
        values = [_value(line, *names) for line in self.steps[-WHILE:]]
        return _middles(values)[-1] if values else math.nan

    def examined(self, *names: str) -> float:
        """The value of the last exam."""
        return _value(self.held_out[-1], *names) if self.held_out else math.nan


def _is_step(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _by_step(found: Iterable[Entry], kind: str) -> list[Entry]:
    table = {line["step"]: line for line in found if line.get("kind") == kind}
    return [table[step] for step in sorted(table)]


def _entries(line: Entry, name: str) -> Entry:
    value = line.get(name)
    return value if isinstance(value, dict) else {}


def _value(line: Entry, *names: str) -> float:
    """A number of a line, NaN where there is none."""
    *tables, last = names
    for name in tables:
        line = _entries(line, name)
    value = line.get(last)
    return float(value) if is_number(value) else math.nan


def _middles(values: Sequence[float]) -> list[float]:
    """Of each value and those before it, a while in all, the middle; what is not finite stays a gap.

    >>> _middles([3.0, 1.0, math.nan, 2.0])
    [3.0, 2.0, nan, 2.0]
    """
    window: deque[float] = deque(maxlen=WHILE)
    found = []
    for value in values:
        if math.isfinite(value):
            window.append(value)
        found.append(median(window) if math.isfinite(value) else math.nan)
    return found


def _recipe(path: Path) -> Entry:
    if not path.is_file():
        return {}
    with suppress(tomllib.TOMLDecodeError):
        return tomllib.loads(read_text(path))
    return {}


def _facts(path: Path) -> Entry:
    with suppress(BertkitError):
        return read_object(path)
    return {}


def _intro(recipe: Entry, facts: Entry) -> str:
    model, data = _entries(recipe, "model"), _entries(recipe, "data")
    begun = model.get("weights") or model.get("size") or recipe.get("model")
    texts = data.get("corpus") or ", ".join(map(str, data.get("texts") or ())) or recipe.get("train") or "a corpus"
    said = [f"{begun} on {texts}, seed {recipe.get('seed', 0)}."] if begun else []
    if "bertkit" in facts:
        said.append(f"Made with bertkit {facts['bertkit']}, torch {facts.get('torch', '–')}.")
    return " ".join(said)


def _steps(recipe: Entry) -> int | None:
    steps = _entries(recipe, "train").get("steps")
    return steps if _is_step(steps) else None


def _glance(told: _Told, recipe: Entry) -> Facts:
    speed = told.late("tokens_per_second")
    values = {
        "steps done": told.step,
        "steps planned": _steps(recipe),
        "parameters": told.start.get("parameters"),
        "tokens a second": round(speed) if math.isfinite(speed) else None,
    }
    return Facts({name: value for name, value in values.items() if value is not None})


def _answers(told: _Told) -> Iterator[Table]:
    """How well each question is answered by now."""
    columns: list[str | Column] = ["", Column("loss", ".3f"), Column("right", ".1%")]
    columns += [Column("loss, held out", ".3f"), Column("right, held out", ".1%")] if told.held_out else []
    tellers = (told.late, told.examined) if told.held_out else (told.late,)
    rows = [
        (QUESTIONS.get(name, name), *(tell(table, name) for tell in tellers for table in ("losses", "right")))
        for name in told.questions
    ]
    if rows:
        yield Table("Answers by now", columns, rows)


def _notes(told: _Told, run: Path, recipe: Entry) -> list[Part]:
    notes: list[Part] = [_state(told, run, recipe), *_learned(told), *_alarms(told.alarms)]
    return notes if told.alarms or not told.steps else [*notes, Note("No alarm was given.", "good")]


def filling(run: Path) -> str:
    """What to type to see a run fill gaps: with its generator, where it has one, and its own word for a gap."""
    home, mask = max(run.glob("generator"), default=run / MODEL), "[MASK]"
    with suppress(BertkitError):
        mask = Tokenizer.load(home).specials.mask
    return f"bertkit fill {home} 'a text with a {mask} in it'"


def _state(told: _Told, run: Path, recipe: Entry) -> Note:
    total = _steps(recipe)
    if told.ended:
        return Note(f"Finished. Next: bertkit predict {run} 'a text'", "good")
    if "task" in recipe:
        return Note(f"Step {told.step:,} so far. If the run is not at work any more, the same command goes on.")
    if (run / MODEL).is_dir() and total is not None and told.step >= total:
        return Note(f"Finished. Next: {filling(run)}", "good")
    of_all = f" of {total:,}" if total else ""
    so_far = f"Step {told.step:,}{of_all} so far." if told.steps else "No step is written yet."
    return Note(f"{so_far} If the run is not at work any more, this goes on: bertkit pretrain {run / RECIPE}")


def _learned(told: _Told) -> Iterator[Note]:
    """Whether more than frequencies is known: of held-out text if there is some."""
    unigram = _value(told.start, "unigram")
    loss = told.examined("losses", MARK) if told.held_out else told.late("losses", MARK)
    if not math.isfinite(loss) or not math.isfinite(unigram):
        return
    where = "held-out text" if told.held_out else "the text it learns from"
    said = f"On {where} the loss of masked tokens is {loss:.2f}; knowing only frequencies gives {unigram:.2f}."
    if loss < unigram * (1 - NEAR):
        yield Note(f"{said} The model makes use of the words around a gap.", "good")
    else:
        yield Note(f"{said} So far the model makes no use of the words around a gap; all models begin so.")


def _alarms(found: Sequence[Entry]) -> Iterator[Note]:
    """Each kind of alarm in its last words."""
    kinds: dict[str, list[Entry]] = {}
    for line in found:
        kinds.setdefault(str(line.get("name", "alarm")), []).append(line)
    for name in sorted(kinds, key=lambda name: name not in SERIOUS):
        times, last = kinds[name], kinds[name][-1]
        steps = ", ".join(f"{line['step']:,}" for line in times[-5:])
        often = f" (given {len(times)} times{', last' if len(times) > 5 else ''} at {steps})" if len(times) > 1 else ""
        message = f"{name} at step {last['step']:,}{often}. {last.get('message', '')}"
        yield Note(message.strip(), "problem" if name in SERIOUS else "warning")


def _question(told: _Told, name: str) -> list[Part]:
    """The loss and the right answers of one question, with what needs no learning as levels."""
    words = QUESTIONS.get(name, name)
    unigram = _value(told.start, "unigram")
    levels: dict[str, list[Level]] = {"losses": [], "right": []}
    if name == MARK and math.isfinite(unigram):
        levels["losses"] = [Level(unigram, FREQUENCIES)]
    if name in PAIRS:
        levels = {"losses": [Level(math.log(2), ONE_ANSWER)], "right": [Level(0.5, ONE_ANSWER)]}
    parts: list[Part] = []
    for table, title, unit in (("losses", "loss", "nats"), ("right", "right answers", "share")):
        learned, examined = (
            _line("learned from", told.steps, table, name),
            _line("held out", told.held_out, table, name),
        )
        curves = [curve for curve in (learned and _smooth(learned), examined) if curve]
        if curves:
            parts.append(Lines(f"{words}: {title}", curves, "steps", unit, levels[table]))
    return parts


def _smooth(line: Line) -> Line:
    """The line itself, or the middle of a while where so many lines would make a band of it."""
    if len(line.y) <= MOST_RAW:
        return line
    return Line(f"{line.name} (middle of {WHILE} lines of the log)", line.x, _middles(line.y))


COURSE = {
    "rate": ("Learning rate", "rate"),
    "norm": ("Length of the gradient, before it was clipped", "length"),
    "tokens_per_second": ("Speed", "tokens a second"),
    "waited": ("Time spent waiting for batches", "share"),
}


def _course(told: _Told) -> list[Part]:
    found = [
        Lines(title, [curve], "steps", unit)
        for name, (title, unit) in COURSE.items()
        if (curve := _line(unit, told.steps, name))
    ]
    return [*found] or [Text("No step is written yet.")]


def _line(label: str, found: Sequence[Entry], *names: str) -> Line | None:
    """A curve over the steps; None where nothing was measured."""
    values = [_value(line, *names) for line in found]
    if not any(map(math.isfinite, values)):
        return None
    return Line(label, [line["step"] for line in found], values)


def _exams(told: _Told) -> list[Part]:
    """What each exam on the development set came to; the best one's network is kept."""
    names = list(dict.fromkeys(name for line in told.exams for name in _entries(line, "scores")))
    main = str(told.exams[-1].get("main", names[0] if names else ""))
    best = max(told.exams, key=lambda line: (math.isfinite(value := _value(line, "scores", main)), value))
    columns: list[str | Column] = ["step", *(Column(name, ".4f") for name in names)]
    rows = [
        (f"{line['step']:,}{' (kept)' if line is best else ''}", *(_value(line, "scores", name) for name in names))
        for line in told.exams
    ]
    curves = [curve for name in names[:4] if (curve := _line(name, told.exams, "scores", name))]
    drawn: list[Part] = [Lines("Scores", curves, "steps", "score")] if len(told.exams) > 1 and curves else []
    return [*drawn, Table(f"Scores on the rows for exams; {main} decides", columns, rows)]


def _samples(found: Sequence[Entry]) -> list[Part]:
    """Sentences with a gap, and what was put there at several steps; a row for each gap."""
    shown_at = _spread(found, MOST_SAMPLED)
    guesses = [_guesses(line) for line in shown_at]
    rows = [
        (sentence, true, *(_guess(true, column.get((sentence, true), [])) for column in guesses))
        for sentence, true in dict.fromkeys(key for column in guesses for key in column)
    ]
    if not rows:
        return [Text("No sentences were filled in. They are taken from held-out text: bertkit corpus build --help")]
    columns = ["sentence", "true", *(f"step {line['step']:,}" for line in shown_at)]
    said = (
        "The likeliest token and its chance, ✓ where it is the true one. If not, the true one follows where it was "
        "among the likeliest."
    )
    return [Table("Sentences with a gap, as the model learns", columns, rows), Text(said)]


def _guesses(line: Entry) -> dict[tuple[str, str], list[Any]]:
    """By sentence and by what stood in the gap: the guesses, likeliest first."""
    table: dict[tuple[str, str], list[Any]] = {}
    samples = line.get("samples")
    for sample in samples if isinstance(samples, list) else ():
        text, true, guesses = (sample.get(name) for name in ("text", "true", "guesses"))
        for place, (one, rows) in enumerate(zip(true or (), guesses or (), strict=False), 1):
            which = f" (gap {place} of {len(true)})" if len(true) > 1 else ""
            table[f"{text}{which}", str(one)] = rows
    return table


def _guess(true: str, guesses: Sequence[Sequence[Any]]) -> str | None:
    if not guesses:
        return None
    (first, chance), *others = guesses
    if first == true:
        return f"✓ {first} {_chance(chance)}"
    near = [f" · {token} {_chance(chance)}" for token, chance in others if token == true]
    return f"{first} {_chance(chance)}{''.join(near)}"


def _chance(share: float) -> str:
    """A chance in few characters.

    >>> _chance(0.4567), _chance(0.0123), _chance(0.0004)
    ('46%', '1.2%', '<0.1%')
    """
    return "<0.1%" if share < 0.001 else f"{share:.1%}" if share < 0.095 else f"{share:.0%}"


def _spread(found: Sequence[Entry], most: int) -> list[Entry]:
    """At most so many, evenly, with the first and the last."""
    if len(found) <= most:
        return list(found)
    return [found[round(place * (len(found) - 1) / (most - 1))] for place in range(most)]


def _table(title: str, values: Entry, form: Any) -> Part:
    rows = [(name, form(value)) for name, value in _flat(values)]
    return (
        Table(title, ["name", "value"], rows)
        if rows
        else Text("The file that says so is not there, or cannot be read.")
    )


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by their whole names: a part is the value of the name that it stands at.

    >>> list(_flat({"train": {"steps": 9, "optimizer": {"part": "Adam", "rate": 0.1}, "phases": [{"rows": 4}]}}))
    [('train.steps', 9), ('train.optimizer', 'Adam'), ('train.optimizer.rate', 0.1), ('train.phases[0].rows', 4)]
    """
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _flat(entry, name if key == "part" else f"{name}.{key}".lstrip("."))
    elif isinstance(value, list):
        for place, entry in enumerate(value):
            yield from _flat(entry, f"{name}[{place}]")
    else:
        yield name, value


def _setting(value: Any) -> str:
    """A setting as it is typed."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str)


METHOD = (
    "A loss is the mean of −ln of the chance that the model gave to the right answer, in nats, over all answers of a "
    "step. Right answers are those whose chance was the highest. Both are of the network in training, so with dropout; "
    "on held-out text there is none, which alone can make it look better.\n\n"
    "Frequencies alone: the entropy of single tokens in the corpus, which is the loss of a model that knows how "
    "frequent each token is and nothing of its neighbours. One answer for all: ln 2, the loss of a model that gives "
    "both answers half of the chance.\n\n"
    "The numbers at a glance are the middle of the last values of the log, as single steps vary; held out is the last "
    "exam. All of it stands in log.jsonl, one line each."
)
