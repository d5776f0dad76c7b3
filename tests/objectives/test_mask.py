"""Masking: rates and shares as BERT states them, whole words as Google chooses them, and no dependence on the batch."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.flat import Flat
from bertkit.corpus.inputs import FullSentences, SegmentPairs
from bertkit.errors import BertkitError
from bertkit.objectives import choose as choosing
from bertkit.objectives.choose import Choose, NGrams, Phrases, Pieces, Spans, WholeWords
from bertkit.objectives.mask import Mask, Vocabulary
from bertkit.text import Tokenizer
from tests.corpus.making import CLS, MASK, SEP, SPECIAL, Array, Made, drawn, numbered, with_lexicon
from tests.objectives.rules import likely, splitmix64

BOTH = [Pieces(), WholeWords()]
EVERY = [*BOTH, Phrases("names"), NGrams(), NGrams(words=False), Spans()]
NAMES = ["pieces", "whole words", "phrases", "n-grams", "n-grams of pieces", "spans"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    documents = drawn(200, (1, 12), (1, 40))
    return numbered(tmp_path_factory.mktemp("made") / "c", documents, shards=2, pieces=0.4)


@pytest.fixture(scope="module")
def corpus(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The same with a lexicon."""
    return with_lexicon(tmp_path_factory.mktemp("lexicon") / "c", made, "names")


@pytest.fixture(scope="module")
def vocabulary(made: Made) -> Vocabulary:
    return Vocabulary.of(made.corpus.tokenizer)


@pytest.fixture(scope="module")
def flat(corpus: Corpus) -> Flat:
    examples = Examples(corpus, FullSentences(64), lexicons=["names"])
    return examples.read(0, range(examples.count(0)))


def per_example(flat: Flat, at: Array) -> Array:
    return np.bincount(np.searchsorted(flat.starts, at, "right") - 1, minlength=len(flat))


def room(flat: Flat, rate: float) -> Array:
    """How many tokens of each example are asked for, by the words of the paper."""
    inner = [int((flat.ids[a:b] >= len(SPECIAL)).sum()) for a, b in zip(flat.starts, flat.starts[1:], strict=False)]
    return np.array([max(1, round(rate * count)) for count in inner])


@pytest.mark.parametrize("rate", [0.15, 0.4, 0.01, 0.99])
def test_the_rate_is_exact_for_pieces(flat: Flat, vocabulary: Vocabulary, rate: float) -> None:
    at, true = Mask(rate=rate).corrupt(flat, vocabulary).marks["mlm"]
    assert np.array_equal(per_example(flat, at), room(flat, rate))
    assert np.all(np.diff(at) > 0)
    assert np.array_equal(true, flat.ids[at])
    assert true.min() >= len(SPECIAL), "special tokens are never asked for"


def test_words_are_whole_and_fit(flat: Flat, vocabulary: Vocabulary) -> None:
    at, _ = Mask(WholeWords()).corrupt(flat, vocabulary).marks["mlm"]
    words = np.cumsum(flat.words)  # the word of each token
    sizes = np.bincount(words)
    chosen = np.unique(words[at])
    assert sizes[chosen].sum() == len(at), "no word is broken"
    counts, most = per_example(flat, at), room(flat, 0.15)
    assert np.all(counts <= most)
    assert counts.sum() > 0.97 * most.sum(), "words that do not fit leave their place to others"
    assert np.bincount(sizes[chosen])[1:5].all(), "of all sizes"


