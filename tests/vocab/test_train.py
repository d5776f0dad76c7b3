"""Training as a whole: what is held out and judged, what never matters, and what is refused."""

from __future__ import annotations

import gzip
import logging
from collections import Counter
from pathlib import Path

import pytest

from bertkit import artifact
from bertkit.corpus.source import embedded, files
from bertkit.errors import BertkitError
from bertkit.vocab import share
from bertkit.vocab import train as training
from bertkit.vocab.counts import Counts
from bertkit.vocab.kind import Options
from bertkit.vocab.train import EVERYTHING, HELD_OUT, train
from tests.vocab.texts import ENGLISH, real

DOCUMENTS = [f"document {number} says that the cat {number % 7} sat on mat {number % 13}" for number in range(3000)]
TEXT = "\n\n".join(DOCUMENTS).encode()


def content(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_nothing_depends_on_memory_or_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: Path, kind: str
) -> None:
    text = real(shared, ENGLISH, 200_000)
    halves = [part.encode() for part in text.split("\n\n")]
    middle = len(halves) // 2
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"\n\n".join(halves[:middle])))
    (tmp_path / "b.txt").write_bytes(b"\n\n".join(halves[middle:]))
    a, b = files([str(tmp_path / "a.txt.gz"), str(tmp_path / "b.txt")])
    first = train([a, b], tmp_path / "first", kind, Options(1000))
    spilled: list[int] = []

    class Small(Counts):
        def __init__(self, memory: int) -> None:
            super().__init__(memory // 4000)

        def close(self) -> None:
            spilled.append(self.spilled)
            super().close()

    monkeypatch.setattr(training, "Counts", Small)
    second = train([b, a], tmp_path / "second", kind, Options(1000), memory=400 * 2**20)
    assert max(spilled) > 1
    assert content(tmp_path / "first") == content(tmp_path / "second")
    assert first == second
    assert artifact.verify(tmp_path / "first").facts == {"kind": kind, "size": 1000}


def test_held_out_documents_are_not_learned_from(tmp_path: Path) -> None:
    kept, held = share.split(TEXT.decode(), 0.1)
    assert sorted([*kept.split("\n\n"), *held.split("\n\n")]) == sorted(DOCUMENTS)
    assert 200 < held.count("\n\n") < 400
    report = train([embedded("t", TEXT)], tmp_path / "v", options=Options(500, held_out=0.1))
    assert report.judged_on == HELD_OUT
    assert report.words == len(kept.split())
    assert report.coverage.all.words == len(held.split())
    numbers = Counter(word.isdigit() for word in held.split())
    assert {name: tally.words for name, tally in report.coverage.scripts.items()} == {
        "Latin": numbers[False],
        "digits": numbers[True],
    }
    assert report.coverage.scripts["Latin"].whole == numbers[False], "eight words that are all learned"


def test_a_small_text_is_used_as_a_whole(tmp_path: Path) -> None:
    text = b"\n\n".join(document.encode() for document in DOCUMENTS[:50])
    report = train([embedded("t", text)], tmp_path / "v", options=Options(200, held_out=0.3))
    assert (report.judged_on, report.words) == (EVERYTHING, 50 * 11)
    assert report.coverage.all.words == report.words


def test_lines_are_held_out_where_nothing_parts_documents() -> None:
    lines = [f"line {number} of one very long document" for number in range(5000)]
    kept, held = share.split("\n".join(lines), 0.02)
    assert sorted([*kept.split("\n\n"), *held.split("\n\n")]) == sorted(lines)
    assert 50 < held.count("\n\n") < 150


def test_coverage_adds_up(tmp_path: Path) -> None:
    """Counted by hand: learned from [cat ×4, cats ×2, 猫 ×2, q], judged on the same."""
    text = "cat cats cat 猫 cats 猫 cat cat q"
    report = train([embedded("t", text.encode())], tmp_path / "v", options=Options(14, held_out=0))
    tokens = (tmp_path / "v" / "vocab.txt").read_text("utf-8").splitlines()
    assert tokens[5:] == ["a", "c", "s", "t", "猫", "##a", "##s", "##t", "ca"]
    latin, han = report.coverage.scripts["Latin"], report.coverage.scripts["Han"]
    assert (latin.words, latin.whole, latin.pieces, latin.unknown) == (7, 0, 4 * 2 + 2 * 3 + 1, 1)
    assert (han.words, han.whole, han.pieces, han.unknown) == (2, 2, 2, 0)
    assert [(split.word, split.times, split.pieces) for split in report.coverage.longest] == [
        ("cats", 2, ["ca", "##t", "##s"]),
        ("cat", 4, ["ca", "##t"]),
    ]
    told = report.json()["coverage"]
    assert told["unknown_words"] == {"q": 1}
    assert (told["unknown"], told["whole"], told["pieces_per_word"]) == (1 / 9, 2 / 9, 17 / 9)


def test_the_rarest_types_are_left_out_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(100)]
    text = " ".join([*words, *words[:40], *words[:10]])
    monkeypatch.setattr(training, "TYPES", 25)
    seen = []
    monkeypatch.setattr(
        training.WordPiece,
        "learn",
        lambda self, words, learn=training.WordPiece.learn: (seen.append(words), learn(self, words))[1],
    )
    report = train([embedded("t", text.encode())], tmp_path / "v", options=Options(300, min_count=1, held_out=0))
    assert (report.types, report.rare) == (100, 75)
    (kept,) = seen
    assert kept == sorted(kept)
    assert {word for word, count in kept if count == 3} == set(words[:10])
    assert len([word for word, count in kept if count == 2]) == 15


