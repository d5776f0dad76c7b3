"""The page: a title, sections, and everything they need, in one file."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Protocol

from bertkit import __version__, artifact
from bertkit.report import palette
from bertkit.report.markup import Html, element, joined


class Part(Protocol):
    """What a page is made of: it writes itself as markup, with `element`, which escapes every text."""

    def html(self) -> Html:
        """Markup that stands on its own."""


@dataclass(frozen=True)
class Section:
    """A heading and the parts below it."""

    title: str
    parts: Sequence[Part]

    def html(self) -> Html:
        """A section."""
        return element("section", element("h2", self.title), *(part.html() for part in self.parts))


@dataclass(frozen=True)
class Page:
    """A whole page. `language` is that of the texts it shows, which decides how Chinese characters look.

    >>> page = Page("A <title>", [Section("First", [])])
    >>> "<title>A &lt;title&gt;</title>" in page.html()
    True
    """

    title: str
    sections: Sequence[Section]
    intro: str = ""
    language: str = "en"

    def html(self) -> Html:
        """The document. It holds no script and asks for nothing: its policy would forbid both."""
        head = element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=_policy(_style())),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="referrer", content="no-referrer"),
            element("title", self.title),
            element("style", Html(_style())),
        )
        header = element("header", element("h1", self.title), _themes())
        intro = [element("p", self.intro, class_="intro")] if self.intro else []
        main = element("main", *intro, *(section.html() for section in self.sections))
        footer = element("footer", f"Made by bertkit {__version__}. This page is one file and needs no network.")
        return joined(
            [
                Html("<!doctype html>\n"),
                element("html", head, Html("\n"), element("body", header, main, footer), lang=self.language),
                Html("\n"),
            ]
        )

    def write(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write the page, whole or not at all.

        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as place:
        ...     Page("Empty", []).write(pathlib.Path(place, "page.html"))
        ...     pathlib.Path(place, "page.html").read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        with artifact.file(path, overwrite=overwrite) as file:
            file.write(self.html().encode("utf-8"))


def _themes() -> Html:
    """Three buttons that work by style alone; the arrow keys move between them."""
    choices = []
    for name in ("auto", "light", "dark"):
        checked = "checked" if name == "auto" else None
        button = element("input", type="radio", name="theme", id=f"theme-{name}", checked=checked)
        choices.append(element("label", button, element("span", name)))
    return element("div", *choices, class_="themes", role="radiogroup", aria_label="Colours")


@cache
def _style() -> str:
    return palette.style() + resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")


def _policy(style: str) -> str:
    """Nothing may be fetched or run; this one style sheet may be used."""
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
