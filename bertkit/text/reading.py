"""What a model reads of an input: the fields in BERT's template, [CLS] a [SEP] b [SEP] …, in one window or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.errors import BertkitError
from bertkit.text.tokenizer import Tokenizer
from bertkit.text.truncate import Policy, Window


@dataclass(frozen=True)
class Reading:
    """One window: ids and segments (0 in the first field, 1 after it), and where each field begins among them."""

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
    room = limit - len(fields) - 1
    if room < 1:
        raise BertkitError(
            f"a limit of {limit} tokens leaves no room for {len(fields)} fields and their special tokens"
        )
    return [assemble(fields, window, tokenizer) for window in policy.windows([len(ids) for ids in fields], room)]


def assemble(fields: Sequence[Sequence[int]], window: Window, tokenizer: Tokenizer) -> Reading:
    """One window of the fields, in BERT's template."""
    ids, segments, starts = [tokenizer.cls_id], [0], []
    for place, (field, pieces) in enumerate(zip(fields, window, strict=True)):
        starts.append(len(ids))
        for start, stop in pieces:
            ids.extend(field[start:stop])
        ids.append(tokenizer.sep_id)
        segments.extend([min(place, 1)] * (len(ids) - len(segments)))
    return Reading(window, ids, segments, tuple(starts))