@pytest.mark.parametrize("choose", EVERY, ids=NAMES)
def test_most_are_hidden_some_replaced_some_kept(corpus: Corpus, vocabulary: Vocabulary, choose: Choose) -> None:
    """80, 10 and 10 % of what is decided together: tokens, or spans by their first ones."""
    counts, others = np.zeros(3), []
    examples = Examples(corpus, FullSentences(64), lexicons=choose.lexicons)
    for epoch in range(3):
        whole = examples.read(epoch, range(examples.count(epoch)))
        masked = Mask(choose).corrupt(whole, vocabulary)
        at, true = masked.marks["mlm"]
        now = masked.ids[at].astype(np.int64)
        other = (now != MASK) & (now != true)
        others.append(now[other])
        free = whole.ids >= len(SPECIAL)
        first = np.flatnonzero(choose.chosen(whole, free, room(whole, 0.15)).decided == at)
        counts += (now[first] == MASK).sum(), other[first].sum(), (now[first] == true[first]).sum()
        untouched = np.delete(np.arange(len(whole.ids)), at)
        assert np.array_equal(masked.ids[untouched], whole.ids[untouched])
    assert likely(counts, counts.sum() * np.array([0.8, 0.1, 0.1]), 2)
    drawn_ids = np.concatenate(others)
    assert drawn_ids.min() >= len(SPECIAL), "no special token stands for another"
    bins = np.bincount((drawn_ids - len(SPECIAL)) * 20 // len(vocabulary.ordinary), minlength=20)
    assert likely(bins, np.full(20, len(drawn_ids) / 20), 19), "any other token, each as likely"


def test_any_token_is_as_likely_as_any_other(made: Made, vocabulary: Vocabulary) -> None:
    """Also the last one of an example, and one in a long word when words are chosen."""
    examples = Examples(made.corpus, FullSentences(64))
    first, last, of = np.zeros(2), np.zeros(2), np.zeros(2)
    for epoch in range(6):
        flat = examples.read(epoch, range(examples.count(epoch)))
        for place, choose in enumerate(BOTH):
            at, _ = Mask(choose).corrupt(flat, vocabulary).marks["mlm"]
            chosen = np.zeros(len(flat.ids), bool)
            chosen[at] = True
            first[place] += chosen[flat.starts[:-1] + 1].sum()
            last[place] += chosen[flat.starts[1:] - 2].sum()
            of[place] += len(flat)
    for counts in (first, last):
        assert np.all(abs(counts - 0.15 * of) < 5 * (of * 0.15 * 0.85) ** 0.5)


@pytest.mark.parametrize("shares", [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.4, 0.6)])
def test_shares_are_the_users(flat: Flat, vocabulary: Vocabulary, shares: tuple[float, float]) -> None:
    masked = Mask(random=shares[0], keep=shares[1]).corrupt(flat, vocabulary)
    at, true = masked.marks["mlm"]
    now, of = masked.ids[at], len(at)
    for count, share in (((now == true).sum(), shares[1]), ((now == MASK).sum(), 1 - sum(shares))):
        assert abs(count - of * share) <= 4 * (of * share * (1 - share)) ** 0.5 + 1e-9
    with pytest.raises(BertkitError, match=r"Mask.random is 0.6 and Mask.keep is 0.5: together at most 1"):
        Mask(random=0.6, keep=0.5)


def google(words: list[list[int]], most: int) -> list[int]:
    """The loop of create_pretraining_data over words that are shuffled already, in our own words."""
    taken: list[int] = []
    for word in words:
        if len(taken) >= most:
            break
        if len(taken) + len(word) > most:
            continue
        taken += word
    return sorted(taken)


@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_whole_words_by_googles_rule(flat: Flat, vocabulary: Vocabulary, rate: float) -> None:
    at, _ = Mask(WholeWords(), rate=rate).corrupt(flat, vocabulary).marks["mlm"]
    most = room(flat, rate)
    expected = []
    for row in range(len(flat)):
        start, stop = int(flat.starts[row]), int(flat.starts[row + 1])
        words: list[list[int]] = []
        for place in range(start, stop):
            if flat.words[place]:
                words.append([])
            words[-1].append(place)
        words = [word for word in words if flat.ids[word[0]] not in (CLS, SEP)]
        key = int(flat.keys[row])
        order = sorted(range(len(words)), key=lambda n: (splitmix64(key, words[n][0] - start) >> 32, n))
        expected += google([words[number] for number in order], int(most[row]))
    assert at.tolist() == expected


