"""Sentence boundaries: cases by hand, and the Brown corpus."""

from __future__ import annotations

import re
import string
import zipfile
from pathlib import Path

import pytest

from bertkit.text.sentences import MAY_END, MAY_START, STARTS, End, Rules, end_of, start_of

SENTENCES = [
    ["It works.", "It really does."],
    ["Mr. and Mrs. Hale met Dr. No.", "They talked."],
    ["He lives in the U.S. and likes it.", "She does not."],
    ["He moved to the U.S.", "The winters are cold."],
    ["Pi is 3.14159.", "E is 2.71828."],
    ['"Stop!" he said.', '"Never."', "She ran."],
    ["Did it rain?", "Yes!", "(A little.)", "Then it stopped."],
    ["Wait... what?", "Nothing."],
    ["J. R. R. Tolkien wrote it in 1937.", "Critics liked it."],
    ["See e.g. Smith et al. (2019) or Fig. 4.", "There it is."],
    ["The file is www.example.org/a.b.c and v1.2.", "Open it."],
    ["我们走吧。", "好！", "“你呢？”", "他问。"],
    ["Il est né à Paris.", "Élodie aussi."],
    ["The price rose to $5.", "Nobody minded."],
]


@pytest.mark.parametrize("sentences", SENTENCES, ids=[" ".join(parts)[:24] for parts in SENTENCES])
def test_sentences_by_hand(sentences: list[str]) -> None:
    chinese = not sentences[0].isascii() and "。" in "".join(sentences)
    assert Rules().split(("" if chinese else " ").join(sentences)) == sentences


def test_a_line_break_ends_a_sentence_and_nothing_is_lost() -> None:
    assert Rules().split("no mark\nat all\n\n  \nhere") == ["no mark", "at all", "here"]
    assert Rules().split("") == []


def test_two_bytes_tell_how_most_chunks_start() -> None:
    told = 0
    for first in string.printable[:94]:
        for rest in ("", *string.printable[:94], "he", "he,", "HE", "ut's", "é"):
            chunk = first + rest
            head = (chunk.encode() + b"\0")[:2]
            pair = head[0] | head[1] << 8
            if not MAY_START[pair]:
                told += 1
                assert start_of(chunk) == STARTS[pair], chunk
    assert told > 3900


def test_two_bytes_tell_how_most_chunks_end() -> None:
    told, endings = 0, 0
    for last in (*string.printable[:94], *"”’。！…é猫"):
        for rest in ("", *string.printable[:94], "he", "he.", "Mr", "o”", "o.’", "。", "é", 'e."'):
            final = b" " + (rest + last).encode()
            asked = MAY_END[final[-2] | final[-1] << 8]
            told += not asked
            endings += end_of(rest + last) is not End.INSIDE
            assert asked or end_of(rest + last) is End.INSIDE, rest + last
    assert told > 8900
    assert endings > 600


def brown(path: Path) -> list[list[str]]:
    """The sentences of each of Brown's texts, with the spaces that a writer would set."""
    documents = []
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if re.search(r"brown/c[a-r]\d\d$", name):
                lines = (line.split() for line in archive.read(name).decode().split("\n") if line.strip())
                documents.append([_written([word.rsplit("/", 1)[0] for word in line]) for line in lines])
    return documents


def _written(words: list[str]) -> str:
    out, quoted = "", False
    for before, word in zip(["", *words], words, strict=False):
        if word == before and word in {"?", "!", ";"}:
            continue  # Brown writes them twice
        if word == "``":
            out, quoted = f'{out}{" " if out else ""}"', True
            continue
        joined = word in {"''", ",", ".", ";", ":", "?", "!", ")", "]", "'"} or quoted or not out or out[-1] in "(["
        out, quoted = out + ("" if joined else " ") + ('"' if word == "''" else word), False
    return out


def test_f1_on_the_brown_corpus(shared: Path) -> None:
    """Misses are mostly Brown's own: it ends sentences at semicolons, colons and headlines."""
    found = right = true = 0
    for sentences in brown(shared / "data" / "nltk-corpora" / "brown.zip")[::5]:
        text, gold = "", set()
        for sentence in sentences:
            text += (" " if text else "") + sentence
            gold.add(len(text))
        got, at = set(), 0
        for sentence in Rules().split(text):
            at = text.index(sentence, at) + len(sentence)
            got.add(at)
        found, right, true = found + len(got), right + len(got & gold), true + len(gold)
    precision, recall = right / found, right / true
    assert precision > 0.997
    assert 2 * precision * recall / (precision + recall) > 0.945
