"""What a page says in words: paragraphs, notes, and single facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bertkit.errors import unknown
from bertkit.report.markup import Html, element, joined
from bertkit.report.number import shown

KINDS = {"info": "Note", "good": "Good", "warning": "Attention", "problem": "Problem"}
"""kinds of notes, and the word that stands before each: colour alone would not reach everyone"""


@dataclass(frozen=True)
class Text:
    """Paragraphs, separated by empty lines.

    >>> Text("One.\\n\\nTwo.").html()
    '<p>One.</p><p>Two.</p>'
    """

    text: str

    def html(self) -> Html:
        """The paragraphs."""
        return joined(element("p", part.strip()) for part in self.text.split("\n\n") if part.strip())


@dataclass(frozen=True)
class Note:
    """A sentence that must not be missed; `kind` is info, good, warning or problem.

    >>> Note("All texts fit.", "good").html()
    '<p class="note good"><strong>Good:</strong> All texts fit.</p>'
    """

    text: str
    kind: str = "info"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of note", self.kind, KINDS)

    def html(self) -> Html:
        """The note, with its word before it."""
        return element("p", element("strong", f"{KINDS[self.kind]}:"), " ", self.text, class_=f"note {self.kind}")


@dataclass(frozen=True)
class Facts:
    """Names and their values, the few numbers a reader came for.

    >>> Facts({"texts": 1200}).html()
    '<dl class="facts"><div><dt>texts</dt><dd>1,200</dd></div></dl>'
    """

    values: Mapping[str, object]

    def html(self) -> Html:
        """A list of terms."""
        pairs = (
            element("div", element("dt", name), element("dd", shown(value))) for name, value in self.values.items()
        )
        return element("dl", *pairs, class_="facts")
