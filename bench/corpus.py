"""A corpus: text to ids, raw text to shards, shards to masked examples."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from bench import peer
from bench.measure import OURS, Amount, Bar, Case
from bench.pipe import Array
from bench.prose import REAL, file, passed, prose, size, taken
from bertkit.corpus import build, source
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.inputs import FullSentences
from bertkit.text import Tokenizer
from bertkit.text.sentences import Rules
from bertkit.weights.find import find

TEXT, BEFORE = 15.0, 50.0
"""megabytes that are timed, and of other text that passes before a warm pass"""
FEWER = 2 / 3
ROWS, LENGTH = 256, 128
BARS = {
    "tokenize cold": {"tokenizers": Bar(2.5)},
    "tokenize warm": {"tokenizers": Bar(4.0)},
    "shards": {"datasets": Bar(3.0)},
    "shards of sentences": {"google": Bar(20.0), "google-once": Bar(20.0)},
    "assemble": {OURS: Bar(5e6)},
    "assemble words": {OURS: Bar(2e6)},
}


def cases(quick: bool) -> Iterable[Case]:
    """On English with MiniLM's vocabulary, which is BERT's uncased one."""
    found, model = prose(), find("minilm")
    megabytes, before = (0.2, 0.4) if quick else (TEXT, BEFORE)
    timed = taken(found.documents, megabytes)
    other = passed([*found.documents[len(timed) :], *found.others], before)
    text = file("text", timed)
    asked = {"model": str(model), "text": str(text)}
    warm = {**asked, "before": str(file("before", other))}
    split = list(map(_sentences, taken(timed, megabytes * FEWER)))  # Google's way takes a minute
    lines = {**asked, "text": str(file("sentences", split))}

    named = f"{size(timed):.3g} MB of {found.name}"
    yield _case("tokenize cold", named, "tokenize", asked, ("tokenizers",), timed)
    yield _case("tokenize warm", f"{named} after {before:g}", "tokenize", warm, ("tokenizers",), timed)
    yield _case("shards", named, "shards", asked, ("datasets",), timed)
    fewer = f"{size(split):.3g} MB of {found.name}"
    yield _case("shards of sentences", fewer, "shards", lines, ("google", "google-once"), split)
    yield from _assemble(named, model, text, 16 if quick else ROWS)


def _case(
    name: str, text: str, job: str, arguments: dict[str, str], peers: tuple[str, ...], documents: list[str]
) -> Case:
    amount = Amount(size(documents), "MB")
    return Case(f"{name}, {text}", job, {**arguments}, peers, bars=_bars(name, text), amount=amount)


def _bars(name: str, text: str) -> dict[str, Bar]:
    """They were set for real text."""
    return BARS[name] if REAL in text else {}


def _sentences(article: str) -> str:
    """As Google's script wants it: a sentence on each line."""
    return "\n".join(sentence for line in article.split("\n") for sentence in Rules().split(line))


def _assemble(named: str, model: Path, text: Path, rows: int) -> Iterable[Case]:
    """An epoch of batches in each turn, so that what an epoch costs once is in it."""
    made = peer.HOME / "corpora" / "text"
    made.parent.mkdir(parents=True, exist_ok=True)
    build.build(source.files([str(text)]), Tokenizer.load(model), made, overwrite=True)
    examples = Examples(Corpus(made), FullSentences(LENGTH))
    batches = examples.count(0) // rows
    tokens = examples.lengths(0, range(batches * rows)).sum() / batches
    first = examples.read(0, range(rows))
    for name, words in (("assemble", False), ("assemble words", True)):
        yield Case(
            f"{name} {rows}×{LENGTH}, {named}",
            "assemble",
            {"model": str(model), "corpus": str(made), "words": words},
            ("transformers",),
            array=rectangle(first.ids, first.starts, LENGTH),
            calls=batches,
            bars=_bars(name, named),
            amount=Amount(float(tokens), "tokens"),
            alone=True,
        )


def rectangle(ids: Array, starts: Array, length: int) -> Array:
    """Examples in a row as [B, L], with 0 after their ends.

    >>> rectangle(np.array([7, 8, 9]), np.array([0, 2, 3]), length=3).tolist()
    [[7, 8, 0], [9, 0, 0]]
    """
    out = np.zeros((len(starts) - 1, length), np.int64)
    out[np.arange(length) < np.diff(starts)[:, None]] = ids
    return out
