"""Sentences: where one ends, told from two neighbouring chunks of text.

A rule is a table: the way a chunk ends (a full stop, a question mark, an abbreviation, …) against the way the next one
starts (a capital, a small letter, a word that opens sentences, …). Both are properties of the chunk alone, so a text
whose chunks are numbers is split by two look-ups each; `split` does the same with a string.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np

from bertkit.errors import BertkitError
from bertkit.text.chunks import CLOSERS, WIDE_MARKS, spans

Array = np.ndarray[Any, np.dtype[Any]]


class End(IntEnum):
    """How a chunk ends."""

    INSIDE = 0
    """no mark that could end a sentence"""
    STOP = 1
    """a full stop"""
    STRONG = 2
    """! or ?"""
    WIDE = 3
    """a Chinese or Japanese mark, which has no other use"""
    TRAILING = 4
    """three dots: a pause or an end"""
    TITLE = 5
    """an abbreviation that something always follows: Mr. e.g. Fig."""
    SHORT = 6
    """an abbreviation, an initial or a small number: it may end a sentence as well"""


class Start(IntEnum):
    """How a chunk starts."""

    SMALL = 0
    """a small letter, or a mark that continues"""
    CAPITAL = 1
    OPENER = 2
    """a capital word that often opens a sentence and is seldom a name: The, But, She"""
    NUMBER = 3
    UNCASED = 4
    """a letter of a script without capitals"""
    MARK = 5
    """a dash, a bullet, another sign"""


_AFTER = {
    End.STOP: {Start.CAPITAL, Start.OPENER, Start.NUMBER, Start.UNCASED, Start.MARK},
    End.STRONG: {Start.CAPITAL, Start.OPENER, Start.NUMBER, Start.UNCASED},
    End.WIDE: set(Start),
    End.TRAILING: {Start.CAPITAL, Start.OPENER, Start.UNCASED},
    End.SHORT: {Start.OPENER},
}
BREAKS = np.array([[start in _AFTER.get(end, ()) for start in Start] for end in End])
"""[End, Start] -> whether a sentence ends between the two."""

ENDING = WIDE_MARKS + "!?.…"
OPENERS = "\"'([{«“‘‹„「『（【《〈［｛`¿¡*_"
_LINE = re.compile(r"\r\n?|\n")
_LETTERS = re.compile(r"[^\W\d_]+(?=['’]|[^\w-]*$)")
"""a word, perhaps with an apostrophe or marks after it"""
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+$")
_SMALL_NUMBER = re.compile(r"[(\[]?(?:\d{1,2}|[ivxlc]{1,5})\.$", re.IGNORECASE)

_TITLES = frozenset(
    """mr mrs ms messrs mme mlle dr prof rev hon st sgt cpl pvt lt col gen capt cmdr adm maj gov sen rep pres supt
    e.g i.e cf viz vs v al fig figs eq eqs vol vols pp approx ca fr sra mt ft rt ph""".split()  # noqa: SIM905 - a list to read
)
_SHORTS = frozenset(
    """inc ltd co corp bros dept univ assn jr sr esq ph.d m.d b.a m.a d.c u.s u.k u.n u.s.a a.m p.m a.d b.c etc no nos
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun
    ave blvd rd st hwy bldg apt est min max hrs hr in lb lbs oz ft yd sq cu mi km cm mm kg
    ala ariz ark calif colo conn del fla ga ill ind kan ky la mass md mich minn miss mo mont neb nev okla ore pa penn
    tenn tex va vt wash wis wyo p cal sec secs ch chap ed eds trans art arts para""".split()  # noqa: SIM905 - a list to read
)
_OPENING = frozenset(
    """The A An This That These Those There Here It Its He She They We You I His Her Their Our My Your
    In On At By For From With Without To Of As If When While Although Though Because Since After Before Until Unless
    But And Or Nor So Yet Then Thus Hence However Moreover Furthermore Nevertheless Meanwhile Also Even Only Just
    What Who Whom Whose Which Where Why How Is Are Was Were Do Does Did Has Have Had Can Could Will Would Should May
    Might Must Not No Yes All Some Many Most Several Each Every Both Few Other Another One Two Three Such Under Over
    During Between Among Through Despite According Now Today Later Once Perhaps Please Let Nobody Everybody Somebody
    Everyone Someone None Nothing Something Everything Instead Still Soon Often Sometimes""".split()  # noqa: SIM905 - a list to read
)


_LONGEST_SHORT = max(map(len, _TITLES | _SHORTS)) + 1
"""letters and a full stop"""


def end_of(chunk: str) -> End:
    """How a chunk ends, closing quotes and brackets aside.

    >>> end_of("Smith").name, end_of('home."').name, end_of("why?)").name, end_of("Mr.").name, end_of("U.S.").name
    ('INSIDE', 'STOP', 'STRONG', 'TITLE', 'SHORT')
    """
    core = chunk.rstrip(CLOSERS)
    last = core[-1:]
    if not last or last not in ENDING:
        return End.INSIDE
    if last in WIDE_MARKS:
        return End.WIDE
    if last in "!?":
        return End.STRONG
    if core.endswith(("..", "…")):
        return End.TRAILING
    if len(core) > _LONGEST_SHORT and core[:-1].isalpha():
        return End.STOP
    word = core.lstrip(OPENERS)[:-1].casefold()
    if word in _TITLES:
        return End.TITLE
    if word in _SHORTS or _INITIALS.fullmatch(core.lstrip(OPENERS)) or _SMALL_NUMBER.fullmatch(core):
        return End.SHORT
    return End.STOP


def start_of(chunk: str) -> Start:
    """How a chunk starts, opening quotes and brackets aside.

    >>> [start_of(chunk).name for chunk in ("the", "(Smith", "The", "1999", "猫", "—")]
    ['SMALL', 'CAPITAL', 'OPENER', 'NUMBER', 'UNCASED', 'MARK']
    """
    core = chunk.lstrip(OPENERS)
    first = core[:1]
    if first.isupper() or first.istitle():
        if core.isalpha():
            return Start.OPENER if core in _OPENING else Start.CAPITAL
        return Start.OPENER if (word := _LETTERS.match(core)) and word[0] in _OPENING else Start.CAPITAL
    if first.islower():
        return Start.SMALL
    if first.isalpha():
        return Start.UNCASED
    if first.isdigit():
        return Start.NUMBER
    return Start.SMALL if first and first in ",;:.!?)" else Start.MARK


def ends_of(chunks: Sequence[str]) -> Array:
    """`end_of` each, [N]."""
    return np.frombuffer(bytes(map(end_of, chunks)), np.int8)


def starts_of(chunks: Sequence[str]) -> Array:
    """`start_of` each, [N]."""
    return np.frombuffer(bytes(map(start_of, chunks)), np.int8)


_PAIRS = np.arange(2**16)
"""two bytes as one number, the first in the lower half"""
_ASCII = 0x7F


def _may_start() -> tuple[Array, Array]:
    """For the first two bytes of a chunk: whether `start_of` must be asked, and its answer if not."""
    first, second = _PAIRS & 0xFF, _PAIRS >> 8
    small, capital = (ord("a") <= first) & (first <= ord("z")), (ord("A") <= first) & (first <= ord("Z"))
    opening = np.isin(_PAIRS, [ord(word[0]) | ord(word[1]) << 8 for word in _OPENING if len(word) > 1])
    letter = np.isin(second, list(string.ascii_letters.encode()))
    ask = ~small & ~(capital & letter & ~opening)
    return ask, np.where(capital, Start.CAPITAL, Start.SMALL).astype(np.int8)


def _may_end() -> Array:
    """For the last two bytes of a chunk: whether `end_of` must be asked; else a sentence goes on."""
    before, last = _PAIRS & 0xFF, _PAIRS >> 8
    closers, ending = (np.isin(last, list(marks.encode())) | (last > _ASCII) for marks in (CLOSERS, ENDING))
    quoted = np.isin(before, list((CLOSERS + ENDING).encode())) | (before > _ASCII)
    return ending | (closers & quoted)


MAY_START, STARTS = _may_start()
MAY_END = _may_end()


class Splitter(Protocol):
    """A way to find sentences. A line break always ends one."""

    name: ClassVar[str]
    by_table: ClassVar[bool]
    """whether `BREAKS` ends sentences within lines"""

    def lines(self, text: str) -> str:
        """The text with a line break wherever this splitter, table apart, ends a sentence."""


class Rules:
    """The default: rules of our own for English, European and Chinese text.

    >>> Rules().split("Dr. Smith paid $3.50. He left at 5 p.m. The shop closed! 天黑了。我们回家。")
    ['Dr. Smith paid $3.50.', 'He left at 5 p.m.', 'The shop closed!', '天黑了。', '我们回家。']
    """

    name: ClassVar[str] = "rules"
    by_table: ClassVar[bool] = True

    def lines(self, text: str) -> str:
        return text

    def split(self, text: str) -> list[str]:
        """The sentences of a text."""
        return [sentence for line in _LINE.split(text) for sentence in _split(line)]


class Lines:
    """Text that has a sentence on each line already, as Google's examples do."""

    name: ClassVar[str] = "lines"
    by_table: ClassVar[bool] = False

    def lines(self, text: str) -> str:
        return text


