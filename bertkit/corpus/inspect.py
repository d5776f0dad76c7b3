"""A look at examples: tokens as the model sees them, what was masked, which segment is which, labels in words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from bertkit.corpus.flat import Flat
from bertkit.text import Tokenizer

WORDS = {
    "next": ("B follows A", "B is from another document"),
    "order": ("A comes before B in the text", "swapped: B comes before A in the text"),
}
"""what labels mean"""


def shown(flat: Flat, tokenizer: Tokenizer, indices: Sequence[int]) -> list[dict[str, Any]]:
    """Each example as plain values for JSON; `masked` has the place, what stands there, and the true token.

    >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat"])
    >>> tokens, marks = np.array([2, 5, 4, 3]), {"mlm": (np.array([2]), np.array([6]))}
    >>> flat = Flat(tokens, tokens * 0, tokens > 0, np.array([0, 4]), np.array([1]), {}, marks)
    >>> print(rendered(shown(flat, tokenizer, [9])[0]))
    example 9 · 4 tokens, 1 masked
    [CLS] a [MASK→cat] [SEP]
    """
    return [_plain(flat.example(row), tokenizer, index) for row, index in enumerate(indices)]


def rendered(example: dict[str, Any], width: int = 100) -> str:
    """One of `shown` for a terminal: `[MASK→cat]` hides a cat, `[dog→cat]` stands for it, `[=cat]` only asks for it."""
    tokens = list(example["tokens"])
    for masked in example["masked"]:
        tokens[masked["position"]] = _marked(masked["shown"], masked["true"])
    count = f"{len(tokens)} tokens" + (f", {len(example['masked'])} masked" if example["masked"] else "")
    lines = [" · ".join([f"example {example['index']}", count, *example["labels"].values()])]
    border = np.flatnonzero(np.diff(example["segments"])) + 1
    parts = np.split(np.arange(len(tokens)), border)
    for name, places in zip(("A: ", "B: ") if len(parts) > 1 else ("",), parts, strict=True):
        text = " ".join(tokens[place] for place in places)
        lines += textwrap.wrap(
            text,
            width,
            initial_indent=name,
            subsequent_indent=" " * len(name),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _marked(instead: str, true: str) -> str:
    if instead == true:
        return f"[={true}]"
    return f"[{instead[1:-1] if len(instead) > 2 and instead[0] == '[' else instead}→{true}]"


def _plain(example: dict[str, Any], tokenizer: Tokenizer, index: int) -> dict[str, Any]:
    tokens = [tokenizer.token(row) for row in example["tokens"]["ids"].tolist()]
    masked = [
        {"position": at, "shown": tokens[at], "true": tokenizer.token(true)}
        for places, values in example["marks"].values()
        for at, true in zip(places.tolist(), values.tolist(), strict=True)
    ]
    labels = {name: WORDS[name][value] if name in WORDS else str(value) for name, value in example["labels"].items()}
    segments = example["tokens"]["segments"].tolist()
    return {"index": int(index), "tokens": tokens, "segments": segments, "masked": masked, "labels": labels}
