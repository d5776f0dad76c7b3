"""WordPiece: the words that BERT sees, the tokens of `tokenizers`, and files that agree with each other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Rust
from tokenizers import models, normalizers, pre_tokenizers
from tokenizers.trainers import WordPieceTrainer

from bertkit.corpus.source import embedded
from bertkit.text import Tokenizer
from bertkit.vocab import merges, wordpiece
from bertkit.vocab.kind import Options
from bertkit.vocab.train import train
from bertkit.vocab.wordpiece import WordPiece
from tests.vocab.texts import CHINESE, ENGLISH, real

FIVE = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
parts = st.sampled_from(
    [
        "The",
        "cafés",
        "ΟΔΟΣ",
        "İ",
        "北京",
        "！”",
        "don't",
        " ",
        "\n",
        "\x0b",
        "\x85",
        "\u200b",
        "\u0301",
        "\u037e",
        "a,b;c" * 50,
    ]
)


def bert_words(text: str, cased: bool) -> Counter[str]:
    """What BERT makes of a whole text at once."""
    cleaned = normalizers.BertNormalizer(lowercase=not cased).normalize_str(text)
    return Counter(word for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(cleaned))


def our_words(text: str, cased: bool) -> Counter[str]:
    kind = WordPiece(Options(cased=cased))
    return Counter(kind.words(kind.chunks(text)))


@settings(max_examples=120)
@given(st.lists(st.one_of(parts, st.text(max_size=4)), max_size=20).map("".join), st.booleans())
def test_words_are_those_of_the_whole_text(text: str, cased: bool) -> None:
    assert our_words(text, cased) == bert_words(text, cased)


@pytest.mark.parametrize("name", [ENGLISH, CHINESE])
def test_words_of_real_text(shared: Path, name: str) -> None:
    text = real(shared, name, 60_000)
    assert our_words(text, False) == bert_words(text, False)
    assert our_words(text, True) == bert_words(text, True)


@pytest.mark.parametrize(("name", "size"), [(ENGLISH, 3000), (CHINESE, 4500)])
def test_the_same_vocabulary_as_tokenizers(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: int
) -> None:
    text = real(shared, name, 300_000)
    theirs = Rust(models.WordPiece(unk_token="[UNK]"))
    theirs.normalizer, theirs.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    trainer = WordPieceTrainer(vocab_size=size, min_frequency=2, show_progress=False, special_tokens=FIVE)
    theirs.train_from_iterator(text.split("\n"), trainer)
    ids = theirs.get_vocab()
    listed = sorted(ids, key=ids.__getitem__)

    # Theirs keeps characters that occur once, and numbers ## letters in the order of a hash table, which differs from
    # run to run and decides ties. With those first tokens and their numbers, every further token is the same.
    known: dict[str, int] = {}
    first = [token for token in listed if token in FIVE or len(token.removeprefix("##")) == 1]
    learn = merges.learn

    def numbered(
        words: list[str], counts: list[int], tokens: list[str], size: int, least: int, joined: object
    ) -> merges.Merges:
        known.update({token: number for number, token in enumerate(tokens)})
        renamed = {number: chr(ids[token]) for token, number in known.items()}
        return learn([word.translate(renamed) for word in words], counts, first, size, least, joined)  # type: ignore[arg-type]

    monkeypatch.setattr(wordpiece, "choose", lambda counts, least, limit: set(counts))
    monkeypatch.setattr(merges, "learn", numbered)
    report = train([embedded(name, text.encode())], tmp_path / "v", options=Options(size, held_out=0))
    assert (tmp_path / "v" / "vocab.txt").read_text("utf-8").splitlines() == listed
    assert sorted(known) == sorted(first)
    assert report.size == size


@pytest.mark.parametrize("cased", [True, False])
def test_the_files_agree(shared: Path, tmp_path: Path, cased: bool) -> None:
    from transformers import AutoTokenizer, BertTokenizer, PreTrainedTokenizerFast

    text = real(shared, ENGLISH, 100_000) + "\n\n" + real(shared, CHINESE, 50_000)
    options = Options(2500, cased, special=("[NAME]", "[PLACE]"), unused=3)
    train([embedded("both", text.encode())], tmp_path / "v", options=options)
    tokens = (tmp_path / "v" / "vocab.txt").read_text("utf-8").splitlines()
    assert tokens[:11] == [*FIVE, "[NAME]", "[PLACE]", "[unused0]", "[unused1]", "[unused2]", "!"]
    assert len(tokens) == len(set(tokens)) == 2500

    (tmp_path / "google").mkdir()
    (tmp_path / "google" / "vocab.txt").write_bytes((tmp_path / "v" / "vocab.txt").read_bytes())
    ours = Tokenizer.load(tmp_path / "v")
    readers = [
        AutoTokenizer.from_pretrained(tmp_path / "v"),
        PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "v" / "tokenizer.json")),
        BertTokenizer.from_pretrained(
            tmp_path / "google", do_lower_case=not cased, extra_special_tokens=["[NAME]", "[PLACE]"]
        ),
    ]
    lines = [
        "Emma saw [NAME] in [PLACE], [MASK] café",
        *text[60_000:150_000:7].split("\n"),
        *text[90_000:130_000].split("\n"),
    ]
    for line in lines:
        ids = ours.encode(line).ids
        for reader in readers:
            assert reader(line)["input_ids"] == ids
    assert ours.encode("[NAME]").ids == [2, 5, 3]


def test_characters_that_are_left_out_do_not_teach(tmp_path: Path) -> None:
    """A word with a character that is left out is [UNK] as a whole, and its other letters are no pieces of it."""
    text = "bca " * 5 + "zca"  # with the last word ##c ##a would be joined first
    train([embedded("t", text.encode())], tmp_path / "v", options=Options(40))
    tokens = (tmp_path / "v" / "vocab.txt").read_text("utf-8").splitlines()
    assert tokens == [*FIVE, "a", "b", "c", "##a", "##c", "bc", "bca"]
    tokenizer = Tokenizer.load(tmp_path / "v")
    assert tokenizer.encode("bca zca ca", special_tokens=False).tokens == ["bca", "[UNK]", "c", "##a"]


def test_chinese_characters_are_not_limited(tmp_path: Path) -> None:
    rare, often = "".join(map(chr, range(0x4E00, 0x4E00 + 300))), "abcdefgh"
    chinese = f"{often} " * 50 + rare * 2 + "龘"
    train([embedded("t", chinese.encode())], tmp_path / "zh", options=Options(400, alphabet=8))
    found = set((tmp_path / "zh" / "vocab.txt").read_text("utf-8").splitlines())
    assert set(rare) <= found, "half of the text is Chinese"
    assert "龘" not in found, "seen once"
    english = f"{often} " * 50_000 + rare * 2
    train([embedded("t", english.encode())], tmp_path / "en", options=Options(400, alphabet=8))
    assert not set(rare) & set((tmp_path / "en" / "vocab.txt").read_text("utf-8").splitlines()), "strays"
