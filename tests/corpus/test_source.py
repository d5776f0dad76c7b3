"""Sources: every format and compression gives the same documents; what cannot be read is named."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.corpus import source
from bertkit.corpus.source import Fingerprint, Skipped, files, pieces, plain
from bertkit.errors import BertkitError

DOCUMENTS = ["A first one.\nIts second line.", "第二个文件。", "The third, with an é."]


def documents(*paths: Path | str, skip: Callable[[Skipped], None] | None = None, **settings: str) -> list[str]:
    """What the sources hold, document by document."""
    text = "\n\n".join(plain(piece, skip) for piece in pieces(files([str(p) for p in paths], **settings), skip))
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def test_every_format_gives_the_same_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n\n".join(DOCUMENTS) + "\n", encoding="utf-8")
    assert documents(tmp_path / "a.txt") == DOCUMENTS
    rows = [{"id": n, "body": text} for n, text in enumerate(DOCUMENTS)]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert documents(tmp_path / "b.jsonl", field="body") == DOCUMENTS
    (tmp_path / "c.lines").write_text("\n".join(text.replace("\n", " ") for text in DOCUMENTS), encoding="utf-8")
    assert documents(tmp_path / "c.lines", format="lines") == [text.replace("\n", " ") for text in DOCUMENTS]
    articles = (
        f'<doc id="{n}" url="u" title="T {n}">\nT {n}\n\n{text}\n\n</doc>\n' for n, text in enumerate(DOCUMENTS)
    )
    (tmp_path / "wiki_00").write_text("".join(articles), encoding="utf-8")
    assert documents(tmp_path / "wiki_00") == DOCUMENTS


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    rows = [*DOCUMENTS, None, "A last one."]
    parquet.write_table(pyarrow.table({"text": rows, "n": list(range(5))}), tmp_path / "a.parquet", row_group_size=2)
    assert documents(tmp_path / "a.parquet") == [*DOCUMENTS, "A last one."]
    with pytest.raises(
        BertkitError, match=r"a.parquet has no column 'body'. Its columns: text, n. Choose one with --fi"
    ):
        documents(tmp_path / "a.parquet", field="body")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 is what it says")
    with pytest.raises(BertkitError, match=r"bad.parquet, line 1: the file cannot be read further: it is no parquet"):
        documents(tmp_path / "bad.parquet")


def zstandard(data: bytes) -> bytes:
    compressed: bytes = pytest.importorskip("zstandard").compress(data)
    return compressed


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstandard)],
)
def test_compressed_files(tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]) -> None:
    text = ("\n\n".join(DOCUMENTS) + "\n").encode()
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(compress(text[:30]) + compress(text[30:]))  # two streams in a row, as `cat` makes them
    assert documents(path) == DOCUMENTS
    assert documents(tmp_path) == DOCUMENTS, "a folder knows it by its name"
    noise = compress(os.urandom(100_000))
    path.write_bytes(noise[: len(noise) // 2])
    with pytest.raises(BertkitError, match=rf"a.txt{suffix}, line \d+: the file cannot be read further"):
        documents(path)
    left: list[Skipped] = []
    documents(path, skip=left.append)
    assert any("cannot be read further" in found.reason for found in left)


def test_fingerprints_are_of_the_files_as_they_lie_there(tmp_path: Path) -> None:
    packed = gzip.compress(b"some text\n" * 1000)
    (tmp_path / "a.txt.gz").write_bytes(packed)
    (tmp_path / "b.txt").write_bytes(b"more")
    told: list[Fingerprint] = []
    list(pieces(files([str(tmp_path)]), None, told.append))
    assert [(Path(found.name).name, found.size) for found in told] == [("a.txt.gz", len(packed)), ("b.txt", 4)]
    assert told[0].sha256 == hashlib.sha256(packed).hexdigest()


def test_files_folders_and_patterns(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "sub/c.jsonl", "sub/wiki_07", "image.png", ".hidden.txt", "sub/.git/x.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")

    def names(*given: str) -> list[str]:
        return [str(file.path.relative_to(tmp_path)) for file in files([str(tmp_path / one) for one in given])]

    assert names("") == ["a.txt", "b.txt", "sub/c.jsonl", "sub/wiki_07"]
    assert names("*.txt") == ["a.txt", "b.txt"]
    assert names("b.txt", "*.txt", "image.png") == ["b.txt", "a.txt", "image.png"], "each once, in the order given"
    with pytest.raises(BertkitError, match="there is no such file, and no file matches"):
        names("*.md")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BertkitError, match=r"empty holds no corpus files: they end in \.txt"):
        names("empty")
    with pytest.raises(BertkitError, match="unknown format 'xml'"):
        files(["x"], "xml")


@given(st.lists(st.sampled_from(["a", "bb", "\n", "\n\n", " \n", "\r\n\r\n", "é"]), max_size=80), st.integers(1, 12))
def test_pieces_add_up_and_end_with_documents(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], n: int
) -> None:
    path = tmp_path_factory.mktemp("s") / "a.txt"
    path.write_bytes("".join(parts).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "PIECE", n)
        patch.setattr(source, "_READ", 3)
        cut = list(pieces(files([str(path)])))
    assert b"".join(piece.data for piece in cut) == path.read_bytes()
    for number, piece in enumerate(cut):
        assert piece.line == 1 + path.read_bytes()[: sum(len(p.data) for p in cut[:number])].count(b"\n")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [
        b'{"text": "one"}',
        b'{"text": "caf\xe9"}',
        b"{broken",
        b'{"body": 1}',
        b'{"text": 5}',
        b"",
        b'"two"',
        b"null",
    ]
    path.write_bytes(b"\n".join(rows))
    with pytest.raises(
        BertkitError, match=r"a.jsonl, line 2: is not UTF-8 at byte 14 \(0xe9\)\. Correct it, or leave out"
    ):
        documents(path)
    left: list[Skipped] = []
    assert documents(path, skip=left.append) == ["one", "two"]
    assert [(found.line, found.reason[:20]) for found in left] == [
        (2, "is not UTF-8 at byte"),
        (3, "is not JSON: Expecti"),
        (4, "has no field 'text'."),
        (5, "has a int where the "),
    ]
    (tmp_path / "a.txt").write_bytes(b"one\ntw\xffo\nthree\n")
    left.clear()
    assert documents(tmp_path / "a.txt", skip=left.append) == ["one\nthree"], "the document stays whole"
    assert [found.line for found in left] == [2]


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LONGEST_LINE", 1000)
    monkeypatch.setattr(source, "_READ", 64)
    (tmp_path / "a.txt").write_bytes(b"one\n" + b"x" * 5000 + b"\nthree\n" + b"y" * 3000)
    with pytest.raises(BertkitError, match=r"a.txt, line 2: is longer than 0 MB, which no text is"):
        documents(tmp_path / "a.txt")
    left: list[Skipped] = []
    assert documents(tmp_path / "a.txt", skip=left.append) == ["one", "three"]
    assert [found.line for found in left] == [2, 4]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "a.txt").chmod(0)
    with pytest.raises(BertkitError, match=r"a.txt, line 1: the file cannot be read further: Permission denied"):
        documents(tmp_path / "a.txt")


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone")
    assert documents(tmp_path / "a.txt") == ["one"]
