"""Merges: the tokens that grow out of single characters by joining, again and again, the pair that occurs most often.

This is byte-pair encoding (Sennrich and others, https://arxiv.org/abs/1508.07909), which also stands behind the
WordPiece trainer of `tokenizers`. A token's id is kept as the character with that number, so that a word is a short
string and looking for a pair is `str.find`.

The bookkeeping is that of `tokenizers`, to the last tie: the pair with the higher count first, then the one whose ids
are smaller. Where a token can be made of two different pairs, later finds of a pair wait in the queue on their own, and
may be joined later than the first ones. Counts are exact here where theirs wrap around at 2³¹.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from operator import add
from typing import NamedTuple

LARGEST = 1_000_000
"""tokens of a vocabulary; there are not many more characters to stand for them"""


class Merges(NamedTuple):
    """All tokens in the order of their ids, and the pairs that were joined, in order."""

    tokens: list[str]
    pairs: list[tuple[str, str]]


def learn(
    words: Sequence[str],
    counts: Sequence[int],
    tokens: Sequence[str],
    size: int,
    least: int = 1,
    joined: Callable[[str, str], str] = add,
) -> Merges:
    """Join pairs until there are `size` tokens or no pair occurs `least` times.

    A character of a word is the number of one of the first `tokens`; `joined` says what two tokens make together.

    >>> learn(["\\0\\1\\0\\1", "\\0\\1"], [1, 2], ["a", "b"], size=9, least=2).tokens
    ['a', 'b', 'ab']
    """
    spelled, known = list(words), list(tokens)
    ids = {token: chr(number) for number, token in enumerate(known)}
    sums: defaultdict[str, int] = defaultdict(int)  # a pair of ids -> its occurrences
    queue = _first(spelled, counts, sums)
    made: dict[str, None] = {}
    while queue and len(known) < size:
        negative, pair, places = heappop(queue)
        count = sums[pair]
        if count != -negative:  # it has changed since it was queued
            heappush(queue, (-count, pair, places))
            continue
        if count < max(least, 1):
            break
        token = joined(known[ord(pair[0])], known[ord(pair[1])])
        if token not in ids:
            ids[token] = chr(len(known))
            known.append(token)
        made.pop(pair, None)
        made[pair] = None
        found = _join(pair, ids[token], places, spelled, counts, sums)
        for fresh, where in found.items():
            if sums[fresh] > 0:
                heappush(queue, (-sums[fresh], fresh, where))
    return Merges(known, [(known[ord(pair[0])], known[ord(pair[1])]) for pair in made])


_Queue = list[tuple[int, str, list[int]]]
"""minus the count of a pair, the pair, the places of words it was found in"""


def _first(words: list[str], counts: Sequence[int], sums: defaultdict[str, int]) -> _Queue:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, word in enumerate(words):
        count = counts[place]
        for pair in map(add, word, word[1:]):
            sums[pair] += count
            places[pair].append(place)
    queue = [(-sums[pair], pair, where) for pair, where in places.items()]
    heapify(queue)
    return queue


def _join(
    pair: str, token: str, places: list[int], words: list[str], counts: Sequence[int], sums: defaultdict[str, int]
) -> dict[str, list[int]]:
    """Put the token in the place of the pair, from left to right in each word; where which new pairs are."""
    first, second = pair[0], pair[1]
    found: defaultdict[str, list[int]] = defaultdict(list)
    for place in places:
        word = words[place]
        at = word.find(pair)
        if at < 0:
            continue
        count = counts[place]
        while at >= 0:
            if at:
                before = word[at - 1]
                sums[before + first] -= count
                fresh = before + token
                sums[fresh] += count
                found[fresh].append(place)
            after = word[at + 2 : at + 3]
            if after:
                sums[second + after] -= count
                fresh = token + after
                sums[fresh] += count
                found[fresh].append(place)
            word = word[:at] + token + word[at + 2 :]
            at = word.find(pair, at + 1)
        words[place] = word
    return found
