"""Vectors from neighbours: equal to the formula, and near where tokens keep the same company."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import cosine_similarity

from bertkit.corpus import build
from bertkit.corpus.build import Options
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.source import files
from bertkit.text import Tokenizer
from bertkit.train import neighbours
from bertkit.train.pretrain import pretrain
from tests.train.running import RECIPE, made, same

WORDS = ["cat", "dog", "oak", "elm", "eats", "sleeps", "grows", "stands", "the", "a", "never"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Animals eat and sleep, trees grow and stand."""
    place, draw = tmp_path_factory.mktemp("company"), random.Random(0)
    tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
    kinds = [(("cat", "dog"), ("eats", "sleeps")), (("oak", "elm"), ("grows", "stands"))]
    said = [(draw.choice(("the", "a")), *(draw.choice(part) for part in draw.choice(kinds))) for _ in range(400)]
    (place / "text.txt").write_text("\n\n".join(" ".join(words) for words in said))
    build.build(files([str(place / "text.txt")]), tokenizer, place / "corpus", Options(held_out=0.1))
    (place / "recipe.toml").write_text(RECIPE)
    return Corpus(place / "corpus")


def test_the_papers_formula(corpus: Corpus) -> None:
    """Counts, information and factors as written in the paper, one pair after another."""
    window, size = 2, len(corpus.tokenizer)
    shard = corpus.shard(0)
    bounds = shard.sentences[shard.documents]
    counted = np.zeros((size, size))
    for start, stop in pairwise(bounds):
        words = shard.ids[start:stop].tolist()
        for first, one in enumerate(words):
            for other in words[first + 1 : first + 1 + window]:
                counted[one, other] += 1
                counted[other, one] += 1
    share = counted.sum(0) ** 0.75 / (counted.sum(0) ** 0.75).sum()
    information = np.zeros((size, size))
    for one, other in zip(*counted.nonzero(), strict=True):
        joint = counted[one, other] / counted.sum()
        information[one, other] = max(0.0, np.log(joint / (counted[one].sum() / counted.sum() * share[other])))
    left, values, _ = np.linalg.svd(information)
    seen = information.sum(1) > 0
    factors = (left * np.sqrt(values))[seen]
    factors = factors - factors.mean(0)
    factors = factors / np.sqrt(np.linalg.norm(factors, axis=1, keepdims=True))

    got = neighbours.vectors(corpus, 64, window).double().numpy()
    assert seen.sum() == len(WORDS) - 1  # "never" is in the vocabulary, and nowhere else
    assert not got[~seen].any()
    np.testing.assert_allclose(got[seen] @ got[seen].T, factors @ factors.T, atol=1e-5)  # up to a rotation


def test_documents_end_company(corpus: Corpus) -> None:
    pairs, _ = neighbours._pairs(corpus, 5)
    animals, trees = (_ids(corpus, *words) for words in (("cat", "dog"), ("grows", "stands")))
    assert not [pair for pair in pairs.tolist() if pair[0] in animals and pair[1] in trees]


def test_the_same_company_means_near(corpus: Corpus) -> None:
    placed = neighbours.vectors(corpus, 4, 2)
    cat, dog, oak, elm = placed[_ids(corpus, "cat", "dog", "oak", "elm")]
    assert cosine_similarity(cat, dog, 0) > 0.9 > cosine_similarity(cat, oak, 0)
    assert cosine_similarity(oak, elm, 0) > 0.9 > cosine_similarity(dog, elm, 0)


def test_a_run_begins_with_them_and_goes_on_to_the_bit(corpus: Corpus, tmp_path: Path) -> None:
    home, wanted = corpus.path.parent, ("model.neighbours=2", "model.spread=0.05", "train.steps=6")
    first = made(home, f"output={tmp_path / 'first'}", *wanted, "train.optimizer.rate=1e-12")
    table = load_file(pretrain(first) / "model.safetensors")["bert.embeddings.word_embeddings.weight"]
    found = neighbours.vectors(corpus, table.shape[1], 2)
    columns, seen = found.shape[1], found.abs().sum(1) > 0
    torch.testing.assert_close(table[seen, :columns], found[seen] * (0.05 / found[seen].std()), atol=1e-6, rtol=0)
    assert table[~seen].std() == pytest.approx(0.05 * 0.88, rel=0.1)  # drawn at random, and cut off at two deviations

    pretrain(made(home, f"output={tmp_path / 'whole'}", *wanted))
    with pytest.raises(RuntimeError, match="enough"):
        pretrain(made(home, f"output={tmp_path / 'cut'}", *wanted), _stop_at(4))
    pretrain(made(home, f"output={tmp_path / 'cut'}", *wanted))
    same(tmp_path / "cut", tmp_path / "whole")


def _ids(corpus: Corpus, *words: str) -> list[int]:
    return [corpus.tokenizer.id(word) for word in words]


def _stop_at(step: int):
    def tell(told) -> None:
        if told.step == step:
            raise RuntimeError("enough")

    return tell
