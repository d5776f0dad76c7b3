"""Damage: characters that say a text was decoded wrongly, or carries what is no text.

UTF-8 that was read as Windows-1252 or Latin-1 turns é into Ã© and ’ into â€™. Such pairs and triples are found by what
they are, bytes of UTF-8 in disguise: one where it is proof enough (after Â, Ã or â€), else two that follow each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bertkit.corpus import scripts
from bertkit.corpus.block import Array, Block

EXAMPLES, APART = 3, 60
"""how many are shown, and how many characters lie between them"""
REPLACEMENT = 0xFFFD

_LATER = "\u0080-\u00bf" + "".join(
    bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)
)  # bytes 80 to BF, in either of the two code pages
_MOJIBAKE = re.compile(
    rf"[ÂÃ][{_LATER}]|â[€‚„†\x80\x82\x84\x86][{_LATER}]|ï¿½|ï»¿|ð[Ÿ\x9f][{_LATER}]{{2}}"
    rf"|(?:[Ä-ß][{_LATER}]){{2,}}|(?:[à-ï][{_LATER}]{{2}}){{2,}}|锟斤拷|烫烫烫|屯屯屯"
)
_TAGS = (
    "a|abbr|b|big|blockquote|body|br|caption|center|cite|code|dd|del|div|dl|dt|em|font|form|h[1-6]|head|hr|html|i|iframe|img"
    "|input|ins|li|link|meta|nav|nowiki|ol|option|p|pre|ref|s|script|section|select|small|span|strike|strong|style|sub|sup"
    "|table|tbody|td|textarea|tfoot|th|thead|title|tr|tt|u|ul|video|poem|gallery|math|references|templatestyles|rt|rp|ruby"
    "|noinclude|onlyinclude|includeonly|syntaxhighlight|timeline|kbd|var|samp|mark|article|footer|header|button|label"
)
_MARKUP = re.compile(
    rf"</?(?:{_TAGS})(?:\s[^<>\n]{{0,200}})?/?>|&(?:[a-z]{{2,8}}|#\d{{2,6}}|#x[0-9a-f]{{2,5}});", re.IGNORECASE
)

KINDS = {
    "mojibake": "letters that were decoded wrongly, such as Ã© for é",
    "replacement": "replacement characters (U+FFFD), which stand where a letter was lost",
    "control": "control characters, such as NUL",
    "unassigned": "characters that Unicode does not know, or leaves to private use",
    "invisible": "invisible characters, such as soft hyphens and zero-width spaces",
    "markup": "HTML tags and entities",
}


@dataclass(frozen=True)
class Found:
    """How often something occurs, and what stands around it the first times."""

    count: int
    examples: list[str]


class Damage:
    """Counts each kind of damage.

    >>> damage = Damage()
    >>> damage.add(Block("CafÃ© and naÃ¯ve\\x00 <br/> &amp;"))
    >>> {kind: found.count for kind, found in damage.result().items() if found.count}
    {'mojibake': 2, 'control': 1, 'markup': 2}
    """

    def __init__(self) -> None:
        self._counts = dict.fromkeys(KINDS, 0)
        self._examples: dict[str, list[str]] = {kind: [] for kind in KINDS}

    def add(self, block: Block) -> None:
        """Look through a block."""
        self._take(block, "replacement", block.codes == REPLACEMENT)
        self._take(block, "control", block.kinds == scripts.CONTROL)
        self._take(block, "invisible", block.kinds == scripts.INVISIBLE)
        self._take(block, "unassigned", block.kinds == scripts.UNASSIGNED)
        if "<" in block.text or "&" in block.text:
            self._search(block, "markup", _MARKUP.finditer(block.text))
        if not block.text.isascii():
            self._search(block, "mojibake", _mojibake(block))

    def result(self) -> dict[str, Found]:
        """What was found, of every kind."""
        return {kind: Found(self._counts[kind], self._examples[kind]) for kind in KINDS}

    def _take(self, block: Block, kind: str, where: Array) -> None:
        count = int(np.count_nonzero(where))
        if count:
            self._note(block, kind, count, np.flatnonzero(where)[: EXAMPLES * APART].tolist())

    def _search(self, block: Block, kind: str, matches: Iterator[re.Match[str]]) -> None:
        places = [found.start() for found in matches]
        self._note(block, kind, len(places), places)

    def _note(self, block: Block, kind: str, count: int, places: list[int]) -> None:
        self._counts[kind] += count
        shown, last = self._examples[kind], -APART
        for place in places:
            if len(shown) < EXAMPLES and place >= last + APART:
                shown.append(block.around(place))
                last = place


def _mojibake(block: Block) -> Iterator[re.Match[str]]:
    """Matches; a look at the numbers first tells where there can be one at all."""
    codes = block.codes
    lead = ((codes >= 0xC2) & (codes <= 0xF4)) | (codes == ord("锟")) | (codes == ord("烫")) | (codes == ord("屯"))
    done = 0
    for place in np.flatnonzero(lead).tolist():
        if place >= done:
            found = _MOJIBAKE.match(block.text, place)
            if found:
                done = found.end()
                yield found
