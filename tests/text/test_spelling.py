"""Spelling: chunks in bulk have the tokens that the tokenizer gives each of them alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.errors import BertkitError
from bertkit.text import Tokenizer, spelling
from bertkit.text.bulk import Bulk
from bertkit.text.runs import WORD, Runs
from bertkit.text.spelling import Speller
from bertkit.weights import find, folder

PARTS = [
    *"aZ.,'-(#[]_~\x00\x7f\x1aé猫。¶\u200b",
    *("##s", "The", "un", "[SEP]", "[sep]", "[MASK]", "e\u0301", "x" * 101),
]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##s", ",", "字", "国"]


def spelled(tokenizer: Tokenizer, chunks: list[str]) -> tuple[list[int], list[int]]:
    """By way of a text of these chunks."""
    data = np.frombuffer("".join(chunks).encode() + bytes(WORD), np.uint8)
    sizes = np.array([len(chunk.encode()) for chunk in chunks], np.int64)
    ids, lengths = Speller(tokenizer).spell(Runs.of(data, np.cumsum(sizes) - sizes, sizes))
    return ids.tolist(), lengths.tolist()


@pytest.fixture(scope="module")
def minilm() -> Tokenizer:
    return folder.read_tokenizer(find.find("minilm"))


@given(st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join), max_size=30))
def test_every_chunk_has_its_own_tokens(minilm: Tokenizer, chunks: list[str]) -> None:
    expected = [minilm.encode(chunk, special_tokens=False).ids for chunk in chunks]
    assert spelled(minilm, chunks) == ([i for one in expected for i in one], [len(one) for one in expected])


def test_cased_vocabularies_and_tokens_of_a_user() -> None:
    tokenizer = Tokenizer.from_vocabulary([*TOKENS, "A", "sa", "##as"], lowercase=False)
    tokenizer.add_special_tokens(["as", "<N>"])
    chunks = ["A", "a", "sa,s", "sas", "a<N>b", "<n>", "aas", "ba", "bs", "as,", "#s", "ss"]
    expected = [tokenizer.encode(chunk, special_tokens=False).ids for chunk in chunks]
    assert spelled(tokenizer, chunks) == ([i for one in expected for i in one], [len(one) for one in expected])


def test_tokenizers_that_cut_otherwise_are_refused() -> None:
    with pytest.raises(BertkitError, match="tokenize_chinese_chars"):
        Bulk(Tokenizer.from_vocabulary(TOKENS, split_chinese=False))
    tokenizer = Tokenizer.from_vocabulary(TOKENS)
    tokenizer.add_special_tokens(["[NEW YORK]"])
    with pytest.raises(BertkitError, match=r"'\[NEW YORK\]'"):
        Bulk(tokenizer)


def test_more_words_than_are_remembered(minilm: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling, "MOST_WORDS", 50)
    speller = Speller(minilm)
    for first in range(0, 300, 30):
        chunks = [f"word{number}x," for number in range(first, first + 40)]
        data = np.frombuffer("".join(chunks).encode() + bytes(WORD), np.uint8)
        sizes = np.array([len(chunk) for chunk in chunks])
        ids, lengths = speller.spell(Runs.of(data, np.cumsum(sizes) - sizes, sizes))
        expected = [minilm.encode(chunk, special_tokens=False).ids for chunk in chunks]
        assert ids.tolist() == [i for one in expected for i in one]
        assert lengths.tolist() == [len(one) for one in expected]
