"""Choosers: each by its paper's rule, written out slowly, and by what the rule means for many examples."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from bertkit.corpus.chance import key
from bertkit.corpus.examples import Examples
from bertkit.corpus.flat import Flat
from bertkit.corpus.inputs import FullSentences
from bertkit.errors import BertkitError
from bertkit.objectives.choose import Choose, Chosen, NGrams, Phrases, Pieces, Spans, WholeWords
from bertkit.objectives.mask import Mask, Vocabulary
from bertkit.spec import from_json, to_json
from bertkit.text import Tokenizer
from bertkit.text.bulk import Bulk
from bertkit.text.lexicon import Lexicon
from bertkit.text.segment import spaces
from tests.corpus.making import CLS, MASK, SEP, SPECIAL, Array, drawn, numbered, with_lexicon, write
from tests.objectives.rules import Slowly, instead, likely, odds

LEXICON = "names"
EVERY: list[Choose] = [
    Pieces(),
    WholeWords(),
    Phrases(LEXICON),
    NGrams(),
    NGrams(odds=(0, 1, 0, 2), words=False),
    Spans(),
    Spans(stop=0.6, longest=4),
]
NAMES = ["pieces", "words", "phrases", "n-grams", "n-grams of pieces", "spans", "short spans"]
RUNS = [choose for choose in EVERY if isinstance(choose, (NGrams, Spans))]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Examples:
    home = tmp_path_factory.mktemp("made")
    made = numbered(home / "plain", drawn(60, (1, 12), (1, 40)), shards=2, pieces=0.4)
    return Examples(with_lexicon(home / "c", made, LEXICON), FullSentences(64), lexicons=[LEXICON])


@pytest.fixture(scope="module")
def flat(examples: Examples) -> Flat:
    return examples.read(0, range(examples.count(0)))


@pytest.fixture(scope="module")
def vocabulary(examples: Examples) -> Vocabulary:
    return Vocabulary.of(examples.corpus.tokenizer)


def even(rows: int, length: int, seed: int = 0) -> Flat:
    """Examples of so many words, each a token; any two of them in a row are a phrase."""
    text = np.random.default_rng(seed).integers(len(SPECIAL), 1000, (rows, length))
    ids = np.pad(text, ((0, 0), (1, 1)), constant_values=((0, 0), (CLS, SEP))).astype(np.uint16)  # [B, length + 2]
    starts = np.arange(rows + 1) * (length + 2)
    whole, two = np.ones(ids.size, bool), np.tile(np.arange(length + 2) % 2 == 1, rows)
    keys = key(seed, np.arange(rows))
    return Flat(ids.ravel(), np.zeros(ids.size, np.uint8), whole, starts, keys, units={LEXICON: two})


def chosen(choose: Choose, flat: Flat, rate: float) -> tuple[Chosen, Array]:
    """What is taken, and how much may be."""
    free = flat.ids >= len(SPECIAL)
    count = np.add.reduceat(free.astype(int), flat.starts[:-1])
    room = np.array([max(1, round(rate * each)) for each in count.tolist()])
    return choose.chosen(flat, free, room), room


@pytest.mark.parametrize("rate", [0.15, 0.5])
@pytest.mark.parametrize("choose", EVERY, ids=NAMES)
def test_by_the_rule(flat: Flat, vocabulary: Vocabulary, choose: Choose, rate: float) -> None:
    (at, decided), room = chosen(choose, flat, rate)
    mask = Mask(choose, rate, random=0.3, keep=0.2)
    masked = mask.corrupt(flat, vocabulary)
    places: dict[int, int] = {}
    for row, most in enumerate(room.tolist()):
        found = Slowly(choose, flat, row, vocabulary.fixed).decided(most)
        places |= found
        for place, by in found.items():
            assert masked.ids[place] == instead(mask, flat, row, place, by, vocabulary)
    assert (at.tolist(), decided.tolist()) == (list(places), list(places.values()))
    assert masked.marks["mlm"][0].tolist() == list(places)
    untouched = np.delete(np.arange(len(flat.ids)), at)
    assert np.array_equal(masked.ids[untouched], flat.ids[untouched])


@pytest.mark.parametrize("choose", EVERY, ids=NAMES)
def test_the_room_is_filled_and_no_more(flat: Flat, choose: Choose) -> None:
    (at, _), room = chosen(choose, flat, 0.15)
    counts = np.bincount(np.searchsorted(flat.starts, at, "right") - 1, minlength=len(flat))
    assert np.all(counts <= room)
    assert counts.sum() > 0.95 * room.sum(), "15 % of the tokens but for words that did not fit"
    assert flat.ids[at].min() >= len(SPECIAL), "special tokens are never asked for"
    starts = flat.units[LEXICON] if isinstance(choose, Phrases) else flat.words
    if not isinstance(choose, Pieces) and choose != EVERY[4]:
        word = np.cumsum(starts)
        assert np.isin(word, word[at]).sum() == len(at), "no word and no phrase is broken"


@pytest.mark.parametrize("choose", [*EVERY[:3], NGrams(odds=(1,)), NGrams(odds=(1,), words=False)], ids=str)
def test_every_place_is_as_likely(choose: Choose) -> None:
    """Of n words k are taken, none twice, which makes the sum of χ² n (1 - k / n) / (n - 1) times as large."""
    rows, length = 3000, 40
    (at, _), _ = chosen(choose, even(rows, length), 0.15)
    counts = np.bincount(at % (length + 2), minlength=length + 2)
    assert counts[0] == counts[-1] == 0
    observed = counts[1:-1].reshape(-1, 2)[:, 0] if isinstance(choose, Phrases) else counts[1:-1]
    n, share = len(observed), 6 / length  # 6 tokens or 3 phrases of each
    spread = np.sqrt(n * (1 - share) / (n - 1))
    expected = np.full(n, rows * share)
    assert counts.sum() == rows * 6
    assert likely(expected + (observed - expected) / spread, expected, n - 1)


@pytest.mark.parametrize("choose", RUNS, ids=str)
def test_lengths_of_runs_are_as_likely_as_the_paper_says(vocabulary: Vocabulary, choose: NGrams | Spans) -> None:
    """As they are drawn, one text after the other, up to a number that was fixed before."""
    flat = even(100, 126)
    rows = (Slowly(choose, flat, row, vocabulary.fixed) for row in range(len(flat)))
    lengths = list(islice((length for row in rows for text in row.texts() for length in row.drawn(text)), 3000))
    assert len(lengths) == 3000
    likelihood = np.array(odds(choose))
    some = likelihood > 0
    observed = np.bincount(lengths, minlength=len(some) + 1)[1:]
    assert observed[~some].sum() == 0
    assert likely(observed[some], 3000 * likelihood[some], int(some.sum()) - 1)


def test_what_the_papers_say() -> None:
    """ALBERT: p(n) = 1/n over the sum of 1/k up to 3; SpanBERT: 3.8 words on average."""
    assert np.allclose(odds(NGrams()), [1 / n / (1 + 1 / 2 + 1 / 3) for n in (1, 2, 3)])
    assert round(float(np.dot(odds(Spans()), np.arange(1, 11))), 1) == 3.8


def test_lengths_of_spans_in_the_end() -> None:
    """In long texts, where few are cut by the room or the end of the text, those that are taken are so long as well."""
    (at, head), room = chosen(Spans(), even(20, 4000), 0.15)
    assert len(at) == room.sum()
    _, lengths = np.unique(head, return_counts=True)
    likelihood = np.array(odds(Spans()))
    assert lengths.max() == 10
    assert likely(np.bincount(lengths)[1:], len(lengths) * likelihood, 9)


@pytest.mark.parametrize("choose", [NGrams(), Spans()], ids=str)
def test_edges_are_masked_about_as_often(choose: Choose) -> None:
    """The first word of a text always begins a run, and the last run of an example may lose its end: not even, but
    near."""
    rows, length = 3000, 126
    (at, _), _ = chosen(choose, even(rows, length), 0.15)
    share = np.bincount(at % (length + 2), minlength=length + 2)[1:-1] / rows
    assert share.min() > 0.12
    assert share.max() < 0.19


def test_a_span_is_hidden_replaced_or_kept_as_one(vocabulary: Vocabulary) -> None:
    flat = even(1500, 126)
    (at, head), _ = chosen(Spans(), flat, 0.15)
    masked = Mask(Spans()).corrupt(flat, vocabulary)
    now, true = masked.ids[at].astype(int), flat.ids[at].astype(int)
    _, first, span, sizes = np.unique(head, return_index=True, return_inverse=True, return_counts=True)
    hidden, kept = np.bincount(span, now == MASK), np.bincount(span, now == true)
    assert np.all((hidden == 0) | (hidden == sizes))
    whole = sizes > 1  # a token that is drawn for itself looks as if it were kept
    replaced = whole & (hidden == 0) & (kept < sizes)
    assert kept[replaced].max() <= 1
    counts = np.array([(hidden == sizes)[whole].sum(), replaced.sum(), (kept == sizes)[whole].sum()])
    assert likely(counts, whole.sum() * np.array([0.8, 0.1, 0.1]), 2)
    others = now[replaced[span]]
    assert others.min() >= len(SPECIAL)
    neighbours = np.diff(now)[(np.diff(span) == 0) & replaced[span[1:]]]
    assert np.mean(neighbours == 0) < 0.01, "each token is drawn for itself"
    assert np.array_equal(at[first], np.unique(head))
    assert np.all(np.diff(at)[np.diff(span) == 0] == 1), "a span has no holes"


@pytest.mark.parametrize("choose", EVERY[:5], ids=NAMES[:5])
def test_other_tokens_are_decided_for_themselves(choose: Choose) -> None:
    (at, decided), _ = chosen(choose, even(50, 126), 0.15)
    assert np.array_equal(at, decided)


@pytest.mark.parametrize("choose", [NGrams(odds=(0, 0, 0, 1)), Spans(stop=0.01, longest=8)], ids=str)
def test_nothing_reaches_across_special_tokens(vocabulary: Vocabulary, choose: Choose) -> None:
    """[SEP] between segments and documents, the next example, and what a text spells."""
    flat = even(400, 30)
    ids = flat.ids.copy()
    ids[flat.starts[:-1] + 4], ids[flat.starts[:-1] + 9] = SEP, MASK
    ids[flat.starts[:-1]] = len(SPECIAL)  # examples without a [CLS]
    ids[flat.starts[1:] - 1] = len(SPECIAL)
    words = ids != MASK
    words[flat.starts[:-1]] = False
    flat = Flat(ids, flat.segments, words, flat.starts, flat.keys)
    free = ids >= len(SPECIAL)
    at, head = choose.chosen(flat, free, np.full(400, 8))
    slowly = [Slowly(choose, flat, row, vocabulary.fixed).decided(8) for row in range(20)]
    assert at[: 20 * 8].tolist() == [place for row in slowly for place in row]
    assert free[at].all()
    if isinstance(choose, Spans):
        between = np.cumsum(~free)
        assert np.array_equal(between[at], between[head])
        assert np.array_equal(flat.rows[at], flat.rows[head])


def test_chinese_words_by_their_stored_boundaries(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_vocabulary([*SPECIAL, *"我们喜欢学习自然语言处理的"])
    tokens = Bulk(tokenizer, segment=spaces).read("我们 喜欢 学习 自然语言 处理 的\n" * 40)
    read = Examples(write(tmp_path / "c", tokenizer, [tokens]), FullSentences(64)).read(0, range(8))
    for choose in (WholeWords(), NGrams(), Spans()):
        at, true = Mask(choose, rate=0.3).corrupt(read, Vocabulary.of(tokenizer)).marks["mlm"]
        runs = np.split(true, np.flatnonzero(np.diff(at) > 1) + 1)
        found = {word for run in runs for word in _words(tokenizer.decode(run.tolist()).replace(" ", ""))}
        assert found == {"我们", "喜欢", "学习", "自然语言", "处理", "的"}


def _words(run: str) -> list[str]:
    """The words of the sentence that a run is made of; what is left if it is not."""
    found = []
    while run:
        size = next(
            (len(word) for word in ("我们", "喜欢", "学习", "自然语言", "处理", "的") if run.startswith(word)), 99
        )
        found.append(run[:size])
        run = run[size:]
    return found


def test_phrases_are_masked_whole(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_vocabulary(
        [*SPECIAL, *["new", "york", "is", "in", "a", "state", "of", "mind", "##s", "the"]]
    )
    lexicon = Lexicon(["New York", "state of mind"], tokenizer)
    tokens = Bulk(tokenizer, lexicons={"places": lexicon}).read("New York is a state of mind in the minds\n" * 60)
    corpus = write(tmp_path / "c", tokenizer, [tokens])
    flat = Examples(corpus, FullSentences(64), lexicons=("places",)).read(0, range(10))
    seen = set()
    for rate in (0.1, 0.15, 0.3):
        at, _ = Mask(Phrases("places"), rate).corrupt(flat, Vocabulary.of(tokenizer)).marks["mlm"]
        masked = set(at.tolist())
        for start, size in zip(*_units(flat, "places"), strict=True):
            inside = masked & set(range(start, start + size))
            assert len(inside) in (0, size)
            seen |= {tokenizer.decode(flat.ids[start : start + size].tolist())} if inside else set()
    assert {"new york", "state of mind", "minds", "is"} <= seen


def _units(flat: Flat, lexicon: str) -> tuple[list[int], list[int]]:
    starts = np.flatnonzero(flat.units[lexicon])
    return starts.tolist(), np.diff(starts, append=len(flat.ids)).tolist()


def test_refused(examples: Examples, vocabulary: Vocabulary) -> None:
    for given in ((), (0, 0)):
        with pytest.raises(
            BertkitError, match=r"NGrams.odds are \(.*\): give odds of 1, 2, 3 … words, say \(6, 3, 2\)"
        ):
            NGrams(odds=given)
    with pytest.raises(BertkitError, match=r"NGrams.odds\[1\] is -1: it must be at least 0"):
        NGrams(odds=(1, -1))
    with pytest.raises(BertkitError, match=r"Spans.longest is 0: it must be at least 1"):
        Spans(longest=0)
    without = Examples(examples.corpus, FullSentences(64)).read(0, [0])
    with pytest.raises(BertkitError, match=r"unknown lexicon of these examples 'names': Known: none"):
        Mask(Phrases(LEXICON)).corrupt(without, vocabulary)


@pytest.mark.parametrize("choose", EVERY, ids=NAMES)
def test_specs_are_json(choose: Choose) -> None:
    assert from_json(to_json(Mask(choose))) == Mask(choose)
    assert choose.lexicons == ((LEXICON,) if isinstance(choose, Phrases) else ())
