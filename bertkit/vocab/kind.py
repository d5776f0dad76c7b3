"""Kinds of vocabularies: what each reads as a word, how it learns its tokens, and which files hold them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from bertkit.errors import BertkitError
from bertkit.vocab.alphabet import LIMIT
from bertkit.vocab.merges import LARGEST

LONGEST_CHUNK = 1000
"""characters of a chunk that are looked at; no kind keeps words as long as that"""

Word = tuple[str, int]
"""a word and how often it occurs"""


@dataclass(frozen=True)
class Options:
    """What decides the tokens of a vocabulary, beside its texts."""

    size: int = 30_000
    """rows of the embedding table: special and unused tokens count as well"""
    cased: bool = False
    """keep capitals and accents"""
    min_count: int = 2
    """pairs of tokens that occur less often are not joined, characters that occur less often are left out"""
    unused: int = 0
    """rows to be named later, [unused0] and so on"""
    special: tuple[str, ...] = ()
    """tokens that are found in raw text and never split"""
    alphabet: int = LIMIT
    """characters that are kept at most; in Chinese text Chinese ones are kept beside these"""
    held_out: float = 0.02
    """the share of documents that is not learned from but judged on"""

    def __post_init__(self) -> None:
        if not 1 <= self.size <= LARGEST:
            raise BertkitError(f"--size is {self.size:,}: a vocabulary has between 1 and {LARGEST:,} tokens")
        for name in ("min_count", "alphabet"):
            if getattr(self, name) < 1:
                raise BertkitError(f"--{name.replace('_', '-')} is {getattr(self, name)}: give at least 1")
        if not 0 <= self.unused < self.size:
            raise BertkitError(f"--unused is {self.unused:,}: give 0 or more, and fewer than --size {self.size:,}")
        if not 0 <= self.held_out <= 0.5:
            raise BertkitError(f"--held-out is {self.held_out}: give a share of the documents from 0 to 0.5")


class Learned(Protocol):
    """A vocabulary that was learned."""

    tokens: list[str]
    """in the order of their ids"""
    unknown: str
    """the token of what cannot be spelled"""
    facts: dict[str, int]
    """how many tokens are of which sort"""

    def spell(self, word: str) -> list[str]:
        """The tokens of a word."""

    def readable(self, word: str) -> str:
        """A word or a token as people write it."""

    def write(self, directory: Path) -> None:
        """Write its files into an existing directory."""


class Kind(Protocol):
    """A kind of vocabulary."""

    name: ClassVar[str]
    longest: ClassVar[int]
    """characters of the longest word that can be spelled"""

    def __init__(self, options: Options) -> None: ...

    def chunks(self, text: str) -> list[str]:
        """Parts of a plain text that are read independently of each other; none has a line break."""

    def words(self, chunks: Sequence[str]) -> list[str]:
        """The words of some chunks."""

    def learn(self, words: list[Word]) -> Learned:
        """Learn the tokens from words, given in the order of their characters."""


def first(special: Sequence[str], options: Options) -> list[str]:
    """The tokens that are not learned: the kind's special ones, those of the user, the unused ones.

    >>> first(["[PAD]", "[UNK]"], Options(unused=1, special=("[NAME]",)))
    ['[PAD]', '[UNK]', '[NAME]', '[unused0]']
    """
    tokens = [*special, *options.special, *(f"[unused{number}]" for number in range(options.unused))]
    for token, times in Counter(tokens).items():
        if times > 1:
            raise BertkitError(
                f"--special {token!r} is there already. Give each token once; also there: {' '.join(special)}"
            )
    return tokens


def require_room(fixed: int, letters: int, size: int) -> None:
    """Refuse a size that the tokens that must be there exceed."""
    if fixed + letters > size:
        raise BertkitError(
            f"--size {size:,} is too small: {fixed:,} special and unused tokens and {letters:,} single characters need "
            f"{fixed + letters:,} rows before any word is learned. Give --size some thousands more than that, or keep "
            "fewer characters with --alphabet or --min-count"
        )
