"""An example is a function of the seed, the epoch and its number: whoever reads it, in whatever company."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertkit.corpus import examples as reading
from bertkit.corpus import shard
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.flat import Flat
from bertkit.corpus.inputs import DocSentences, FullSentences, Inputs, OrderPairs, SegmentPairs, SentencePairs
from bertkit.errors import BertkitError
from bertkit.objectives.choose import WholeWords
from bertkit.objectives.mask import Mask, Vocabulary
from bertkit.spec import to_json
from bertkit.text import Tokenizer
from bertkit.text.bulk import Bulk, Tokens
from bertkit.weights import find, folder
from tests.corpus.making import SPECIAL, Made, drawn, numbered, with_lexicon, write

EVERY = [FullSentences(64), DocSentences(64), SegmentPairs(64), SentencePairs(64), OrderPairs(64)]
NAMES = [type(inputs).__name__ for inputs in EVERY]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return numbered(tmp_path_factory.mktemp("made") / "c", drawn(100, (1, 15), (1, 30)), shards=7)


@pytest.fixture(params=[1 << 25, 3000], ids=["one stretch", "several"])
def stretch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(reading, "STRETCH", request.param)
    return int(request.param)


def rows(flat: Flat) -> list[str]:
    """Each example as text, with everything that belongs to it."""
    found = []
    for row in range(len(flat)):
        words = flat.words[flat.starts[row] : flat.starts[row + 1]].tolist()
        found.append(str(_plain(flat.example(row))) + str(words) + str(flat.keys[row]))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.tolist()


@pytest.mark.parametrize("inputs", EVERY, ids=NAMES)
def test_any_company_and_any_order(made: Made, inputs: Inputs, stretch: int) -> None:
    whole = Examples(made.corpus, inputs, seed=3)
    expected = {epoch: rows(whole.read(epoch, range(whole.count(epoch)))) for epoch in (0, 5)}
    draw = np.random.default_rng(0)
    fresh = Examples(Corpus(made.corpus.path), inputs, seed=3)
    for epoch in (5, 0, 5):
        count = len(expected[epoch])
        for size in (1, 2, 17, count):
            asked = draw.integers(0, count, size)
            assert rows(fresh.read(epoch, asked)) == [expected[epoch][index] for index in asked]
        assert fresh.count(epoch) == count


PROGRAM = """
import sys
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus import examples as reading
from bertkit.spec import from_json
import hashlib, json
reading.STRETCH = int(sys.argv[3])
examples = Examples(Corpus(sys.argv[1]), from_json(json.loads(sys.argv[2])), seed=8)
first, step = int(sys.argv[4]), 2
flat = examples.read(1, range(first, examples.count(1), step))
print(hashlib.sha256(flat.ids.tobytes() + flat.segments.tobytes() + flat.words.tobytes()).hexdigest())
assert "torch" not in sys.modules
"""


def test_processes_read_the_same(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "STRETCH", 3000)
    inputs = SegmentPairs(64)
    own = Examples(made.corpus, inputs, seed=8)
    for first in (0, 1):
        flat = own.read(1, range(first, own.count(1), 2))
        expected = hashlib.sha256(flat.ids.tobytes() + flat.segments.tobytes() + flat.words.tobytes()).hexdigest()
        arguments = [str(made.corpus.path), json.dumps(to_json(inputs)), "3000", str(first)]
        done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected


def test_epochs_and_seeds_have_orders_of_their_own(made: Made, stretch: int) -> None:
    def firsts(seed: int, epoch: int) -> list[int]:
        examples = Examples(made.corpus, DocSentences(512), seed)
        flat = examples.read(epoch, range(examples.count(epoch)))
        return flat.ids[flat.starts[:-1] + 1].tolist()

    one, two, other = firsts(0, 0), firsts(0, 1), firsts(1, 0)
    assert sorted(one) == sorted(two) == sorted(other), "documents that fit are whole in any epoch"
    assert np.mean(np.array(one) == two) < 0.1
    assert np.mean(np.array(one) == other) < 0.1
    assert abs(np.corrcoef(one, np.arange(len(one)))[0, 1]) < 0.5, "not in the order of the corpus"


def test_stretches_are_dealt_anew(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "STRETCH", 3000)
    examples = Examples(made.corpus, FullSentences(64))
    dealt = [examples._epoch(epoch).shards for epoch in range(6)]
    for shards in dealt:
        assert sorted(number for stretch in shards for number in stretch) == list(range(7))
        assert all(made.corpus.tokens[stretch].sum() >= 3000 for stretch in shards)
        assert len(shards) > 2
    assert len({str(shards) for shards in dealt}) == 6
    assert len(examples._stretches) == len(examples._epochs) == reading.KEPT, "memory does not grow with the corpus"


def test_examples_cross_process_borders_light(made: Made) -> None:
    examples = Examples(made.corpus, SegmentPairs(64), seed=4)
    expected = rows(examples.read(0, [3, 1]))
    sent = pickle.dumps(examples)
    assert len(sent) < 1000
    assert rows(pickle.loads(sent).read(0, [3, 1])) == expected


@pytest.mark.parametrize("inputs", EVERY, ids=NAMES)
def test_copies_come_again(made: Made, inputs: Inputs, stretch: int) -> None:
    ever, few = Examples(made.corpus, inputs, seed=3), Examples(made.corpus, inputs, seed=3, copies=3)
    every = range(ever.count(1))
    assert few.count(4) == few.count(1) == len(every)
    assert rows(few.read(1, every)) == rows(ever.read(1, every)), "the first are as ever"
    first, again = rows(few.read(1, every)), rows(few.read(4, every))
    assert sorted(first) == sorted(again), "with the same keys"
    assert np.mean(np.array(first) == np.array(again)) < 0.2, "in another order"
    assert rows(pickle.loads(pickle.dumps(few)).read(4, [5])) == again[5:6]
    with pytest.raises(BertkitError, match="copies is -1: give how many epochs are made, or 0 for ever new ones"):
        Examples(made.corpus, inputs, copies=-1)


def test_lexicons_that_are_asked_for(made: Made, tmp_path: Path, stretch: int) -> None:
    corpus = with_lexicon(tmp_path / "c", made, "names")
    examples = Examples(corpus, SegmentPairs(64), lexicons=["names"])
    examples = pickle.loads(pickle.dumps(examples))
    flat, plain = (one.read(0, range(200)) for one in (examples, Examples(corpus, SegmentPairs(64))))
    assert rows(flat) == rows(plain)
    assert plain.units == {}
    stored = np.concatenate([corpus.shard(n).units("names", 0, len(corpus.shard(n))) for n in range(len(corpus))])
    inner = flat.ids >= len(SPECIAL)
    begins = np.append(False, ~inner[:-1])  # after [CLS] and [SEP]
    expected = ~inner | begins
    expected[inner] |= stored[made.places(flat.ids[inner])]
    assert np.array_equal(flat.units["names"], expected)
    assert flat.units["names"].sum() < 0.8 * flat.words.sum()
    said = r"c has no lexicon 'nmes', it has: names. Build it with .*: bertkit corpus build ... --lexicon nmes=FILE"
    with pytest.raises(BertkitError, match=said):
        Examples(corpus, SegmentPairs(64), lexicons=["nmes"])
    with pytest.raises(BertkitError, match="has no lexicon 'names', it has: none"):
        Examples(made.corpus, SegmentPairs(64), lexicons=["names"])


def test_counting_reads_no_ids(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus(made.corpus.path)
    for number in range(len(corpus)):
        corpus.shard(number).ids = np.empty(0, np.uint16)
    for inputs in EVERY:
        examples = Examples(corpus, inputs)
        assert examples.lengths(0, range(examples.count(0))).min() >= reading.SHORTEST


def test_two_phases_from_one_corpus(made: Made) -> None:
    first, second = Examples(made.corpus, FullSentences(128)), Examples(made.corpus, FullSentences(512))
    tokens = made.corpus.tokens.sum()
    for examples, length in ((first, 128), (second, 512)):
        flat = examples.read(0, range(examples.count(0)))
        assert flat.lengths.max() <= length
        assert (flat.ids >= len(SPECIAL)).sum() == tokens
        assert flat.lengths.mean() > 0.8 * length
    assert first.count(0) > 3.5 * second.count(0)


@pytest.mark.parametrize("inputs", [DocSentences(64), SegmentPairs(64)], ids=["DocSentences", "SegmentPairs"])
@pytest.mark.parametrize("tokens", [64, 500, 20_000])
def test_batches_have_equal_tokens(
    made: Made, inputs: Inputs, tokens: int, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WINDOW", 1)
    examples = Examples(made.corpus, inputs)
    found = list(examples.batches(2, tokens))
    assert [index for batch in found for index in batch] == list(range(examples.count(2)))
    lengths = examples.lengths(2, range(examples.count(2)))
    for batch in found[:-1]:
        total = lengths[batch.start : batch.stop].sum()
        assert total <= tokens < total + lengths[batch.stop], "full, and not one more would fit"
    assert list(examples.batches(2, tokens, first=found[len(found) // 2].start)) == found[len(found) // 2 :]
    with pytest.raises(BertkitError, match="batches of 63 tokens cannot hold an example of 64: give more"):
        next(examples.batches(2, 63))


def test_examples_that_are_not_there(made: Made) -> None:
    examples = Examples(made.corpus, FullSentences(64))
    count = examples.count(0)
    for asked, shown in (([0, count], f"0 to {count}"), ([-1], "-1 to -1"), ([], "none")):
        with pytest.raises(BertkitError, match=f"epoch 0 has the examples 0 to {count - 1}; asked for: {shown}"):
            examples.read(0, asked)


def test_ids_beyond_the_vocabulary(tmp_path: Path) -> None:
    corpus = numbered(tmp_path / "c", [[3, 4], [5]]).corpus
    bounds = np.array([0, 3, 7], np.uint32), np.array([0, 2], np.uint32)
    tokens = Tokens(np.full(12, 60_000, np.uint16), np.ones(12, bool), *bounds)
    shard.write(corpus.path / "shard-00000.safetensors", tokens)
    with pytest.raises(BertkitError, match=r"holds the id 60000, but the last token is 16"):
        Examples(Corpus(corpus.path), FullSentences(16)).read(0, [0])


def test_one_example_alone(made: Made) -> None:
    flat = Examples(made.corpus, SegmentPairs(64)).read(0, range(20))
    masked = Mask(WholeWords()).corrupt(flat, Vocabulary.of(made.corpus.tokenizer))
    for row in range(20):
        one, true = masked.example(row), flat.example(row)
        at, values = one["marks"]["mlm"]
        assert np.array_equal(true["tokens"]["ids"][at], values)
        others = np.delete(np.arange(len(one["tokens"]["ids"])), at)
        assert np.array_equal(one["tokens"]["ids"][others], true["tokens"]["ids"][others])
        assert one["labels"]["next"] == flat.labels["next"][row]
    assert sum(len(masked.example(row)["marks"]["mlm"][0]) for row in range(20)) == len(masked.marks["mlm"][0])


def test_real_text(shared: Path, tmp_path: Path) -> None:
    """Sentences of Wikipedia, read back in full."""
    tokenizer: Tokenizer = folder.read_tokenizer(find.find("minilm"))
    with gzip.open(shared / "data" / "wikitext-2" / "valid.txt.gz", "rt", encoding="utf-8") as file:
        text = file.read(400_000)
    tokens = Bulk(tokenizer).read(text)
    examples = Examples(write(tmp_path / "c", tokenizer, [tokens]), FullSentences(128))
    flat = examples.read(0, range(examples.count(0)))
    special = np.isin(flat.ids, [tokenizer.cls_id, tokenizer.sep_id])
    assert np.array_equal(np.sort(flat.ids[~special]), np.sort(tokens.ids))
    bounds = np.append(tokens.sentences, len(tokens.ids)).tolist()
    sentences = [
        tokenizer.decode(tokens.ids[start:stop].tolist()) for start, stop in pairwise(bounds) if stop - start <= 126
    ]
    decoded = [tokenizer.decode(flat.ids[a:b].tolist()) for a, b in pairwise(flat.starts)]
    joined = "\n".join(decoded)
    assert all(sentence in joined for sentence in sentences[::20])
    assert flat.lengths.mean() > 100
