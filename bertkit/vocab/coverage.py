"""Coverage: how a vocabulary spells words it has not learned from, script by script."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from bertkit.corpus import scripts
from bertkit.vocab.kind import Learned, Word

SHOWN = 10
"""words that are named in each list"""
_BLOCK = 10_000


@dataclass
class Tally:
    """What became of some words, each counted as often as it occurs."""

    words: int = 0
    whole: int = 0
    """words that are one token"""
    pieces: int = 0
    """tokens, an unknown word being one"""
    unknown: int = 0
    """words that cannot be spelled, or not all of them"""

    def add(self, count: int, pieces: int, unknown: bool) -> None:
        self.words += count
        self.whole += count * (pieces == 1 and not unknown)
        self.pieces += count * pieces
        self.unknown += count * unknown

    def json(self) -> dict[str, Any]:
        """The same with the shares that people compare."""
        words = max(self.words, 1)
        shares = {"whole": self.whole / words, "unknown": self.unknown / words}
        return {"words": self.words, "pieces_per_word": self.pieces / words, **shares}


class Split(NamedTuple):
    """A word, how often it occurs, and its tokens."""

    word: str
    times: int
    pieces: list[str]


@dataclass
class Coverage:
    """How words were spelled: all of them, those of each script, and the worst ones."""

    all: Tally = field(default_factory=Tally)
    scripts: dict[str, Tally] = field(default_factory=dict)
    """the most frequent first"""
    longest: list[Split] = field(default_factory=list)
    """of the words that can be spelled, those with the most tokens"""
    unknown: list[Split] = field(default_factory=list)
    """the most frequent words that cannot be spelled"""

    def json(self) -> dict[str, Any]:
        return {
            **self.all.json(),
            "scripts": {name: tally.json() for name, tally in self.scripts.items()},
            "longest_splits": [split._asdict() for split in self.longest],
            "unknown_words": {split.word: split.times for split in self.unknown},
        }


def judge(learned: Learned, words: Iterable[Word]) -> Coverage:
    """Spell all words and sum up."""
    total, tallies = Tally(), defaultdict[str, Tally](Tally)
    longest: list[tuple[int, int, str]] = []  # tokens, count, word; the worst ones
    unknown: list[tuple[int, str]] = []
    rest = iter(words)
    while block := list(islice(rest, _BLOCK)):
        for (word, count), script in zip(block, _scripts([learned.readable(word) for word, _ in block]), strict=True):
            spelled = learned.spell(word)
            missing = learned.unknown in spelled
            for tally in (total, tallies[script]):
                tally.add(count, len(spelled), missing)
            if missing:
                _keep(unknown, (count, word))
            elif len(spelled) > 1:
                _keep(longest, (len(spelled), count, word))
    ordered = sorted(tallies.items(), key=lambda entry: (-entry[1].words, entry[0]))
    return Coverage(
        total,
        dict(ordered),
        [_split(learned, word, count) for _, count, word in sorted(longest, reverse=True)],
        [_split(learned, word, count) for count, word in sorted(unknown, reverse=True)],
    )


def _split(learned: Learned, word: str, count: int) -> Split:
    return Split(learned.readable(word), count, [learned.readable(piece) for piece in learned.spell(word)])


def _keep(best: list[Any], entry: Any) -> None:
    if len(best) < SHOWN:
        heapq.heappush(best, entry)
    else:
        heapq.heappushpop(best, entry)


def _scripts(words: list[str]) -> list[str]:
    """The script of each word's first letter or digit; of its first character where it has none.

    >>> _scripts(["“cat”", "北", "7th", "!"])
    ['Latin', 'Han', 'digits', 'punctuation']
    """
    told = "".join(next((char for char in word if char.isalnum()), word[:1] or " ") for word in words)
    return [scripts.NAMES[kind] for kind in scripts.kinds(scripts.codes(told)).tolist()]
