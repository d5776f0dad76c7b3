"""Segmenters: the words in a run of Chinese characters, which writes none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from bertkit.errors import BertkitError, about

Segment = Callable[[str], list[str]]
"""A run of Chinese characters -> its words, which add up to it."""


def jieba(dictionary: Path | None = None) -> Segment:
    """The library of this name, with a user's own dictionary (`word [count] [tag]` on each line) beside its own."""
    try:
        import jieba
    except ImportError:
        raise BertkitError("for Chinese words by jieba: pip install 'bertkit[zh]'") from None
    jieba.setLogLevel(logging.WARNING)
    made = jieba.Tokenizer()
    if dictionary is not None:
        with about(str(dictionary)):
            try:
                made.load_userdict(str(dictionary))
            except (ValueError, OSError) as error:
                raise BertkitError(f"it is no dictionary of words: {error}. Write a word on each line") from error
    segment: Segment = made.lcut
    return segment


def spaces(run: str) -> list[str]:
    """Words that the text separates by spaces already: a run is a word."""
    return [run]
