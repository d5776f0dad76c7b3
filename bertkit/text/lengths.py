"""How long the texts of a file are in tokens, what each truncation policy would cut, and which length to take.

A length counts special tokens, for they need room as well; tokens that a policy cuts are those of the texts alone.
Memory does not grow with the number of texts: lengths are counted, and the fields' lengths of each input, which a
policy may need to see together, wait in a temporary file once they are many.

>>> from bertkit.text import Tokenizer
>>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
>>> with count([["a a a"], ["a"]], tokenizer) as lengths:
...     print(lengths.texts, lengths.longest, lengths.outcome("head", KeepHead(), limit=4))
2 5 Outcome(policy='head', limit=4, refused_texts=0, cut_texts=1, cut_tokens=1, chunked_texts=0, chunks=0)
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any

import numpy as np

from bertkit.errors import BertkitError, about
from bertkit.text.prompt import Prompted
from bertkit.text.tokenizer import Tokenizer
from bertkit.text.truncate import POLICIES, Budgets, Chunk, Keep, KeepHead, Policy, Refuse, lost
from bertkit.text.window import windows

MULTIPLE = 8
"""proposed lengths are multiples of this, which is kind to matrix kernels"""
IN_MEMORY = 32_000_000
"""bytes of fields' lengths that are held before they go to a temporary file"""
BLOCK = 1 << 18
"""inputs that a policy is asked about at a time"""

Table = np.ndarray[Any, np.dtype[np.int32]]
"""lengths of fields, [inputs, fields]"""


@dataclass(frozen=True)
class Outcome:
    """What a policy would do at a limit, in the words of `Cut`; `refused_texts` are those it ends in an error for."""

    policy: str
    limit: int
    refused_texts: int = 0
    cut_texts: int = 0
    cut_tokens: int = 0
    chunked_texts: int = 0
    chunks: int = 0


@dataclass(frozen=True)
class Proposal:
    """A sequence length, and what it keeps."""

    length: int
    keep: float
    """the share of texts that was asked to fit whole"""
    needed: int
    """the multiple of 8 at which they do; above `length` where the limit is lower"""
    fits: float
    """the share of texts that fit whole into `length`"""
    kept: float
    """the share of the texts' own tokens that one window of `length` keeps"""

    @property
    def short(self) -> bool:
        """Whether fewer texts fit than was asked."""
        return self.fits < self.keep - 1e-9


