"""Formats: how documents lie in a file, and how they become plain text.

In plain text a line is a paragraph (or a sentence) and an empty line ends a document.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from bertkit.errors import BertkitError

Refuse = Callable[[int, str], None]
"""Hears of a line (counted from 0) that cannot be used and why; raises, or counts it and lets it be left out."""


class Format(Protocol):
    """What a file's bytes mean."""

    name: ClassVar[str]
    boundary: ClassVar[re.Pattern[bytes]]
    """matches where a document ends, up to where the next may start"""
    by_line: ClassVar[bool]
    """whether every line is a document of its own"""

    def plain(self, text: str, refuse: Refuse) -> str:
        """The documents of a piece of a file as plain text."""


@dataclass(frozen=True)
class Text:
    """Google's format: lines of text, an empty line between documents.

    >>> Text().plain("One.\\nTwo.\\n\\nThree.\\n", print)
    'One.\\nTwo.\\n\\nThree.\\n'
    """

    name: ClassVar[str] = "txt"
    boundary: ClassVar[re.Pattern[bytes]] = re.compile(rb"\n[ \t\r]*\n")
    by_line: ClassVar[bool] = False

    def plain(self, text: str, refuse: Refuse) -> str:
        return text


@dataclass(frozen=True)
class Lines:
    """A document on each line.

    >>> Lines().plain("One. Two.\\nThree.\\n", print)
    'One. Two.\\n\\nThree.\\n\\n'
    """

    name: ClassVar[str] = "lines"
    boundary: ClassVar[re.Pattern[bytes]] = re.compile(rb"\n")
    by_line: ClassVar[bool] = True

    def plain(self, text: str, refuse: Refuse) -> str:
        return text.replace("\n", "\n\n")


@dataclass(frozen=True)
class Jsonl:
    """A JSON object on each line with the document in one of its fields, or a JSON string on each line.

    >>> Jsonl("body").plain('{"body": "One.\\\\n\\\\nTwo."}\\n"Three."', print)
    'One.\\nTwo.\\n\\nThree.'
    """

    field: str = "text"
    name: ClassVar[str] = "jsonl"
    boundary: ClassVar[re.Pattern[bytes]] = re.compile(rb"\n")
    by_line: ClassVar[bool] = True

    def plain(self, text: str, refuse: Refuse) -> str:
        return "\n\n".join(_each(text, refuse, lambda found: _compact(_text(found, self.field))))


@dataclass(frozen=True)
class Wiki:
    """WikiExtractor's output: articles between <doc …> and </doc>. Titles, headings, lists and tables are left out.

    Its placeholders formula_1 and codice_1 stay where they are part of a sentence.

    >>> page = '<doc id="1" title="Cat">\\nCat\\n\\nThe cat is a mammal.\\nHistory.\\n* an item\\n</doc>\\n'
    >>> Wiki().plain(page, print)
    'The cat is a mammal.'
    """

    name: ClassVar[str] = "wiki"
    boundary: ClassVar[re.Pattern[bytes]] = re.compile(rb"</doc>[^\n]*\n")
    by_line: ClassVar[bool] = False

    def plain(self, text: str, refuse: Refuse) -> str:
        rest, *parts = _ARTICLE.split(text)  # a piece may begin within a very long article
        found = [("", rest), *zip(parts[::2], parts[1::2], strict=True)]
        articles = (_prose(_title(header), article.rstrip().removesuffix("</doc>")) for header, article in found)
        return "\n\n".join(article for article in articles if article)


@dataclass(frozen=True)
class WikiJson:
    """What WikiExtractor writes with --json: an article on each line, in the fields `title` and `text`.

    >>> page = '{"id": "1", "title": "Cat", "text": "The cat is a mammal.\\\\nHistory.\\\\n* an item"}\\n'
    >>> WikiJson().plain(page, print)
    'The cat is a mammal.'
    """

    field: str = "text"
    name: ClassVar[str] = "wiki-json"
    boundary: ClassVar[re.Pattern[bytes]] = re.compile(rb"\n")
    by_line: ClassVar[bool] = True

    def plain(self, text: str, refuse: Refuse) -> str:
        return "\n\n".join(article for article in _each(text, refuse, self._article) if article)

    def _article(self, found: Any) -> str:
        title = found.get("title") if isinstance(found, dict) else None
        return _prose(title if isinstance(title, str) else "", _text(found, self.field))


