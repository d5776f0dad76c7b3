"""A summary of counted lengths: the numbers a reader came for, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bertkit.errors import BertkitError
from bertkit.report import Column, Facts, Histogram, Mark, Note, Page, Part, Section, Table, Text
from bertkit.text.lengths import Lengths, Outcome, Proposal
from bertkit.text.truncate import Policy

PERCENTILES = (50, 90, 95, 99)

DOES = {
    "error": "refuses long inputs",
    "head": "keeps the beginning",
    "tail": "keeps the end",
    "head+tail": "keeps a beginning and the end",
    "longest-first": "cuts the longest field first",
    "budgets": "keeps so many of each field",
    "chunk": "reads everything, in chunks",
}
"""the first word of a policy's name -> what it does to an input that is too long"""


@dataclass(frozen=True)
class Bins:
    """Lengths in steps of equal width: bin number i counts those above edges[i] - 1 and below edges[i + 1]."""

    edges: list[int]
    counts: list[int]
    beyond: int
    """how many are as long as the last edge, or longer"""


@dataclass(frozen=True)
class Summary:
    """All that is said about the lengths of some texts."""

    source: str
    model: str
    limit: int
    lengths: Lengths
    proposal: Proposal
    outcomes: list[Outcome]
    prompt: str = ""
    """what the model writes before each text, which was counted with it"""

    @classmethod
    def of(
        cls,
        lengths: Lengths,
        policies: Mapping[str, Policy],
        limit: int,
        keep: float = 0.95,
        source: str = "the texts",
        model: str = "the model",
        prompt: str = "",
    ) -> Summary:
        """Propose a length that keeps a share of the texts, and ask each policy there and at the limit."""
        if not lengths.texts:
            raise BertkitError(f"{source} holds no texts: there is no length to count")
        proposal = lengths.propose(limit, keep)
        places = dict.fromkeys((proposal.length, limit))  # one where both are the same
        outcomes = [lengths.outcome(name, policy, at) for at in places for name, policy in policies.items()]
        return cls(source, model, limit, lengths, proposal, outcomes, prompt)

    def counted_by(self) -> str:
        """Whose tokens these are."""
        return f"the tokenizer of {self.model}" + (f", after its prompt {self.prompt!r}" if self.prompt else "")

    def percentiles(self) -> dict[int, int]:
        """The length that so many per cent of the texts do not exceed."""
        return {percent: self.lengths.reaching(percent / 100) for percent in PERCENTILES}

    def over(self) -> int:
        """How many texts are longer than the limit."""
        return self.lengths.texts - self.lengths.within(self.limit)

    def at(self, limit: int) -> list[Outcome]:
        """What each policy does at one of the two lengths."""
        return [outcome for outcome in self.outcomes if outcome.limit == limit]

    def matters(self, limit: int) -> bool:
        """Whether any policy does anything at this length."""
        return any(found.refused_texts or found.cut_texts or found.chunked_texts for found in self.at(limit))

    def untouched(self, limit: int, place: str) -> str:
        """The sentence where none does."""
        return f"At {limit} tokens, {place}: all texts fit, no policy cuts anything."

    def places(self) -> dict[int, str]:
        """The lengths at which policies were asked, and what each is."""
        if self.proposal.length == self.limit:
            return {self.limit: "the limit, which is also the proposed length"}
        return {self.proposal.length: "the proposed length", self.limit: "the limit"}

    def bins(self, most: int) -> Bins:
        """At most so many bins, of a width that is a power of two.

        They reach to the limit and to 99 % of the texts, unless a few texts are so long that all others would be
        pressed into one bin; what is longer is counted apart.
        """
        lengths = self.lengths
        most_texts = max(lengths.reaching(0.95), self.limit)
        top = min(lengths.longest, max(most_texts, min(lengths.reaching(0.99), 2 * most_texts)))
        width = 1
        while (top - 1) // width - (lengths.shortest - 1) // width >= most:
            width *= 2
        first, last = (lengths.shortest - 1) // width, (top - 1) // width + 1
        counts = [0] * (last - first)
        for length, often in lengths.counts.items():
            if (length - 1) // width < last:
                counts[(length - 1) // width - first] += often
        edges = [place * width + 1 for place in range(first, last + 1)]
        return Bins(edges, counts, lengths.texts - sum(counts))

    def proposed(self) -> str:
        """The proposal in a sentence or two."""
        found = self.proposal
        said = (
            f"{found.length} tokens keep {percent(found.fits)} of the texts whole, "
            f"and {percent(found.kept)} of all tokens."
        )
        if found.needed > found.length and found.short:
            said += (
                f" {found.keep * 100:g} % would need {found.needed:,} tokens, which is above the limit of {self.limit}."
            )
        if self.lengths.empty:
            said += f" {self.lengths.empty:,} of the {self.lengths.texts:,} texts are empty, and count as whole."
        return said

    def json(self) -> dict[str, Any]:
        """Everything, for a program."""
        lengths = self.lengths
        return {
            "source": self.source,
            "model": self.model,
            "prompt": self.prompt,
            "limit": self.limit,
            "texts": lengths.texts,
            "fields": lengths.fields,
            "tokens": lengths.tokens,
            "special_tokens": lengths.specials * lengths.texts,
            "mean": lengths.mean,
            "percentiles": {str(place): length for place, length in self.percentiles().items()},
            "shortest": lengths.shortest,
            "longest": lengths.longest,
            "empty_texts": lengths.empty,
            "texts_over_limit": self.over(),
            "proposal": asdict(self.proposal),
            "policies": [asdict(outcome) for outcome in self.outcomes],
            "lengths": {str(length): lengths.counts[length] for length in sorted(lengths.counts)},
        }

    def facts(self) -> dict[str, object]:
        """The few numbers a reader came for."""
        lengths = self.lengths
        percentiles = self.percentiles()
        return {
            "texts": lengths.texts,
            "tokens": lengths.tokens,
            "mean": round(lengths.mean, 1),
            "median": percentiles.pop(50),
            **{f"{place} % within": length for place, length in percentiles.items()},
            "longest": lengths.longest,
            "limit": self.limit,
            "over the limit": self.over(),
        }

    def page(self) -> Page:
        """The summary as a page for a browser."""
        fields = f", in inputs of {self.lengths.fields} fields each" if self.lengths.fields > 1 else ""
        intro = (
            f"Counted with {self.counted_by()}{fields}. Lengths include the special tokens "
            "[CLS] and [SEP]; lost tokens are those of the texts alone."
        )
        glance: list[Part] = [Facts(self.facts()), self._note()]
        tables: list[Part] = [Text("What each policy would do to texts that are too long.")]
        for limit, place in self.places().items():
            tables.append(self._table(limit, place) if self.matters(limit) else Text(self.untouched(limit, place)))
        sections = [
            Section("At a glance", glance),
            Section("Lengths", [self._chart()]),
            Section("Truncation", tables),
        ]
        return Page(f"Token lengths of {self.source}", sections, intro)

    def _note(self) -> Note:
        kind = "warning" if self.proposal.short else "good"
        return Note(f"Proposed sequence length: {self.proposed()}", kind)

    def _chart(self) -> Histogram:
        bins = self.bins(96)
        same = self.proposal.length == self.limit
        # a bar counts lengths up to its right edge: there the mark stands
        marks = [] if same else [Mark(self.proposal.length + 1, f"proposed length {self.proposal.length}")]
        marks.append(Mark(self.limit + 1, f"limit {self.limit}{', also proposed' if same else ''}"))
        name = "tokens per text"
        if bins.beyond:
            name += f" (last bar: {bins.edges[-1]:,} and more)"
        return Histogram("How long the texts are", bins.edges, bins.counts, name, "texts", marks, bins.beyond)

    def _table(self, limit: int, place: str) -> Table:
        columns: list[str | Column] = [
            "policy",
            "what it does",
            "texts cut",
            Column("of all texts", ".2%"),
            "tokens lost",
        ]
        columns += [Column("of all tokens", ".2%"), "texts refused", "texts in chunks", "chunks"]
        rows = [row(outcome, self.lengths) for outcome in self.at(limit)]
        return Table(f"At {limit} tokens, {place}", columns, rows)


def row(outcome: Outcome, lengths: Lengths) -> tuple[object, ...]:
    """An outcome, as a table shows it."""
    return (
        outcome.policy,
        DOES[outcome.policy.split()[0]] + " of the last field" * (outcome.policy == "chunk" and lengths.fields > 1),
        outcome.cut_texts,
        outcome.cut_texts / lengths.texts,
        outcome.cut_tokens,
        outcome.cut_tokens / max(lengths.own_tokens, 1),
        outcome.refused_texts or None,
        outcome.chunked_texts or None,
        outcome.chunks or None,
    )


def percent(share: float) -> str:
    """A share that is never rounded up to all or down to none.

    >>> percent(0.95), percent(0.99996), percent(1), percent(0.00001)
    ('95.0 %', '99.9 %', '100 %', '0.1 %')
    """
    if share in (0, 1):
        return f"{share * 100:.0f} %"
    return f"{min(max(share * 100, 0.1), 99.9):.1f} %"
