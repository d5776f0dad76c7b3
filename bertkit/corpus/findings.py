"""Findings: an audit in sentences, worst first, each with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells

from bertkit.corpus.audit import SHORT_DOCUMENT, Audit
from bertkit.corpus.damage import KINDS

RANKS = ("problem", "warning", "info", "good")
LABELS = {"problem": "Problem", "warning": "Look", "info": "Note", "good": "Good"}
LINES, WIDTH, LABEL = 22, 100, 9
"""of a screen of 24, with room for what was written and for the prompt; columns at most; columns before a text"""


@dataclass(frozen=True)
class Finding:
    """What is wrong, how much of the corpus it touches, and what to do."""

    rank: str
    share: float
    said: str
    remedy: str = ""


def findings(audit: Audit) -> list[Finding]:
    """All findings, worst first."""
    found = [
        *_skipped(audit),
        *_unknown(audit),
        *_copies(audit),
        *_near(audit),
        *_boilerplate(audit),
        *_damage(audit),
        *_lengths(audit),
    ]
    return sorted(found, key=lambda finding: (RANKS.index(finding.rank), -finding.share))


def summary(audit: Audit, width: int = WIDTH) -> str:
    """One screen: what the corpus is, then what to look at; at most 22 lines of so many characters."""
    found = findings(audit)
    bad = [finding for finding in found if finding.rank != "good"]
    good = "; ".join(finding.said.rstrip(".") for finding in found if finding.rank == "good")
    head = _fold(overview(audit), "", width)
    last = _fold(f"{good}.", LABELS["good"], width) if good else []
    room, body = LINES - len(head) - 1 - len(last), list[str]()
    for place, finding in enumerate(bad):
        lines = _fold(f"{finding.said} {finding.remedy}".strip(), LABELS[finding.rank], width)
        rest = _fold(f"{len(bad) - place} smaller ones are left out here; --html and --json list them all.", " ", width)
        following = len(rest) if place + 1 < len(bad) else 0
        if len(body) + len(lines) + following > room:
            body += rest
            break
        body += lines
    return "\n".join([*head, "", *body, *last])


def overview(audit: Audit) -> str:
    """What the corpus is, in three sentences."""
    files = audit.files[0] if len(audit.files) == 1 else f"{len(audit.files):,} files"
    documents, sentences = audit.document_words.percentiles, audit.sentence_words.percentiles
    shares = {name: count / audit.characters for name, count in audit.scripts.items() if name != "spaces"}
    largest = ", ".join(f"{name} {percent(share)}" for name, share in list(shares.items())[:4])
    return (
        f"{_printable(files)}: {_size(audit.bytes)}, {_many(audit.documents, 'document')}, "
        f"{_many(audit.sentences, 'sentence')}, {_many(audit.words, 'word')}.\n"
        f"Half of the documents have up to {documents[50]:,} words, 95 % up to {documents[95]:,}, the longest has "
        f"{audit.document_words.longest:,}; half of the sentences have up to {sentences[50]:,}.\n"
        f"Characters: {largest}."
    )


def percent(share: float) -> str:
    """A share that is never rounded down to none or up to all.

    >>> percent(0.123), percent(0.00012), percent(0.9999), percent(0), percent(1)
    ('12.3 %', '0.012 %', '99.9 %', '0 %', '100 %')
    """
    if share <= 0 or share >= 1:
        return f"{min(max(share, 0), 1) * 100:.0f} %"
    if share >= 0.001:
        return f"{min(share * 100, 99.9):.1f} %"
    return f"{share * 100:.2g} %" if share >= 0.00001 else "less than 0.001 %"


def _skipped(audit: Audit) -> Iterator[Finding]:
    if audit.skipped:
        said = f"{_many(audit.skipped, 'line')} could not be read, the first: {_printable(audit.skipped_lines[0])}."
        yield Finding("warning", audit.skipped / audit.lines, said, "Correct them, or see that nothing is missed.")


def _unknown(audit: Audit) -> Iterator[Finding]:
    found = audit.unknown
    if not found:
        return
    rate = found.total.rate
    if not found.total.unknown:
        yield Finding("good", 0, "every word can be spelled by the tokenizer")
        return
    said = f"{percent(rate)} of the tokens are [UNK]: the tokenizer cannot spell them."
    least = found.total.tokens / 1000
    worst = max((count for count in found.scripts.items() if count[1].tokens >= least), key=lambda item: item[1].rate)
    if worst[1].rate > max(2 * rate, 0.001):
        said += f" In {worst[0]} text it is {percent(worst[1].rate)}."
    words = ", ".join(_printable(word)[:20] for word, _ in found.words[:4])
    remedy = f"Most frequent: {words}. Train a vocabulary on this text: bertkit vocab train."
    yield Finding(_rank(rate, 0.01, 0.001), rate, said, remedy)


def _copies(audit: Audit) -> Iterator[Finding]:
    found = audit.repeated_documents
    if not found.copies:
        yield Finding("good", 0, "no document occurs twice")
        return
    said = f"{_of(found.copies, found.texts, 'documents')} are exact copies of others{_sample(found.covered)}."
    yield Finding(_rank(found.share, 0.02, 0.001), found.share, said, "Keep one of each: copies are learned by heart.")


def _near(audit: Audit) -> Iterator[Finding]:
    found = audit.near_documents
    if not found.copies:
        yield Finding("good", 0, f"no two documents are nearly the same{_sample(found.covered)}")
        return
    said = (
        f"{_of(found.copies, found.documents, 'documents')} are nearly copies of others, in "
        f"{_many(found.groups, 'group')}{_sample(found.covered)}."
    )
    yield Finding(_rank(found.share, 0.05, 0.005), found.share, said, "Keep one of each group, or see what repeats.")


def _boilerplate(audit: Audit) -> Iterator[Finding]:
    found, lines = audit.boilerplate, audit.repeated_lines
    if found.lines:
        said = (
            f"{_many(found.lines, 'line')} stand in {found.documents} documents or more each, {percent(found.share)} "
            f"of the text{_sample(lines.covered)}"
        )
        if lines.examples:
            said += f": “{_printable(lines.examples[0].text)[:48].rstrip('… ')}…”"
        yield Finding(
            _rank(found.share, 0.05, 0.005), found.share, said + ".", "Delete those that are menus, notices or forms."
        )
    else:
        yield Finding("good", 0, "no line is shared by many documents")
    share = lines.copied_characters / lines.covered / max(audit.characters, 1)
    if share > max(2 * found.share, 0.01):
        said = f"{_of(lines.copies, lines.texts, 'lines')} repeat an earlier line, {percent(share)} of the text."
        yield Finding(_rank(share, 0.3, 0.05), share, said, "See whether paragraphs were quoted or crawled twice.")


_REPAIRS = {
    "mojibake": "Read the originals again as UTF-8, or repair them with ftfy.",
    "replacement": "Decode the originals in their own encoding; the letters are lost here.",
    "control": "BERT drops them; many of them mean that files are not text.",
    "unassigned": "Look where they come from: often a font's own signs.",
    "invisible": "BERT drops most of them, which joins or cuts words.",
    "markup": "Take the text out of the HTML first, and unescape entities.",
}
_SERIOUS = {
    "mojibake": 1e-5,
    "replacement": 1e-5,
    "control": 1e-4,
    "unassigned": 1e-4,
    "invisible": 1e-2,
    "markup": 1e-4,
}
"""occurrences per character from which a kind is a problem; a hundredth of it is worth a look"""


def _damage(audit: Audit) -> Iterator[Finding]:
    clean = []
    for kind, found in audit.damage.items():
        if not found.count:
            clean.append(kind)
            continue
        share = found.count / audit.characters
        said = f"{found.count:,} {KINDS[kind]}"
        if kind in ("mojibake", "markup"):
            said += f", as in “{_printable(found.examples[0])}”"
        serious = _SERIOUS[kind]
        yield Finding(_rank(share, serious, serious / 100), share, f"{said}.", _REPAIRS[kind])
    if {"mojibake", "replacement", "control"}.issubset(clean):
        yield Finding("good", 0, "no damaged characters")


def _lengths(audit: Audit) -> Iterator[Finding]:
    long = audit.long_lines
    if long.lines:
        said = f"{_many(long.lines, 'line')} longer than {long.limit:,} characters, the longest of {long.longest:,}."
        yield Finding("warning", long.lines / audit.lines, said, "Line breaks may be lost; sentences are still found.")
    if audit.empty_documents:
        share = audit.empty_documents / (audit.documents + audit.empty_documents)
        said = f"{_many(audit.empty_documents, 'document')} ({percent(share)}) hold nothing."
        yield Finding(_rank(share, 0.2, 0.01), share, said, "They are left out; see whether the field is right.")
    if audit.short_documents > 0.3:
        said = f"{percent(audit.short_documents)} of the documents have fewer than {SHORT_DOCUMENT} words."
        remedy = "An empty line ends a document: does one follow every line or paragraph?"
        yield Finding("warning", audit.short_documents, said, remedy)
    if audit.documents < 10 or audit.document_words.mean > 50_000:
        said = f"There {'is' if audit.documents == 1 else 'are'} only {_many(audit.documents, 'document')}."
        remedy = "An empty line ends a document; where each line is one, say --format lines."
        yield Finding("warning", 1.0, said, remedy)


def _rank(share: float, problem: float, warning: float) -> str:
    return "problem" if share >= problem else "warning" if share >= warning else "info"


def _of(count: int, total: int, what: str) -> str:
    return f"{count:,} of {total:,} {what} ({percent(count / max(total, 1))})"


def _sample(covered: float) -> str:
    return "" if covered >= 1 else f" (in a sample of {percent(covered)})"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _size(count: int) -> str:
    for unit, name in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return _many(count, "byte")


def _printable(text: str) -> str:
    """A text that cannot move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def _fold(text: str, label: str, width: int) -> list[str]:
    """Lines no wider than that, also where characters are two cells wide; a label stands before the first."""
    indent = LABEL if label else 0
    found: list[str] = []
    for line in text.split("\n"):
        row, label = f"{label:<{indent}}", ""
        for word in (part for long in line.split() for part in chop_cells(long, width - indent)):
            if row.strip() and cell_len(row) + cell_len(word) > width:
                found.append(row.rstrip())
                row = " " * indent
            row += f"{word} "
        found.append(row.rstrip())
    return found
