"""Counted lengths against texts that are really tokenised and really cut, one by one."""

import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bertkit
from bertkit.errors import BertkitError
from bertkit.text import Tokenizer
from bertkit.text import lengths as counting
from bertkit.text.lengths import Lengths, count, policies
from bertkit.text.reading import read
from bertkit.text.summary import DOES, Summary
from bertkit.text.truncate import POLICIES
from bertkit.weights.find import find
from bertkit.weights.folder import limit_of

WORDS = ["the", "cat", "sat", "on", "a", "mat", "playing", "unable", "house", ".", "猫", "狗", "zzz"]


def texts(number: int, fields: int, longest: int = 40) -> list[list[str]]:
    draw = random.Random(fields)
    return [[" ".join(draw.choices(WORDS, k=draw.randint(0, longest))) for _ in range(fields)] for _ in range(number)]


def ids(text: str, tokenizer: Tokenizer) -> list[int]:
    return tokenizer.encode(text, special_tokens=False).ids


@pytest.mark.parametrize("fields", [1, 2, 3])
def test_counts_are_those_of_the_tokenizer(tokenizer: Tokenizer, fields: int) -> None:
    inputs = texts(700, fields)
    totals = [sum(len(ids(text, tokenizer)) for text in given) + fields + 1 for given in inputs]
    heard: list[int] = []
    with count(iter(inputs), tokenizer, heard.append) as lengths:
        assert lengths.counts == Counter(totals)
        assert lengths.texts == sum(heard) == 700
        assert (lengths.tokens, lengths.mean) == (sum(totals), sum(totals) / 700)
        assert (lengths.shortest, lengths.longest) == (min(totals), max(totals))
        assert lengths.empty == sum(not any(given) for given in inputs)
        assert lengths.within(30) == sum(total <= 30 for total in totals)
        for share in (0.01, 0.5, 0.9, 0.95, 0.99, 1.0):
            assert lengths.reaching(share) == np.quantile(totals, share, method="inverted_cdf")


@pytest.mark.parametrize("memory", [counting.IN_MEMORY, 64], ids=["memory", "file"])
@pytest.mark.parametrize(("fields", "limit"), [(1, 16), (1, 24), (2, 16), (2, 40), (3, 32)])
def test_outcomes_are_what_cutting_does(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, fields: int, limit: int, memory: int
) -> None:
    monkeypatch.setattr(counting, "IN_MEMORY", memory)
    monkeypatch.setattr(counting, "BLOCK", 50)
    inputs = texts(150, fields)
    asked = policies(fields, budgets=(5, 9, 7)[:fields], stride=6)
    assert {name.split()[0] for name in asked} <= set(DOES)
    with count(inputs, tokenizer) as lengths:
        for name, policy in asked.items():
            refused = cut = tokens = chunked = chunks = 0
            for given in inputs:
                columns = [ids(text, tokenizer) for text in given]
                try:
                    readings = read(columns, tokenizer, limit, policy)
                except BertkitError:
                    refused += 1
                    continue
                kept = [set[int]() for _ in columns]
                for reading in readings:
                    assert len(reading.ids) <= limit
                    for place, pieces in enumerate(reading.window):
                        kept[place].update(token for start, stop in pieces for token in range(start, stop))
                gone = sum(len(column) for column in columns) - sum(map(len, kept))
                cut, tokens = cut + (gone > 0), tokens + gone
                chunked += len(readings) > 1
                chunks += len(readings) if len(readings) > 1 else 0
            found = lengths.outcome(name, policy, limit)
            assert (found.policy, found.limit) == (name, limit)
            assert found.refused_texts == refused, name
            assert (found.cut_texts, found.cut_tokens) == (cut, tokens), name
            assert (found.chunked_texts, found.chunks) == (chunked, chunks), name
        assert lengths.outcome("error", POLICIES["error"], limit).refused_texts > 0


@given(
    st.lists(st.integers(0, 700), min_size=1, max_size=60),
    st.floats(0.01, 1.0),
    st.integers(3, 600),
)
def test_the_proposal_is_the_smallest_that_keeps_the_share(sizes: list[int], keep: float, limit: int) -> None:
    with Lengths() as lengths:
        lengths.add(np.array(sizes, dtype=np.int32)[:, None])
        found = lengths.propose(limit, keep)
    totals = np.array(sizes) + 2
    wanted = math.ceil(keep * len(sizes) - 1e-9)
    assert found.needed % 8 == 0
    assert (totals <= found.needed).sum() >= wanted
    assert found.needed == 8 or (totals <= found.needed - 8).sum() < wanted
    assert found.length == min(found.needed, limit)
    assert found.fits == (totals <= found.length).mean()
    if sum(sizes):
        assert found.kept == pytest.approx(np.minimum(sizes, found.length - 2).sum() / sum(sizes))


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=80), st.integers(2, 40), st.integers(3, 600))
def test_bins_count_every_text_once(sizes: list[int], most: int, limit: int) -> None:
    with Lengths() as lengths:
        lengths.add(np.array(sizes, dtype=np.int32)[:, None])
        bins = Summary.of(lengths, policies(1), limit).bins(most)
    totals = np.array(sizes) + 2
    assert 1 <= len(bins.counts) <= most
    assert bins.counts == np.histogram(totals[totals < bins.edges[-1]], bins.edges)[0].tolist()
    assert bins.beyond == (totals >= bins.edges[-1]).sum()
    assert bins.beyond <= len(sizes) / 20


