"""The table of chunks: numbers are exact, whatever hashes do."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bertkit.text import Tokenizer, table
from bertkit.text.table import Column, Table

FIRSTS = ["\x01", "\x02"]


def texts(seed: int, count: int = 40) -> list[str]:
    """Texts of words that come again, and of some that do not."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abcé猫.,", k=draw.randint(1, 9))) for _ in range(300)]
    return [" ".join(draw.choices(words, k=draw.randint(0, 200))) for _ in range(count)]


def chunks_of(made: Table, numbers: np.ndarray) -> list[str]:
    """What the table says that these numbers are."""
    spelled = []
    for number in numbers.tolist():
        first = int(made._places[number])
        spelled.append(made._bytes[first : first + int(made._sizes[number])].tobytes().decode())
    return spelled


def same(made: Table, tokenizer: Tokenizer, text: str) -> None:
    numbers = made.numbers(text)
    assert chunks_of(made, numbers) == text.split()
    for chunk, number in zip(text.split(), numbers.tolist(), strict=True):
        row, length = int(made.rows[number]), int(made.lengths[number])
        assert made.ids[row : row + length].tolist() == tokenizer.encode(chunk, special_tokens=False).ids


@pytest.mark.parametrize("bits", [20, 10])
def test_numbers_are_those_of_the_chunks(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """With 1,024 slots for some 300 chunks many of them meet."""
    monkeypatch.setattr(table, "SLOT_BITS", bits)
    made = Table(tokenizer, FIRSTS)
    for text in texts(bits):
        same(made, tokenizer, text)
    assert made.numbers(" ".join(reversed(FIRSTS))).tolist() == [1, 0]


def test_chunks_that_share_a_hash_are_told_apart(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Table(tokenizer, FIRSTS)
    made._factor = np.uint64(0)  # now all chunks share a hash
    same(made, tokenizer, "cat mat cat sat bat")
    assert made._seed == 1
    for text in texts(1, 5):
        same(made, tokenizer, text)


def test_long_chunks_are_told_apart(tokenizer: Tokenizer) -> None:
    made = Table(tokenizer, FIRSTS)
    for size in (7, 8, 9, 16, 255, 256, 257, 5000):
        chunks = ["a" * size, "a" * (size - 1) + "b", "b" + "a" * (size - 1), "a" * (size + 1)]
        same(made, tokenizer, " ".join([*chunks, *chunks]))
    assert made._seed == 0


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


def test_a_column_grows() -> None:
    column, expected = Column(np.int32, 100), np.empty(0, np.int32)
    for size in (0, 1, 1000, 30, 5000, 1):
        values = np.arange(size, dtype=np.int32)
        column.extend(values)
        expected = np.append(expected, values)
        assert np.array_equal(column[:], expected)
    column.replace(expected[::2])
    assert np.array_equal(column[np.array([0, 3])], expected[[0, 6]])
