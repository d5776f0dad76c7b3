"""The table of chunks: every number has the tokens of its chunk."""

from __future__ import annotations

import random

import pytest

from bertkit.text import Tokenizer, table
from bertkit.text.table import Table

FIRSTS = ["\x01", "\x02"]


def texts(seed: int, count: int = 40) -> list[str]:
    """Texts of words that come again, and of some that do not."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abcé猫.,", k=draw.randint(1, 9))) for _ in range(300)]
    return [" ".join(draw.choices(words, k=draw.randint(0, 200))) for _ in range(count)]


def same(made: Table, tokenizer: Tokenizer, text: str) -> None:
    """A chunk that came again has its number again, and every number has the tokens of its chunk."""
    numbers = made.numbers(text).tolist()
    assert len(set(zip(numbers, text.split(), strict=True))) == len(set(numbers)) == len(set(text.split()))
    for chunk, number in zip(text.split(), numbers, strict=True):
        row, length = int(made.rows[number]), int(made.lengths[number])
        assert made.ids[row : row + length].tolist() == tokenizer.encode(chunk, special_tokens=False).ids


def test_numbers_are_those_of_the_chunks(tokenizer: Tokenizer) -> None:
    made = Table(tokenizer, FIRSTS)
    for text in texts(20):
        same(made, tokenizer, text)
    assert made.numbers(" ".join(reversed(FIRSTS))).tolist() == [1, 0]


def test_what_was_seen_again_is_kept(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MOST_TYPES", 20)
    monkeypatch.setattr(table, "KEPT_TYPES", 10)
    made = Table(tokenizer, FIRSTS)
    for number in range(30):
        same(made, tokenizer, f"the cat the cat once{number} sat{number} " + "x" * 200 + f"{number}")
        assert len(made) <= 25
    made._keep_what_was_seen_again()
    known = len(made)
    made.numbers("the cat")
    assert len(made) == known
