"""A look at examples: tokens as the model sees them, what was masked, which segment is which, labels in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from rich.cells import cell_len

from bertkit.corpus.flat import Flat
from bertkit.text import Tokenizer

WORDS = {
    "next": ("B follows A", "B is from another document"),
    "order": ("A comes before B in the text", "swapped: B comes before A in the text"),
}
"""what labels mean"""


def shown(flat: Flat, tokenizer: Tokenizer, indices: Sequence[int]) -> list[dict[str, Any]]:
    """Each example as plain values for JSON: `words` says where a word starts, `masked` has the place, what stands
    there, and the true token.

    >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat"])
    >>> tokens, marks = np.array([2, 5, 4, 3]), {"mlm": (np.array([2]), np.array([6]))}
    >>> flat = Flat(tokens, tokens * 0, tokens > 0, np.array([0, 4]), np.array([1]), {}, marks)
    >>> print(rendered(shown(flat, tokenizer, [9])[0]))
    example 9 · 4 tokens, 1 masked
    [CLS] a [MASK→cat] [SEP]
    """
    return [_plain(flat, row, tokenizer, index) for row, index in enumerate(indices)]


def rendered(
    example: dict[str, Any], width: int = 100, joint: str = " ", paint: Callable[[str], str] | None = None
) -> str:
    """One of `shown` for a terminal: `[MASK→cat]` hides a cat, `[dog→cat]` stands for it, `[=cat]` only asks for it.

    `joint` stands between the tokens of one word, `paint` may colour what is masked.
    """
    tokens, masked = [_printable(token) for token in example["tokens"]], example["masked"]
    count = f"{len(tokens)} tokens" + (f", {len(masked)} masked" if masked else "")
    labels = [WORDS[name][value] if name in WORDS else f"{name} {value}" for name, value in example["labels"].items()]
    lines = [" · ".join([f"example {example['index']}", count, *labels])]
    for mark in masked:
        tokens[mark["position"]] = _printable(_marked(mark["shown"], mark["true"]))
    places = {mark["position"] for mark in masked} if paint else set()
    painted = [paint(token) if paint and place in places else token for place, token in enumerate(tokens)]
    starts = example["words"] if joint.strip() else [True] * len(tokens)
    parts = np.split(np.arange(len(tokens)), np.flatnonzero(np.diff(example["segments"])) + 1)
    for name, part in zip(("A: ", "B: ") if len(parts) > 1 else ("",), parts, strict=True):
        first, last = int(part[0]), int(part[-1]) + 1
        room = width - len(name)
        pieces = _pieces(tokens[first:last], painted[first:last], starts[first:last], joint, room)
        lines += [(" " * len(name) if row else name) + line for row, line in enumerate(_rows(pieces, room))]
    return "\n".join(lines)


def _pieces(
    tokens: list[str], painted: list[str], starts: list[bool], joint: str, room: int
) -> Iterator[tuple[str, int, str]]:
    """What a line may break between: text, its cells, and what separates it from what stands before it on a line.

    These are whole words, or the tokens of a word that is wider than a line.
    """
    bounds = [place for place, start in enumerate(starts) if start or not place] + [len(tokens)]
    for first, last in pairwise(bounds):
        cells = [cell_len(token) for token in tokens[first:last]]
        whole = sum(cells) + len(joint) * (len(cells) - 1)
        if whole <= room or len(cells) == 1:
            yield joint.join(painted[first:last]), whole, " "
            continue
        for place, size in zip(range(first, last), cells, strict=True):
            after = joint if place + 1 < last else ""
            yield painted[place] + after, size + len(after), " " if place == first else ""


def _rows(pieces: Iterator[tuple[str, int, str]], room: int) -> list[str]:
    rows, used = [""], 0
    for text, cells, before in pieces:
        if used and used + len(before) + cells > room:
            rows.append("")
            used = 0
        rows[-1] += (before if used else "") + text
        used += (len(before) if used else 0) + cells
    return rows


def _marked(instead: str, true: str) -> str:
    if instead == true:
        return f"[={true}]"
    return f"[{instead[1:-1] if len(instead) > 2 and instead[0] == '[' else instead}→{true}]"


def _printable(token: str) -> str:
    """A token that cannot move a terminal's cursor."""
    return token if token.isprintable() else "".join(letter if letter.isprintable() else "·" for letter in token)


def _plain(flat: Flat, row: int, tokenizer: Tokenizer, index: int) -> dict[str, Any]:
    example = flat.example(row)
    tokens = [tokenizer.token(row) for row in example["tokens"]["ids"].tolist()]
    masked = [
        {"position": at, "shown": tokens[at], "true": tokenizer.token(true)}
        for places, values in example["marks"].values()
        for at, true in zip(places.tolist(), values.tolist(), strict=True)
    ]
    return {
        "index": int(index),
        "tokens": tokens,
        "segments": example["tokens"]["segments"].tolist(),
        "words": flat.words[flat.starts[row] : flat.starts[row + 1]].tolist(),
        "masked": masked,
        "labels": {name: int(value) for name, value in example["labels"].items()},
    }
