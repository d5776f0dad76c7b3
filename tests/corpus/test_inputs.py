"""Ways to make examples, each checked token by token against where its tokens are in the corpus."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from bertkit.corpus import examples as reading
from bertkit.corpus.examples import Examples
from bertkit.corpus.inputs import DocSentences, FullSentences, Inputs, OrderPairs, SegmentPairs, SentencePairs
from bertkit.errors import BertkitError
from bertkit.spec import from_json, to_json
from tests.corpus.making import CLS, SEP, Array, Made, drawn, numbered

EVERY = [FullSentences, DocSentences, SegmentPairs, SentencePairs, OrderPairs]


class Seen(NamedTuple):
    """One example, told by where its tokens are in the corpus."""

    length: int
    parts: list[Array]
    """what is between special tokens"""
    labels: dict[str, Any]


def seen(made: Made, inputs: Inputs, epoch: int = 0, seed: int = 0) -> list[Seen]:
    """All examples of an epoch, their special tokens, segments and words checked."""
    examples = Examples(made.corpus, inputs, seed)
    flat = examples.read(epoch, range(examples.count(epoch)))
    assert np.array_equal(flat.lengths, examples.lengths(epoch, range(len(flat))))
    assert flat.lengths.max() <= inputs.length
    found = []
    for row in range(len(flat)):
        start, stop = flat.starts[row], flat.starts[row + 1]
        ids, words = flat.ids[start:stop], flat.words[start:stop]
        assert ids[0] == CLS
        assert ids[-1] == SEP
        borders = np.flatnonzero(ids == SEP)
        parts = [made.places(part[:-1]) for part in np.split(ids[1:], borders[:-1])]
        assert all(len(part) for part in parts)
        assert all(np.array_equal(part, np.arange(part[0], part[0] + len(part))) for part in parts), "text in a row"
        assert all(len(set(made.document[part])) == 1 for part in parts)
        expected = np.concatenate([np.ones(1, bool), *(_words(made, part) for part in parts)])
        assert np.array_equal(words, expected)
        if flat.labels:
            assert len(parts) == 2
            second = np.arange(len(ids)) > borders[0]
            assert np.array_equal(flat.segments[start:stop], second)
        else:
            assert not flat.segments[start:stop].any()
        found.append(Seen(len(ids), parts, {name: int(values[row]) for name, values in flat.labels.items()}))
    return found


def _words(made: Made, part: Array) -> Array:
    words = np.append(made.words[part], True)
    words[0] = True
    return words


def ends_whole(made: Made, part: Array) -> bool:
    """Whether a part begins and ends with a sentence."""
    sentence = np.append(made.sentence, -1)
    return bool(sentence[part[0] - 1] != sentence[part[0]] and sentence[part[-1] + 1] != sentence[part[-1]])


def first_of_document(made: Made, place: int) -> bool:
    return place == 0 or bool(made.document[place - 1] != made.document[place])


def within(count: int, of: int, share: float) -> bool:
    """Whether a count is within four standard deviations of its share."""
    return abs(count - of * share) <= 4 * (of * share * (1 - share)) ** 0.5


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """150 documents of some sentences, in 5 shards; 23,000 tokens."""
    return numbered(tmp_path_factory.mktemp("plain") / "c", drawn(150, (2, 20), (2, 25)), shards=5)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Many documents of one or two sentences."""
    return numbered(tmp_path_factory.mktemp("short") / "c", drawn(900, (1, 2), (1, 12)), shards=3)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Sentences of a thousand tokens among others."""
    documents = drawn(30, (1, 5), (1, 30))
    for document in documents[::3]:
        document[0] = 1000
    return numbered(tmp_path_factory.mktemp("long") / "c", documents, shards=2)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two documents, in one shard, of sentences with one token each."""
    return numbered(tmp_path_factory.mktemp("two") / "c", [[1] * 12_000, [1] * 13_000], pieces=0.0)