def test_summary_as_json_and_as_a_page(tokenizer: Tokenizer) -> None:
    with count(texts(400, 2), tokenizer) as lengths:
        summary = Summary.of(lengths, policies(2), 48, source="<b>.tsv", model="ours")
    found = summary.json()
    assert sum(found["lengths"].values()) == found["texts"] == 400
    assert sum(int(length) * often for length, often in found["lengths"].items()) == found["tokens"]
    assert found["special_tokens"] == 3 * 400
    assert found["texts_over_limit"] == sum(often for size, often in found["lengths"].items() if int(size) > 48)
    assert {row["limit"] for row in found["policies"]} == {found["proposal"]["length"], 48}
    html = summary.page().html()
    assert "Token lengths of &lt;b&gt;.tsv" in html
    for number in (
        found["texts"],
        found["tokens"],
        found["longest"],
        *(row["cut_tokens"] for row in found["policies"]),
    ):
        assert f">{number:,}<" in html


def test_a_limit_below_the_share_is_said(tokenizer: Tokenizer) -> None:
    with count([["cat " * 30]] * 9 + [["cat"]], tokenizer) as lengths:
        summary = Summary.of(lengths, policies(1), 20)
    assert (summary.proposal.length, summary.proposal.needed, summary.proposal.fits) == (20, 32, 0.1)
    assert summary.proposed().endswith("95 % would need 32 tokens, which is above the limit of 20.")
    assert "Attention:" in summary.page().html()


def test_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(BertkitError, match="input 2 has 1 fields where the first has 2"):
        count([["a", "b"], ["a"]], tokenizer)
    with count([["a", "b"]], tokenizer) as lengths:
        with pytest.raises(BertkitError, match="a limit of 3 tokens leaves no room for 2 fields"):
            lengths.propose(3)
        with pytest.raises(BertkitError, match="keep is 95"):
            lengths.propose(64, keep=95)
        with pytest.raises(BertkitError, match="1 budgets for inputs of 2 fields"):
            policies(lengths.fields, budgets=(5,))
    with count([], tokenizer) as lengths, pytest.raises(BertkitError, match="the texts holds no texts"):
        Summary.of(lengths, policies(1), 64)


def test_limit_is_the_models(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = bertkit.create("bert-tiny", tokenizer, seed=0).save(tmp_path / "tiny")
    assert limit_of(path, path, Tokenizer.load(path)) == bertkit.load(path).limit
    sentence = bertkit.load("minilm")
    assert limit_of(find("minilm"), find("minilm"), sentence.tokenizer) == sentence.limit == 256


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ([["a"], [None]], r"input 2 is \[None\]: it must be a list of its fields, each a str"),
        (["abc"], "input 1 is 'abc': it must be a list of its fields"),
        ([[]], "input 1 has 0 fields where the first has 0"),
        ([["a", "b"], ["a"]], "input 2 has 1 fields where the first has 2"),
        ([["a", "b"], ["a", "b\ud800"]], r"input 2: texts\[1\] has a lone surrogate"),
    ],
)
def test_inputs_that_are_none_are_named(inputs: list[list[str]], said: str, tokenizer: Tokenizer) -> None:
    with pytest.raises(BertkitError, match=said):
        count(inputs, tokenizer)


def test_fields_that_were_asked_for_are_checked_at_once(tokenizer: Tokenizer) -> None:
    with pytest.raises(BertkitError, match="input 1 has 1 fields where 2 are asked for"):
        count(([text] for text in iter(lambda: "a", None)), tokenizer, fields=2)


def test_closed_lengths_say_so(tokenizer: Tokenizer) -> None:
    with count([["a"]], tokenizer) as lengths:
        pass
    assert lengths.texts == 1
    with pytest.raises(BertkitError, match="these lengths are closed"):
        lengths.outcome("head", POLICIES["head"], 8)


def test_a_share_that_is_reached_is_not_short(tokenizer: Tokenizer) -> None:
    inputs = [["a"]] * 999 + [["a " * 60]]
    with count(inputs, tokenizer) as lengths:
        proposal = lengths.propose(64, 99.9 / 100)
    assert 99.9 / 100 > 0.999, "what floating point makes of it"
    assert (proposal.length, proposal.fits, proposal.short) == (8, 0.999, False)
