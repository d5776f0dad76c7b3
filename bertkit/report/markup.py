"""Markup that no text can break out of: a str is escaped when it enters, and only `element` makes markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""control characters, halves of characters, and code points that HTML does not allow"""

_VOID = {"meta", "input"}


class Html(str):
    """Markup that is ready. Every other str is a text."""

    __slots__ = ()


def escaped(text: str) -> Html:
    """A text as markup; what cannot be shown becomes the replacement character.

    >>> escaped('<b> & "\\x1b\\ud83d"')
    '&lt;b&gt; &amp; &quot;��&quot;'
    """
    return Html(html.escape(_UNSHOWABLE.sub("\ufffd", text), quote=True))


def element(name: str, /, *children: str, **attributes: str | float | None) -> Html:
    """One element. An underscore at the end of an attribute's name is dropped, others become hyphens; None is left out.

    >>> element("p", "1 < 2", class_="note", aria_label=None)
    '<p class="note">1 &lt; 2</p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(_plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{joined(children)}</{name}>")


def joined(children: Iterable[str]) -> Html:
    """Several pieces, one after the other."""
    return Html("".join(child if isinstance(child, Html) else escaped(child) for child in children))


def _plain(value: str | float) -> str:
    """Coordinates need two decimals; more would only make the page larger.

    >>> _plain(12.3456), _plain(40.0), _plain("50%")
    ('12.35', '40', '50%')
    """
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
