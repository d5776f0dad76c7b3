"""Sentencepiece's table of characters: what stands for each character or row of characters before a text is cut.

A size of four bytes, a trie of 32-bit units in the layout of the library darts-clone, then the replacements in UTF-8,
each ended by a zero. `tokenizers` follows the trie without looking where it leads, so a damaged one is refused here.

Letters: U units · N bytes of replacements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bertkit.errors import BertkitError

Array = np.ndarray[Any, np.dtype[Any]]

DEEPEST = 1000
"""bytes that one entry replaces; those of sentencepiece's own tables have less than a hundred"""
_BYTE = 0xFF
_IS_VALUE = 1 << 31
_HAS_VALUE = 1 << 8


def require_sound(table: bytes, source: str) -> None:
    """Refuse a table in which some text would lead out of the trie or of the replacements.

    >>> require_sound(b"\\x08\\0\\0\\0", "spiece.model")
    Traceback (most recent call last):
    bertkit.errors.BertkitError: spiece.model: its table of characters was damaged; copy or download it again
    """
    size = int.from_bytes(table[:4], "little")
    trie, replacements = table[4 : 4 + size], table[4 + size :]
    if len(trie) < size or not size or size % 4 or not _is_text(replacements) or not _is_closed(trie, replacements):
        raise BertkitError(f"{source}: its table of characters was damaged; copy or download it again")


def _is_text(replacements: bytes) -> bool:
    try:
        replacements.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_closed(trie: bytes, replacements: bytes) -> bool:
    """Whether every unit that can be reached leads to units and replacements that exist."""
    units = np.frombuffer(trie, "<u4").astype(np.int64)  # [U]
    places = np.arange(len(units))
    label = units & (_IS_VALUE | _BYTE)
    parent = places ^ label  # where one stands before the byte that leads here
    parent[(label == 0) | (label > _BYTE) | (parent >= len(units))] = -1
    onward = places ^ ((units >> 10) << ((units & (1 << 9)) >> 6))  # where one stands after it
    reached = np.zeros(len(units) + 1, bool)  # the last stands for nowhere
    standing = onward[:1]
    for _ in range(DEEPEST):
        if np.any(standing | _BYTE >= len(units)):  # any byte may follow
            return False
        reached[standing] = True
        here = reached[parent]
        found = np.unique(onward[here])
        if np.all(found < len(units)) and np.all(reached[found]):
            leaves = units[onward[here & (units & _HAS_VALUE > 0)]] & (_IS_VALUE - 1)
            return _begin(leaves, replacements)
        standing = found
    return False


def _begin(places: Array, replacements: bytes) -> bool:
    """Whether a character, or nothing at the end, begins at each of these places."""
    text = np.frombuffer(replacements + b"\0", np.uint8)  # [N + 1]
    return bool(np.all(places < len(text))) and bool(np.all(text[places] & 0xC0 != 0x80))
