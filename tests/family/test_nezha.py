"""NEZHA against its paper: attention with functional relative positions, transcribed to NumPy with loops."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import bertkit
from bertkit.batch import Example, Layout, Packed, Padded, collate
from bertkit.family import nezha
from bertkit.family.nezha import FunctionalRelative
from bertkit.parts.attend import attend
from bertkit.parts.encoder import with_dropout
from bertkit.parts.network import Network
from bertkit.text import Tokenizer
from bertkit.weights import directory
from tests.reference import LAYOUTS, in_order, worst

TOLERANCE = 1e-5


def vector(distance: int, width: int) -> np.ndarray:
    """The paper's equation 3: a[2k] = sin(d / 10000^(2k / d_z)), a[2k + 1] = cos(d / 10000^(2k / d_z))."""
    out = np.zeros(width)
    for k in range(width // 2):
        angle = distance / 10_000 ** (2 * k / width)
        out[2 * k], out[2 * k + 1] = math.sin(angle), math.cos(angle)
    return out


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, clip: int, origin: int) -> np.ndarray:
    """Equations 1 and 2 for one head of one sequence, [L, H] each: z_i = sum_j a_ij (v_j + r_ij)."""
    length, width = q.shape

    def relative(i: int, j: int) -> np.ndarray:
        return vector(max(-clip, min(clip, j - i)) + origin, width)

    out = np.zeros((length, width))
    for i in range(length):
        scores = np.array([q[i] @ (k[j] + relative(i, j)) / math.sqrt(width) for j in range(length)])
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        out[i] = sum(weights[j] * (v[j] + relative(i, j)) for j in range(length))
    return out


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    lengths=st.lists(st.integers(1, 14), min_size=1, max_size=5),
    clip=st.integers(1, 16),
    paper=st.booleans(),
    heads=st.integers(1, 3),
    width=st.sampled_from([2, 6, 8]),
    seed=st.integers(0, 99),
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_attention_is_the_papers_formula(
    layout: type[Layout], lengths: list[int], clip: int, paper: bool, heads: int, width: int, seed: int
) -> None:
    """With the paper's distances, and with those of the released code, which begin at the smallest."""
    batch = collate(
        [Example({"ids": np.ones(length, int), "segments": np.zeros(length, int)}) for length in lengths], layout
    )
    origin = 0 if paper else clip
    place = FunctionalRelative(width, clip, origin).build().prepare(batch)
    torch.manual_seed(seed)
    shape = (*batch.tokens["ids"].shape, heads, width)
    q, k, v = (torch.randn(shape) * 2 for _ in range(3))
    out = in_order(batch, attend(q, k, v, batch.layout, place))  # [B, L, N, H]
    q, k, v = (in_order(batch, x).double().numpy() for x in (q, k, v))
    for row, length in enumerate(lengths):
        for head in range(heads):
            expected = attention(q[row, :length, head], k[row, :length, head], v[row, :length, head], clip, origin)
            assert np.abs(out[row, :length, head].numpy() - expected).max() <= TOLERANCE


def test_gradients_are_those_of_the_formula() -> None:
    """Through keys, values and queries, against the same formula spelled out in torch without tricks."""
    length, width, clip = 11, 6, 4
    batch = collate([Example({"ids": np.ones(length, int), "segments": np.zeros(length, int)})], Packed)
    torch.manual_seed(0)
    q, k, v = (torch.randn(length, 2, width, requires_grad=True) for _ in range(3))
    place = FunctionalRelative(width, clip, origin=clip).build().prepare(batch)
    weights = torch.randn(length, 2, width)
    (attend(q, k, v, batch.layout, place) * weights).sum().backward()
    mine = [x.grad.clone() for x in (q, k, v)]
    for x in (q, k, v):
        x.grad = None
    table = [[vector(max(-clip, min(clip, j - i)) + clip, width) for j in range(length)] for i in range(length)]
    relative = torch.tensor(np.array(table), dtype=torch.float32)  # [L, L, H]
    scores = torch.einsum("inh,jnh->nij", q, k) + torch.einsum("inh,ijh->nij", q, relative)
    chances = (scores / math.sqrt(width)).softmax(-1)
    out = torch.einsum("nij,jnh->inh", chances, v) + torch.einsum("nij,ijh->inh", chances, relative)
    (out * weights).sum().backward()
    for ours, x in zip(mine, (q, k, v), strict=True):
        assert worst(ours, x.grad) <= TOLERANCE


def test_nothing_else_knows_the_place() -> None:
    """Embeddings of the same tokens are the same wherever they stand."""
    encoder = with_dropout(nezha.encoder("tiny", 40), 0.0)
    network = Network(encoder).build().eval()
    assert not [name for name, _ in network.named_parameters() if "positions" in name]
    ids = np.arange(2, 32)
    first = Example({"ids": ids, "segments": np.zeros(30, int)})
    moved = Example({"ids": np.concatenate([ids, ids]), "segments": np.zeros(60, int)})
    with torch.no_grad():
        embedded = [network.encoder.embed(collate([one], Padded))[0] for one in (first, moved)]
    assert worst(embedded[0], embedded[1][30:]) == 0


def test_texts_may_be_longer_than_any_before() -> None:
    words = ["the", "cat", "sat", "on", "a", "mat", "house"]
    tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    model = bertkit.create("nezha-tiny", tokenizer, seed=0)
    assert model.limit == 512
    model.limit = 3000
    text = "the cat sat on a mat " * 400
    whole, changed = model.embed(text), model.embed(text + "house")
    assert np.isfinite(whole).all()
    assert not np.array_equal(whole, changed), "the last of 2,400 words is read"
    model.limit = 512
    assert np.array_equal(model.embed(text), model.embed(text + "house")), "and here it is cut off"


def test_far_tokens_are_as_far_as_the_clip() -> None:
    """What is beyond the clip counts as the clip: one more word in between changes no distance that is told."""
    spec = FunctionalRelative(head=8, clip=3)
    table = nezha.vectors(torch.arange(-6, 7), spec)
    assert worst(table[0], table[3]) == 0
    assert worst(table[12], table[9]) == 0
    assert worst(table[9], table[8]) > 0


def test_only_the_released_distances_can_be_written() -> None:
    encoder = nezha.encoder("tiny", 40)
    printed = replace(encoder, place=FunctionalRelative(64, 64, origin=0))
    assert nezha.FAMILY.read_encoder(nezha.FAMILY.config(Network(encoder))) == encoder
    with pytest.raises(bertkit.BertkitError, match=r"encoder\.place\.origin is 0, not 64"):
        nezha.FAMILY.config(Network(printed))


def test_tables_that_files_carry_along_are_not_read(tmp_path: Path) -> None:
    """Files of transformers have the table of distances in every layer."""
    network = Network(nezha.encoder("tiny", 40)).build()
    directory.write(network, {"model_type": "nezha"}, tmp_path)
    file = tmp_path / "model.safetensors"
    name = "encoder.layer.{}.attention.self.relative_positions_encoding.positions_encoding"
    tables = {name.format(layer): torch.ones(4, 4, 64) for layer in range(2)}
    save_file({**load_file(file), **tables}, file, {"format": "pt"})
    again, _, report = directory.read(tmp_path)
    assert (again.spec, report.left) == (network.spec, ())
