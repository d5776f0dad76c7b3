"""Pre-training data in the manner of Google's original script, in plain Python and written from its description.

Lines are sentences and are tokenised one by one, all documents are held in memory, and pairs of segments with masks are
made and written one by one, by one process.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench.child import Fresh, serve
from bench.peer import HOME
from bench.pipe import Array

LENGTH, RATE, SHORT = 128, 0.15, 0.1
COPIES = 5
"""of the text, each with pairs and masks of its own, as in the command that Google gives"""
MOST_MASKS = 20
LONGEST_WORD = 100
TRIES = 10
_CHINESE = (
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0x2F800, 0x2FA1F)),
)

Document = list[list[str]]


def shards(model: str, text: str, copies: int = COPIES) -> Fresh:
    """A file of text to instances on disk. The instances are drawn, so the answer is the ids of the text alone."""
    vocabulary: dict[str, int] = json.loads(Path(model, "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    tokenizer = Tokenizer(vocabulary)
    work = HOME / "work"
    work.mkdir(parents=True, exist_ok=True)

    def call(place: str) -> str:
        _write(tokenizer, text, copies, Path(place, "instances.jsonl"))
        return place

    def answer(place: str) -> Array:
        assert all(path.stat().st_size for path in Path(place).iterdir())
        lines = Path(text).read_text(encoding="utf-8").split("\n")
        return np.array([vocabulary[token] for line in lines for token in tokenizer.tokenize(line)], np.int64)

    return Fresh(lambda: TemporaryDirectory(dir=work), call, answer)


def _write(tokenizer: Tokenizer, text: str, copies: int, path: Path) -> None:
    draw = random.Random(0)
    documents = list(_documents(tokenizer, text))
    draw.shuffle(documents)
    words = list(tokenizer.ids)
    with path.open("w", encoding="utf-8") as out:
        for at in copies * list(range(len(documents))):
            for instance in _instances(documents, at, words, draw):
                ids = [tokenizer.ids[token] for token in instance["tokens"]]
                ids += [0] * (LENGTH - len(ids))
                out.write(json.dumps({**instance, "ids": ids}) + "\n")


def _documents(tokenizer: Tokenizer, text: str) -> Iterator[Document]:
    """Each as lines of tokens; an empty line ends one."""
    found: list[str] = []
    with Path(text).open(encoding="utf-8") as file:
        for line in [*file, ""]:
            if line.strip():
                found.append(line)
            elif found:
                yield [tokens for each in found if (tokens := tokenizer.tokenize(each))]
                found = []


class Tokenizer:
    """Words, then pieces of words, character by character."""

    def __init__(self, ids: dict[str, int]) -> None:
        self.ids = ids

    def tokenize(self, line: str) -> list[str]:
        return [piece for word in _words(line) for piece in self._pieces(word)]

    def _pieces(self, word: str) -> list[str]:
        if len(word) > LONGEST_WORD:
            return ["[UNK]"]
        pieces, start = [], 0
        while start < len(word):
            end = len(word)
            while end > start:
                piece = ("##" if start else "") + word[start:end]
                if piece in self.ids:
                    break
                end -= 1
            else:
                return ["[UNK]"]
            pieces.append(piece)
            start = end
        return pieces


def _words(line: str) -> list[str]:
    """Cleaned, without capitals and accents, cut at white space and around every mark."""
    found = []
    for word in "".join(map(_cleaned, line)).split():
        held = ""
        for char in unicodedata.normalize("NFD", word.lower()):
            if unicodedata.category(char) == "Mn":
                continue
            if _punctuation(char):
                found += [held, char] if held else [char]
                held = ""
            else:
                held += char
        if held:
            found.append(held)
    return found


def _cleaned(char: str) -> str:
    code = ord(char)
    if char in " \t\n\r" or unicodedata.category(char) == "Zs":
        return " "
    if code in (0, 0xFFFD) or unicodedata.category(char).startswith("C"):
        return ""
    return f" {char} " if any(first <= code <= last for first, last in _CHINESE) else char


def _punctuation(char: str) -> bool:
    code = ord(char)
    if 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126:
        return True
    return unicodedata.category(char).startswith("P")


def _instances(
    documents: list[Document], number: int, words: list[str], draw: random.Random
) -> Iterator[dict[str, Any]]:
    """Sentences are gathered until there are enough; those that a random partner pushed out are gathered again."""
    document, chunk, length, at = documents[number], [], 0, 0
    target = _target(draw)
    while at < len(document):
        chunk.append(document[at])
        length += len(document[at])
        if at == len(document) - 1 or length >= target:
            cut = draw.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
            first = [token for line in chunk[:cut] for token in line]
            other = len(chunk) == 1 or draw.random() < 0.5
            if other:
                second = _elsewhere(documents, number, target - len(first), draw)
                at -= len(chunk) - cut
            else:
                second = [token for line in chunk[cut:] for token in line]
            yield _instance(first, second, other, words, draw)
            chunk, length, target = [], 0, _target(draw)
        at += 1


def _target(draw: random.Random) -> int:
    return draw.randint(2, LENGTH - 3) if draw.random() < SHORT else LENGTH - 3


def _elsewhere(documents: list[Document], number: int, room: int, draw: random.Random) -> list[str]:
    for _ in range(TRIES):
        other = draw.randrange(len(documents))
        if other != number:
            break
    partner, found = documents[other], []
    for line in partner[draw.randrange(len(partner)) :]:
        found += line
        if len(found) >= room:
            break
    return found


def _instance(
    first: list[str], second: list[str], other: bool, words: list[str], draw: random.Random
) -> dict[str, Any]:
    while len(first) + len(second) > LENGTH - 3:
        longer = first if len(first) > len(second) else second
        longer.pop(0 if draw.random() < 0.5 else -1)
    tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    places = [place for place, token in enumerate(tokens) if token not in ("[CLS]", "[SEP]")]
    draw.shuffle(places)
    chosen = sorted(places[: min(MOST_MASKS, max(1, round(len(tokens) * RATE)))])
    labels = [tokens[place] for place in chosen]
    for place in chosen:
        if draw.random() < 0.8:
            tokens[place] = "[MASK]"
        elif draw.random() < 0.5:
            tokens[place] = words[draw.randrange(len(words))]
    return {"tokens": tokens, "segments": segments, "places": chosen, "labels": labels, "other": other}


if __name__ == "__main__":
    serve({"shards": shards}, [])
