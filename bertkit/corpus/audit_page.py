"""The audit of a corpus as one page for a browser."""

from __future__ import annotations

from bertkit.corpus.audit import Audit
from bertkit.corpus.findings import Finding, findings, overview
from bertkit.corpus.spread import Distribution
from bertkit.report import Bars, Column, Facts, Histogram, Mark, Note, Page, Part, Section, Table, Text

MOST_BARS = 20
LEAST_SHARE = 0.00005
"""of a script that is drawn: less would be shown as nothing"""
DAMAGED = {
    "mojibake": "wrongly decoded",
    "replacement": "lost (U+FFFD)",
    "control": "control",
    "unassigned": "unassigned",
    "invisible": "invisible",
    "markup": "HTML",
}
MEANINGS = (
    "Wrongly decoded letters look like Ã© for é. U+FFFD stands where a letter was lost. Control characters are such as "
    "NUL. Unassigned ones are unknown to Unicode, or for private use. Invisible ones are such as soft hyphens and "
    "zero-width spaces. HTML counts tags and entities."
)
SHOWN = 48
"""characters of a text in a narrow cell"""


def page(audit: Audit) -> Page:
    """The page: what to look at, then the numbers behind it."""
    name = audit.files[0] if len(audit.files) == 1 else f"{len(audit.files):,} files"
    sections = [
        Section("At a glance", [_facts(audit), *_notes(findings(audit))]),
        Section("Lengths", _lengths(audit)),
        Section("Scripts", [_scripts(audit)]),
        Section("Copies", _copies(audit)),
        Section("Lines in many documents", _boilerplate(audit)),
        *([Section("Unknown words", _unknown(audit))] if audit.unknown else []),
        Section("Damaged characters", _damage(audit)),
        Section("How this was counted", [Text(_method(audit))]),
    ]
    return Page(f"Audit of {name}", sections, " ".join(overview(audit).split("\n")[1:]))


def _facts(audit: Audit) -> Facts:
    values: dict[str, object] = {
        "documents": audit.documents,
        "sentences": audit.sentences,
        "words": audit.words,
        "bytes": audit.bytes,
        "exact copies": audit.repeated_documents.copies,
        "near copies": audit.near_documents.copies,
    }
    if audit.unknown:
        values["unknown tokens"] = f"{audit.unknown.total.rate:.2%}"
    return Facts(values)


def _notes(found: list[Finding]) -> list[Part]:
    notes: list[Part] = [
        Note(f"{finding.said} {finding.remedy}".strip(), finding.rank) for finding in found if finding.rank != "good"
    ]
    good = [finding.said for finding in found if finding.rank == "good"]
    if good:
        said = "; ".join(good)
        notes.append(Note(f"{said[0].upper()}{said[1:]}.", "good"))
    return notes


def _lengths(audit: Audit) -> list[Part]:
    parts: list[Part] = [
        _histogram("How long the documents are", audit.document_words, "words per document", "documents"),
        _histogram("How long the sentences are", audit.sentence_words, "words per sentence", "sentences"),
        _percentiles(audit),
    ]
    if audit.long_lines.examples:
        rows = [(file, size, text) for file, size, text in audit.long_lines.examples]
        title = f"Lines of more than {audit.long_lines.limit:,} characters ({audit.long_lines.lines:,} in all)"
        parts.append(Table(title, ["file", "characters", "beginning"], rows))
    return parts


def _histogram(title: str, found: Distribution, x_name: str, y_name: str) -> Histogram:
    name = f"{x_name} (last bar: {found.edges[-1]:,} and more)" if found.beyond else x_name
    median = Mark(found.percentiles[50], f"half up to {found.percentiles[50]:,}")
    most = Mark(found.percentiles[95], f"95 % up to {found.percentiles[95]:,}")
    return Histogram(title, found.edges, found.counts, name, y_name, [median, most], found.beyond)


def _percentiles(audit: Audit) -> Table:
    spreads = {
        "words per document": audit.document_words,
        "characters per document": audit.document_characters,
        "words per sentence": audit.sentence_words,
    }
    places = list(audit.document_words.percentiles)
    columns: list[str | Column] = ["", "shortest", *(f"{place} % up to" for place in places), "longest"]
    columns.append(Column("mean", ",.1f"))
    rows = [
        (name, found.shortest, *found.percentiles.values(), found.longest, found.mean)
        for name, found in spreads.items()
    ]
    return Table("Lengths in numbers", columns, rows)


