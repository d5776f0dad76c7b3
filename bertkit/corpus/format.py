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
        return "\n\n".join(self._documents(text, refuse))

    def _documents(self, text: str, refuse: Refuse) -> Iterator[str]:
        for number, line in enumerate(text.split("\n")):
            if not line or line.isspace():
                continue
            try:
                yield _compact(self._document(json.loads(line)))
            except BertkitError as error:
                refuse(number, str(error))
            except (ValueError, RecursionError) as error:
                refuse(number, f"is not JSON: {error}")

    def _document(self, found: Any) -> str:
        if isinstance(found, dict):
            if self.field not in found:
                there = ", ".join(map(repr, list(found)[:8])) or "none"
                raise BertkitError(f"has no field {self.field!r}. Its fields: {there}. Choose one with --field")
            found = found[self.field]
        if found is None:
            return ""
        if not isinstance(found, str):
            raise BertkitError(f"has a {type(found).__name__} where the text should be. Choose a field with --field")
        # half a character, a JSON escape cut in two: no file could hold it
        return found if found.isascii() else found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True)
class Wiki:
    """WikiExtractor's output: articles between <doc …> and </doc>. Headings, lists and tables are left out.

    >>> page = '<doc id="1" title="Cat">\\nCat\\n\\nThe cat is a mammal.\\n\\nHistory.\\n* an item\\n</doc>\\n'
    >>> Wiki().plain(page, print)
    'The cat is a mammal.'
    """

    name: ClassVar[str] = "wiki"
    boundary: ClassVar[re.Pattern[bytes]] = re.compile(rb"</doc>[^\n]*\n")
    by_line: ClassVar[bool] = False

    def plain(self, text: str, refuse: Refuse) -> str:
        articles = (_prose(article) for article in re.split(r"^<doc\b[^\n]*>[^\n]*$", text, flags=re.MULTILINE))
        return "\n\n".join(article for article in articles if article)


_LISTED = re.compile(r"\s*(?:[*#:;•·|!]|\{\||\|\}|[-–—]\s|\d+[.)]\s|<|=+[^=]|BULLET)")
_TAG = re.compile(r"<[^<>\n]{1,200}>")
HEADING_WORDS = 8


def _prose(article: str) -> str:
    lines = (_TAG.sub("", html.unescape(line)).strip() for line in article.split("\n") if not _LISTED.match(line))
    return "\n".join(line for line in lines if line and not _is_heading(line))


def _is_heading(line: str) -> bool:
    """Short, and no sentence: titles have no full stop, and WikiExtractor gives one to sections."""
    words = line.split()
    if len(words) > HEADING_WORDS:
        return False
    return not line.endswith((".", "!", "?", '."', '"', ")", "。", "！", "？", "”", "」")) or (
        line.endswith(".") and len(words) <= 4 and not any(word[:1].islower() for word in words[1:])
    )


def _compact(document: str) -> str:
    """A document without empty lines of its own, which would end it."""
    return re.sub(r"\n\s*\n", "\n", document.replace("\r\n", "\n")).strip()


FORMATS: dict[str, Callable[[str], Format]] = {
    "txt": lambda field: Text(),
    "lines": lambda field: Lines(),
    "jsonl": Jsonl,
    "wiki": lambda field: Wiki(),
}
"""By name; the argument is the name of the field."""