def test_long_words_are_left_out_and_told(tmp_path: Path) -> None:
    text = "cat " * 20 + "x" * 101 + " " + "y" * 100 + " y" + " z" * 2 + "z" * 5000
    report = train([embedded("t", text.encode())], tmp_path / "v", options=Options(60, held_out=0))
    assert report.too_long == 2
    assert "x" not in (tmp_path / "v" / "vocab.txt").read_text("utf-8").split()


@pytest.mark.parametrize(
    ("text", "kind", "options", "said"),
    [
        ("", "wordpiece", {}, "the corpus is empty: there is no word in t"),
        (" \n\n \t", "bpe", {}, "the corpus is empty: there is no word in t"),
        ("a cat", "wordpeace", {}, "unknown kind of vocabulary 'wordpeace': did you mean 'wordpiece'?"),
        ("cat cat", "wordpiece", {"size": 9}, "5 special and unused tokens and 5 single characters need 10 rows"),
        ("cat cat", "wordpiece", {"size": 14, "unused": 5}, "10 special and unused tokens and 5 single characters"),
        ("cat cat", "bpe", {"size": 100}, "5 special and unused tokens and 256 single characters need 261 rows"),
        ("cat", "wordpiece", {"special": ("[MASK]",)}, "--special '[MASK]' is there already"),
        ("cat", "wordpiece", {"special": ("a\nb",)}, "--special: 'a\\nb' cannot be an added token"),
    ],
)
def test_refused(tmp_path: Path, text: str, kind: str, options: dict[str, int], said: str) -> None:
    with pytest.raises(BertkitError) as error:
        train([embedded("t", text.encode())], tmp_path / "v", kind, Options(**options))
    assert said in str(error.value)
    assert not (tmp_path / "v").exists()


@pytest.mark.parametrize(
    "options", [{"size": 0}, {"size": 10**7}, {"min_count": 0}, {"unused": -1}, {"held_out": 0.6}, {"alphabet": 0}]
)
def test_options_that_mean_nothing(options: dict[str, int]) -> None:
    with pytest.raises(BertkitError, match=f"--{next(iter(options)).replace('_', '-')} is "):
        Options(**options)


def test_a_size_that_is_not_reached_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="bertkit"):
        report = train([embedded("t", b"cat cat")], tmp_path / "v", options=Options(1000))
    assert report.size == 12  # 5 special, a c t ##a ##t, and two joins
    assert "the vocabulary has 12 tokens, not the 1,000 asked for: nothing else occurs 2 times" in caplog.text


def test_memory_that_cannot_do_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BertkitError, match="--max-ram is 100 MB: any corpus needs 400 MB"):
        train([embedded("t", b"cat")], tmp_path / "v", memory=100 * 2**20)
    monkeypatch.setattr(training, "_PER_TYPE", 200 * 2**20)
    with pytest.raises(BertkitError, match="--max-ram is 400 MB: learning from 1 words needs 500 MB"):
        train([embedded("t", b"cat")], tmp_path / "v", memory=400 * 2**20)
