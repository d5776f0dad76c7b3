"""Formats: what WikiExtractor writes, old and new, escaped or not, becomes prose and nothing else."""

from __future__ import annotations

import gzip
import html
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bertkit.corpus import source
from bertkit.corpus.format import FORMATS, Jsonl, Wiki, WikiJson
from bertkit.corpus.source import Skipped, files, pieces, plain
from bertkit.errors import BertkitError


def tagged(title: str, text: str) -> str:
    """An article as WikiExtractor writes it."""
    return f'<doc id="12" url="https://en.wikipedia.org/wiki?curid=12" title="{title}">\n{title}\n\n{text}\n\n</doc>\n'


def in_json(title: str, text: str) -> str:
    """The same with --json."""
    return json.dumps({"id": "12", "revid": "7", "url": "u", "title": title, "text": text}) + "\n"


def prose(text: str, title: str = "Some title") -> str:
    """What is left of an article; both kinds of output, escaped or not, say the same."""

    def never(line: int, reason: str) -> None:
        raise AssertionError(reason)

    found = {
        kind.plain(write(title, given), never)
        for kind, write in ((Wiki(), tagged), (WikiJson(), in_json))
        for given in (text, html.escape(text, quote=False))
    }
    assert len(found) == 1, found
    return found.pop()


LONG = "This paragraph is long enough to be one, whatever stands above or below it."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We know that a < b and c > d holds here.", "We know that a < b and c > d holds here."),
        ("Whenever a<b and c>d we have e<f as well.", "Whenever a<b and c>d we have e<f as well."),
        ("这一行代码把根元素叫做<小纸条>，也可以叫别的。", "这一行代码把根元素叫做<小纸条>，也可以叫别的。"),
        ('<a href="Cat">Cats</a> are <b>small</b> mammals.', "Cats are small mammals."),
        ("One line.<br />Another line<br>of the same.", "One line. Another line of the same."),
        ("氢以<chem>H2</chem>的形式存在，是双原子气体。", "氢以H2的形式存在，是双原子气体。"),
        ('He said so.<ref name="a/b">Page 3.</ref> She<ref name="c" /> did not.', "He said so. She did not."),
        ("It was there.<!-- was it? --> It is gone.", "It was there. It is gone."),
        ("It was there. <!-- nobody closes this", "It was there."),
        ('<templatestyles src="a/styles.css" />It is __NOTOC__ there.', "It is  there."),
        ("<li>An item of a list, which is long enough.</li>", ""),
        ("  <H2>A heading that has tags around it, and a stop.</H2>", ""),
        ("<td>A cell of a table, which is long enough to stay.</td>", ""),
    ],
)
def test_tags(text: str, expected: str) -> None:
    assert prose(f"{LONG}\n{text}") == f"{LONG}\n{expected}".strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is {{cite|a={{b|{{c}}}}|d}}here to stay.", "It is here to stay."),
        ("Malware is common.\n[[Category:Malware]]\n[[Category:Viruses| ]]", "Malware is common."),
        (
            "It is [[the Cape of Good Hope]], or [[Cape Agulhas|Agulhas]].",
            "It is the Cape of Good Hope, or Agulhas.",
        ),
        ("See [[Star Trek: Voyager]] and [[wikt:cat|cats]].[[de:Katze]]", "See Star Trek: Voyager and cats."),
        (
            "Before it.\n[[File:A map.svg|thumb|300px|The [[map]] of [[Africa|it]].]]\nAfter it.",
            "Before it.\nAfter it.",
        ),
        ("It was here.\n[[File:A b.svg|thumb|nobody closes this\nCategory:Emperors|2]]", "It was here."),
        ("It was here.\nFile:A b.svg|thumb|left|A man and his dog in the rain.", "It was here."),
        ("由其叔[[多尔衮|睿亲王]摄政，是为顺治帝。", "由其叔多尔衮|睿亲王]摄政，是为顺治帝。"),
        (
            "Mount Moran () and Chen Fan (; ), born ( , ) here, are here.",
            "Mount Moran and Chen Fan, born here, are here.",
        ),
        (
            'The Greek words (\') and (""), meaning both, and f() are here.',
            "The Greek words and, meaning both, and f() are here.",
        ),
        ("阿基米德（；），希腊化时代的数学家（）。", "阿基米德，希腊化时代的数学家。"),
        ("Bell（，缩写为AT）是一个公司。", "Bell（缩写为AT）是一个公司。"),
        ("Domitian (; ; 24 October 51) was emperor.", "Domitian (24 October 51) was emperor."),
        (
            "A spin (+) and a slash ( / ) and [(–)-menthol] are kept.",
            "A spin (+) and a slash ( / ) and [(–)-menthol] are kept.",
        ),
        (
            "楚国大将-{zh-hans:庄;zh-hant:莊}-跷远-{征}-到达-{R|滇池}-。-{H|zh-cn:甲;zh-tw:乙}-",
            "楚国大将庄跷远征到达滇池。",
        ),
        ("The set {1, 2} has two elements, x[i[0]] is one.", "The set {1, 2} has two elements, x[i[0]] is one."),
        ("If formula_87 holds, codice_3 is called.\nformula_88", "If formula_87 holds, codice_3 is called."),
        ("AT&T and R&D are kept, &copy and all.", "AT&T and R&D are kept, &copy and all."),
    ],
)
def test_what_was_left_over(text: str, expected: str) -> None:
    assert prose(text) == expected