# Sentences in a row ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("corpus", ["plain", "short", "long"])
@pytest.mark.parametrize("length", [16, 64])
@pytest.mark.parametrize("kind", [FullSentences, DocSentences])
def test_every_token_is_in_one_example_of_an_epoch(
    request: pytest.FixtureRequest, corpus: str, kind: type[Inputs], length: int
) -> None:
    made: Made = request.getfixturevalue(corpus)
    for epoch in (0, 1):
        examples = seen(made, kind(length), epoch)
        places = np.concatenate([part for example in examples for part in example.parts])
        assert np.array_equal(np.sort(places), np.arange(len(made.sentence)))


def test_full_sentences_cross_documents_with_a_sep(plain: Made) -> None:
    sizes = np.bincount(plain.sentence)
    for length in (48, 128):
        examples = seen(plain, FullSentences(length))
        for example in examples:
            assert all(ends_whole(plain, part) for part in example.parts)
            for one, other in zip(example.parts, example.parts[1:], strict=False):
                assert first_of_document(plain, other[0])
                assert one[-1] + 1 == len(plain.document) or first_of_document(plain, one[-1] + 1)
        lengths = np.array([example.length for example in examples])
        assert lengths.mean() > length - 0.5 * sizes.mean() - length / 25 - 3, "they are full"


def test_full_sentences_take_what_fits(plain: Made) -> None:
    """But for one in eight, the sentence after an example would not have fitted."""
    length, sizes = 64, np.bincount(plain.sentence)
    left = of = 0
    for example in seen(plain, FullSentences(length)):
        after = example.parts[-1][-1] + 1
        if after == len(plain.sentence) or after in np.cumsum(plain.corpus.tokens):
            continue  # what follows is in another shard
        border = first_of_document(plain, after)
        of += 1
        left += example.length + sizes[plain.sentence[after]] + border <= length
    assert within(left, of, 1 / 8)


def test_documents_stay_apart(plain: Made, short: Made) -> None:
    for made, length in ((plain, 64), (short, 32)):
        examples = seen(made, DocSentences(length))
        assert all(len(example.parts) == 1 and ends_whole(made, example.parts[0]) for example in examples)
        sizes = np.bincount(made.document)
        whole = Counter(int(made.document[example.parts[0][0]]) for example in examples)
        assert all(whole[document] == 1 for document in np.flatnonzero(sizes <= length - 2))
        assert all(whole[document] > 1 for document in np.flatnonzero(sizes > length - 2))


