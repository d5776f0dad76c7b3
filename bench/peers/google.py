"""Pre-training data in the manner of Google's original script, in plain Python and written from its description:
lines are tokenised one by one, all documents are held in memory, and instances are made and written out one by one.
"""

from __future__ import annotations

import json
import random
import tempfile
import unicodedata
from pathlib import Path

import numpy as np

from bench.child import Call, serve

LENGTH, RATE, SHORT = 128, 0.15, 0.1
MOST_MASKS = 20
LONGEST_WORD = 200


def shards(model: str, text: str) -> Call:
    """A file of text to instances on disk; the answer is how many tokens the text has."""
    tokenizer = _Tokenizer(json.loads(Path(model, "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"])

    def call() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        draw = random.Random(0)
        documents: list[list[list[str]]] = [[]]
        with Path(text).open(encoding="utf-8") as file:
            for line in file:
                words = tokenizer.tokenize(line.strip())
                if words:
                    documents[-1].append(words)
                elif documents[-1]:
                    documents.append([])
        documents = [document for document in documents if document]
        total = sum(len(line) for document in documents for line in document)
        draw.shuffle(documents)
        with tempfile.TemporaryFile("w", encoding="utf-8") as out:
            for number in range(len(documents)):
                for instance in _instances(documents, number, list(tokenizer.ids), draw):
                    ids = [tokenizer.ids.get(token, tokenizer.unknown) for token in instance["tokens"]]
                    ids += [0] * (LENGTH - len(ids))
                    out.write(json.dumps({**instance, "ids": ids}) + "\n")
        return np.array([total])

    return call


class _Tokenizer:
    """Words, then pieces of words, character by character."""

    def __init__(self, ids: dict[str, int]) -> None:
        self.ids, self.unknown = ids, ids["[UNK]"]

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
    cleaned = []
    for char in line:
        code = ord(char)
        if code in (0, 0xFFFD) or (char not in "\t\n\r" and unicodedata.category(char).startswith("C")):
            continue
        if 0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF:
            cleaned.append(f" {char} ")
        else:
            cleaned.append(" " if char.isspace() else char)
    found = []
    for word in "".join(cleaned).split():
        bare = (char for char in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(char) != "Mn")
        held = ""
        for char in bare:
            if _punctuation(char):
                found += [held, char] if held else [char]
                held = ""
            else:
                held += char
        if held:
            found.append(held)
    return found


def _punctuation(char: str) -> bool:
    code = ord(char)
    if 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126:
        return True
    return unicodedata.category(char).startswith("P")


def _instances(documents: list[list[list[str]]], number: int, words: list[str], draw: random.Random) -> list[dict]:
    document, made, chunk, length, at = documents[number], [], [], 0, 0
    target = draw.randint(2, LENGTH - 3) if draw.random() < SHORT else LENGTH - 3
    while at < len(document):
        chunk.append(document[at])
        length += len(document[at])
        if at == len(document) - 1 or length >= target:
            made.append(_instance(documents, number, chunk, target, words, draw))
            chunk, length = [], 0
        at += 1
    return made


def _instance(
    documents: list[list[list[str]]],
    number: int,
    chunk: list[list[str]],
    target: int,
    words: list[str],
    draw: random.Random,
) -> dict:
    cut = draw.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
    first = [token for line in chunk[:cut] for token in line]
    other = len(chunk) == 1 or draw.random() < 0.5
    if other:
        partner = documents[draw.randrange(len(documents))]
        start, second = draw.randrange(len(partner)), []
        for line in partner[start:]:
            second += line
            if len(second) >= target - len(first):
                break
    else:
        second = [token for line in chunk[cut:] for token in line]
    while len(first) + len(second) > LENGTH - 3:
        longer = first if len(first) > len(second) else second
        longer.pop(0 if draw.random() < 0.5 else -1)
    tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    places = [place for place, token in enumerate(tokens) if token not in ("[CLS]", "[SEP]")]
    draw.shuffle(places)
    chosen = sorted(places[: min(MOST_MASKS, max(1, round(len(tokens) * RATE)))])
    labels = [tokens[place] for place in chosen]
    for place in chosen:
        if draw.random() < 0.8:
            tokens[place] = "[MASK]"
        elif draw.random() < 0.5:
            tokens[place] = words[draw.randrange(len(words))]
    return {"tokens": tokens, "places": chosen, "labels": labels, "other": other}


if __name__ == "__main__":
    serve({"shards": shards}, [])
