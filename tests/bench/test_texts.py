"""The texts of the bench have the lengths they claim, counted by the tokenizer itself."""

from __future__ import annotations

import statistics
from itertools import chain

import pytest

import bertkit
from bench import texts
from bertkit.text import Tokenizer
from bertkit.weights.find import find


@pytest.fixture(scope="module")
def minilm() -> Tokenizer:
    return bertkit.Tokenizer.load(find("minilm"))


@pytest.mark.parametrize("count", [64, 200, 2000])
def test_lengths_are_what_the_tokenizer_counts(minilm: Tokenizer, count: int) -> None:
    counted = [len(ids) for ids in minilm.ids_of_many(texts.texts(count))]
    assert counted == texts.lengths(count)


def test_median_25_and_a_tail_up_to_256(minilm: Tokenizer) -> None:
    counted = sorted(len(ids) for ids in minilm.ids_of_many(texts.texts(2000)))
    assert statistics.median(counted) == 25
    assert counted[-1] == 256
    tenths = statistics.quantiles(counted, n=10)
    assert 7 <= tenths[0] <= 10
    assert 65 <= tenths[-1] <= 85
    assert sum(length == 256 for length in counted) <= 20  # the tail is cut, not piled up


def test_texts_are_the_same_in_every_run_and_differ_from_each_other() -> None:
    assert texts.texts(50) == texts.texts(50)
    assert texts.texts(50, seed=1) != texts.texts(50)
    assert len(set(texts.texts(2000))) > 1950


def test_queries_are_short_and_all_different(minilm: Tokenizer) -> None:
    asked = texts.queries()
    assert len(set(asked)) == len(asked) == 16
    assert statistics.median(len(ids) for ids in minilm.ids_of_many(asked)) == 11


def test_pieces_hold_all_texts_and_no_more_padding_than_the_whole() -> None:
    whole, lengths = texts.texts(2000), texts.lengths(2000)
    parts = texts.pieces(whole, lengths, 8)
    assert sorted(chain(*parts)) == sorted(whole)
    length = dict(zip(whole, lengths, strict=True))
    tokens = [sum(map(length.__getitem__, part)) for part in parts]
    assert max(tokens) < 1.1 * min(tokens)
    assert sum(padded(part, length) for part in parts) == padded(whole, length)
    drawn = [whole[place::8] for place in range(8)]
    assert sum(padded(part, length) for part in drawn) > 1.1 * padded(whole, length)


def padded(given: list[str], length: dict[str, int]) -> int:
    """Tokens of batches of neighbours in length, each as long as its longest."""
    tokens = sorted((length[text] for text in given), reverse=True)
    return sum(tokens[first] * len(tokens[first : first + 32]) for first in range(0, len(tokens), 32))
