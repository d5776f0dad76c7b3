"""Unigram: sentencepiece's own tokens, and a tokenizer.json that gives the same ids as spiece.model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from bertkit.corpus.source import embedded
from bertkit.errors import BertkitError
from bertkit.vocab.kind import Options
from bertkit.vocab.train import train
from tests.vocab.texts import CHINESE, ENGLISH, real

sentencepiece = pytest.importorskip("sentencepiece", reason="needs sentencepiece; not installed")


@pytest.mark.parametrize("cased", [True, False])
def test_the_files_agree(shared: Path, tmp_path: Path, cased: bool) -> None:
    text = real(shared, ENGLISH, 200_000) + real(shared, CHINESE, 20_000)
    options = Options(2600, cased, special=("[NAME]",), unused=1)
    report = train([embedded("t", text.encode())], tmp_path / "v", "unigram", options)
    assert report.size == 2600
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "v" / "spiece.model"))
    rust = Tokenizer.from_file(str(tmp_path / "v" / "tokenizer.json"))
    first = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "[NAME]", "[unused0]"]
    assert [processor.id_to_piece(number) for number in range(7)] == first
    for line in ["", " The  Cat ", "Ｆｕｌｌ ﬁ ½", *text[100_000:120_000].split("\n"), *text[-3000:].split("\n")]:
        assert rust.encode(line, add_special_tokens=False).ids == processor.encode(line)
    assert (processor.encode("CAT") == processor.encode("cat")) == (not cased)
    latin = report.coverage.scripts["Latin"]
    assert latin.unknown * 1000 < latin.words, "only words with characters that were seen once"

    train([embedded("t", text.encode())], tmp_path / "again", "unigram", options)
    assert (tmp_path / "again" / "spiece.model").read_bytes() == (tmp_path / "v" / "spiece.model").read_bytes()


def test_sizes(shared: Path, tmp_path: Path) -> None:
    text = real(shared, ENGLISH, 20_000).encode()
    with pytest.raises(BertkitError, match="--size 20 is too small: 5 special and unused tokens and"):
        train([embedded("t", text)], tmp_path / "v", "unigram", Options(20))
    report = train([embedded("t", text)], tmp_path / "v", "unigram", Options(100_000))
    assert 100 < report.size < 100_000
