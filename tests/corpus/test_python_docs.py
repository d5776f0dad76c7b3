"""Python's documentation as a corpus: prose only, the same every time, and nothing imported."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bertkit.corpus import python_docs
from bertkit.corpus.python_docs import paragraphs
from bertkit.corpus.source import embedded, pieces, plain
from bertkit.errors import BertkitError

DOCSTRING = """Reads a file, and tells what is in it.

    The ``mode`` is explained in :func:`~io.open`. It *must* be given,
    as the user-
    defined reader has no **default** of its own::

        read("a.txt", mode="r")

    Options
    -------

    -v  be verbose and tell more about it
    --quiet  say nothing at all about it

    >>> read("a.txt", "r")
    'The text of the file is shown here.'

    :param mode: The way in which the file is to be opened.

    * The first item of a list is a sentence
      that goes on in its second line.
    * short

    ====  =========================
    key   The value of the table is
    ====  =========================

    For example, this is how it is used:
"""


@pytest.fixture(scope="module")
def text() -> str:
    """Of every third module, which takes a third of the time."""
    files = python_docs._files
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python_docs, "_files", lambda library: files(library)[::3])
        return python_docs.text().decode()


def test_only_whole_sentences_of_prose_stay() -> None:
    assert list(paragraphs(DOCSTRING)) == [
        "Reads a file, and tells what is in it.",
        "The mode is explained in io.open.",
        "The first item of a list is a sentence that goes on in its second line.",
    ]


def test_compound_words_are_joined_and_marks_removed() -> None:
    found = list(
        paragraphs("This is a user-\ndefined *thing* with a\n`link <http://x.y>`_ to it, as in *args and **kwargs.")
    )
    assert found == ["This is a user-defined thing with a link to it, as in *args and **kwargs."]


def test_a_summary_line_gets_its_full_stop_and_other_fragments_go() -> None:
    assert list(paragraphs("Return the name of the file\n\nand other things that are not said to the end")) == [
        "Return the name of the file."
    ]


def test_the_corpus_is_clean(text: str) -> None:
    lines = [line for line in text.split("\n") if line]
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert "\n\n\n" not in text
    assert not re.search(r">>>|``|::|\bhttps?:|\t|  |:\w+:`", text)
    assert max(Counter(lines).values()) == 1
    assert min(len(line.split()) for line in lines) >= python_docs.LEAST_WORDS
    assert all(re.search(r"[.!?][\"'”’)\]]*$", line) for line in lines)
    letters = sum(map(str.isalpha, text)) / sum(not letter.isspace() for letter in text)
    assert letters > 0.92


def test_it_is_large_enough_to_start_with(text: str) -> None:
    documents = text.split("\n\n")
    assert len(documents) > 300, "far more than there are topics"
    assert len(text.split()) > 70_000
    assert all(len(document.split()) >= python_docs.LEAST_DOCUMENT for document in documents)
    assert any("assertion" in document for document in documents), "topics are there"


def test_another_process_makes_the_same_and_imports_no_module(text: str) -> None:
    program = """if True:
        import hashlib, sys
        from bertkit.corpus import python_docs
        files = python_docs._files
        python_docs._files = lambda library: files(library)[::3]
        print(hashlib.sha256(python_docs.text()).hexdigest())
        print(*{"turtle", "tkinter", "antigravity", "this", "asyncio", "idlelib"} & set(sys.modules))"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:2] == [hashlib.sha256(text.encode()).hexdigest(), ""]


def test_it_is_a_source_like_any_other(text: str) -> None:
    found = "".join(plain(piece) for piece in pieces([embedded("python-docs", text.encode())]))
    assert found == text


def test_a_python_without_documentation_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(BertkitError, match="carries no documentation: there are no sources in"):
        python_docs.text()


def test_sources_that_no_python_could_read_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    (tmp_path / "ast.py").write_bytes(b"\xff\x00 is no Python")
    (tmp_path / "abc.py").write_text("def broken(:", encoding="utf-8")
    doc = "This is a docstring with as many words as a document needs to be kept, and it is one of the best."
    (tmp_path / "argparse.py").write_text(f'if 1:\n    class A:\n        async def f(self):\n            """{doc}"""\n')
    assert list(python_docs.documents()) == [doc]
