"""Material: the corpus that a run learns from, made of raw texts in the run's own directory where none is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bertkit.corpus import python_docs, source
from bertkit.corpus.build import Options as Building
from bertkit.corpus.build import build
from bertkit.errors import BertkitError, look_up
from bertkit.spec import Bounds, Count, Rate, Spec
from bertkit.text import Tokenizer
from bertkit.vocab.kind import Options as Spelling
from bertkit.vocab.train import KINDS, train

VOCABULARY, CORPUS = "vocabulary", "corpus"
PYTHON_DOCS = "python-docs"
"""the name of the text that every Python brings along"""


@dataclass(frozen=True)
class Data(Spec):
    """What is learned from: a corpus that is there, or texts of which vocabulary and corpus are made first."""

    corpus: str = ""
    """a directory that `bertkit corpus build` made"""
    texts: tuple[str, ...] = ()
    """files, folders or patterns in its place, or python-docs"""
    vocabulary: Count = 8000
    """tokens of the vocabulary that is learned from texts"""
    kind: str = "wordpiece"
    """of that vocabulary: wordpiece, bpe or unigram"""
    cased: bool = False
    """whether that vocabulary keeps capitals and accents"""
    held_out: Rate = 0.02
    """the share of the texts' documents that is kept for exams"""
    workers: Annotated[int, Bounds(0, 2**10)] = 0
    """processes that read ahead; on a CPU reading costs less than they do"""

    def __post_init__(self) -> None:
        super().__post_init__()
        look_up("data.kind", self.kind, KINDS)
        if bool(self.corpus) == bool(self.texts):
            given = "both are there" if self.corpus else "neither is there"
            raise BertkitError(
                f"a run learns from data.corpus or from data.texts, and {given}: give data.corpus=DIR of a bertkit "
                f"corpus build, or data.texts='[\"texts/\"]' or data.texts='[\"{PYTHON_DOCS}\"]'"
            )

    def prepare(self, run: Path, say: Callable[[str], None]) -> None:
        """Make what is missing; what is there is whole, and stays."""
        if self.corpus:
            return
        home, made = run / VOCABULARY, self.place(run)
        if home.is_dir() and made.is_dir():
            return
        files = self._files()
        if not home.is_dir():
            say(f"learning {self.vocabulary:,} tokens from {', '.join(self.texts)}")
            train(files, home, self.kind, Spelling(size=self.vocabulary, cased=self.cased))
        if not made.is_dir():
            say(f"building the corpus of {', '.join(self.texts)}")
            build(files, Tokenizer.load(home), made, Building(held_out=self.held_out))

    def place(self, run: Path) -> Path:
        """Where the corpus is."""
        return Path(self.corpus) if self.corpus else run / CORPUS

    def _files(self) -> list[source.File]:
        given = [name for name in self.texts if name != PYTHON_DOCS]
        own = [source.embedded(PYTHON_DOCS, python_docs.text())] if PYTHON_DOCS in self.texts else []
        return own + (source.files(given) if given else [])
