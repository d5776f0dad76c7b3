"""The report: what a browser gets is well-formed, whole, safe, and says every number. No browser is needed here."""

import base64
import hashlib
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.errors import BertkitError
from bertkit.report import (
    Bars,
    Column,
    Facts,
    Histogram,
    Level,
    Line,
    Lines,
    Mark,
    Note,
    Page,
    Section,
    Table,
    Text,
    palette,
)
from bertkit.report.axis import loose, tight
from bertkit.report.lines import thinned

VOID = {"meta", "input"}
HOSTILE = [
    "<script>alert(1)</script>",
    "</title></style></svg><script>alert(1)</script>",
    '" onload="alert(1)" x=\'',
    "' autofocus onfocus='alert(1)",
    "<img src=https://example.com/x.png onerror=alert(1)>",
    "javascript:alert(1) &lt;b&gt; &#60;",
    "\x00\x01\x1b[31m\x7f\x9b",
    "half \ud83d a character \udc00",
    "<!-- --> ]]> <![CDATA[",
    "猫 и́ ‮ override",
]


class Reader(HTMLParser):
    """Reads a page as strictly as html.parser can, and keeps elements, attributes and texts."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def classed(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.elements if name in (attributes.get("class") or "").split()]

    def said(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


def everything(word: str) -> Page:
    """A page that says a word in every place where a text can go."""
    parts = [
        Text(word),
        Note(word, "warning"),
        Facts({word: word, "texts": 1234567}),
        Table(word, [word, Column(word, ".1%")], [(word, 0.256), (word, None)]),
        Histogram(word, [0, 10, 20], [4321, 17], word, word, [Mark(12, word)], beyond=3),
        Bars(word, {word: 98765, "other": -4}, word, word),
        Lines(word, [Line(word, [0, 1, 2], [0.5, 0.25, 0.125])], word, word, [Level(0.2, word)]),
    ]
    return Page(word, [Section(word, parts)], word, language=word)


def test_every_number_is_said() -> None:
    texts = Reader(everything("word").html()).texts
    said = " ".join(text for _, text in texts)
    for number in ("1,234,567", "25.6%", "4,321", "17", "98,765", "-4", "0.5", "0.25", "0.125", "20 and more"):
        assert number in said, number


@pytest.mark.parametrize("word", HOSTILE)
def test_no_text_becomes_markup(word: str) -> None:
    plain, hostile = Reader(everything("word").html()), Reader(everything(word).html())
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert [sorted(found) for _, found in hostile.elements] == [sorted(found) for _, found in plain.elements]
    shown = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", word)
    assert hostile.said("h1") == [shown]
    assert shown in hostile.said("figcaption")
    assert {"lang": shown} in hostile.named("html")
    everything(word).html().encode("utf-8")


def test_nothing_is_fetched_or_run() -> None:
    html = everything("word").html()
    reader = Reader(html)
    assert "://" not in html
    assert "url(" not in html
    assert "@import" not in html
    allowed = {"html", "head", "meta", "title", "style", "body", "header", "main", "section", "footer", "h1", "h2"}
    allowed |= {"p", "strong", "div", "span", "label", "input", "dl", "dt", "dd", "ul", "li", "details", "summary"}
    allowed |= {"table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption"}
    allowed |= {"svg", "desc", "g", "rect", "line", "text", "circle", "polyline"}
    assert {tag for tag, _ in reader.elements} <= allowed
    for _, attributes in reader.elements:
        assert not {"src", "href", "style", "xlink:href", "action"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]


def test_the_policy_allows_the_style_and_nothing_else() -> None:
    reader = Reader(everything("word").html())
    (policy,) = (meta["content"] for meta in reader.named("meta") if "http-equiv" in meta)
    (style,) = re.findall(r"<style>(.*?)</style>", everything("word").html(), flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_charts_have_words_for_those_who_cannot_see_them() -> None:
    reader = Reader(everything("word").html())
    images = [attributes for attributes in reader.named("svg") if attributes.get("role") == "img"]
    assert len(images) == 2
    assert any(text.startswith("A histogram of 4,341 word") for text in reader.said("desc"))
    assert any("word goes from 0.5 to 0.125" in text for text in reader.said("desc"))
    for heading in reader.named("th"):
        assert heading["scope"] in ("row", "col")
    assert len(reader.named("caption")) == len(reader.named("table"))


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", palette.GROUND)
def test_contrast(theme: int, ground: str) -> None:
    beneath = luminance(palette.GROUND[ground][theme])
    for colours, least in ((palette.INK, 4.5), (palette.DRAWN, 3.0)):
        for name, pair in colours.items():
            bright, dark = sorted((luminance(pair[theme]), beneath), reverse=True)
            assert (bright + 0.05) / (dark + 0.05) >= least, name


def test_the_style_uses_only_colours_of_the_palette() -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", Page("a", []).html(), flags=re.DOTALL)
    defined = set(re.findall(r"--([\w-]+):", palette.variables(0)))
    assert set(re.findall(r"var\(--([\w-]+)\)", style)) == defined
    assert not re.findall(r"#[0-9a-f]{3,6}\b", style.removeprefix(palette.style()))


def test_histogram_geometry() -> None:
    reader = Reader(Histogram("t", [0, 10, 20, 40], [50, 100, 0], "x", "y", [Mark(20, "m")]).html())
    bars = reader.classed("bar")
    assert [bar["x"] for bar in bars] == ["0%", "25%", "50%"]
    assert [bar["width"] for bar in bars] == ["25%", "25%", "50%"]
    heights = [float(bar["height"] or 0) for bar in bars]
    assert heights == [heights[1] / 2, heights[1], 0]
    assert {float(bar["y"] or 0) + float(bar["height"] or 0) for bar in bars} == {float(bars[2]["y"] or 0)}
    (line,) = (mark for mark in reader.classed("mark") if "x1" in mark)
    assert line["x1"] == line["x2"] == "50%"


def test_one_among_a_million_is_seen() -> None:
    reader = Reader(Histogram("t", [0, 1, 2], [1_000_000, 1], "x", "y").html())
    assert float(reader.classed("bar")[1]["height"] or 0) >= 1


def test_bars_start_at_zero() -> None:
    reader = Reader(Bars("t", {"up": 3.0, "down": -1.0, "none": 0.0}).html())
    assert [(rect["x"], rect["width"], rect["class"]) for rect in reader.named("rect")] == [
        ("25%", "75%", "bar"),
        ("0%", "25%", "below"),
        ("25%", "0%", "bar"),
    ]


def test_a_line_has_a_gap_where_a_value_is_not_finite() -> None:
    values = [1.0, 2.0, math.nan, 4.0, math.inf, 6.0]
    reader = Reader(Lines("t", [Line("loss", list(range(6)), values)], "steps", "loss").html())
    curves = [found["points"] or "" for found in reader.named("polyline")]
    assert [len(points.split()) for points in curves] == [2, 1, 1]
    assert curves[0].startswith("0.0,")
    assert curves[2].startswith("1000.0,")
    assert len(reader.classed("dot")) == 4


def test_a_level_lies_at_its_value_and_is_on_the_axis() -> None:
    """The surface is 220 pixels high and begins at 23; the axis goes from 2 to 7, as the level is above all values."""
    reader = Reader(Lines("t", [Line("loss", [0, 10], [3.0, 2.0])], "steps", "loss", [Level(6.5, "chance")]).html())
    (line,) = reader.classed("level")
    assert float(line["y1"] or 0) == pytest.approx(23 + 220 * (7 - 6.5) / (7 - 2), abs=0.01)
    assert line["y2"] == line["y1"]
    assert "chance: 6.5" in reader.said("text")
    assert "chance: 6.5" in reader.said("title")
    assert reader.said("desc") == ["loss over steps: loss goes from 3 to 2. chance: 6.5."]
    with pytest.raises(BertkitError, match="the levels of 't'"):
        Lines("t", [Line("loss", [0], [1.0])], "x", "y", [Level(math.nan, "nothing")])


def test_long_lines_stay_small_and_keep_their_peaks() -> None:
    points = [(float(x), 1.0) for x in range(100_000)]
    points[77_777] = (77_777.0, 50.0)
    assert (77_777.0, 50.0) in set(thinned(points, 1000))
    html = Lines("t", [Line("loss", *zip(*points, strict=True))], "steps", "loss").html()
    assert len(html) < 100_000


def test_long_tables_say_what_is_left_out() -> None:
    html = Table("t", ["n"], [(number,) for number in range(5000)]).html()
    assert "the first 2,000 rows of 5,000" in html
    assert html.count("<tr>") == 2001


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Histogram("t", [0, 1], [1, 2], "x", "y"), "2 edges and 2 counts"),
        (lambda: Histogram("t", [0, 1], [math.nan], "x", "y"), "counts[0] is nan"),
        (lambda: Histogram("t", [1, 0], [1], "x", "y"), "edges must grow"),
        (lambda: Histogram("t", list(range(1001)), [1] * 1000, "x", "y"), "1000 bars cannot be told apart"),
        (lambda: Bars("t", {}), "0 bars in 't'"),
        (lambda: Bars("t", {"a": math.inf}), "finite"),
        (lambda: Lines("t", [], "x", "y"), "0 lines in 't'"),
        (lambda: Lines("t", [Line("a", [0], [1, 2])], "x", "y"), "1 places and 2 values"),
        (lambda: Lines("t", [Line("a", [1, 0], [1, 2])], "x", "y"), "sort them first"),
        (lambda: Table("t", ["a", "b"], [(1,)]), "row 0 of the table 't' has 1 cells for 2 columns"),
        (lambda: Note("t", "wrong"), "unknown kind of note 'wrong'"),
    ],
)
def test_refused(make: type, said: str) -> None:
    with pytest.raises(BertkitError, match=re.escape(said)):
        make()


numbers = st.floats(-1e12, 1e12, allow_nan=False)


@given(numbers, numbers, st.booleans())
def test_ticks_are_round_few_and_inside(one: float, other: float, whole: bool) -> None:
    low, high = sorted((round(one), round(other)) if whole else (one, other))
    if high - low < 1e-6 * max(abs(low), abs(high), 1e-9):
        high = low  # as one value
    for axis in (tight(low, high, whole), loose(low, high, whole)):
        ticks = axis.ticks()
        assert len(ticks) <= 8
        assert axis.place(low) >= -1e-6
        assert axis.place(high) <= 1 + 1e-6
        assert float(f"{axis.step:e}"[0]) in (1, 2, 5)
        assert not whole or axis.step >= 1
        assert all(-1e-6 <= axis.place(tick) <= 1 + 1e-6 for tick in ticks)
        assert len({axis.label(tick) for tick in ticks}) == len(ticks)


def test_written_whole_and_not_over_another(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    page = everything("猫")
    page.write(path)
    assert path.read_text(encoding="utf-8") == page.html()
    with pytest.raises(BertkitError, match="exists"):
        Page("other", []).write(path)
    Page("other", []).write(path, overwrite=True)
    assert Reader(path.read_text(encoding="utf-8")).said("h1") == ["other"]
