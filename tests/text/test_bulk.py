"""Bulk reading: ids are the tokenizer's, words, sentences and documents are where they should be."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.errors import BertkitError
from bertkit.text import Tokenizer, bulk, segment, table
from bertkit.text.bulk import Bulk, Tokens
from bertkit.text.lexicon import Lexicon
from bertkit.text.sentences import Lines, Rules, Sentencex
from bertkit.weights import find, folder

ODD = st.sampled_from(
    [
        *"aZ.!? \t\n\r,'\"()。！”猫坐é\x00\x01\x02\x03\x0b\x0c\x1c\x85",
        *"\u2028\u2029\u200b\ufffd\U0001f600\U00020000\ufeff",
        *("\n\n", "\r\n", " \n \n", "e\u0301", "[SEP]", "[MASK]", "Mr. ", "U.S. ", "The ", "cats", "x" * 101),
    ]
)


@pytest.fixture(scope="module")
def minilm() -> Tokenizer:
    return folder.read_tokenizer(find.find("minilm"))


def ids_of(text: str, tokenizer: Tokenizer) -> list[int]:
    return tokenizer.encode(text, special_tokens=False).ids


@given(st.lists(ODD, max_size=60).map("".join))
def test_ids_are_those_of_the_tokenizer(minilm: Tokenizer, text: str) -> None:
    found = Bulk(minilm).read(text)
    assert found.ids.tolist() == ids_of(text, minilm)
    consistent(found, minilm)


def consistent(found: Tokens, tokenizer: Tokenizer) -> None:
    """No sentence and no document is empty; each starts with a word."""
    tokens = len(found.ids)
    for starts, beyond in ((found.sentences, tokens), (found.documents, len(found.sentences))):
        assert np.all(np.diff(np.append(starts.astype(int), beyond)) > 0)
        assert starts[0] == 0 if beyond else len(starts) == 0
    for starts in (found.words, *found.units.values()):
        assert np.all(starts[found.sentences])
    continued = np.array([tokenizer.token(int(i)).startswith("##") for i in found.ids], bool)
    assert not np.any(found.words & continued)


@given(st.lists(ODD, max_size=60).map("".join))
def test_documents_are_what_empty_lines_separate(minilm: Tokenizer, text: str) -> None:
    found = Bulk(minilm, Lines()).read(text)
    unix = re.sub(r"\r\n?", "\n", text)
    documents = [ids for part in re.split(r"\n(?:[^\S\n]*\n)+", unix) if (ids := ids_of(part, minilm))]
    firsts = found.sentences[found.documents]
    assert [part.tolist() for part in np.split(found.ids, firsts[1:])] == (documents or [[]])
    lines = [ids for line in unix.split("\n") if (ids := ids_of(line, minilm))]
    assert [part.tolist() for part in np.split(found.ids, found.sentences[1:])] == (lines or [[]])


PROSE = """Dr. Ames paid $3.50 for it. "Why?" she asked. He didn't know... It was 5 p.m. The shop closed!
It had been open since 9. Nobody (not even J. R. Smith) came. See Fig. 3 for more.