def _each(text: str, refuse: Refuse, document: Callable[[Any], str]) -> Iterator[str]:
    """The document of each line of JSON."""
    for number, line in enumerate(text.split("\n")):
        if not line or line.isspace():
            continue
        try:
            yield document(json.loads(line))
        except BertkitError as error:
            refuse(number, str(error))
        except (ValueError, RecursionError) as error:
            refuse(number, f"is not JSON: {error}")


def _text(found: Any, field: str) -> str:
    """The text of a line of JSON."""
    if isinstance(found, dict):
        if field not in found:
            there = ", ".join(map(repr, list(found)[:8])) or "none"
            raise BertkitError(f"has no field {field!r}. Its fields: {there}. Choose one with --field")
        found = found[field]
    if found is None:
        return ""
    if not isinstance(found, str):
        kind = type(found).__name__
        how = "Write one object on each line" if kind == "list" else "Choose a field with --field"
        raise BertkitError(f"has a {kind} where the text should be. {how}")
    # half a character, a JSON escape cut in two: no file could hold it
    return found if found.isascii() else found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# Every pattern below is read once over a line: what may repeat excludes what it starts with, or is bounded.
_ARTICLE = re.compile(r"^<doc ([^\n]*)$", re.MULTILINE)
_TITLE = re.compile(r'\btitle="([^\n]*)"')
# with its semicolon only: "R&D" and "&copy" are text
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")

_LISTING = re.compile(r"\s*<(?:li|ul|ol|dl|dt|dd|h[1-6]|table|caption|tr|td|th)\b", re.IGNORECASE)
_ASIDE = re.compile(r"<!--.*?(?:-->|$)|<ref\b[^<>]*>[^<>]*</ref>", re.IGNORECASE)
_BREAK = re.compile(r"</?(?:br|hr|p|div|li)\b[^<>]{0,300}>", re.IGNORECASE)
# a name and perhaps attributes with their "=": "a < b", "a<b and c>d" and <小纸条> are text
_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9:-]{0,40}(?:\s[^<>=]{0,100}+=[^<>]{0,500}|\s{0,9}/?)>")
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
# Chinese written one way or another, with the way of showing it before a bar: -{H|zh-hans:网络;zh-hant:網路}-
_VARIANT = re.compile(r"-\{(?:([^{}|]{0,40})\|)?(?:\s?zh[a-z-]{0,9}\s?:)?([^{};]{0,300}+)[^{}]{0,1000}+\}-")
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
_NAMESPACE = re.compile(r":?[^\W\d_]{1,20}:\S")
_SWITCH = re.compile(r"__[A-Z]{3,30}__")
# what templates leave behind; f() is code, so an empty pair needs a space before it, or to be wide
_EMPTY = re.compile(r"""[(（][\s,;:，；：、"'“”‘’「」]*[)）]""")
_EMPTIED = re.compile(rf"(?:[ \xa0]|(?<![A-Za-z0-9_])|(?=（)){_EMPTY.pattern}")
_OPENED = re.compile(r"([(（])\s*[,;，；、][\s,;，；、]*")
_LISTED = re.compile(
    r"[*#:;•·|!]|\{[{|]|\}\}|[-–—]\s|\d{1,3}[.)]\s|=+[^=]|BULLET::::|Section::::"
    r"|[^\W\d_]{1,20}:[^\s|][^|]{0,200}\||(?:File|Image|Category|文件|檔案|档案|分类|分類):\S"
)


def _prose(title: str, article: str) -> str:
    """The paragraphs of an article, each on a line.

    Newer versions of WikiExtractor escape all that they write, so that a tag they missed reads &lt;br&gt;, and older
    ones escape nothing: unescaped first, both are the same, and tags go after that.
    """
    title = _unescaped(title).strip()
    first, _, rest = _unescaped(article).lstrip().partition("\n")
    lines = [line.strip() for line in rest.split("\n")]
    if first.strip() not in (title, f"{title}."):
        lines.insert(0, first.strip())
    following = [*lines[1:], ""]
    paragraphs = ((_paragraph(line), after) for line, after in zip(lines, following, strict=True) if line)
    return "\n".join(line for line, after in paragraphs if line and not _is_heading(line, bool(after)))


