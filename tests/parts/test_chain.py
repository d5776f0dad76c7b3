"""A chain's loss, gradients and best paths are those of all paths written out, one after another."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bertkit.parts.chain import best_paths, decode, surprise_of_paths
from bertkit.parts.heads import ChainModule
from bertkit.parts.init import draw

Links = tuple[Tensor, Tensor, Tensor]


def drawn(words: int, tags: int, seed: int = 0, spread: float = 2.0) -> tuple[Tensor, Tensor, Links]:
    """Emissions [W, C], a path [W], and links, in float64."""
    random = torch.Generator().manual_seed(seed)

    def values(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64) * spread

    path = torch.randint(0, tags, (words,), generator=random)
    return values(words, tags), path, (values(tags, tags), values(tags), values(tags))


def score(emissions: Tensor, path: tuple[int, ...], links: Links) -> Tensor:
    """The formula of a path's score, word by word."""
    transitions, first, last = links
    total = first[path[0]] + last[path[-1]]
    for word, tag in enumerate(path):
        total = total + emissions[word, tag]
    for before, after in pairwise(path):
        total = total + transitions[before, after]
    return total


def paths(emissions: Tensor) -> list[tuple[int, ...]]:
    """All of them, the lowest first."""
    words, tags = emissions.shape
    return list(product(range(tags), repeat=words))


def surprise_of_all(emissions: Tensor, path: Tensor, links: Links) -> Tensor:
    every = torch.stack([score(emissions, one, links) for one in paths(emissions)])
    return -every.log_softmax(0)[paths(emissions).index(tuple(path.tolist()))]


def best_of_all(emissions: Tensor, links: Links) -> list[int]:
    return list(max(paths(emissions), key=lambda path: float(score(emissions, path, links))))  # max keeps the first


def parts(values: Tensor, lengths: list[int]) -> tuple[Tensor, ...]:
    return values.split(lengths)


def slopes(loss: Tensor, leaves: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    found = torch.autograd.grad(loss, leaves, allow_unused=True)  # a single word has no transition
    return tuple(torch.zeros_like(leaf) if x is None else x for x, leaf in zip(found, leaves, strict=True))


@settings(max_examples=25)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(2, 4), st.integers(0, 99))
def test_loss_and_gradients_are_those_of_all_paths(lengths: list[int], tags: int, seed: int) -> None:
    emissions, path, links = drawn(sum(lengths), tags, seed)
    leaves = tuple(x.requires_grad_() for x in (emissions, *links))
    ours = surprise_of_paths(emissions, path, lengths, *links)
    pairs = zip(parts(emissions, lengths), parts(path, lengths), strict=True)
    expected = torch.stack([surprise_of_all(some, true, links) for some, true in pairs]).sum()
    assert abs(float((ours - expected).detach())) <= 1e-9
    for mine, theirs in zip(slopes(ours, leaves), slopes(expected, leaves), strict=True):
        assert float((mine - theirs).abs().max()) <= 1e-9


@pytest.mark.parametrize(("words", "tags"), [(3, 4), (5, 3), (1, 3), (2, 1)])
def test_the_chances_of_all_paths_add_up_to_one(words: int, tags: int) -> None:
    emissions, _, links = drawn(words, tags, seed=words)
    losses = [surprise_of_paths(emissions, torch.tensor(path), [words], *links) for path in paths(emissions)]
    assert abs(float(torch.stack(losses).neg().exp().sum()) - 1) <= 1e-12


@settings(max_examples=25)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 4), st.integers(0, 99))
def test_best_paths_are_the_best_of_all(lengths: list[int], tags: int, seed: int) -> None:
    emissions, _, links = drawn(sum(lengths), tags, seed)
    expected = [best_of_all(some, links) for some in parts(emissions, lengths)]
    found = best_paths(emissions, lengths, *links)
    assert [path.tolist() for path in parts(found, lengths)] == expected
    alone = [decode(some.numpy(), *(x.numpy() for x in links)).tolist() for some in parts(emissions, lengths)]
    assert alone == expected


@settings(max_examples=40)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(2, 3), st.integers(0, 999))
def test_of_equally_good_paths_the_lowest_is_taken(lengths: list[int], tags: int, seed: int) -> None:
    """Scores of 0 and 1 are often equal, and exact."""
    emissions, _, links = drawn(sum(lengths), tags, seed)
    emissions, links = (emissions > 0).double(), tuple((x > 0).double() for x in links)
    expected = [best_of_all(some, links) for some in parts(emissions, lengths)]
    assert [path.tolist() for path in parts(best_paths(emissions, lengths, *links), lengths)] == expected
    alone = [decode(some.numpy(), *(x.numpy() for x in links)).tolist() for some in parts(emissions, lengths)]
    assert alone == expected


def test_where_all_is_equal_the_lowest_tag_is_taken_everywhere() -> None:
    nothing = torch.zeros(3, 3), torch.zeros(3), torch.zeros(3)
    assert best_paths(torch.zeros(5, 3), [4, 1], *nothing).tolist() == [0, 0, 0, 0, 0]
    assert decode(np.zeros((4, 3)), *(x.numpy() for x in nothing)).tolist() == [0, 0, 0, 0]


