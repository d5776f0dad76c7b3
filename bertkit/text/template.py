"""The template of an input: which tokens stand before, between and after its fields, and which segment each field has.

BERT, ALBERT, ELECTRA   [CLS] a [SEP] b [SEP]       segments 0 and 1
RoBERTa, XLM-R          <s> a </s> </s> b </s>      segment 0 alone
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tokenizers

from bertkit.errors import BertkitError

_PROBE = "a"


@dataclass(frozen=True)
class Template:
    """Ids before the first field, between two, and after the last; what stands after a field has its segment.

    >>> bert = Template((101,), (102,), (102,), (0, 1))
    >>> bert.specials(fields=2), bert.room(512, fields=2)
    (3, 509)
    >>> roberta = Template((0,), (2, 2), (2,), (0,))
    >>> roberta.filled([[7], [8, 9]])
    ([0, 7, 2, 2, 8, 9, 2], [0, 0, 0, 0, 0, 0, 0], (1, 4))
    """

    start: tuple[int, ...]
    between: tuple[int, ...]
    end: tuple[int, ...]
    segments: tuple[int, ...]
    """of the fields in order; further fields have the last one's"""

    @classmethod
    def of(cls, rust: tokenizers.Tokenizer) -> Template | None:
        """What a tokenizer does with one text and with two, found by asking it; None where it is no such template."""
        one, two = rust.encode(_PROBE), rust.encode(_PROBE, _PROBE)
        fields = two.sequence_ids
        if 0 not in fields or 1 not in fields:
            return None
        first, second = fields.index(0), fields.index(1)
        after, last = first + fields.count(0), second + fields.count(1)
        ids, segments = two.ids, two.type_ids
        kinds = tuple(dict.fromkeys((segments[first], segments[second])))
        found = cls(tuple(ids[:first]), tuple(ids[after:second]), tuple(ids[last:]), kinds)
        a, b = ids[first:after], ids[second:last]
        same = found.filled([a])[:2] == (one.ids, one.type_ids) and found.filled([a, b])[:2] == (ids, segments)
        return found if same else None

    def segment(self, field: int) -> int:
        """The segment of a field, by its place."""
        return self.segments[min(field, len(self.segments) - 1)]

    def specials(self, fields: int = 1) -> int:
        """How many special tokens an input of so many fields has."""
        return len(self.start) + (fields - 1) * len(self.between) + len(self.end)

    def room(self, limit: int, fields: int = 1) -> int:
        """How many tokens of text fit into an input of so many fields; refused where none does."""
        room = limit - self.specials(fields)
        if room < 1:
            raise BertkitError(f"a limit of {limit} tokens leaves no room for {fields} fields and their special tokens")
        return room

    def text(self, ids: Sequence[int]) -> Sequence[int]:
        """What stands between the special tokens of an input of one field."""
        return ids[len(self.start) : len(ids) - len(self.end)]

    def filled(self, fields: Sequence[Sequence[int]]) -> tuple[list[int], list[int], tuple[int, ...]]:
        """The ids of an input, their segments, and where each field begins."""
        ids, segments, starts = list(self.start), [self.segment(0)] * len(self.start), []
        for place, field in enumerate(fields):
            starts.append(len(ids))
            ids += [*field, *(self.end if place == len(fields) - 1 else self.between)]
            segments += [self.segment(place)] * (len(ids) - len(segments))
        return ids, segments, tuple(starts)
