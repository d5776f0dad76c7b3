"""Small datasets of our own that a tiny network learns in seconds, one for each kind of task, and the network."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import bertkit
from bertkit.tasks.plan import Wish, plan
from bertkit.tasks.tuning import Tuning
from bertkit.text import Tokenizer
from bertkit.train.optimizer import Adam

FILL = "the a cat dog house mat on sat ran was and then he she it".split()  # noqa: SIM905 - a list to read
MOODS = {"good": ["happy", "lovely", "warm"], "bad": ["sad", "ugly", "cold"]}
COLOURS = ["red", "green", "blue"]
NAMES = {"PER": ["anna", "boris", "clara"], "LOC": ["berlin", "paris", "rome"]}
MORE = ["up", "where", "is", "in", "key", "yes", "no", "?", ".", "##s", "un", "##happy"]
VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *FILL,
    *(word for words in (*MOODS.values(), *NAMES.values()) for word in words),
    *COLOURS,
    *MORE,
]


def tiny(home: Path) -> Path:
    """A new network of the smallest size."""
    tokenizer = Tokenizer.from_vocabulary(VOCABULARY)
    return bertkit.create("bert-tiny", tokenizer, seed=0).save(home / "tiny")


def _words(draw: random.Random, count: int) -> list[str]:
    return draw.choices(FILL, k=count)


def _mixed(draw: random.Random, words: list[str]) -> str:
    mixed = [*_words(draw, draw.randint(2, 9)), *words]
    draw.shuffle(mixed)
    return " ".join(mixed)


def classification(path: Path, draw: random.Random, rows: int) -> None:
    kinds = [draw.choice(list(MOODS)) for _ in range(rows)]
    path.write_text("".join(f"{kind}\t{_mixed(draw, [draw.choice(MOODS[kind])])}\n" for kind in kinds))


def pairs(path: Path, draw: random.Random, rows: int) -> None:
    lines = ["sentence1,sentence2,label"]
    for _ in range(rows):
        kind = draw.choice(["same", "other"])
        second = _mixed(draw, ["no"] if kind == "other" else ["yes"])
        lines.append(f'"{_mixed(draw, [])}, {_mixed(draw, [])}","{second}",{kind}')
    path.write_text("\n".join(lines) + "\n")


def multilabel(path: Path, draw: random.Random, rows: int) -> None:
    with path.open("w") as file:
        for _ in range(rows):
            there = [colour for colour in COLOURS if draw.random() < 0.5] or ["red"]
            file.write(json.dumps({"text": _mixed(draw, there), "labels": "|".join(sorted(there))}) + "\n")


def regression(path: Path, draw: random.Random, rows: int) -> None:
    counts = [draw.randint(0, 4) for _ in range(rows)]
    lines = [f"{_mixed(draw, ['up'] * count)}\t{count + draw.choice([0.0, 0.25]):.2f}" for count in counts]
    path.write_text("\n".join(["text\tscore", *lines]) + "\n")


def tagging(path: Path, draw: random.Random, rows: int) -> None:
    with path.open("w") as file:
        for _ in range(rows):
            kind = draw.choice(list(NAMES))
            name = draw.sample(NAMES[kind], k=draw.randint(1, 2))
            before, after = _words(draw, draw.randint(1, 4)), _words(draw, draw.randint(0, 3))
            tags = ["O"] * len(before) + [f"I-{kind}"] * len(name) + ["O"] * len(after)  # IOB1
            for word, tag in zip([*before, *name, *after], tags, strict=True):
                file.write(f"{word} {tag}\n")
            file.write("\n")


def answering(path: Path, draw: random.Random, rows: int, empty: bool = False) -> None:
    paragraphs = []
    for row in range(rows):
        place = draw.choice(NAMES["LOC"])
        without = empty and draw.random() < 0.4
        words = [
            *_words(draw, draw.randint(2, 30)),
            *([] if without else ["in", place]),
            *_words(draw, draw.randint(1, 20)),
        ]
        context = " ".join(words)
        answers = [] if without else [{"text": place, "answer_start": context.index(f"in {place}") + 3}]
        asked = {"id": f"q{row}", "question": "where is it ?", "answers": answers}
        asked |= {"is_impossible": without} if empty else {}
        paragraphs.append({"context": context, "qas": [asked]})
    articles = [{"title": f"t{first}", "paragraphs": paragraphs[first : first + 5]} for first in range(0, rows, 5)]
    path.write_text(json.dumps({"version": "x", "data": articles}))


def answering_or_not(path: Path, draw: random.Random, rows: int) -> None:
    answering(path, draw, rows, empty=True)


def choosing(path: Path, draw: random.Random, rows: int) -> None:
    with path.open("w") as file:
        for _ in range(rows):
            options = draw.randint(2, 4)
            right = draw.randrange(options)
            texts = [_mixed(draw, ["yes" if place == right else "no"]) for place in range(options)]
            row = {"context": f"{_mixed(draw, [])} .", "choices": texts, "label": right}
            file.write(json.dumps(row) + "\n")


Writer = Callable[[Path, random.Random, int], None]
SETS: dict[str, tuple[Writer, str]] = {
    "classification": (classification, "tsv"),
    "pairs": (pairs, "csv"),
    "multilabel": (multilabel, "jsonl"),
    "regression": (regression, "tsv"),
    "tagging": (tagging, "txt"),
    "answering": (answering, "json"),
    "answering_or_not": (answering_or_not, "json"),
    "choice": (choosing, "jsonl"),
}


EPOCHS = {"regression": 15.0, "answering_or_not": 12.0}
"""of sets that take longer than 6"""


def written(home: Path, name: str) -> tuple[Path, Path]:
    """A training and a development set."""
    write, suffix = SETS[name]
    train, dev = home / f"train.{suffix}", home / f"dev.{suffix}"
    write(train, random.Random(1), 160)
    write(dev, random.Random(2), 40)
    return train, dev


def tuning(home: Path, model: Path, name: str, **settings: object) -> Tuning:
    """The tuning that somebody would get who named the two files."""
    train, dev = written(home, name)
    chain = bool(settings.pop("chain", False))
    given = {"epochs": EPOCHS.get(name, 6.0), "rows": 8, "optimizer": Adam(rate=1e-3), "limit": 40, **settings}
    wish = Wish(str(model), str(home / "run"), train=str(train), dev=str(dev), chain=chain, settings=given)
    return plan(wish, lambda said: None)
