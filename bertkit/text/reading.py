"""What a model reads of an input: the fields in the tokenizer's template, in one window or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.text.tokenizer import Tokenizer
from bertkit.text.truncate import Policy, Window


@dataclass(frozen=True)
class Reading:
    """One window: ids and segments, and where each field begins among them."""

    window: Window
    ids: list[int]
    segments: list[int]
    starts: tuple[int, ...]

    def of(self, field: int) -> slice:
        """The places among `ids` that a field's tokens have."""
        size = sum(stop - start for start, stop in self.window[field])
        return slice(self.starts[field], self.starts[field] + size)


def read(fields: Sequence[Sequence[int]], tokenizer: Tokenizer, limit: int, policy: Policy) -> list[Reading]:
    """The windows of an input whose fields have these ids (without special tokens), each at most `limit` long.

    >>> from bertkit.text.truncate import Chunk
    >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d"])
    >>> for reading in read([[6], [5, 7, 8]], tokenizer, limit=6, policy=Chunk()):
    ...     print(reading.ids, reading.segments, reading.of(1))
    [2, 6, 3, 5, 7, 3] [0, 0, 0, 1, 1, 1] slice(3, 5, None)
    [2, 6, 3, 8, 3] [0, 0, 0, 1, 1] slice(3, 4, None)
    """
    room = tokenizer.template.room(limit, len(fields))
    return [assemble(fields, window, tokenizer) for window in policy.windows([len(ids) for ids in fields], room)]


def assemble(fields: Sequence[Sequence[int]], window: Window, tokenizer: Tokenizer) -> Reading:
    """One window of the fields, in the tokenizer's template."""
    kept = [
        [id for start, stop in pieces for id in field[start:stop]] for field, pieces in zip(fields, window, strict=True)
    ]
    return Reading(window, *tokenizer.template.filled(kept))
