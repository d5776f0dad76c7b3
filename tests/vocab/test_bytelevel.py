"""Byte-level BPE: the words of GPT-2's pattern, the tokens of `tokenizers`, and files that RoBERTa's class reads."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer

from bertkit.corpus.source import embedded
from bertkit.vocab.bytelevel import SPECIALS, ByteLevel
from bertkit.vocab.kind import Options
from bertkit.vocab.train import train
from tests.vocab.texts import CHINESE, ENGLISH, real

GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
parts = st.sampled_from(
    [
        "a",
        "b1",
        "don't",
        "é",
        "猫",
        "，猫。",
        "«",
        "_",
        "1",
        " ",
        "  ",
        "\t",
        "\n",
        "\u3000",
        "\xa0",
        "\x1c",
        "\x85",
        "x" * 70,
    ]
)


def words_of_lines(text: str) -> Counter[str]:
    return Counter(word for line in text.split("\n") for word, _ in GPT2.pre_tokenize_str(line))


def our_words(text: str) -> Counter[str]:
    kind = ByteLevel(Options())
    return Counter(kind.words(kind.chunks(text)))


@settings(max_examples=250)
@given(st.lists(parts, max_size=25).map("".join))
def test_words_are_those_of_each_line(text: str) -> None:
    assert our_words(text) == words_of_lines(text)


@pytest.mark.parametrize("name", [ENGLISH, CHINESE])
def test_words_of_real_text(shared: Path, name: str) -> None:
    text = real(shared, name, 200_000)
    assert our_words(text) == words_of_lines(text)


def test_the_same_vocabulary_as_tokenizers(shared: Path, tmp_path: Path) -> None:
    text = real(shared, ENGLISH, 300_000)
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = GPT2
    trainer = BpeTrainer(
        vocab_size=2000,
        min_frequency=2,
        show_progress=False,
        special_tokens=list(SPECIALS),
        initial_alphabet=GPT2.alphabet(),
    )
    theirs.train_from_iterator(text.split("\n"), trainer)
    model = json.loads(theirs.to_str())["model"]
    report = train([embedded("emma", text.encode())], tmp_path / "bpe", "bpe", Options(2000, held_out=0))
    assert json.loads((tmp_path / "bpe" / "vocab.json").read_text("utf-8")) == model["vocab"]
    merges = (tmp_path / "bpe" / "merges.txt").read_text("utf-8").splitlines()[1:]
    assert [tuple(line.split(" ")) for line in merges] == [tuple(pair) for pair in model["merges"]]
    assert report.size == 2000
    assert report.coverage.all.unknown == 0


def test_the_files_agree(shared: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, RobertaTokenizer

    text = real(shared, ENGLISH, 100_000) + real(shared, CHINESE, 30_000)
    train([embedded("both", text.encode())], tmp_path / "v", "bpe", Options(1500, special=("[NAME]",), unused=2))
    rust = Tokenizer.from_file(str(tmp_path / "v" / "tokenizer.json"))
    auto = AutoTokenizer.from_pretrained(tmp_path / "v")
    roberta = RobertaTokenizer(
        vocab=str(tmp_path / "v" / "vocab.json"),
        merges=str(tmp_path / "v" / "merges.txt"),
        extra_special_tokens=["[NAME]"],
    )
    assert (auto.mask_token_id, auto.pad_token_id, auto.cls_token_id, auto.vocab_size) == (4, 1, 0, 1500)
    for line in ["Emma  saw [NAME] in a <mask>.", " 猫 \t x", *text[90_000:110_000].split("\n")]:
        ids = rust.encode(line).ids
        assert ids[0] == 0
        assert ids[-1] == 2
        assert auto(line)["input_ids"] == ids
        assert "<mask>" in line or roberta(line)["input_ids"] == ids
    assert rust.encode("[NAME]").ids == [0, 5, 2]
