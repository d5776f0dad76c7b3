"""Opening a corpus: what does not fit together is refused with one clear error."""

from __future__ import annotations

import json
import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertkit.corpus import corpus as opening
from bertkit.corpus import shard, source
from bertkit.corpus.build import build
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.source import files
from bertkit.corpus.units import Units
from bertkit.errors import BertkitError
from bertkit.text import Tokenizer
from bertkit.text.bulk import Tokens
from tests.corpus.making import drawn, numbered, write

Index = dict[str, Any]


def changed(path: Path, change: Callable[[Index], None]) -> None:
    index = json.loads((path / "corpus.json").read_text())
    change(index)
    (path / "corpus.json").write_text(json.dumps(index))


def test_what_was_built_opens(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PIECE", 20)
    (tmp_path / "a.txt").write_text("the cat. a dog\n\nruns")
    (tmp_path / "b.txt").write_text("a mat")
    index = build(files([str(tmp_path)]), tokenizer, tmp_path / "shards")
    corpus = Corpus(tmp_path / "shards")
    assert len(corpus) == 2
    for name in ("tokens", "words", "sentences", "documents"):
        assert getattr(corpus, name).tolist() == [entry[name] for entry in index["shards"]]
    assert corpus.documents.tolist() == [2, 1]
    assert corpus.tokenizer.decode(corpus.shard(1).ids.tolist()) == "a mat"
    corpus.require(tokenizer)


def test_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"none is no corpus: it has no corpus.json. Build one: bertkit corpus"):
        Corpus(tmp_path / "none")
    (tmp_path / "grows.partial").mkdir()
    with pytest.raises(BertkitError, match=r"grows is not finished \(grows.partial is\). Repeat the command"):
        Corpus(tmp_path / "grows")
    (tmp_path / "corpus.json").write_text("{")
    with pytest.raises(BertkitError, match=r"corpus.json is not valid JSON"):
        Corpus(tmp_path)


def test_indexes_that_cannot_be_right(tmp_path: Path) -> None:
    path = numbered(tmp_path / "c", [[3, 4], [5]], shards=2).corpus.path

    def refused(change: Callable[[Index], None], message: str) -> None:
        before = (path / "corpus.json").read_text()
        changed(path, change)
        with pytest.raises(BertkitError, match=message):
            Corpus(path)
        (path / "corpus.json").write_text(before)

    refused(lambda index: index.update(version=2), r"version 2, and this bertkit reads version 1. Copy the corpus")
    refused(lambda index: index.pop("tokenizer"), "names no tokenizer")
    refused(lambda index: index.update(shards=[]), "no shards")
    refused(lambda index: index.update(vocabulary="9"), "how large the vocabulary is")
    refused(lambda index: index["shards"][1].update(tokens=-1), "its shard 1 has no file name or counts")
    refused(lambda index: index["shards"][0].update(documents=2**40), "its shard 0 has no file name or counts")
    refused(lambda index: index["shards"][0].update(file="../../etc/passwd"), "its shard 0 has no file name or counts")
    (path / "shard-00001.safetensors").unlink()
    with pytest.raises(BertkitError, match=r"1 of 2 shards are missing: shard-00001.safetensors"):
        Corpus(path)


def test_another_tokenizer_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    made = numbered(tmp_path / "c", [[3, 4], [5]])
    with pytest.raises(BertkitError, match=r"this tokenizer \(27 tokens\) is not the one that made c \(17 tokens"):
        made.corpus.require(tokenizer)
    for path in (made.corpus.path / "tokenizer").iterdir():
        path.unlink()
    tokenizer.save_files(made.corpus.path / "tokenizer")
    with pytest.raises(BertkitError, match=r"c/tokenizer is not the tokenizer that made these shards"):
        _ = Corpus(made.corpus.path).tokenizer


@pytest.mark.parametrize(
    ("sentences", "documents", "message"),
    [
        ([0, 5, 3], [0, 1], "not in order"),
        ([0, 3, 3], [0, 1], "not in order"),
        ([1, 3, 5], [0, 1], "not in order"),
        ([0, 3, 5], [0, 0], "not in order"),
        ([0, 3, 5], [1, 2], "not in order"),
        ([0, 3], [0, 1], "other counts of tokens, sentences or documents than corpus.json says"),
    ],
)
def test_shards_out_of_order(tmp_path: Path, sentences: list[int], documents: list[int], message: str) -> None:
    corpus = numbered(tmp_path / "c", [[3], [2, 4]]).corpus
    arrays = (np.array(values, np.uint32) for values in (sentences, documents))
    tokens = Tokens(np.arange(5, 14, dtype=np.uint16), np.ones(9, bool), *arrays)
    shard.write(corpus.path / "shard-00000.safetensors", tokens)
    with pytest.raises(BertkitError, match=message):
        Corpus(corpus.path).shard(0)


