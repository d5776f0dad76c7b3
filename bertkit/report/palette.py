"""The colours, each for light and for dark. What is read has a contrast of 4.5 to its ground, what is drawn 3."""

from __future__ import annotations

INK = {
    "ink": ("#1d2129", "#e7eaf0"),
    "soft": ("#565f6c", "#a3adbb"),
    "link": ("#205d9e", "#86b8f0"),
}
"""what is read"""

DRAWN = {
    "bar": ("#3a78b8", "#6ea6e2"),
    "bar-hover": ("#1f5a97", "#a3c9f2"),
    "below": ("#b4552d", "#e0875c"),
    "mark": ("#a8430f", "#f0a070"),
    "line-0": ("#2b6cb0", "#6ea6e2"),
    "line-1": ("#b4552d", "#e8915f"),
    "line-2": ("#2f7d4f", "#67bd88"),
    "line-3": ("#7a4fb0", "#b493e6"),
    "info": ("#2b6cb0", "#6ea6e2"),
    "good": ("#2f7d4f", "#67bd88"),
    "warning": ("#8f6400", "#d9ab3f"),
    "problem": ("#b3261e", "#f08b83"),
}
"""what is drawn"""

GROUND = {
    "paper": ("#ffffff", "#15181e"),
    "raised": ("#f5f7f9", "#1d2129"),
}
"""what lies beneath"""

HAIR = {"hair": ("#dce1e7", "#323944")}
"""lines that separate and carry no meaning"""

LINES = 4
"""lines that one chart can tell apart"""


def variables(theme: int) -> str:
    """CSS custom properties of a theme: 0 is light, 1 is dark."""
    both = {**INK, **DRAWN, **GROUND, **HAIR}
    values = "".join(f"--{name}:{colours[theme]};" for name, colours in both.items())
    return f"color-scheme:{('light', 'dark')[theme]};{values}"


def style() -> str:
    """Light, unless the system or the reader says dark; paper is always light."""
    light, dark = variables(0), variables(1)
    return (
        f":root{{{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root:not(:has(#theme-light:checked)){{{dark}}}}}"
        f"@media screen{{:root:has(#theme-dark:checked){{{dark}}}}}"
    )
