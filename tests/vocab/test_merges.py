"""Merges: those of `tokenizers`, token by token, and right where its counts are not."""

from __future__ import annotations

import json
import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer, WordPieceTrainer

from bertkit.vocab.merges import Merges, learn

corpora = st.one_of(
    st.dictionaries(st.text("ab", min_size=1, max_size=9), st.integers(1, 4), min_size=1, max_size=12),
    st.dictionaries(st.text("abcdefg", min_size=1, max_size=12), st.integers(1, 9), min_size=1, max_size=40),
)


def theirs(words: dict[str, int], size: int, least: int) -> Merges:
    """What `tokenizers` makes of words."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = BpeTrainer(vocab_size=size, min_frequency=least, show_progress=False)
    tokenizer.train_from_iterator([f"{word} " * count for word, count in words.items()], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return Merges(sorted(model["vocab"], key=model["vocab"].get), [tuple(pair) for pair in model["merges"]])


def ours(words: dict[str, int], size: int, least: int) -> Merges:
    letters = sorted(set("".join(words)))
    table = {ord(letter): chr(number) for number, letter in enumerate(letters)}
    return learn([word.translate(table) for word in words], list(words.values()), letters, size, least)


@settings(max_examples=250)
@given(corpora, st.integers(2, 60), st.integers(0, 5))
def test_the_same_merges_as_tokenizers(words: dict[str, int], size: int, least: int) -> None:
    assert ours(words, size, least) == theirs(words, size, least)


@settings(max_examples=100)
@given(corpora, st.integers(10, 60))
def test_the_same_pieces_as_tokenizers(words: dict[str, int], size: int) -> None:
    """Theirs numbers ## letters in the order of a hash table, and with that numbering ours is the same."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(
        [f"{word} " * count for word, count in words.items()], WordPieceTrainer(vocab_size=size, show_progress=False)
    )
    ids = tokenizer.get_vocab()
    listed = sorted(ids, key=ids.__getitem__)
    letters = [token for token in listed if len(token.removeprefix("##")) == 1]
    assert letters == listed[: len(letters)]
    spelled = ["".join(chr(ids[f"##{char}" if at else char]) for at, char in enumerate(word)) for word in words]
    found = learn(spelled, list(words.values()), letters, size, 1, lambda left, right: left + right[2:])
    assert found.tokens == listed


def test_counts_beyond_32_and_64_bits() -> None:
    words = {"ab": 2**31 + 5, "cd": 2**31 + 6, "ef": 2**64, "gh": 2**64 + 1, "ij": 3}
    assert ours(words, 15, 1).pairs == [("g", "h"), ("e", "f"), ("c", "d"), ("a", "b"), ("i", "j")]


def test_nothing_depends_on_the_order_of_words() -> None:
    words = dict(
        Counter(re.findall(r"\w+", "she sells sea shells by the sea shore, the shells she sells are sea shells"))
    )
    assert ours(words, 40, 1) == ours(dict(reversed(words.items())), 40, 1) == ours(dict(sorted(words.items())), 40, 1)