@pytest.mark.parametrize("choose", EVERY, ids=NAMES)
def test_the_batch_makes_no_difference(corpus: Corpus, vocabulary: Vocabulary, choose: Choose) -> None:
    examples = Examples(corpus, SegmentPairs(64), seed=1, lexicons=choose.lexicons)
    mask, count = Mask(choose), examples.count(2)
    whole = mask.corrupt(examples.read(2, range(count)), vocabulary)
    draw = np.random.default_rng(0)
    for size in (1, 3, 50):
        asked = draw.integers(0, count, size)
        some = mask.corrupt(examples.read(2, asked), vocabulary)
        for row, index in enumerate(asked):
            one, expected = some.example(row), whole.example(int(index))
            assert np.array_equal(one["tokens"]["ids"], expected["tokens"]["ids"])
            assert np.array_equal(one["marks"]["mlm"][0], expected["marks"]["mlm"][0])
            assert np.array_equal(one["marks"]["mlm"][1], expected["marks"]["mlm"][1])


@pytest.mark.parametrize("choose", EVERY, ids=NAMES)
def test_giant_batches_are_masked_alike(
    flat: Flat, vocabulary: Vocabulary, choose: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Mask(choose).corrupt(flat, vocabulary)
    monkeypatch.setattr(choosing, "PACKED", 10)
    found = Mask(choose).corrupt(flat, vocabulary)
    assert np.array_equal(found.ids, expected.ids)
    assert np.array_equal(found.marks["mlm"][0], expected.marks["mlm"][0])


def test_epochs_mask_other_tokens(made: Made, vocabulary: Vocabulary) -> None:
    """Sentences that are the same in both epochs have masks of their own."""
    examples = Examples(made.corpus, FullSentences(64))
    chosen = []
    for epoch in (0, 1):
        masked = Mask().corrupt(examples.read(epoch, range(examples.count(epoch))), vocabulary)
        chosen.append(masked.marks["mlm"][1])
    both = len(np.intersect1d(*chosen))
    assert 0.1 < both / len(chosen[0]) < 0.2, "as many as chance has it: 15 %"


def test_copies_repeat_the_masks(made: Made, vocabulary: Vocabulary) -> None:
    """As in the original: so many masks of a text, over and over, in new orders."""
    examples = Examples(made.corpus, FullSentences(64), copies=2)

    def masked(epoch: int) -> list[bytes]:
        flat = Mask().corrupt(examples.read(epoch, range(examples.count(epoch))), vocabulary)
        ids, marks = flat.ids, flat.marks["mlm"]
        true = ids.copy()
        true[marks[0]] = marks[1]
        return [true[a:b].tobytes() + ids[a:b].tobytes() for a, b in pairwise(flat.starts)]

    first, second, third = (masked(epoch) for epoch in (0, 1, 2))
    assert first != third
    assert sorted(first) == sorted(third)
    assert not set(first) & set(second)


def test_special_tokens_of_the_text_and_unknown_ones() -> None:
    tokenizer = Tokenizer.from_vocabulary([*SPECIAL, "a", "b"])
    ids = np.array([2, 5, 3, 1, 4, 0, 6, 3], np.uint16)  # a text that spells [SEP], [UNK], [MASK] and [PAD]
    words = np.ones(8, bool)
    flat = Flat(ids, ids * 0, words, np.array([0, 8]), np.array([5], np.uint64), units={"names": words})
    for choose in EVERY:
        at, true = Mask(choose, rate=0.99).corrupt(flat, Vocabulary.of(tokenizer)).marks["mlm"]
        assert at.tolist() == [1, 3, 6], "an unknown word is a word"
        assert true.tolist() == [5, 1, 6]
    assert Vocabulary.of(tokenizer).ordinary.tolist() == [5, 6]


def test_one_word_that_is_too_long_is_left(vocabulary: Vocabulary) -> None:
    ids = np.array([2, 5, 6, 7, 3], np.uint16)
    flat = Flat(ids, ids * 0, np.array([1, 1, 0, 0, 1], bool), np.array([0, 5]), np.array([5], np.uint64))
    assert len(Mask(WholeWords()).corrupt(flat, vocabulary).marks["mlm"][0]) == 0, "as Google's rule has it"
    assert len(Mask().corrupt(flat, vocabulary).marks["mlm"][0]) == 1


def test_rates_are_shares() -> None:
    with pytest.raises(BertkitError, match=r"Mask.rate is 1.5: it must be below 1"):
        Mask(rate=1.5)