@pytest.mark.parametrize(
    "line",
    [
        *(
            "* an item",
            "# an item.",
            ": indented",
            "; a term",
            "- an item of a list.",
            "12. an item of a list.",
            "| a cell.",
        ),
        *(
            "BULLET::::- An item of a list that is long.",
            "Section::::Early life and education of the emperor.",
            "== Life ==",
        ),
        *('! colspan="6"| A cell of a table.', "{| class=wikitable of some kind.", "|}", "}}", "{{Infobox of a city"),
        *(
            "History.",
            "Early life and education.",
            "In popular culture.",
            "World War I.",
            "May 1926.",
            "Liverpool F.C..",
        ),
        *("Notes", "See also", "Other modern references:", '"Online sources"', "A love song (live)", "Lịch sử."),
        *("历史.", "60年代至70年代.", "劇情概要.", "车站结构", "白银时代拉丁语的代表作者有：", "GDP（亿元）", "2010年"),
    ],
)
def test_no_paragraph(line: str) -> None:
    assert prose(f"{LONG}\n{line}\n{LONG}") == f"{LONG}\n{LONG}"


@pytest.mark.parametrize(
    "line",
    [
        *("He died in 1926.", "Smith died in 1926.", "It was demolished.", "Henry had no children.", "The cat sat."),
        *("where is the mass of the electron.", "Really?", "Never!", 'Him: "Which way?"', "And then he waited..."),
        *("She returned to the house after seven days.", "ประเทศไทย" * 10),
        *("非洲是人类发源地。", "根据引理，", "1211年春天，畏兀儿归附", "他说：“好。”"),
    ],
)
def test_short_sentences_stay(line: str) -> None:
    assert prose(f"{LONG}\n{line}\n{LONG}") == f"{LONG}\n{line}\n{LONG}"


def test_a_heading_has_text_right_below() -> None:
    assert prose(f"{LONG}\nPlain sailing.\n{LONG}") == f"{LONG}\n{LONG}"
    assert prose(f"{LONG}\nPlain sailing.\n\n{LONG}") == f"{LONG}\nPlain sailing.\n{LONG}"
    assert prose(f"{LONG}\nPlain sailing.") == f"{LONG}\nPlain sailing."


@pytest.mark.parametrize(
    "title", ["Who is she?", '"Weird Al" sings!', "Dungeons &amp; Dragons!", "我是谁？", "(500) Days"]
)
def test_the_title_is_dropped(title: str) -> None:
    assert Wiki().plain(tagged(title, LONG), print) == LONG
    assert WikiJson().plain(in_json(title, f"{title}\n\n{LONG}"), print) == LONG
    assert WikiJson().plain(in_json(title, LONG), print) == LONG, "newer versions do not repeat it"