@dataclass
class Lengths:
    """The counted lengths. Use it in a `with` block, or `close` it: a temporary file may belong to it."""

    fields: int = 1
    single: int = 2
    """special tokens around one field"""
    further: int = 1
    """and those that each further field brings"""
    counts: Counter[int] = field(default_factory=Counter)
    """length of an input, special tokens included -> how many inputs are so long"""
    _held: IO[bytes] = field(default_factory=lambda: tempfile.SpooledTemporaryFile(IN_MEMORY))  # noqa: SIM115

    def __enter__(self) -> Lengths:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the temporary file; the counts stay."""
        self._held.close()

    def add(self, table: Table) -> None:
        """Take inputs into the counts, by the lengths of their fields without special tokens, [inputs, fields]."""
        totals, times = np.unique(table.sum(axis=1, dtype=np.int64) + self.specials, return_counts=True)
        for total, often in zip(totals.tolist(), times.tolist(), strict=True):
            self.counts[total] += often
        self._held.write(np.ascontiguousarray(table, dtype=np.int32).tobytes())

    @property
    def specials(self) -> int:
        """Special tokens of an input."""
        return self.single + self.further * (self.fields - 1)

    @property
    def texts(self) -> int:
        """How many inputs there are."""
        return self.counts.total()

    @property
    def tokens(self) -> int:
        """How many tokens they have together, special ones included."""
        return sum(length * often for length, often in self.counts.items())

    @property
    def own_tokens(self) -> int:
        """How many tokens they have without special ones."""
        return self.tokens - self.specials * self.texts

    @property
    def empty(self) -> int:
        """How many inputs have no tokens but special ones."""
        return self.counts[self.specials]

    @property
    def shortest(self) -> int:
        """The length of the shortest input."""
        return min(self.counts, default=0)

    @property
    def longest(self) -> int:
        """The length of the longest input."""
        return max(self.counts, default=0)

    @property
    def mean(self) -> float:
        """The mean length."""
        return self.tokens / max(self.texts, 1)

    def within(self, length: int) -> int:
        """How many inputs are at most so long."""
        return sum(often for size, often in self.counts.items() if size <= length)

    def reaching(self, share: float) -> int:
        """The smallest length that at least this share of the inputs does not exceed: a percentile, by nearest rank.

        >>> Lengths(counts=Counter({3: 9, 40: 1})).reaching(0.9)
        3
        """
        rank, seen, length = math.ceil(share * self.texts - 1e-9), 0, 0
        for length in sorted(self.counts):
            seen += self.counts[length]
            if seen >= rank:
                break
        return length

    def propose(self, limit: int, keep: float = 0.95) -> Proposal:
        """The smallest multiple of 8 into which at least the share `keep` of the inputs fits whole; at most `limit`."""
        if not 0 < keep <= 1:
            raise BertkitError(f"keep is {keep}: give a share above 0 and up to 1, such as 0.95")
        self._room(limit)
        wanted = max(self.reaching(keep), self.specials + 1)
        needed = math.ceil(wanted / MULTIPLE) * MULTIPLE
        length = min(needed, limit)
        gone = self.outcome("head", KeepHead(), length).cut_tokens
        kept = 1 - gone / self.own_tokens if self.own_tokens else 1.0
        return Proposal(length, keep, needed, self.within(length) / max(self.texts, 1), kept)

    def outcome(self, name: str, policy: Policy, limit: int) -> Outcome:
        """What a policy would do to the inputs at a limit, asked of the policy itself."""
        room = self._room(limit)
        refused = cut = tokens = chunked = chunks = 0
        for lengths, often in self._rows(room, everything=_has_budgets(policy)):
            try:
                made = policy.windows(lengths, room)
            except BertkitError:
                if not _refuses(policy):
                    raise
                refused += often
                continue
            gone = lost(lengths, made)
            cut += often * (gone > 0)
            tokens += often * gone
            chunked += often * (len(made) > 1)
            chunks += often * len(made) * (len(made) > 1)
        return Outcome(name, limit, refused, cut, tokens, chunked, chunks)

    def _room(self, limit: int) -> int:
        room = limit - self.specials
        if room < 1:
            raise BertkitError(
                f"a limit of {limit} tokens leaves no room for {self.fields} fields and their {self.specials} special "
                f"tokens: take at least {self.specials + 1}"
            )
        return room

    def _rows(self, room: int, everything: bool) -> Iterator[tuple[list[int], int]]:
        """Lengths of fields and how often they occur; only those over the room, if what fits is left alone anyway."""
        if self._held.closed:
            raise BertkitError("these lengths are closed, only their counts are left: ask within the `with` block")
        size = self.fields * np.dtype(np.int32).itemsize
        self._held.seek(0)
        while block := self._held.read(BLOCK * size):
            table = np.frombuffer(block, dtype=np.int32).reshape(-1, self.fields)
            if not everything:
                table = table[table.sum(axis=1, dtype=np.int64) > room]
            rows, times = np.unique(table, axis=0, return_counts=True)
            yield from zip(rows.tolist(), times.tolist(), strict=True)
        self._held.seek(0, 2)


def count(
    inputs: Iterable[Sequence[str]],
    tokenizer: Tokenizer,
    progress: Callable[[int], None] | None = None,
    fields: int | None = None,
) -> Lengths:
    """Count inputs of one field or several, in bounded memory. `progress` hears how many each window finished.

    All inputs must have as many fields as the first, or as `fields` says.
    """
    template = tokenizer.template
    lengths = Lengths(single=template.specials(), further=len(template.between))
    seen = 0
    for window in windows(_checked(inputs, fields), lambda fields: sum(map(len, fields))):
        lengths.fields = len(window[0])
        try:
            encoded = tokenizer.ids_of_many([text for fields in window for text in fields])
        except BertkitError:
            for place, texts in enumerate(window):  # once more, one by one, to say which
                with about(f"input {seen + place + 1}"):
                    tokenizer.ids_of_many(texts)
            raise
        sizes = np.fromiter((len(ids) - lengths.single for ids in encoded), dtype=np.int32, count=len(encoded))
        lengths.add(sizes.reshape(len(window), lengths.fields))
        seen += len(window)
        if progress:
            progress(len(window))
    return lengths


def policies(fields: int, budgets: Sequence[int] | None = None, stride: int | None = None) -> dict[str, Policy]:
    """The policies that have a meaning for inputs of so many fields, by name.

    >>> list(policies(1))
    ['error', 'head', 'tail', 'head+tail', 'chunk']
    >>> list(policies(3, budgets=(50, 200, 200)))
    ['error', 'head', 'tail', 'head+tail', 'longest-first', 'budgets 50,200,200', 'chunk']
    """
    found = dict(POLICIES)
    if fields == 1:
        del found["longest-first"]
    if budgets is not None:
        if len(budgets) != fields:
            raise BertkitError(f"{len(budgets)} budgets for inputs of {fields} fields: give one for each")
        chunk = found.pop("chunk")
        found[f"budgets {','.join(map(str, budgets))}"] = KeepHead(Budgets(tuple(budgets)))
        found["chunk"] = chunk
    if stride is not None:
        found["chunk"] = Chunk(stride)
    return found


def _has_budgets(policy: Policy) -> bool:
    return isinstance(policy, Keep) and isinstance(policy.share, Budgets)


def _refuses(policy: Policy) -> bool:
    return isinstance(policy.policy if isinstance(policy, Prompted) else policy, Refuse)


def _checked(inputs: Iterable[Sequence[str]], fields: int | None) -> Iterator[Sequence[str]]:
    """The inputs; what is none, or has other fields than the first, is named by its place."""
    wanted = None if fields is None else f"{fields} are asked for"
    for number, given in enumerate(inputs, start=1):
        if isinstance(given, str) or not all(isinstance(text, str) for text in given):
            raise BertkitError(f"input {number} is {given!r}: it must be a list of its fields, each a str")
        if wanted is None:
            fields, wanted = len(given), f"the first has {len(given)}"
        if len(given) != fields or not given:
            raise BertkitError(f"input {number} has {len(given)} fields where {wanted}")
        yield given
