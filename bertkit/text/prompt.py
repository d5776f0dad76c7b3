"""Prompts: what a model wants written before each text, and how such a text is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.text.truncate import Pieces, Policy, Window


@dataclass(frozen=True)
class Prompted(Policy):
    """Another policy for what follows a prompt; its tokens, up to half of the room, stay in every window.

    >>> from bertkit.text.truncate import Chunk, KeepHead, KeepTail
    >>> Prompted(KeepTail(), tokens=2).windows([9], room=5)
    [(((0, 2), (6, 9)),)]
    >>> Prompted(Chunk(), tokens=2).windows([9], room=6)
    [(((0, 6),),), (((0, 2), (6, 9)),)]
    >>> Prompted(KeepHead(), tokens=9).windows([9], room=6)
    [(((0, 6),),)]
    """

    policy: Policy
    tokens: int

    def windows(self, lengths: Sequence[int], room: int) -> list[Window]:
        (length,) = lengths
        kept = min(self.tokens, room // 2, length)
        return [(_behind(kept, pieces),) for (pieces,) in self.policy.windows([length - kept], room - kept)]


def _behind(kept: int, pieces: Pieces) -> Pieces:
    """The prompt, then the pieces of the text; one piece where they touch."""
    (start, stop), *rest = ((start + kept, stop + kept) for start, stop in pieces)
    first: Pieces = ((0, stop),) if start == kept else ((0, kept), (start, stop))
    return (*first, *rest)