def test_the_title_is_dropped_once() -> None:
    assert prose(f"{LONG}\nWho is she?", "Who is she?") == f"{LONG}\nWho is she?"
    assert Wiki().plain(tagged("Who is she?", f"Who is she?\n{LONG}"), print) == f"Who is she?\n{LONG}"


def test_articles_without_text_do_not_exist() -> None:
    assert Wiki().plain(tagged("A", "") + tagged("B", LONG) + tagged("C", "* x") + tagged("D", LONG), print) == (
        f"{LONG}\n\n{LONG}"
    )
    assert WikiJson().plain(in_json("A", "") + in_json("B", LONG) + in_json("C", "C"), print) == LONG


def test_the_kind_is_told_by_name_and_start(tmp_path: Path) -> None:
    def kind(name: str, text: str, asked: str | None = None) -> type:
        data = text.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        [file] = files([str(tmp_path / name)], asked, "text")
        again = FORMATS[file.format.name](getattr(file.format, "field", ""))  # as a worker does
        assert again == file.format
        return type(file.format)

    article, line = tagged("A", LONG), in_json("A", LONG)
    assert kind("wiki_00", article) is Wiki
    assert kind("wiki_00.gz", article) is Wiki
    assert kind("wiki_01", line) is WikiJson
    assert kind("wiki_02.gz", line) is WikiJson
    assert kind("wiki_03", "\ufeff" + line) is WikiJson
    assert kind("wiki_04.json", line) is WikiJson
    assert kind("wiki_qa.jsonl", line) is Jsonl
    assert kind("other.json", line) is Jsonl
    assert kind("other.json", line, "wiki") is WikiJson
    assert kind("other.txt", article, "wiki") is Wiki
    assert kind("wiki_05", line, "jsonl") is Jsonl


@pytest.mark.parametrize("write", [tagged, in_json])
def test_pieces_end_with_articles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[str, str], str]
) -> None:
    (tmp_path / "wiki_00").write_text("".join(write(f"T {n}", f"{LONG} {n}.\n\n第{n}段。") for n in range(40)))
    expected = [f"{LONG} {n}.\n第{n}段。" for n in range(40)]
    for size in (1, 300, 1000, 10**6):
        monkeypatch.setattr(source, "PIECE", size)
        found = list(pieces(files([str(tmp_path)])))
        assert "\n\n".join(plain(piece) for piece in found).split("\n\n") == expected
    assert len(found) == 1


def test_lines_that_are_no_articles(tmp_path: Path) -> None:
    path = tmp_path / "wiki_00"
    path.write_text(
        in_json("A", LONG) + '{"id": 1}\n{"title": "B", "text": 5}\nno\n{"title": 3, "text": "It is so."}\n'
    )
    [piece] = pieces(files([str(path)]))
    with pytest.raises(
        BertkitError, match=r"wiki_00, line 2: has no field 'text'. Its fields: 'id'. Choose one with --f"
    ):
        plain(piece)
    left: list[Skipped] = []
    assert plain(piece, left.append) == f"{LONG}\n\nIt is so."
    assert [found.line for found in left] == [2, 3, 4]
    path.write_text(json.dumps({"title": "A", "body": LONG}) + "\n")
    [piece] = pieces(files([str(path)], field="body"))
    assert plain(piece) == LONG