@pytest.mark.parametrize("kind", [FullSentences, DocSentences])
def test_epochs_are_cut_at_other_places_all_along(plain: Made, kind: type[Inputs]) -> None:
    def cuts(epoch: int, length: int) -> set[int]:
        places = {int(example.parts[0][0]) for example in seen(plain, kind(length), epoch)}
        return {place for place in places if not first_of_document(plain, place)}

    for length, shared_at_most in ((64, 0.75), (128, 0.6)):
        one, two = cuts(0, length), cuts(1, length)
        assert len(one & two) < shared_at_most * len(one)
        late = {place for place in one if place > len(plain.sentence) // 2}
        assert len(late & two) < shared_at_most * len(late)
        assert cuts(0, length) == one


# Pairs ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_next(made: Made, examples: list[Seen]) -> tuple[int, int]:
    """How many second segments are random, of how many; each is what its label says."""
    for example in examples:
        a, b = example.parts
        if example.labels["next"]:
            assert made.document[a[0]] != made.document[b[0]]
        else:
            assert b[0] == a[-1] + 1
            assert made.document[a[0]] == made.document[b[0]]
    return sum(example.labels["next"] for example in examples), len(examples)


@pytest.mark.parametrize("length", [32, 128])
def test_segment_pairs_are_half_and_half(plain: Made, length: int) -> None:
    random = of = cut = 0
    for epoch in range(3):
        examples = seen(plain, SegmentPairs(length), epoch)
        some, all_ = check_next(plain, examples)
        random, of = random + some, of + all_
        cut += sum(not ends_whole(plain, example.parts[1]) for example in examples if example.labels["next"])
        used = [part for example in examples for part in example.parts[: 2 - example.labels["next"]]]
        assert np.array_equal(np.sort(np.concatenate(used)), np.arange(len(plain.sentence))), "nothing is lost"
    assert within(random, of, 0.5)
    if length == 128:
        assert cut < 0.02 * random, "random segments are whole sentences, as the others are"


@pytest.mark.parametrize("share", [0.0, 0.2, 0.9])
def test_the_coin_is_the_users(plain: Made, share: float) -> None:
    random, of = check_next(plain, seen(plain, SegmentPairs(64, random=share)))
    assert within(random, of, share)


@pytest.mark.parametrize("corpus", ["short", "long", "two"])
def test_random_segments_are_of_another_document(request: pytest.FixtureRequest, corpus: str) -> None:
    made: Made = request.getfixturevalue(corpus)
    examples = seen(made, SegmentPairs(48))
    random, of = check_next(made, examples)
    alone = sum(example.labels["next"] and made.words[example.parts[0]].sum() == 1 for example in examples)
    assert within(random - alone, of - alone, 0.5) or corpus == "short"
    used = [part for example in examples for part in example.parts[: 2 - example.labels["next"]]]
    assert np.array_equal(np.sort(np.concatenate(used)), np.arange(len(made.sentence)))


def test_single_sentences_are_cut_before_a_word(short: Made) -> None:
    cut = 0
    for example in seen(short, SegmentPairs(48)):
        a, b = example.parts
        if not example.labels["next"] and short.sentence[a[-1]] == short.sentence[b[0]]:
            assert short.words[b[0]]
            cut += 1
    assert cut > 100


def test_partners_come_from_all_documents_alike(tmp_path: Path) -> None:
    made = numbered(tmp_path / "c", [[3] * count for count in (2000, 30, 300, 100, 700)], shards=2)
    partners: Counter[int] = Counter()
    for epoch in range(3):
        for example in seen(made, SegmentPairs(16), epoch):
            a, b = (int(made.document[part[0]]) for part in example.parts)
            if example.labels["next"] and a == 0:
                partners[b] += 1
    assert sorted(partners) == [1, 2, 3, 4]
    assert all(within(count, partners.total(), 1 / 4) for count in partners.values())


def test_partners_come_from_other_shards_too(plain: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = np.cumsum(plain.corpus.tokens)

    def shards(example: Seen) -> list[int]:
        return [int(np.searchsorted(bounds, part[0], "right")) for part in example.parts]

    def crossing() -> set[tuple[int, int]]:
        random = [shards(example) for example in seen(plain, SegmentPairs(64)) if example.labels["next"]]
        return {(a, b) for a, b in random}

    assert len(crossing()) == 25, "any shard with any"
    monkeypatch.setattr(reading, "STRETCH", 7_000)
    assert 5 < len(crossing()) < 25, "within a stretch"
    monkeypatch.setattr(reading, "STRETCH", 1)
    assert crossing() == {(number, number) for number in range(5)}


def test_lengths_of_pairs_are_as_the_target_says(two: Made) -> None:
    """Sentences of one token fill any target: it is the room in nine of ten, else any number from two on."""
    length = 35
    room, totals, firsts = length - 3, [], []
    for epoch in range(4):
        for example in seen(two, SegmentPairs(length), epoch):
            totals.append(example.length - 3)
            firsts.append(len(example.parts[0]))
    below_room = [total for total in totals if total < room]
    assert within(len(below_room), len(totals), 0.1 * (room - 2) / (room - 1))
    counts = Counter(below_room)
    assert sorted(counts) == list(range(2, room))
    assert all(within(count, len(below_room), 1 / (room - 2)) for count in counts.values())
    full = [first for total, first in zip(totals, firsts, strict=True) if total == room]
    cuts = Counter(full)
    assert sorted(cuts) == list(range(1, room)), "the cut is anywhere"
    assert all(within(count, len(full), 1 / (room - 1)) for count in cuts.values())


def test_short_examples_can_be_switched_off(two: Made) -> None:
    lengths = [example.length for example in seen(two, SegmentPairs(35, short=0.0))]
    assert sum(length < 35 for length in lengths) < 8, "only where a document ends"


def test_lengths_tell_no_labels(tmp_path: Path) -> None:
    """In long documents; at the end of one the next text is short, and a random one is not."""
    made = numbered(tmp_path / "c", drawn(4, (400, 400), (2, 25)))
    found: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
    for epoch in range(4):
        for example in seen(made, SegmentPairs(128), epoch):
            found[example.labels["next"]].append((len(example.parts[0]), len(example.parts[1])))
    means = {label: np.mean(sizes, 0) for label, sizes in found.items()}
    assert np.all(abs(means[0] - means[1]) < 6), means
    assert abs(means[0][0] - means[0][1]) < 6, means


def test_sentence_pairs_are_natural_sentences(plain: Made) -> None:
    random = of = 0
    for epoch in range(2):
        examples = seen(plain, SentencePairs(64), epoch)
        some, all_ = check_next(plain, examples)
        random, of = random + some, of + all_
        for example in examples:
            assert all(ends_whole(plain, part) and len(set(plain.sentence[part])) == 1 for part in example.parts)
        used = {int(plain.sentence[part[0]]) for example in examples for part in example.parts}
        assert len(used) == plain.sentence[-1] + 1
    assert within(random, of, 0.5)


def test_a_document_of_one_sentence_has_random_neighbours_only(tmp_path: Path) -> None:
    made = numbered(tmp_path / "c", [[4], [5], [6], [7, 8]])
    for epoch in range(10):
        for example in seen(made, SentencePairs(32), epoch):
            assert example.labels["next"] == 1 or made.document[example.parts[0][0]] == 3
    assert {example.labels["next"] for epoch in range(10) for example in seen(made, SentencePairs(32), epoch)} == {0, 1}


@pytest.mark.parametrize("corpus", ["plain", "short", "long"])
def test_order_pairs_are_neighbours_in_either_order(request: pytest.FixtureRequest, corpus: str) -> None:
    made: Made = request.getfixturevalue(corpus)
    swapped = of = 0
    for epoch in range(2):
        examples = seen(made, OrderPairs(64), epoch)
        for example in examples:
            a, b = example.parts[::-1] if example.labels["order"] else example.parts
            assert b[0] == a[-1] + 1
            assert made.document[a[0]] == made.document[b[0]]
        swapped += sum(example.labels["order"] for example in examples)
        of += len(examples)
        places = np.sort(np.concatenate([part for example in examples for part in example.parts]))
        missing = np.setdiff1d(np.arange(len(made.sentence)), places)
        assert len(places) == len(np.unique(places))
        sizes = np.bincount(made.sentence)
        assert np.all(sizes[made.sentence[missing]] == 1), "only a sentence of one token is left out"
        assert len(missing) < 0.02 * len(made.sentence)
    assert within(swapped, of, 0.5)


# All of them ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("length", [8, 11, 512])
def test_no_example_is_too_long(kind: type[Inputs], length: int, long: Made, short: Made) -> None:
    for made in (long, short):
        examples = Examples(made.corpus, kind(length))
        assert examples.read(0, range(examples.count(0))).lengths.max() <= length


@pytest.mark.parametrize("kind", [SegmentPairs, SentencePairs])
def test_one_document_has_no_other(kind: type[Inputs], tmp_path: Path) -> None:
    made = numbered(tmp_path / "c", [[3, 4, 5]])
    with pytest.raises(BertkitError, match=rf"{kind.__name__} takes text from another document, and .* holds only one"):
        Examples(made.corpus, kind(32))
    for other in (FullSentences, DocSentences, OrderPairs):
        assert len(seen(made, other(32))) == 1


def test_one_token_makes_no_order(tmp_path: Path) -> None:
    made = numbered(tmp_path / "c", [[1], [1]])
    with pytest.raises(BertkitError, match="has too little text for OrderPairs"):
        Examples(made.corpus, OrderPairs(32)).count(0)


@pytest.mark.parametrize("kind", EVERY)
def test_specs_are_json(kind: type[Inputs]) -> None:
    assert from_json(to_json(kind(128))) == kind(128)
    with pytest.raises(BertkitError, match=rf"{kind.__name__}.length is 7: it must be at least 8"):
        kind(7)