天黑了。我们回家吧！“好。”他说。今天 is 星期一. 明天呢？"""


def test_sentences_are_those_of_the_rules(minilm: Tokenizer) -> None:
    found = Bulk(minilm).read(PROSE)
    sentences = Rules().split(PROSE)
    assert len(sentences) == 14
    assert [part.tolist() for part in np.split(found.ids, found.sentences[1:])] == [
        ids_of(s, minilm) for s in sentences
    ]
    assert found.documents.tolist() == [0, 8]


def test_a_library_may_find_sentences(minilm: Tokenizer) -> None:
    text = "Dr. Ames left at 5 p.m. on Monday. Then it rained.\nA line.\n\nAnother document. It is short."
    found = Bulk(minilm, Sentencex()).read(text)
    expected = ["Dr. Ames left at 5 p.m. on Monday.", "Then it rained.", "A line.", "Another document.", "It is short."]
    assert [part.tolist() for part in np.split(found.ids, found.sentences[1:])] == [ids_of(s, minilm) for s in expected]
    assert found.documents.tolist() == [0, 3]


def same(left: Tokens, right: Tokens) -> bool:
    arrays = zip(left[:4], right[:4], strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in arrays)


@pytest.mark.parametrize(("block", "types"), [(1, 200_000), (40, 5), (7, 40), (1_000_000, 12)])
def test_nothing_depends_on_blocks_or_on_what_the_table_forgets(
    minilm: Tokenizer, monkeypatch: pytest.MonkeyPatch, block: int, types: int
) -> None:
    text = "\n\n".join([PROSE, "One.\nTwo.\n \nThree.", "\r\n\r\nx\r\n", PROSE.upper()])
    expected = Bulk(minilm).read(text)
    monkeypatch.setattr(bulk, "BLOCK", block)
    monkeypatch.setattr(table, "MOST_TYPES", types)
    reader = Bulk(minilm)
    assert all(same(reader.read(text), expected) for _ in range(3))


def test_long_chunks_are_forgotten(minilm: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MOST_BYTES", 5000)
    reader = Bulk(minilm)
    for number in range(20):
        text = f"the cat sat {'-'.join(f'blob{number}x{n}' for n in range(300))} on a mat"
        assert reader.read(text).ids.tolist() == ids_of(text, minilm)
        assert reader._table._numbering.size < 15_000
    reader._table._keep_what_was_seen_again()
    known = len(reader._table)
    reader.read("the cat sat on a mat")
    assert len(reader._table) == known


def test_words_of_chinese_are_marked_by_the_segmenter() -> None:
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"我爱北京天安门。的好", "bert", "##s"]
    tokenizer = Tokenizer.from_vocabulary(vocabulary)

    def words(text: str, how: segment.Segment | None) -> list[str]:
        found = Bulk(tokenizer, segment=how).read(text)
        parts = np.split(found.ids, np.flatnonzero(found.words)[1:])
        return ["".join(tokenizer.token(int(i)) for i in part) for part in parts]

    text = "我爱北京天安门。berts好"
    assert words(text, None) == ["我", "爱", "北", "京", "天", "安", "门", "。", "bert##s", "好"]
    assert words(text, segment.jieba()) == ["我", "爱", "北京", "天安门", "。", "bert##s", "好"]
    assert words("我 爱 北京 天安门 。", segment.spaces) == ["我", "爱", "北京", "天安门", "。"]
    with pytest.raises(BertkitError, match="words must add up"):
        words(text, lambda run: [run[:-1]])


def test_a_dictionary_teaches_jieba_words(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("爱北京 1000000\n", encoding="utf-8")
    assert segment.jieba(tmp_path / "mine.txt")("我爱北京") == ["我", "爱北京"]
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BertkitError, match=r"bad.txt: it is no dictionary of words"):
        segment.jieba(tmp_path / "bad.txt")


def test_phrases_of_a_lexicon_are_units(minilm: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "places").write_text("New York\tcity\nNew York City\n\nunbelievably good\nYork\n", encoding="utf-8")
    lexicon = Lexicon.load(tmp_path / "places", minilm)
    assert len(lexicon) == 3, "a single word is a unit anyway"
    text = "In New York City, not New\nYork. A New Yorker is unbelievably good. New York is. New York"
    found = Bulk(minilm, lexicons={"places": lexicon}).read(text)
    parts = np.split(found.ids, np.flatnonzero(found.units["places"])[1:])
    longer = [minilm.decode(part.tolist()) for part in parts if len(part) > 1]
    assert longer == ["new york city", "unbelievably good", "new york", "new york"]
    consistent(found, minilm)


def test_wide_ids_where_the_vocabulary_needs_them() -> None:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for size, dtype in ((2**16, np.uint16), (2**16 + 1, np.uint32)):
        tokenizer = Tokenizer.from_vocabulary([*special, *(f"w{n}" for n in range(size - 5))])
        found = Bulk(tokenizer).read(f"w0 w{size - 6}")
        assert found.ids.dtype == dtype
        assert found.ids.tolist() == [5, size - 1]


def test_real_text(minilm: Tokenizer, shared: Path) -> None:
    with gzip.open(shared / "data" / "wikitext-2" / "valid.txt.gz", "rt", encoding="utf-8") as file:
        text = file.read()
    found = Bulk(minilm).read(text)
    assert found.ids.tolist() == [
        i for line in minilm.ids_of_many(text.split("\n"), special_tokens=False) for i in line
    ]
    consistent(found, minilm)
