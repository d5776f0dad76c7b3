"""How a vocabulary spells where words begin, one part for each kind of vocabulary.

WordPiece          `##` stands before what goes on with a word
byte-level BPE     a word has the space before it, which is spelled `Ġ`; so is every other byte as some letter
Unigram            `▁` stands for the space before a word
"""

from __future__ import annotations

from typing import Protocol

from tokenizers import Tokenizer, decoders, models

from bertkit.text.wordpiece import CONTINUES

SPACE = "▁"


class Pieces(Protocol):
    """What the tokens of a vocabulary mean to a reader."""

    def begins(self, token: str) -> bool:
        """Whether a word begins with this token, wherever it stands."""

    def shown(self, token: str) -> str:
        """The token as people write it, with the space before it if that is part of it."""


class Continued:
    """WordPiece.

    >>> Continued().begins("##ing"), Continued().shown("##ing"), Continued().shown("play")
    (False, 'ing', 'play')
    """

    def begins(self, token: str) -> bool:
        return not token.startswith(CONTINUES)

    def shown(self, token: str) -> str:
        return token.removeprefix(CONTINUES)


class Bytes:
    """Byte-level BPE.

    >>> Bytes().begins("Ġplay"), Bytes().begins("ing"), Bytes().shown("Ġplay"), Bytes().shown("Ã©")
    (True, False, ' play', 'é')
    """

    def __init__(self) -> None:
        self._decoder = decoders.ByteLevel()

    def begins(self, token: str) -> bool:
        return self.shown(token)[:1].isspace()

    def shown(self, token: str) -> str:
        return self._decoder.decode([token])


class Spaced:
    """Unigram.

    >>> Spaced().begins("▁play"), Spaced().begins("ing"), Spaced().shown("▁play")
    (True, False, ' play')
    """

    def begins(self, token: str) -> bool:
        return token.startswith(SPACE)

    def shown(self, token: str) -> str:
        return token.replace(SPACE, " ")


def pieces_of(rust: Tokenizer) -> Pieces:
    """The part for a tokenizer's model."""
    kinds: dict[type, type[Pieces]] = {models.WordPiece: Continued, models.BPE: Bytes, models.Unigram: Spaced}
    return kinds[type(rust.model)]()


def inserted(before: str, shown: str) -> str:
    """A text that goes on with a token: the space before the token is not written twice, nor at the beginning.

    >>> inserted("The", " cat"), inserted("The ", " cat"), inserted("", " cat"), inserted("The cat", "s")
    ('The cat', 'The cat', 'cat', 'The cats')
    """
    return before + (shown if before and not before[-1].isspace() else shown.lstrip())