def test_ids_of_another_width(tmp_path: Path) -> None:
    corpus = numbered(tmp_path / "c", [[3], [2]]).corpus
    tokens = Tokens(np.arange(5, dtype=np.uint32), np.ones(5, bool), *np.array([[0, 3], [0, 1]], np.uint32))
    shard.write(corpus.path / "shard-00000.safetensors", tokens)
    with pytest.raises(BertkitError, match="has uint32 ids, other than its vocabulary needs"):
        corpus.shard(0)


def test_few_shards_are_open_and_each_process_opens_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "OPEN", 3)
    corpus = numbered(tmp_path / "c", drawn(10, (1, 3), (1, 5)), shards=10).corpus
    for number in (0, 1, 2, 0, 3):
        corpus.shard(number)
    assert list(corpus._opened) == [2, 0, 3]
    sent = pickle.dumps(corpus)
    assert len(sent) < 1000
    assert np.array_equal(pickle.loads(sent).shard(7).ids, corpus.shard(7).ids)


def test_hostile_indexes(tmp_path: Path) -> None:
    path = numbered(tmp_path / "c", [[3, 4], [5]], shards=2).corpus.path
    good, draw = (path / "corpus.json").read_bytes(), random.Random(0)
    for _ in range(150):
        data = bytearray(good)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        (path / "corpus.json").write_bytes(data[: draw.choice([len(data), draw.randrange(len(data))])])
        try:
            corpus = Corpus(path)
            for number in range(len(corpus)):
                corpus.shard(number)
        except BertkitError as error:
            assert re.search(r"corpus.json|shard-", str(error))  # noqa: PT017


# Units ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_units_are_sentences_in_the_order_of_the_shards(tmp_path: Path) -> None:
    documents = drawn(9, (1, 6), (1, 20))
    made = numbered(tmp_path / "c", documents, shards=3)
    units = Units(made.corpus, [2, 0], 20)
    lengths = [length for some in (documents[6:], documents[:3]) for document in some for length in document]
    assert np.diff(units.starts).tolist() == lengths
    assert np.diff(units.documents).tolist() == [len(document) for document in documents[6:] + documents[:3]]
    assert np.diff(units.shards).tolist() == made.corpus.tokens[[2, 0]].tolist()
    counts = [len(document) for document in documents[6:] + documents[:3]]
    assert units.document_of(np.arange(len(units))).tolist() == np.repeat(np.arange(6), counts).tolist()


@pytest.mark.parametrize("longest", [2, 5, 13, 30, 62])
def test_long_sentences_are_cut_before_words(tmp_path: Path, longest: int) -> None:
    made = numbered(tmp_path / "c", [[1000, 3, longest, longest + 1], [2 * longest, 1]], shards=2, pieces=0.5)
    units = Units(made.corpus, [0, 1], longest)
    sizes = np.diff(units.starts)
    assert sizes.min() > 0
    assert sizes.max() <= longest
    assert set(np.flatnonzero(np.diff(made.sentence, prepend=-1))) <= set(units.starts.tolist())
    heads = units.starts[units.documents[:-1]]
    assert heads.tolist() == np.flatnonzero(np.diff(made.document, prepend=-1)).tolist()
    if longest >= 30:
        assert np.all(made.words[units.starts[:-1]]), "a word of nine tokens is rare"
        assert np.sort(sizes)[2:].min() > longest // 3, "parts are about equal"
    whole = np.zeros(made.corpus.tokens.sum(), np.uint16)
    words = np.zeros(len(whole), bool)
    units.copy(units.starts[:-1], sizes, whole, words, units.starts[:-1])
    assert np.array_equal(made.places(whole), np.arange(len(whole)))
    assert np.array_equal(words, made.words)
    assert np.array_equal(units.words(5, 40), made.words[5:40])


def test_a_corpus_of_real_sentences(tmp_path: Path, tokenizer: Tokenizer) -> None:
    from bertkit.text.bulk import Bulk

    parts = [Bulk(tokenizer).read(text) for text in ("The cat sat. A dog runs.\n\nPlaying!", "猫坐")]
    corpus = write(tmp_path / "c", tokenizer, parts)
    units = Units(corpus, [0, 1], 30)
    assert units.starts.tolist() == [0, 4, 8, 11, 13]
    assert units.documents.tolist() == [0, 2, 3, 4]
