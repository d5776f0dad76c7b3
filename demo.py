"""The main job, from nothing: Python's own documentation becomes a vocabulary, a corpus and a BERT that fills gaps, and
that learns from a few labelled paragraphs which part of the library they are about.

`make demo` runs it, in a few minutes on two cores. Stopped and started again, it goes on; settings may be changed as in
`bertkit pretrain`: python demo.py output=runs/other train.steps=300
"""

import sys
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import bertkit
from bertkit.cli.pretrain import Display
from bertkit.parts.network import Network
from bertkit.tasks import python_parts
from bertkit.tasks.finetune import finetune
from bertkit.tasks.plan import Wish, plan
from bertkit.train.journal import lines
from bertkit.train.optimizer import Adam
from bertkit.train.page import page
from bertkit.train.pretrain import pretrain
from bertkit.train.recipe import read
from bertkit.train.run import StoppedError

RECIPE = Path(__file__).parent / "recipes" / "python-docs-tiny.toml"
LABELLED = 1500
"""paragraphs with a label; few, as most people have"""
TUNING = {"epochs": 6.0, "optimizer": Adam(rate=1e-3), "limit": 64}
"""small networks learn with higher rates than the paper's"""
SENTENCES = (
    "Wait until all threads have finished their work.",
    "Send a message to the server and read its reply.",
    "Draw a circle in the middle of the window.",
    "Remove the directory and everything in it.",
)


def main(changes: list[str]) -> int:
    recipe = read(RECIPE, ["output=runs/demo", *changes])
    run = Path(recipe.output)
    with Display() as display:
        try:
            model = pretrain(recipe, display.tell, display.say)
            _show_gaps(run)
            tuned = _finetuned(run, model, display)
        except StoppedError as stopped:
            display.say(str(stopped))
            return 130
    page(run).write(run / "report.html", overwrite=True)
    _show_parts(tuned)
    print(
        f"Next, type:\n"
        f"  .venv/bin/bertkit fill {model} 'Return a copy of the [MASK].'   what it learned\n"
        f"  .venv/bin/bertkit predict {tuned['pre-trained'].parent} --input -   sentences of yours, line by line\n"
        f"  .venv/bin/bertkit embed minilm 'your own text'   what a model with real weights makes of it\n"
        f"and open {run / 'report.html'} in a browser: curves, what it filled in as it learned, every setting."
    )
    return 0


def _show_gaps(run: Path) -> None:
    """What it fills in, before and after learning."""
    told = list(lines(run / "log.jsonl"))
    first, last = ([line for line in told if line["kind"] == "samples"][place]["samples"] for place in (0, -1))
    exams = [line for line in told if line["kind"] == "held-out"]
    console = Console()
    console.print(_table(first, last))
    console.print(
        f"Masked-token loss on text it never learned from: {exams[0]['losses']['mlm']:.2f} at first, "
        f"{exams[-1]['losses']['mlm']:.2f} now; {told[0]['unigram']:.2f} is what frequencies alone give."
    )


def _table(first: list[dict[str, Any]], last: list[dict[str, Any]]) -> Table:
    """What stood in each gap, and the likeliest word before and after learning."""
    table = Table(title="Sentences it never learned from, with one word hidden", title_justify="left")
    for heading in ("sentence", "hidden", "at first", "now"):
        table.add_column(heading, overflow="fold")
    for before, after in zip(first, last, strict=True):
        true = before["true"][0]
        table.add_row(before["text"], true, *(_guesses(one["guesses"][0], true) for one in (before, after)))
    return table


def _guesses(guesses: list[list[Any]], true: str) -> str:
    return ", ".join(f"[bold green]{token}[/]" if token == true else token for token, _ in guesses)


def _finetuned(run: Path, model: Path, display: Display) -> dict[str, Path]:
    """The same network with and without pre-training, each taught which part of the library a paragraph is about."""
    train, dev = python_parts.write(run / "parts", LABELLED)
    made = {}
    for name, begun in (("pre-trained", model), ("not pre-trained", _untrained(run, model))):
        display.say(f"which part of the library is a paragraph about? The network that is {name} learns it")
        output = str(run / f"parts-{name.replace(' ', '-')}")
        wish = Wish(str(begun), output, train=str(train), dev=str(dev), settings=TUNING)
        made[name] = finetune(plan(wish, display.say), display.tell, display.say)
    return made


def _untrained(run: Path, model: Path) -> Path:
    """The same network with new weights."""
    path = run / "untrained"
    if not path.is_dir():
        known = bertkit.load(model)
        torch.manual_seed(0)
        bertkit.Model(Network(known.network.spec.encoder).build(), known.tokenizer, config=known.config).save(path)
    return path


def _show_parts(made: dict[str, Path]) -> None:
    """Scores, and answers for sentences: those that somebody types, or ours."""
    opened = {name: bertkit.Finetuned.load(path) for name, path in made.items()}
    print(f"Which part of Python's library is a paragraph about? Learned from {LABELLED:,} that have a label:")
    for name, one in opened.items():
        print(f"  {name:16} {one.facts['scores']['accuracy']:.1%} of other paragraphs right")
    best = opened["pre-trained"]
    for sentence, answer in zip(SENTENCES, best.predict(SENTENCES), strict=True):
        print(f"  {answer.label:12} {answer.score:4.0%}  {sentence}")
    while sys.stdin.isatty() and (typed := input("A sentence of yours (Enter to end): ").strip()):
        (answer,) = best.predict([typed])
        print(f"  {answer.label:12} {answer.score:4.0%}  {typed}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