def _title(header: str) -> str:
    found = _TITLE.search(header)
    return found[1] if found else ""


def _unescaped(text: str) -> str:
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def _paragraph(line: str) -> str:
    """A line without markup that was missed; nothing if it belongs to a list, a table or a picture."""
    if "<" in line:
        if _LISTING.match(line):
            return ""
        line = _TAG.sub("", _BREAK.sub(" ", _ASIDE.sub("", line)))
    if "{" in line:
        line = _VARIANT.sub(lambda found: "" if found[1] in ("H", "T") else found[2], line)
        for _ in range(3):  # from the inside out
            line = _TEMPLATE.sub("", line)
    if "[[" in line:
        line = _LINK.sub(_label, _LINK.sub(_label, line))  # a picture's text has links of its own
        line = line.replace("[[", "").replace("]]", "")
    if "__" in line:
        line = _SWITCH.sub("", line)
    if "(" in line or "（" in line:
        line = _OPENED.sub(r"\1", _EMPTIED.sub("", line) if _EMPTY.search(line) else line)
    line = line.strip()
    return "" if _LISTED.match(line) else line


def _label(link: re.Match[str]) -> str:
    """What a link shows: a picture or category nothing, a page of another wiki (de:, wikt:) only a text of its own."""
    _, bar, label = link[1].rpartition("|")
    if _NAMESPACE.match(link[1]):
        return label if bar and link[1][0].islower() else ""
    return label


HEADING_WORDS, HEADING_CHARACTERS, CHINESE_HEADING = 8, 80, 20
STOPPED_WORDS = 6
_CLOSERS = "\"')]}»”’›」』）】》〉"
_ENDS = (".", "!", "?", "…", "。", "！", "？", "；", "，", "।", "۔", "؟")
_CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")
_CLAUSE = re.compile("[。！？；，…]")
_SAID = re.compile(
    r"^(?:A|An|The)\b|\b(?:[Hh]e|[Ss]he|[Ii]t|[Tt]hey|[Ww]e|[Tt]his|[Tt]hese|[Tt]hose|[Tt]here)\b"
    r"|\b(?:is|are|was|were|be|been|has|have|had|does|did|can|could|may|might|must|should|will|would|became|began|died)\b"
)


def _is_heading(line: str, followed: bool) -> bool:
    """Whether a line names what follows it instead of saying something.

    A short line without an end is a heading, and so is a Chinese one (they have no spaces to count words by) without a
    mark between clauses. WikiExtractor gives headings a full stop, in every language, and writes them right above the
    text they belong to: a short line with a stop is one if a line follows at once, unless it begins in small letters,
    or with an article (which Wikipedia's style forbids), or has a word that English sentences are made with.
    Paragraphs that short are rare: of 23,000 in featured articles without headings, 21 have up to 6 words and a stop,
    and this rule takes 2 of them for headings, neither of them a sentence (tests/corpus/test_format.py).
    """
    if len(line) > HEADING_CHARACTERS:
        return False
    stopped = line.endswith(".") and not line.endswith("...")
    if stopped and not followed:
        return False
    words = line.split()
    if len(_CHINESE.findall(line)) >= len(words):
        return len(line) <= CHINESE_HEADING and not _CLAUSE.search(line)
    if not stopped:
        return len(words) <= HEADING_WORDS and not line.rstrip(_CLOSERS).endswith(_ENDS)
    return len(words) <= STOPPED_WORDS and not line[:1].islower() and not _SAID.search(line)


def _compact(document: str) -> str:
    """A document without empty lines of its own, which would end it."""
    return re.sub(r"\n\s*\n", "\n", document.replace("\r\n", "\n")).strip()


FORMATS: dict[str, Callable[[str], Format]] = {
    "txt": lambda field: Text(),
    "lines": lambda field: Lines(),
    "jsonl": Jsonl,
    "wiki": lambda field: Wiki(),
    "wiki-json": WikiJson,
}
"""By name; the argument is the name of the field."""
