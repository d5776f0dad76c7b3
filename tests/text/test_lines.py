"""Bulk reading with byte-level BPE and Unigram: the ids of each line, words and sentences where they should be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.build import build
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.inputs import FullSentences, SegmentPairs
from bertkit.corpus.source import files
from bertkit.errors import BertkitError
from bertkit.text import Tokenizer, lines, segment
from bertkit.text.bulk import Bulk, Tokens
from bertkit.text.pieces import Bytes
from bertkit.text.sentences import Lines, Rules
from tests.text.families import TEXT, fairseq, trained

ODD = st.sampled_from(
    [
        *"aZ.!? \t\n\r,'\"()。！”猫坐é\x00\x01\x02\x03\x0b\x0c\x1c\x85",
        *"\u2028\u2029\u200b\ufffd\U0001f600\U00020000\ufeff",
        *("\n\n", "\r\n", " \n \n", "e\u0301", "<mask>", "[MASK]", " </s> ", "Mr. ", "The ", "cats", "  ", "x" * 101),
    ]
)


@pytest.fixture(scope="module", params=["bpe", "unigram", "fairseq"])
def tokenizer(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    place = tmp_path_factory.mktemp("lines") / request.param
    return Tokenizer.load(fairseq(place) if request.param == "fairseq" else trained(place, request.param))


def documents_of(text: str, tokenizer: Tokenizer) -> list[list[list[int]]]:
    """The ids of each line of each document, told in the plainest way."""
    unix = re.sub(r"\r\n?", "\n", text)
    found = [
        [tokenizer.encode(line, special_tokens=False).ids for line in document.split("\n") if line.strip()]
        for document in re.split(r"\n(?:[^\S\n]*\n)+", unix)
    ]
    return [kept for document in found if (kept := [line for line in document if line])]


def parts_of(ids: np.ndarray[Any, Any], starts: np.ndarray[Any, Any]) -> list[list[int]]:
    return [part.tolist() for part in np.split(ids, starts[1:])] if len(ids) else []


def consistent(found: Tokens) -> None:
    for starts, beyond in ((found.sentences, len(found.ids)), (found.documents, len(found.sentences))):
        assert np.all(np.diff(np.append(starts.astype(int), beyond)) > 0)
        assert starts[0] == 0 if beyond else len(starts) == 0
    assert np.all(found.words[found.sentences])


@settings(max_examples=150)
@given(text=st.lists(ODD, max_size=50).map("".join))
def test_ids_are_those_of_each_line(tokenizer: Tokenizer, text: str) -> None:
    expected = documents_of(text, tokenizer)
    for splitter in (Lines(), Rules()):
        found = Bulk(tokenizer, splitter).read(text)
        consistent(found)
        assert found.ids.tolist() == [i for document in expected for line in document for i in line]
        firsts = found.sentences[found.documents]
        assert parts_of(found.ids, firsts) == [[i for line in document for i in line] for document in expected]
    rows = parts_of(found.ids, Bulk(tokenizer, Lines()).read(text).sentences)
    assert rows == [line for document in expected for line in document]


def test_sentences_and_words_are_where_they_are_in_the_text(tokenizer: Tokenizer) -> None:
    text = "Dr. Cat sat.  The dogs didn't play! The house was walking."
    found = Bulk(tokenizer).read(text)
    sentences = [tokenizer.decode(part).strip() for part in parts_of(found.ids, found.sentences)]
    lowered = text.lower() if tokenizer.lowercase else text
    assert " ".join(sentences).split() == lowered.split()
    assert [len(sentence.split()) for sentence in sentences] == [3, 4, 4]
    words = [tokenizer.decode(part).strip() for part in parts_of(found.ids, np.flatnonzero(found.words))]
    assert [word for word in words if word] == lowered.split()


def test_chinese_words_are_those_of_the_segmenter(tokenizer: Tokenizer) -> None:
    text = "水火木金" if isinstance(tokenizer.pieces, Bytes) else "上猫子坐"  # no two of them share a token

    def words(how: segment.Segment | None) -> list[str]:
        found = Bulk(tokenizer, segment=how).read(text)
        parts = parts_of(found.ids, np.flatnonzero(found.words))
        return [shown for part in parts if (shown := tokenizer.decode(part).strip())]

    assert words(None) == list(text)
    assert words(lambda run: [run[:2], run[2:]]) == [text[:2], text[2:]]
    with pytest.raises(BertkitError, match="words must add up"):
        words(lambda run: [run[:-1]])


def test_nothing_depends_on_blocks(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n\n".join([TEXT[:3000], "One.  \nTwo.\n \nThree.", "\r\n\r\nx\r\n"])
    expected = Bulk(tokenizer).read(text)
    monkeypatch.setattr(lines, "BLOCK", 50)
    found = Bulk(tokenizer).read(text)
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(found[:4], expected[:4], strict=True))


def test_a_corpus_has_the_template_of_its_tokenizer(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n\n".join(TEXT.split("\n")[:20]), encoding="utf-8")
    build(files([str(tmp_path / "text.txt")]), tokenizer, tmp_path / "corpus", workers=1)
    corpus, template = Corpus(tmp_path / "corpus"), tokenizer.template
    for inputs, fields in ((FullSentences(64), None), (SegmentPairs(64), 2)):
        examples = Examples(corpus, inputs)
        flat = examples.read(0, range(examples.count(0)))
        assert flat.lengths.tolist() == examples.lengths(0, range(examples.count(0))).tolist()
        assert flat.lengths.max() <= 64
        around = len(template.start), len(template.end)
        for start, stop in zip(flat.starts[:-1], flat.starts[1:], strict=True):
            ids = flat.ids[start:stop].tolist()
            assert tuple(ids[: around[0]]) == template.start
            assert tuple(ids[len(ids) - around[1] :]) == template.end
            segments = flat.segments[start:stop].tolist()
            assert set(segments) <= set(template.segments)
            if fields:
                inner = ids[around[0] : len(ids) - around[1]]
                cut = next(
                    at for at in range(len(inner)) if tuple(inner[at : at + len(template.between)]) == template.between
                )
                parts = [inner[:cut], inner[cut + len(template.between) :]]
                assert template.filled(parts)[:2] == (ids, segments)
