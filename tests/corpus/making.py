"""Small corpora for tests, in which every token knows where it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bertkit import artifact
from bertkit.corpus import shard
from bertkit.corpus.corpus import Corpus
from bertkit.text import Tokenizer
from bertkit.text.bulk import Tokens

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CLS, SEP, MASK = 2, 3, 4
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Made:
    """A corpus of T tokens; the id of a token is its place in the corpus plus 5."""

    corpus: Corpus
    sentence: Array
    """[T] the number of each token's sentence"""
    document: Array
    """[T] and of its document"""
    words: Array
    """[T] whether a word starts there"""

    def places(self, ids: Array) -> Array:
        """Where these tokens are in the corpus."""
        return ids.astype(np.int64) - len(SPECIAL)


def index_of(tokenizer: Tokenizer, parts: Sequence[Tokens]) -> dict[str, Any]:
    """What corpus.json must say."""
    shards = [
        {
            "file": f"shard-{number:05d}.safetensors",
            "tokens": len(part.ids),
            "words": int(part.words.sum()),
            "sentences": len(part.sentences),
            "documents": len(part.documents),
        }
        for number, part in enumerate(parts)
    ]
    head = {"version": 1, "tokenizer": tokenizer.fingerprint, "vocabulary": len(tokenizer), "options": {}}
    return {**head, "shards": shards}


def write(path: Path, tokenizer: Tokenizer, parts: Sequence[Tokens]) -> Corpus:
    """A corpus with these shards."""
    with artifact.directory(path, "corpus") as place:
        (place / "tokenizer").mkdir()
        tokenizer.save_files(place / "tokenizer")
        index = index_of(tokenizer, parts)
        (place / "corpus.json").write_text(json.dumps(index))
        for entry, part in zip(index["shards"], parts, strict=True):
            shard.write(place / entry["file"], part)
    return Corpus(path)


def numbered(path: Path, documents: Sequence[Sequence[int]], shards: int = 1, pieces: float = 0.2) -> Made:
    """Documents of sentences with so many tokens, of which a share continues a word."""
    lengths = np.array([length for document in documents for length in document])
    total, draw = int(lengths.sum()), np.random.default_rng(0)
    first = np.cumsum(lengths) - lengths
    words = draw.random(total) >= pieces
    words[first] = True
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    in_document = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
    tokenizer = Tokenizer.from_vocabulary([*SPECIAL, *(f"t{place}" for place in range(total))])
    dtype = np.uint16 if len(tokenizer) <= 2**16 else np.uint32
    parts, ids = [], np.arange(total) + len(SPECIAL)
    for some in np.array_split(np.arange(len(documents)), shards):
        chosen = np.flatnonzero(np.isin(in_document[sentence], some))
        starts = np.flatnonzero(np.diff(sentence[chosen], prepend=-1))
        heads = np.flatnonzero(np.diff(in_document[sentence[chosen[starts]]], prepend=-1))
        parts.append(
            Tokens(
                ids[chosen].astype(dtype),
                words[chosen],
                starts.astype(np.uint32),
                heads.astype(np.uint32),
            )
        )
    return Made(write(path, tokenizer, parts), sentence, in_document[sentence], words)


def with_lexicon(path: Path, made: Made, name: str, share: float = 0.3) -> Corpus:
    """The same corpus with a lexicon, which joins a share of the words to those before them, within sentences."""
    parts, draw = [], np.random.default_rng(1)
    for number in range(len(made.corpus)):
        opened = made.corpus.shard(number)
        words, sentences = opened.words(0, len(opened)), opened.sentences[:-1]
        units = words & (draw.random(len(words)) >= share)
        units[sentences] = True
        parts.append(Tokens(opened.ids, words, sentences, opened.documents[:-1], {name: units}))
    return write(path, made.corpus.tokenizer, parts)


def drawn(documents: int, sentences: tuple[int, int], tokens: tuple[int, int], seed: int = 0) -> list[list[int]]:
    """Lengths of documents and sentences, even between bounds."""
    draw = np.random.default_rng(seed)
    counts = draw.integers(*sentences, documents, endpoint=True)
    return [draw.integers(*tokens, count, endpoint=True).tolist() for count in counts]
