"""One HTML page that needs nothing but a browser: charts, tables and words, light and dark, no network, no script.

>>> page = Page("Lengths", [Section("All texts", [Facts({"texts": 1200}), Bars("Languages", {"en": 900, "zh": 300})])])
>>> "<h1>Lengths</h1>" in page.html()
True
"""

from bertkit.report.bars import Bars
from bertkit.report.histogram import Histogram, Mark
from bertkit.report.lines import Level, Line, Lines
from bertkit.report.markup import Html
from bertkit.report.page import Page, Part, Section
from bertkit.report.table import Column, Table
from bertkit.report.words import Facts, Note, Text

__all__ = [
    "Bars",
    "Column",
    "Facts",
    "Histogram",
    "Html",
    "Level",
    "Line",
    "Lines",
    "Mark",
    "Note",
    "Page",
    "Part",
    "Section",
    "Table",
    "Text",
]
