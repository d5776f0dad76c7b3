"""Both layouts answer the same questions, and the answers are those of one sequence at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bertkit.batch import Batch, Example, Packed, Padded, collate, gather

LAYOUTS = (Padded, Packed)
lengths = st.lists(st.integers(1, 9), min_size=1, max_size=12)


def rows(lengths: list[int]) -> list[Tensor]:
    """Values [length, 3] for each sequence."""
    return [torch.randn(length, 3, generator=torch.Generator().manual_seed(i)) for i, length in enumerate(lengths)]


def laid_out(lengths: list[int], layout: type) -> tuple[Batch, Tensor]:
    """A batch, and the values of `rows` as that layout holds them; under padding they are wrong on purpose."""
    batch = collate([Example({"ids": np.arange(1, length + 1)}) for length in lengths], layout)
    values = [rows(lengths)[i] for i in batch.order]
    if layout is Packed:
        return batch, torch.cat(values)
    x = torch.full((len(lengths), max(lengths), 3), 99.0)
    for row, value in enumerate(values):
        x[row, : len(value)] = value
    return batch, x


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=60, deadline=None)
@given(lengths=lengths)
def test_reductions_are_those_of_each_sequence(layout: type, lengths: list[int]) -> None:
    batch, x = laid_out(lengths, layout)
    expected = {
        "first": [row[0] for row in rows(lengths)],
        "mean": [row.mean(0) for row in rows(lengths)],
        "max": [row.max(0).values for row in rows(lengths)],
    }
    for name, values in expected.items():
        got = batch.restore(getattr(batch.layout, name)(x))
        torch.testing.assert_close(got, torch.stack(values), rtol=0, atol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=60, deadline=None)
@given(lengths=lengths)
def test_padding_positions_and_ids(layout: type, lengths: list[int]) -> None:
    batch, x = laid_out(lengths, layout)
    padded = batch.restore(batch.layout.to_padded(x))
    places = batch.layout.positions(torch.device("cpu")).expand(batch.layout.shape)
    assert batch.layout.longest == max(lengths)
    assert batch.layout.rows == len(lengths)
    assert x.shape[:-1] == batch.layout.shape
    for i, row in enumerate(rows(lengths)):
        assert torch.equal(padded[i, : len(row)], row)
        assert not padded[i, len(row) :].any()
    # ids were 1, 2, 3, … so a token's id is its position and one more
    real = batch.tokens["ids"] > 0
    assert torch.equal(places[real] + 1, batch.tokens["ids"][real])
    assert int(real.sum()) == sum(lengths)


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=60, deadline=None)
@given(lengths=lengths)
def test_blocks_are_rectangles_that_join_again(layout: type, lengths: list[int]) -> None:
    batch, x = laid_out(lengths, layout)
    parts = batch.layout.split(x)
    assert [part.shape[:2] for part in parts] == [(block.rows, block.length) for block in batch.layout.blocks]
    assert torch.equal(batch.layout.join(parts), x)
    assert {part.untyped_storage().data_ptr() for part in parts} == {x.untyped_storage().data_ptr()}, (
        "views, not copies"
    )
    if layout is Packed:
        assert len(parts) == len(set(lengths)), "one run for each length"
        assert x.shape[0] == sum(lengths), "no padding"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_marks_point_at_their_tokens_and_labels_follow_their_rows(layout: type) -> None:
    examples = [
        Example({"ids": np.array([10, 11])}, {"mlm": (np.array([1]), np.array([11]))}, {"class": 0}),
        Example({"ids": np.array([20, 21, 22])}, {"mlm": (np.array([0, 2]), np.array([20, 22]))}, {"class": 1}),
        Example({"ids": np.array([30])}, {"mlm": (np.array([], dtype=int), np.array([], dtype=int))}, {"class": 2}),
    ]
    batch = collate(examples, layout)
    at, values = batch.marks["mlm"]
    assert torch.equal(batch.layout.flat(batch.tokens["ids"][..., None])[at, 0], values)
    assert sorted(values.tolist()) == [11, 20, 22]
    assert batch.restore(batch.labels["class"]).tolist() == [0, 1, 2]
    assert torch.equal(batch.labels["class"] * 10 + 10, batch.layout.first(batch.tokens["ids"]))


def test_full_rows_need_no_mask() -> None:
    assert laid_out([4, 4], Padded)[0].layout.blocks[0].mask is None
    assert laid_out([4, 3], Padded)[0].layout.blocks[0].mask is not None


def test_a_batch_moves_as_a_whole() -> None:
    batch, _ = laid_out([2, 3], Padded)
    moved = batch.to("meta")
    assert {x.device.type for x in (*moved.tokens.values(), moved.order, moved.layout.blocks[0].mask)} == {"meta"}


def test_empty_sequences_are_refused() -> None:
    with pytest.raises(ValueError, match="example 1 has no tokens"):
        collate([Example({"ids": np.array([1])}), Example({"ids": np.array([])})])
    with pytest.raises(ValueError, match="there are no examples"):
        collate([])
    with pytest.raises(ValueError, match="example 1 has no tokens"):
        gather({"ids": np.array([1])}, np.array([1, 0]), {}, {})
    with pytest.raises(ValueError, match="there are no examples"):
        gather({"ids": np.array([], int)}, np.array([], int), {}, {})


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), lengths=lengths)
def test_gathered_in_a_row_is_collated_one_by_one(layout: type, data: st.DataObject, lengths: list[int]) -> None:
    random, total = np.random.default_rng(data.draw(st.integers(0, 99))), sum(lengths)
    tokens = {
        "ids": random.integers(1, 999, total).astype(np.uint16),
        "segments": random.integers(0, 2, total).astype(np.uint8),
        "weights": random.random(total, np.float32),
    }
    at = np.flatnonzero(random.random(total) < data.draw(st.sampled_from([0.0, 0.3, 1.0])))
    marks = {"mlm": (at, random.integers(0, 999, len(at)))}
    labels = {"next": random.integers(0, 2, len(lengths)), "scores": random.random((len(lengths), 3))}
    starts = np.cumsum([0, *lengths])
    examples = []
    for row, (start, stop) in enumerate(pairwise(starts)):
        inside = (at >= start) & (at < stop)
        examples.append(
            Example(
                {name: values[start:stop] for name, values in tokens.items()},
                {"mlm": (at[inside] - start, marks["mlm"][1][inside])},
                {name: values[row] for name, values in labels.items()},
            )
        )
    got, expected = gather(tokens, np.array(lengths), marks, labels, layout), collate(examples, layout)
    assert got.layout.shape == expected.layout.shape
    pairs = [(got.order, expected.order), *zip(got.marks["mlm"], expected.marks["mlm"], strict=True)]
    pairs += [(got.tokens[name], expected.tokens[name]) for name in tokens]
    pairs += [(got.labels[name], expected.labels[name]) for name in labels]
    for one, other in zip(got.layout.blocks, expected.layout.blocks, strict=True):
        assert (one.rows, one.length) == (other.rows, other.length)
        assert (one.mask is None) == (other.mask is None)
        if one.mask is not None:
            pairs.append((one.mask, other.mask))
    for mine, other in pairs:
        assert mine.dtype == other.dtype
        assert torch.equal(mine, other)
