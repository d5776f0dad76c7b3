"""English texts of our own for timing: made by a small grammar, always the same, of known lengths in tokens.

Lengths follow a log-normal distribution with median 25 and a long tail that ends at 256, as in real collections of
sentences and paragraphs. They are its quantiles and only their order is drawn, so that any number of texts has the same
distribution.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from statistics import NormalDist

MEDIAN, LONGEST, SHORTEST = 25, 256, 6
DEVIATION = 0.85
"""of the logarithm of lengths"""
NEIGHBOURS = 32
"""in length, which stay together in a piece: the usual batch"""

_PLAIN = {
    "the": "the a this that every another",
    "old": "old young small large quiet bright cold warm heavy simple careful early late famous narrow gentle",
    "cat": """cat dog teacher doctor farmer river garden bridge window letter market engine valley library station
    child captain painter village winter morning answer question journey picture machine forest island kitchen
    harbor student neighbor mountain record""",
    "saw": """saw found carried watched painted followed opened remembered crossed measured described repaired
    noticed visited sold kept left reached showed changed""",
    "near": "near behind under above inside beside before after without against across beyond",
    "slowly": "slowly quickly often never always rarely finally almost again today",
    "and": "and but while because although until when so",
}
_RARE = {
    "cartographer": 2,
    "weathervane": 3,
    "unhurriedly": 4,
    "beekeeper": 2,
    "lamplighter": 3,
    "moonlit": 2,
    "rivulet": 3,
    "marmalade": 3,
}
"""words that WordPiece cuts, and into how many pieces"""
_KINDS = {kind: words.split() for kind, words in _PLAIN.items()}
_CLAUSES = (
    "the old cat saw the cat near the cat",
    "the cat slowly saw the old cat",
    "the old cat and the cat saw the old cat",
    "near the old cat , the cat saw the cat slowly",
)

QUERIES = 16


def lengths(count: int, seed: int = 0) -> list[int]:
    """Tokens of each text, [CLS] and [SEP] among them, in a random order.

    >>> sorted(lengths(9))
    [6, 11, 15, 20, 25, 32, 41, 57, 97]
    """
    normal = NormalDist(math.log(MEDIAN), DEVIATION)
    quantiles = (math.exp(normal.inv_cdf((place + 0.5) / count)) for place in range(count))
    found = [min(max(round(quantile), SHORTEST), LONGEST) for quantile in quantiles]
    random.Random(seed).shuffle(found)
    return found


def texts(count: int, seed: int = 0) -> list[str]:
    """So many texts, of the lengths that `lengths` tells."""
    dice = random.Random(seed)
    return [text(length, dice) for length in lengths(count, seed)]


def pieces(texts: list[str], lengths: list[int], count: int) -> list[list[str]]:
    """A collection in so many pieces whose batches hold no more padding than those of the whole.

    In a part that chance draws neighbours differ more in length. So those of a batch stay together, and each batch,
    the longest first, goes to the piece that has the fewest tokens. Texts keep their order.

    >>> pieces([f"text {number}" for number in range(96)], list(range(96)), 3)[1][:2]
    ['text 32', 'text 33']
    """
    order = sorted(range(len(texts)), key=lambda place: -lengths[place])
    parts: list[list[int]] = [[] for _ in range(count)]
    for first in range(0, len(order), NEIGHBOURS):
        smallest = min(parts, key=lambda part: sum(lengths[place] for place in part))
        smallest += order[first : first + NEIGHBOURS]
    return [[texts[place] for place in sorted(part)] for part in parts]


def queries(count: int = QUERIES) -> list[str]:
    """Short ones of 10 to 12 tokens."""
    dice = random.Random(1)
    return [text(10 + place % 3, dice) for place in range(count)]


def text(length: int, dice: random.Random) -> str:
    """One of exactly so many tokens, cut where it is long enough."""
    left = length - 3  # [CLS], the last full stop, [SEP]
    out = ""
    for word, pieces in _words(dice):
        if pieces > left:
            break
        out += word if word in ",." or not out else f" {word}"
        left -= pieces
    return out + " again" * left + "."


def _words(dice: random.Random) -> Iterator[tuple[str, int]]:
    """Sentences without end: each word or mark with its number of tokens."""
    while True:
        clauses = [dice.choice(_CLAUSES)]
        while dice.random() < 0.4:
            clauses += [dice.choice(_KINDS["and"]), dice.choice(_CLAUSES)]
        for place, kind in enumerate(" ".join(clauses).split()):
            word = dice.choice(_KINDS.get(kind, [kind]))
            if kind == "cat" and dice.random() < 0.12:
                word = dice.choice(list(_RARE))
            yield word if place else word.capitalize(), _RARE.get(word, 1)
        yield ".", 1