class Sentencex:
    """Wikimedia's library of this name: slower, and with rules for many languages."""

    name: ClassVar[str] = "sentencex"
    by_table: ClassVar[bool] = False

    def __init__(self, language: str = "en") -> None:
        try:
            from sentencex import segment
        except ImportError:
            raise BertkitError("for --sentences sentencex: pip install 'bertkit[corpus]'") from None
        self._segment, self._language = segment, language

    def lines(self, text: str) -> str:
        return "\n".join(
            "\n".join(sentence.strip() for sentence in self._segment(self._language, line)) if line.strip() else ""
            for line in text.split("\n")
        )


SPLITTERS: dict[str, Callable[[], Splitter]] = {"rules": Rules, "lines": Lines, "sentencex": Sentencex}


def firsts(line: str) -> list[int]:
    """The first character of each sentence in a line.

    >>> firsts(" It rains. The cat sleeps.")
    [1, 11]
    """
    found = list(spans(line))
    return [found[place][0] for place in _opening_chunks(line, found)]


def _split(line: str) -> list[str]:
    found = list(spans(line))
    opening = _opening_chunks(line, found)
    return [line[found[first][0] : found[after - 1][1]] for first, after in pairwise([*opening, len(found)])]


def _opening_chunks(line: str, found: list[tuple[int, int]]) -> list[int]:
    """Which of the chunks of a line begin a sentence."""
    ends = [end_of(line[start:stop]) for start, stop in found]
    starts = [start_of(line[start:stop]) for start, stop in found]
    return [place for place in range(len(found)) if place == 0 or BREAKS[ends[place - 1], starts[place]]]