def _scripts(audit: Audit) -> Bars:
    seen = [(name, count) for name, count in audit.scripts.items() if count >= audit.characters * LEAST_SHARE]
    shares = {name: count / audit.characters for name, count in seen[:MOST_BARS]}
    return Bars("What the text is made of", shares, "kind of character", "share", ".2%")


def _copies(audit: Audit) -> list[Part]:
    exact, near, lines = audit.repeated_documents, audit.near_documents, audit.repeated_lines
    columns: list[str | Column] = ["", "counted", "copies", Column("share", ".2%"), Column("of all, looked at", ".0%")]
    rows = [
        ("documents, exact copies", exact.texts, exact.copies, exact.share, exact.covered),
        ("documents, near copies", near.documents, near.copies, near.share, near.covered),
        ("lines of other documents, exact copies", lines.texts, lines.copies, lines.share, lines.covered),
    ]
    parts: list[Part] = [Table("Texts that occur again", columns, rows)]
    if exact.examples:
        found = [(example.text, example.times) for example in exact.examples]
        parts.append(Table("Documents that occur more than once, by their beginning", ["document", "times"], found))
    if near.examples:
        pairs = [(pair.first, pair.second, pair.alike) for pair in near.examples]
        title = "Documents that are nearly the same, by their beginnings: one pair of each group"
        parts.append(Table(title, ["one", "other", Column("alike", ".0%")], pairs))
    return parts


def _boilerplate(audit: Audit) -> list[Part]:
    found = audit.boilerplate
    if not found.lines:
        return [Text(f"No line stands in {found.documents} documents or more.")]
    said = (
        f"{found.lines:,} different lines stand in {found.documents} documents or more each; together they occur "
        f"{found.times:,} times and make {found.share:.2%} of the text."
    )
    rows = [(example.text, example.documents, example.times) for example in audit.repeated_lines.examples]
    parts: list[Part] = [Text(said)]
    return [*parts, Table("Those that take most room", ["line", "documents", "times"], rows)] if rows else parts


def _unknown(audit: Audit) -> list[Part]:
    found = audit.unknown
    assert found is not None
    columns: list[str | Column] = ["script", "tokens", "unknown", Column("share", ".3%")]
    rows = [(name, count.tokens, count.unknown, count.rate) for name, count in found.scripts.items()]
    rows.append(("all", found.total.tokens, found.total.unknown, found.total.rate))
    parts: list[Part] = [Table("Tokens by script, and those that are [UNK]", columns, rows)]
    if found.words:
        bars = {_visible(word): count for word, count in found.words[:MOST_BARS]}
        parts.append(Bars("The most frequent words that the tokenizer cannot spell", bars, "word", "times"))
    return parts


def _visible(word: str) -> str:
    """A word, and its code point where it is one character that a font may lack."""
    short = word if len(word) <= SHOWN else word[: SHOWN - 1] + "…"
    return f"{short} (U+{ord(word):04X})" if len(word) == 1 else short


def _damage(audit: Audit) -> list[Part]:
    columns: list[str | Column] = ["kind", "times", Column("per million", ",.1f"), "for example"]
    rows = [
        (DAMAGED[kind], found.count, found.count / audit.characters * 1e6, " ⋯ ".join(found.examples) or None)
        for kind, found in audit.damage.items()
    ]
    parts: list[Part] = [Table("Characters that say something went wrong", columns, rows), Text(MEANINGS)]
    if audit.skipped:
        lines = list(enumerate(audit.skipped_lines, 1))
        title = f"Lines that could not be read ({audit.skipped:,} in all)"
        parts.append(Table(title, ["", "where and why"], lines))
    return parts


def _method(audit: Audit) -> str:
    limits = audit.limits
    return (
        "A document is what an empty line ends. A word is a run of letters and digits; Chinese and Japanese characters "
        "are words of their own. White space around lines does not count.\n\n"
        "Near copies share more than half of their runs of three words, capitals and punctuation aside, as estimated "
        "by MinHash with 60 numbers; documents of fewer than 10 words and exact copies are not compared.\n\n"
        f"Up to {limits['documents']:,} different documents and {limits['lines']:,} different lines are told apart, "
        f"and {limits['compared']:,} documents compared. Of a larger corpus a sample is counted, chosen by what the "
        "texts hold, so that copies stay together; the column “of all, looked at” says how large it is. In Unknown "
        "words a token belongs to the script of the first letter of what stands between two spaces."
    )
