"""Python's own documentation as a corpus: text that every machine has, so that nothing must be downloaded to start.

It is what `help()` shows: the topics of the language, and the docstrings of the standard library. Modules are read, not
imported, for some of them act when they are. Only prose is kept: code, sessions, tables, lists of options and headings
go, and no paragraph comes twice. A Python gives the same text every time; another version of Python gives another.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from bertkit.errors import BertkitError

_LEFT_OUT = frozenset(
    (
        *("test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages", "__pycache__", "_bundled"),
        *("turtledemo", "pydoc_data", "encodings", "antigravity", "this", "__hello__", "__phello__"),
    )
)
LEAST_WORDS = 6
"""of a paragraph; shorter ones are mostly headings and names"""
LEAST_DOCUMENT = 20
"""words of a document"""
LEAST_PLAIN = 0.8
"""the share of a paragraph's words that are spelled with letters alone"""

_BULLET = re.compile(r"(?:[*+•o-]|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)])\s+(?=\S)")
_ITEM = re.compile(r"\w[\w.]*\([^)]*\):? --? ")
_UNDERLINE = re.compile(r"\s*([-=~*^#+_\"'`.:])\1{2,}\s*$")
_NO_PROSE = re.compile(r"^\s*(?:>>>|\.\.\.\s|\$ |#|@|\||[:@]\w[^:]*:)|::=|^\s*\.\. \w+::", re.MULTILINE)
_ADMONITION = re.compile(r"^(\s*)\.\. (?:note|warning|tip|important|caution)::", re.MULTILINE)
_TABLE = re.compile(r"""\S\ {3,}\S|[^\s.!?:;,)"'`”’]\ {2,}\S|\t\S""")
_FIELD = re.compile(r"[\w*.'\"]+(?:\([^)]*\)|\[[^]]*\])?,?\s*(?::|=|--?|—|–)\s|[-/]{1,2}\w")
_LABEL = re.compile(r"^(?:Notes?|Warning|Caution|Caveats?|Important|Tip|NB|N\.B\.|CPython implementation detail): +")
_TERM = re.compile(r"^[^.!?]{1,60}? -{1,3} (?=[A-Z])")
_LEAVE = re.compile(
    r"->|<-|==|::|[{}|\\\ufffd]|\w=\w|://|\bwww\.|\S@\S|<\w+>|\b(?:copyright|licen[cs]ed? (?:to|under)|all rights)\b",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[(\"'“‘\[]*(?:[A-Za-z][a-z]*|[A-Z]{2,}s?)(?:[-/'’][A-Za-z][a-z]*)*[)\"'”’\].,;:!?]*")
_SMALL_WORDS = re.compile(
    r"a|an|the|this|that|these|its?|he|they|we|your?|of|to|in|on|at|by|for|from|with|as|is|are|was|were|be|been|has|have"
    r"|had|can|may|will|must|should|not|and|or|but|if|when|which|who|what|there|than|then|so|do|does",
    re.IGNORECASE,
)
_LAST_SENTENCE = re.compile(r"[.!?][\"'”’)\]]*(?=\s|$)")
_FALSE_ENDS = re.compile(r"(?:\b(?:e\.g|i\.e|etc|cf|vs|viz|Dr|Mr|Mrs|St|no|fig)|\.\.)\.$", re.IGNORECASE)

_MARKS = (
    (re.compile(r":[\w:+-]+:`~?([^`<]+?)(?:\s*<[^>`]*>)?`"), r"\1"),  # :class:`~module.Name`
    (re.compile(r"``(.+?)``"), r"\1"),
    (re.compile(r"`([^`<>]+?)\s*<[^>`]*>`__?"), r"\1"),  # `words <target>`_
    (re.compile(r"`([^`']+)`_{0,2}"), r"\1"),
    (re.compile(r"`([^`']+)'"), r"'\1'"),  # quotes of old manuals
    (re.compile(r"``([^`']+)''"), r'"\1"'),
    (re.compile(r"(?<![\w*])\*\*(?=[^\s*])(.+?)(?<=[^\s*])\*\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=[^\s*])\*(?![\w*])"), r"\1"),
    (re.compile(r"\s*\[\d{1,2}\]_?(?=[\s.,;:]|$)"), ""),  # marks of footnotes
    (re.compile(r"(?<=[a-z])-\s+(?=(?!and\b|or\b)[a-z])"), "-"),  # a compound word at the end of a line
    (re.compile(r"\s+"), " "),
    (re.compile(r"(?<=\w) (?=[.,;:!?](?:\s|$))"), ""),
)


def text() -> bytes:
    """The whole corpus in plain form: a line is a paragraph, an empty line ends a document."""
    return "\n\n".join(documents()).encode() + b"\n"


def documents() -> Iterator[str]:
    """The documents, each of paragraphs on lines of their own: a topic, a module with its functions, or a class."""
    seen: set[str] = set()
    found = False
    for parts in _sources():
        fresh = [paragraph for part in parts for paragraph in paragraphs(part) if _is_new(paragraph, seen)]
        if sum(len(paragraph.split()) for paragraph in fresh) >= LEAST_DOCUMENT:
            found = True
            yield "\n".join(fresh)
    if not found:
        raise BertkitError(
            f"the Python at {sys.executable} carries no documentation: there are no sources in "
            f"{sysconfig.get_path('stdlib')}. Give text files instead of --source python-docs"
        )


def by_module() -> Iterator[tuple[str, str]]:
    """Every paragraph of the standard library's docstrings once, with the module or package that it is from."""
    library, seen = Path(sysconfig.get_path("stdlib")), set[str]()
    for path in _files(library):
        module = path.relative_to(library).parts[0].removesuffix(".py")
        for group in _docstrings(path):
            for documentation in group:
                yield from ((module, one) for one in paragraphs(documentation) if _is_new(one, seen))


def paragraphs(documentation: str) -> Iterator[str]:
    """The paragraphs of prose in a docstring or a topic, each in one line and without marks.

    >>> list(paragraphs("Title\\n=====\\n\\nThis is the *first* line\\nof ``two`` lines.\\n\\n    >>> 1 + 1\\n    2"))
    ['This is the first line of two lines.']
    """
    cleaned = _ADMONITION.sub(r"\1\n", inspect.cleandoc(documentation).expandtabs())
    for number, block in enumerate(re.split(r"\n\s*\n", cleaned)):
        if _NO_PROSE.search(block):
            continue
        for place, lines in enumerate(_split(block.split("\n"))):
            found = _prose(lines, summary=number == place == 0)
            if found:
                yield found


def _is_new(paragraph: str, seen: set[str]) -> bool:
    before = len(seen)
    seen.add(paragraph)
    return len(seen) > before


def _sources() -> Iterator[list[str]]:
    """The documentation of each document, as it was written."""
    # the longest first: many topics are parts of longer ones, and would leave holes there
    for _, topic in sorted(_topics().items(), key=lambda item: (-len(item[1]), item[0])):
        yield [topic]
    for path in _files(Path(sysconfig.get_path("stdlib"))):
        yield from _docstrings(path)


def _topics() -> dict[str, str]:
    try:
        from pydoc_data.topics import topics
    except ImportError:  # some distributions pack it apart
        return {}
    return dict(topics)


def _files(library: Path) -> list[Path]:
    """The sources of the standard library, in the order of their names."""
    found: list[Path] = []
    for name in sorted(sys.stdlib_module_names - _LEFT_OUT):
        alone = library / f"{name}.py"
        found += [alone] if alone.is_file() else sorted((library / name).rglob("*.py"))
    return [path for path in found if _LEFT_OUT.isdisjoint(path.relative_to(library).parts)]


def _docstrings(path: Path) -> Iterator[list[str]]:
    """The docstrings of a module and its functions, then those of each class and its methods."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in old sources
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # Python itself could not read it
    yield from _groups(tree)


def _groups(owner: ast.Module | ast.ClassDef) -> Iterator[list[str]]:
    classes = []
    own = [ast.get_docstring(owner, clean=False)]
    for node in _members(owner):
        if isinstance(node, ast.ClassDef):
            classes.append(node)
        else:
            own.append(ast.get_docstring(node, clean=False))
    yield [documentation for documentation in own if documentation]
    for node in classes:
        yield from _groups(node)


def _members(node: ast.AST) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Classes and functions of a module or class, also those under an `if` or `try`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        elif isinstance(child, ast.stmt | ast.ExceptHandler):
            yield from _members(child)


def _split(lines: list[str]) -> Iterator[list[str]]:
    """The lines of a block as paragraphs: one starts at a bullet, and where lines are set in deeper or less deep."""
    paragraph: list[str] = []
    depth = 0
    for line in _without_headings(lines):
        indent, bare = len(line) - len(line.lstrip()), line.strip()
        bullet = _BULLET.match(bare)
        item = bullet or _ITEM.match(bare)
        hangs = len(paragraph) == 1 and indent > depth and len(paragraph[0]) >= 50 and not paragraph[0].endswith(":")
        if paragraph and (item or (indent != depth and not hangs)):
            yield paragraph
            paragraph = []
        if bullet:
            bare = bare[bullet.end() :]
            depth = indent + bullet.end()
        elif not paragraph or hangs:
            depth = indent
        paragraph.append(bare)
    if paragraph:
        yield paragraph


def _without_headings(lines: list[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if not _UNDERLINE.match(line):
            kept.append(line)
        elif kept:
            kept.pop()
    return kept


def _prose(lines: list[str], summary: bool) -> str:
    """The lines as one paragraph of whole sentences; nothing where they are no prose."""
    if any(_TABLE.search(line) for line in lines):
        return ""
    found = " ".join(lines)
    for mark, instead in _MARKS:
        found = mark.sub(instead, found)
    found = _LABEL.sub("", _TERM.sub("", found.strip(), count=1))
    if _FIELD.match(found):
        return ""
    found = _whole(found, summary)
    return found if _is_prose(found) else ""


def _whole(paragraph: str, summary: bool) -> str:
    """The paragraph up to its last full stop: what follows led to code, or was none. A summary line gets its stop."""
    ends = [end.end() for end in _LAST_SENTENCE.finditer(paragraph) if not _FALSE_ENDS.search(paragraph[: end.end()])]
    if ends:
        return paragraph[: ends[-1]]
    return f"{paragraph}." if summary and paragraph[-1:].isalnum() else ""


def _is_prose(paragraph: str) -> bool:
    words = paragraph.split()
    if len(words) < LEAST_WORDS or not (paragraph[0].isupper() or paragraph[0] in "\"'“‘("):
        return False
    if _LEAVE.search(paragraph) or not _is_balanced(paragraph):
        return False
    plain = sum(_PLAIN.fullmatch(word) is not None for word in words)
    small = sum(_SMALL_WORDS.fullmatch(word.strip("\"'(,.:;")) is not None for word in words)
    return plain >= LEAST_PLAIN * len(words) and small * 10 >= len(words)


def _is_balanced(paragraph: str) -> bool:
    """Whether brackets and quotes close; where they do not, something was cut out."""
    pairs: Iterable[tuple[str, str]] = (("(", ")"), ("[", "]"), ("“", "”"))
    return (
        all(paragraph.count(left) == paragraph.count(right) for left, right in pairs) and not paragraph.count('"') % 2
    )
