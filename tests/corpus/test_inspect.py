"""What a person sees of examples."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bertkit.corpus.examples import Examples
from bertkit.corpus.flat import Flat
from bertkit.corpus.inputs import FullSentences, OrderPairs, SegmentPairs
from bertkit.corpus.inspect import rendered, shown
from bertkit.objectives.mask import Mask, Vocabulary
from bertkit.text import Tokenizer
from bertkit.text.bulk import Bulk
from tests.corpus.making import drawn, numbered, write


def test_pairs_are_told_apart(tmp_path: Path, tokenizer: Tokenizer) -> None:
    corpus = write(tmp_path / "c", tokenizer, [Bulk(tokenizer).read("The cat sat.\n\nA dog runs.")])
    examples = Examples(corpus, SegmentPairs(32, random=0.99999))
    found = sorted(rendered(one) for one in shown(examples.read(0, [0, 1]), tokenizer, [0, 1]))
    head = "11 tokens · B is from another document"
    cat, dog = "the cat sat . [SEP]", "a dog runs . [SEP]"
    texts = {f"A: [CLS] {cat}\nB: {dog}", f"A: [CLS] {dog}\nB: {cat}"}
    assert [one.partition("\n")[0] for one in found] == [f"example {index} · {head}" for index in (0, 1)]
    assert {one.partition("\n")[2] for one in found} == texts


def test_order_in_words(tmp_path: Path, tokenizer: Tokenizer) -> None:
    corpus = write(tmp_path / "c", tokenizer, [Bulk(tokenizer).read("The cat sat. A dog runs.")])
    examples = Examples(corpus, OrderPairs(32, short=0.0))
    straight = (
        "example 0 · 11 tokens · A comes before B in the text\nA: [CLS] the cat sat . [SEP]\nB: a dog runs . [SEP]"
    )
    swapped = (
        "example 0 · 11 tokens · swapped: B comes before A in the text\n"
        "A: [CLS] a dog runs . [SEP]\nB: the cat sat . [SEP]"
    )
    assert {rendered(shown(examples.read(epoch, [0]), tokenizer, [0])[0]) for epoch in range(12)} == {straight, swapped}


def test_masks_are_marked(tokenizer: Tokenizer) -> None:
    ids = np.array([2, 5, 4, 8, 9, 10, 3])  # [CLS] the [MASK] sat on a [SEP]
    marks = {"mlm": (np.array([2, 3, 5]), np.array([6, 8, 11]))}
    flat = Flat(ids, ids * 0, ids > 0, np.array([0, 7]), np.zeros(1, np.uint64), {}, marks)
    (one,) = shown(flat, tokenizer, [4])
    assert rendered(one) == "example 4 · 7 tokens, 3 masked\n[CLS] the [MASK→cat] [=sat] on [a→mat] [SEP]"
    assert one["masked"][2] == {"position": 5, "shown": "a", "true": "mat"}
    assert json.loads(json.dumps(one)) == one


def test_lines_are_no_longer_than_asked(tmp_path: Path) -> None:
    made = numbered(tmp_path / "c", drawn(20, (2, 5), (5, 30)))
    tokenizer = made.corpus.tokenizer
    for inputs in (FullSentences(128), SegmentPairs(128)):
        flat = Mask().corrupt(Examples(made.corpus, inputs).read(0, range(5)), Vocabulary.of(tokenizer))
        for one in shown(flat, tokenizer, range(5)):
            lines = rendered(one, width=60).split("\n")
            assert max(len(line) for line in lines[1:]) <= 60
            assert len(lines) > len(one["tokens"]) // 20
            text = " ".join(" ".join(lines[1:]).replace("A: ", "").replace("B: ", "").split())
            assert len(text.split(" ")) == len(one["tokens"])


@pytest.mark.parametrize("token", ["[", "]", "[]", "##s"])
def test_brackets_of_the_text_stay(token: str) -> None:
    tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", token])
    ids, marks = np.array([2, 6, 3]), {"mlm": (np.array([1]), np.array([5]))}
    flat = Flat(ids, ids * 0, ids > 0, np.array([0, 3]), np.zeros(1, np.uint64), {}, marks)
    assert rendered(shown(flat, tokenizer, [0])[0]).endswith(f"[CLS] [{token}→a] [SEP]")