def test_sentences_of_different_length_are_as_one_by_one() -> None:
    lengths = [7, 1, 30, 7, 2, 12]
    emissions, path, links = drawn(sum(lengths), 9, seed=3)
    leaves = tuple(x.requires_grad_() for x in (emissions, *links))
    together = surprise_of_paths(emissions, path, lengths, *links)
    pairs = list(zip(parts(emissions, lengths), parts(path, lengths), strict=True))
    alone = torch.stack([surprise_of_paths(some, true, [len(true)], *links) for some, true in pairs]).sum()
    assert together.item() == pytest.approx(alone.item(), rel=1e-14)
    for mine, theirs in zip(slopes(together, leaves), slopes(alone, leaves), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-13)
    one_by_one = torch.cat([best_paths(some, [len(some)], *links) for some, _ in pairs])
    assert torch.equal(best_paths(emissions, lengths, *links), one_by_one)
    arrays = tuple(x.detach().numpy() for x in links)
    assert np.array_equal(np.concatenate([decode(some.detach().numpy(), *arrays) for some, _ in pairs]), one_by_one)


def test_without_links_it_is_the_cross_entropy_of_words() -> None:
    emissions, path, links = drawn(20, 5)
    nothing = tuple(torch.zeros_like(x) for x in links)
    expected = F.cross_entropy(emissions, path, reduction="sum")
    assert float(surprise_of_paths(emissions, path, [13, 7], *nothing)) == pytest.approx(float(expected), rel=1e-14)
    assert torch.equal(best_paths(emissions, [13, 7], *nothing), emissions.argmax(-1))


def test_a_transition_is_from_its_row_to_its_column() -> None:
    """Tag 1 may follow tag 0, and nothing else may follow anything."""
    barred = torch.full((2, 2), -50.0)
    barred[0, 1] = 0.0
    nothing, flat = torch.zeros(2), torch.zeros(2, 2)
    assert best_paths(flat, [2], barred, nothing, nothing).tolist() == [0, 1]
    assert float(surprise_of_paths(flat, torch.tensor([0, 1]), [2], barred, nothing, nothing)) == pytest.approx(0.0)
    assert float(surprise_of_paths(flat, torch.tensor([1, 0]), [2], barred, nothing, nothing)) == pytest.approx(50.0)


def test_long_sentences_and_large_numbers_lose_nothing_in_float32() -> None:
    """A hundred thousand on every tag of a word changes nothing, and the loss of 512 words is that of float64."""
    lengths = [512, 511, 3]
    emissions, path, links = drawn(sum(lengths), 9, seed=1)
    path = best_paths(emissions, lengths, *links)  # a likely one: its loss is small beside the scores
    exact = float(surprise_of_paths(emissions, path, lengths, *links))
    single = emissions.float(), path, lengths, *(x.float() for x in links)
    assert float(surprise_of_paths(*single)) == pytest.approx(exact, rel=1e-5)
    leaf = (emissions.float() * 1000).requires_grad_()
    loss = surprise_of_paths(leaf, path, lengths, *(x.float() * 1000 for x in links))
    (slope,) = torch.autograd.grad(loss, leaf)
    assert torch.isfinite(loss)
    assert torch.isfinite(slope).all()
    small, route, (transitions, first, last) = drawn(4, 3, seed=2)
    given = [x.float() for x in (transitions, first, last)]
    lifted = (small * 8).round() / 8 + 1e5  # eighths are exact in float32 up to a hundred thousand
    expected = float(surprise_of_paths(lifted - 1e5, route, [4], transitions, first, last))
    assert float(surprise_of_paths(lifted.float(), route, [4], *given)) == pytest.approx(expected, rel=1e-5)


def test_half_precision_is_widened() -> None:
    emissions, path, links = drawn(12, 4)
    half, given = emissions.bfloat16(), tuple(x.float() for x in links)
    loss = surprise_of_paths(half, path, [5, 7], *given)
    assert loss.dtype == torch.float32
    assert float(loss) == pytest.approx(float(surprise_of_paths(half.double(), path, [5, 7], *given)), rel=1e-5)


def test_no_sentences_cost_nothing_but_reach_the_links() -> None:
    leaves = [torch.randn(shape, requires_grad=True) for shape in ((0, 3), (3, 3), (3,), (3,))]
    emissions, *links = leaves
    loss = surprise_of_paths(emissions, torch.empty(0, dtype=torch.int64), [], *links)
    loss.backward()
    assert loss.item() == 0.0
    assert all(leaf.grad is not None and not leaf.grad.any() for leaf in leaves)
    assert best_paths(emissions, [], *links).tolist() == []
    assert decode(np.zeros((0, 3)), np.zeros((3, 3)), np.zeros(3), np.zeros(3)).tolist() == []


def test_links_begin_small() -> None:
    torch.manual_seed(0)
    head = ChainModule(width=8, outputs=30, dropout=0.0)
    draw(head, 0.02)
    transitions, first, last = (x.detach() for x in head.links)
    assert 0 < float(transitions.abs().max()) <= 0.04
    assert float(transitions.std()) == pytest.approx(0.0176, rel=0.1)
    assert not first.any()
    assert not last.any()
