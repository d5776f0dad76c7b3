"""A corpus: text to ids, raw text to shards, shards to masked examples."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from bench import peer
from bench.measure import OURS, Amount, Bar, Case
from bench.pipe import Array
from bench.prose import Prose, file, passed, prose, size, taken
from bertkit.corpus import build, source
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.inputs import FullSentences
from bertkit.text import Tokenizer
from bertkit.text.sentences import Rules
from bertkit.weights.find import find

TEXT, BEFORE = 15.0, 50.0
"""megabytes that are timed, and that pass before a warm pass"""
HELD = 3
"""a warm pass reads every third article; what passes before has none of them"""
ROWS, LENGTH = 256, 128
BARS = {
    "tokenize cold": {"tokenizers": Bar(2.5)},
    "tokenize warm": {"tokenizers": Bar(4.0)},
    "shards": {"datasets": Bar(3.0)},
    "shards of sentences": {"google": Bar(20.0)},
    "assemble": {OURS: Bar(5e6)},
    "assemble words": {OURS: Bar(2e6)},
}


def cases(quick: bool) -> Iterable[Case]:
    """On articles of Wikipedia with MiniLM's vocabulary, which is BERT's uncased one."""
    found, model = prose(), find("minilm")
    megabytes, before = (0.2, 0.4) if quick else (TEXT, BEFORE)
    articles = taken(found.articles, megabytes)
    text = file("text", articles)
    yield _case("tokenize cold", found, articles, "tokenize", {"model": str(model), "text": str(text)}, "tokenizers")
    yield _warm(found, model, megabytes, before)
    yield _case("shards", found, articles, "shards", {"model": str(model), "text": str(text)}, "datasets")

    split = [_sentences(article) for article in articles]
    lines = {"model": str(model), "text": str(file("sentences", split))}
    yield _case("shards of sentences", found, split, "shards", lines, "google")
    yield from _assemble(found, model, text, 16 if quick else ROWS)


def _case(
    name: str, found: Prose, documents: list[str], job: str, arguments: dict[str, str], other: str, more: str = ""
) -> Case:
    count = size(documents)
    bars = BARS[name] if found.name == "Wikipedia" else {}  # what they were set for
    full = f"{name}, {count:.3g} MB of {found.name}{more}"
    return Case(full, job, dict(arguments), (other,), bars=bars, amount=Amount(count, "MB"))


def _warm(found: Prose, model: Path, megabytes: float, before: float) -> Case:
    articles = taken(found.articles[::HELD], megabytes)
    held = set(range(0, len(found.articles), HELD))
    rest = [article for number, article in enumerate(found.articles) if number not in held]
    read = passed(taken([*rest, *found.others], before), before)
    paths = {"text": str(file("held", articles)), "before": str(file("before", read))}
    arguments = {"model": str(model), **paths}
    return _case("tokenize warm", found, articles, "tokenize", arguments, "tokenizers", f" after {before:g}")


def _sentences(article: str) -> str:
    """As Google's script wants it: a sentence on each line."""
    return "\n".join(sentence for line in article.split("\n") for sentence in Rules().split(line))


def _assemble(found: Prose, model: Path, text: Path, rows: int) -> Iterable[Case]:
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
            f"{name}, {rows}×{LENGTH}",
            "assemble",
            {"model": str(model), "corpus": str(made), "words": words},
            ("transformers",),
            array=rectangle(first.ids, first.starts, LENGTH),
            calls=batches,
            bars=BARS[name] if found.name == "Wikipedia" else {},
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
