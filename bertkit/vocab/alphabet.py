"""The alphabet: the characters that become tokens of their own, so that every word made of them can be spelled.

Characters that were seen fewer than `least` times are left out, and so are those beyond the `limit` most frequent ones:
a large corpus holds thousands of stray characters of foreign scripts, each of which would take two rows of the
vocabulary. In Chinese every character is a word, and leaving one out is an [UNK] wherever it stands. So where at least
one character in a hundred is Chinese, Chinese characters are not counted against the limit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from bertkit.text.chunks import CHINESE

LIMIT = 1000
PER_HUNDRED = 1
"""Chinese characters among a hundred that make a Chinese corpus"""

_CHINESE = re.compile(f"[{CHINESE}]")


def characters(words: Iterable[tuple[str, int]]) -> Counter[str]:
    """How often each character occurs in words with their counts.

    >>> characters([("aab", 2), ("b", 1)])
    Counter({'a': 4, 'b': 3})
    """
    found: Counter[str] = Counter()
    for word, count in words:
        for character in word:
            found[character] += count
    return found


def choose(counts: Mapping[str, int], least: int = 1, limit: int = LIMIT) -> set[str]:
    """The characters to keep; of equally frequent ones those that Unicode has first.

    >>> sorted(choose({"a": 5, "b": 5, "c": 1}, least=1, limit=1))
    ['a']
    >>> sorted(choose({"a": 50, "b": 5, "猫": 2, "狗": 1}, least=2, limit=1))
    ['a', '猫']
    """
    seen = {character: count for character, count in counts.items() if count >= least}
    chinese = {character for character in seen if _CHINESE.match(character)}
    if 100 * sum(seen[character] for character in chinese) < PER_HUNDRED * sum(counts.values()):
        chinese = set()
    others = sorted(seen.keys() - chinese, key=lambda character: (-seen[character], character))
    return chinese.union(others[:limit])