PARTS = (
    *(
        "<",
        ">",
        "<a ",
        "</",
        "<!--",
        "-->",
        "<ref>",
        "</ref>",
        "<br ",
        "<li>",
        "=",
        '"',
        "{{",
        "}}",
        "{|",
        "-{",
        "}-",
        "zh:",
        ";",
    ),
    *(
        "[[",
        "]]",
        "|",
        "File:",
        "a:b",
        "(",
        ")",
        "（",
        "）",
        ",",
        "，",
        "__",
        "__NOTOC__",
        "&",
        "&#",
        "&#10;",
        "&#13;",
        "&lt;",
    ),
    *(
        "&#xD800;",
        "&#9999999;",
        "9" * 5000,
        "title=",
        "<doc ",
        "</doc>",
        "\n",
        "\r",
        "\n\n",
        " ",
        "\x85",
        "\x0c",
        "\u2028",
        "\0",
    ),
    *("*", "#", ".", "。", "word", "Word.", "字", "\ud83d\ude00", "é", "\u200b"),
)


def garbage(seed: int) -> Iterator[str]:
    draw = random.Random(seed)
    for _ in range(1500):
        yield "".join(draw.choices(PARTS, k=draw.randrange(1, 60)))


def test_any_text_ends_as_documents_of_lines() -> None:
    for text in garbage(0):
        article = WikiJson().plain(json.dumps({"title": "T", "text": text}), print)
        assert not re.search(r"\n\s*\n", article), "an article is one document"
        documents = Wiki().plain(f'<doc id="1" title="T">\n{text}', print)
        assert not re.search(r"\n\s*\n\s*\n", documents), "and between two is one empty line"
        for line in (*documents.split("\n"), *article.split("\n")):
            assert line == line.strip()
            assert not re.search(r"<(?:a|b|br|ref|li)>|</(?:a|ref)>", line)


@pytest.mark.parametrize(
    "unit", [*PARTS, "<a =", "-{a|", "[[a|", "( ", "(;a", "&#9", "A.\n", "{{a}}", "a ", "=x", "a|"]
)
def test_a_long_row_of_anything_is_read_once(unit: str) -> None:
    """A pattern that starts over at every place would take 2^34 steps here, which is minutes: it would not end."""
    row = unit * (2**17 // len(unit))
    for text in (row, f"a{row}", f"({row}"):
        Wiki().plain(f'<doc id="1" title="T">\n{text}', print)


def test_featured_articles(shared: Path) -> None:
    """Their headings were left out, so a line that is taken for one was none; almost nothing may be."""
    folder = shared / "data" / "en-wikipedia-featured"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/en-wikipedia-featured; not found")
    text = "".join(gzip.decompress(path.read_bytes()).decode() for path in sorted(folder.rglob("wiki_*.gz")))
    kept = set(Wiki().plain(text, print).split("\n"))
    lines = [line.strip() for line in text.split("\n") if line.strip() and not re.match("</?doc", line)]
    numbered, titles = re.compile(r"\d+\.(?: |$)"), set(re.findall('title="(.*)">', text))
    stopped = [line for line in lines if line.endswith(".") and not numbered.match(line) and line not in titles]
    short = [line for line in stopped if len(line.split()) <= 6]
    assert (len(lines), len(short)) == (23039, 21)
    assert [line for line in short if line not in kept] == ["M15.", "Volume II )."]
    assert not any(re.search(r"</?(?:nowiki|ref|br|poem)\b|\(\)|\(; \)|^</doc>", line) for line in kept)


def test_chinese_articles(shared: Path) -> None:
    path = shared / "data" / "zh-corpus" / "wiki_zh" / "AA" / "wiki_00.gz"
    if not path.is_file():
        pytest.skip("needs ../shared/data/zh-corpus/wiki_zh; not found")
    [file] = files([str(path)])
    assert isinstance(file.format, WikiJson)
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    documents = "".join(plain(piece) + "\n\n" for piece in pieces([file])).strip().split("\n\n")
    assert 0.9 * len(rows) < len(documents) <= len(rows)
    assert documents[0].startswith("数学是利用符号语言研究数量")
    assert not any(re.search(r"（）|（；）|\[\[|-\{[^{}]*\}-|Category:", document) for document in documents)
    paragraphs = {line for document in documents for line in document.split("\n")}
    sentences = {line for row in rows for line in row["text"].split("\n") if re.fullmatch(r"[\w，、]{4,}。", line)}
    assert len(sentences) > 100
    assert sentences <= paragraphs
