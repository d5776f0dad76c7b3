"""The main job, from nothing: Python's own documentation becomes a vocabulary, a corpus and a BERT that fills gaps.

`make demo` runs it, in a few minutes on two cores. Stopped and started again, it goes on; settings may be changed as in
`bertkit pretrain`: python demo.py output=runs/other train.steps=300
"""

import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bertkit.cli.pretrain import Display
from bertkit.train.journal import lines
from bertkit.train.page import page
from bertkit.train.recipe import read
from bertkit.train.run import StoppedError, pretrain

RECIPE = Path(__file__).parent / "recipes" / "python-docs-tiny.toml"


def main(changes: list[str]) -> int:
    recipe = read(RECIPE, ["output=runs/demo", *changes])
    run = Path(recipe.output)
    with Display() as display:
        try:
            model = pretrain(recipe, display.tell, display.say)
        except StoppedError as stopped:
            display.say(str(stopped))
            return 130
    told = list(lines(run / "log.jsonl"))
    first, last = ([line for line in told if line["kind"] == "samples"][place]["samples"] for place in (0, -1))
    exams = [line for line in told if line["kind"] == "held-out"]
    page(run).write(run / "report.html", overwrite=True)

    console = Console()
    console.print(_table(first, last))
    console.print(
        f"Masked-token loss on text it never learned from: {exams[0]['losses']['mlm']:.2f} at first, "
        f"{exams[-1]['losses']['mlm']:.2f} now; {told[0]['unigram']:.2f} is what frequencies alone give."
    )
    print(
        f"Next, type:\n"
        f"  .venv/bin/bertkit fill {model} 'Return a copy of the [MASK].'   what it learned\n"
        f"  .venv/bin/bertkit embed minilm 'your own text'   what a model with real weights makes of it\n"
        f"and open {run / 'report.html'} in a browser: curves, what it filled in as it learned, every setting."
    )
    return 0


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
