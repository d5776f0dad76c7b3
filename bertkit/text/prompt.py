"""Prompts: what a model wants written before each text, and how such a text is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.errors import BertkitError
from bertkit.text.truncate import KeepHead, Pieces, Policy, Window


@dataclass(frozen=True)
class Prompted(Policy):
    """Another policy for what follows a prompt, whose tokens stay whole in every window.

    A prompt that fills the room can only be cut to its beginning, as sentence-transformers does.

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
        kept = min(self.tokens, length)
        if kept < room or length <= room:
            return [(_behind(kept, pieces),) for (pieces,) in self.policy.windows([length - kept], room - kept)]
        if isinstance(self.policy, KeepHead):
            return [(((0, room),),)]
        raise BertkitError(
            f"the prompt has {kept} tokens, and there is room for {room} in all: shorten it, or take truncate='head'"
        )


def _behind(kept: int, pieces: Pieces) -> Pieces:
    """The prompt, then the pieces of the text; one piece where they touch."""
    (start, stop), *rest = ((start + kept, stop + kept) for start, stop in pieces)
    first: Pieces = ((0, stop),) if start == kept else ((0, kept), (start, stop))
    return (*first, *rest)
