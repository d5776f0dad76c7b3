"""Sources: files, folders and patterns, compressed or not, as a stream of pieces that workers can share.

A piece is about 4 MB of a file as it came, cut where a document ends, so that the same sources always make the same
pieces, whoever works on them. No more than one piece is in memory here, whatever the size of the files.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import hashlib
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, Protocol, cast

from bertkit.corpus.format import FORMATS, Format, Jsonl, Text, Wiki, WikiJson
from bertkit.errors import BertkitError, unknown

PIECE = 4 * 2**20
LONGEST_LINE = 8 * 2**20
_READ = 2**20

_SUFFIXES = {".txt": "txt", ".text": "txt", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_PARQUET = ".parquet"
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError)


@dataclass(frozen=True)
class File:
    """One file of a corpus; `name` is what messages call it."""

    path: Path
    name: str
    format: Format
    data: bytes | None = None
    """what stands in for the file where there is none"""

    def open(self) -> IO[bytes]:
        return self.path.open("rb") if self.data is None else io.BytesIO(self.data)

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.data is None else len(self.data)


class Piece(NamedTuple):
    """Some documents of a file, as bytes; `line` is the number of the first line."""

    file: File
    line: int
    data: bytes
    read: int = 0
    """bytes of all files that were read so far"""


class Bundle(NamedTuple):
    """What one shard is made of: a piece, or several small ones in a row."""

    number: int
    pieces: list[Piece]


class Fingerprint(NamedTuple):
    """What a file held when it was read."""

    name: str
    size: int
    sha256: str


class Skipped(NamedTuple):
    """Something of a file that was left out, and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}"


def files(paths: Sequence[str], format: str | None = None, field: str = "text") -> list[File]:
    """The files behind paths, folders and patterns, each once, in the order of their names.

    A folder gives the files in it and below whose names tell a format; a file that is named is always taken.
    """
    if format is not None and format not in FORMATS:
        raise unknown("format", format, FORMATS)
    found: dict[Path, None] = {}
    for given in paths:
        found.update(dict.fromkeys(sorted(_expand(given))))
    return [File(path, str(path), _format(path, format, field)) for path in found]


def embedded(name: str, text: bytes) -> File:
    """Text that is not in a file, under a name of its own."""
    return File(Path(name), name, Text(), text)


def pieces(
    sources: Iterable[File],
    skip: Callable[[Skipped], None] | None = None,
    read: Callable[[Fingerprint], None] = lambda fingerprint: None,
) -> Iterator[Piece]:
    """All pieces in order. What cannot be read is an error, or told to `skip` and left out; `read` hears of files."""
    before = 0
    for file in sources:
        refuse, at = Refuser(file.name, 1, skip), _Place()
        for line, data in _cut(_whole_lines(_stream(file, refuse, read, at), refuse), file.format):
            yield Piece(file, line, data, before + at.bytes)
        before += at.bytes


def bundles(found: Iterable[Piece]) -> Iterator[Bundle]:
    """The pieces in bundles of about 4 MB: thousands of small files do not make thousands of shards."""
    number, size, held = 0, 0, list[Piece]()
    for piece in found:
        if held and size + len(piece.data) > PIECE:
            yield Bundle(number, held)
            number, size, held = number + 1, 0, []
        held.append(piece)
        size += len(piece.data)
        if size >= PIECE:
            yield Bundle(number, held)
            number, size, held = number + 1, 0, []
    if held:
        yield Bundle(number, held)


def plain(piece: Piece, skip: Callable[[Skipped], None] | None = None) -> str:
    """The documents of a piece as plain text."""
    refuse = Refuser(piece.file.name, piece.line, skip)
    return piece.file.format.plain(_decoded(piece, refuse), refuse)


class Refuser:
    """Says what is wrong with a line of a file: as an error, or to `skip`, which lets the work go on without it."""

    def __init__(self, file: str, line: int, skip: Callable[[Skipped], None] | None) -> None:
        self._file, self._line, self._skip = file, line, skip

    def __call__(self, line: int, reason: str) -> None:
        found = Skipped(self._file, self._line + line, reason)
        if self._skip is None:
            raise BertkitError(f"{found}. Correct it, or leave out what cannot be read: --on-error skip")
        self._skip(found)


def _expand(given: str) -> list[Path]:
    path = Path(given)
    if path.is_dir():
        inside = (below for below in path.rglob("*") if below.is_file() and not _hidden(below.relative_to(path)))
        found = [below for below in inside if _known(below)]
        if not found:
            raise BertkitError(
                f"{given} holds no corpus files: they end in {', '.join([*_SUFFIXES, _PARQUET])}, perhaps followed by "
                f"{', '.join(_COMPRESSED)}, or start with wiki_. Name files of another kind one by one"
            )
        return found
    if path.exists():
        return [path]
    matched = [Path(name) for name in glob.glob(given, recursive=True)]  # noqa: PTH207 - patterns may be absolute
    if not matched:
        raise BertkitError(f"{given}: there is no such file, and no file matches it as a pattern")
    return [below for name in matched for below in (_expand(str(name)) if name.is_dir() else [name])]


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _known(path: Path) -> bool:
    return _suffix(path) in {*_SUFFIXES, _PARQUET} or path.name.startswith("wiki_")


def _suffix(path: Path) -> str:
    """What tells the format, below the compression."""
    inner = path.with_suffix("") if path.suffix in _COMPRESSED else path
    return inner.suffix.lower()


def _format(path: Path, asked: str | None, field: str) -> Format:
    if _suffix(path) == _PARQUET:
        return Jsonl(field)  # its rows are streamed as JSON
    if asked not in (None, Wiki.name):
        return FORMATS[asked](field)
    start = _start(path)
    if start.startswith(b"{") and (asked or _named_by_extractor(path)):
        return WikiJson(field)
    if asked or start.startswith(b"<doc "):
        return Wiki()
    return FORMATS[_SUFFIXES.get(_suffix(path), "txt")](field)


def _named_by_extractor(path: Path) -> bool:
    """wiki_00, perhaps with more after a dot; wiki_qa.jsonl is somebody else's."""
    stem = path.name.partition(".")[0]
    return stem.startswith("wiki_") and stem.removeprefix("wiki_").isdigit()


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as raw:
            return _open(raw).read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    except (*_BROKEN, BertkitError):
        return b""  # said with its reason when it is read


def _open(raw: IO[bytes] | _Hashed) -> _Reader:
    """The bytes inside a file, by what it starts with."""
    start = raw.read(6)
    raw.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=raw)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(raw)
    if start.startswith(b"\xfd7zXZ"):
        return lzma.LZMAFile(cast(IO[bytes], raw))
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        return _Zstandard(raw)
    return raw


class _Reader(Protocol):
    """What every kind of file can do."""

    def read(self, size: int = -1, /) -> bytes: ...


class _Zstandard(io.RawIOBase):
    """The bytes inside a .zst file, one frame after the other; an end within a frame is an error."""

    def __init__(self, raw: _Reader) -> None:
        try:
            import zstandard
        except ImportError:
            raise BertkitError("to read .zst files: pip install 'bertkit[corpus]'") from None
        self._raw, self._library = raw, zstandard
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun = False

    def read(self, size: int = -1) -> bytes:
        """Some of them, however many are asked for; nothing at the end."""
        while block := self._raw.read(_READ // 8):
            if out := self._unpacked(block):
                return out
        if self._begun:
            raise EOFError("the file ends within its packed text")
        return b""

    def _unpacked(self, block: bytes) -> bytes:
        out = b""
        while block:
            self._begun = True
            try:
                out += self._frame.decompress(block)
            except self._library.ZstdError as error:
                raise OSError(str(error)) from error
            if not self._frame.eof:
                break
            block, self._begun = self._frame.unused_data, False
            self._frame = self._library.ZstdDecompressor().decompressobj()
        return out


class _Place:
    """How far a file was read."""

    bytes = 0


def _stream(file: File, refuse: Refuser, read: Callable[[Fingerprint], None], at: _Place) -> Iterator[bytes]:
    """The bytes of a file, some at a time; its fingerprint is told when all were read."""
    line, hashed = 0, None
    try:
        if _suffix(file.path) == _PARQUET:
            yield from _rows(file)
        with file.open() as raw:
            hashed = _Hashed(raw)
            if _suffix(file.path) != _PARQUET:
                opened = _open(hashed)
                some = getattr(opened, "read1", opened.read)  # packed text up to where it is broken
                while block := some(_READ):
                    line += block.count(b"\n")
                    at.bytes = hashed.size
                    yield block
            while hashed.read(_READ):  # what a reader leaves at the end belongs to the file as well
                pass
    except _BROKEN as error:
        refuse(line, f"the file cannot be read further: {getattr(error, 'strerror', None) or error}")
    if hashed is not None:
        at.bytes = hashed.size
        read(Fingerprint(file.name, hashed.size, hashed.digest.hexdigest()))


class _Hashed(io.RawIOBase):
    """A file that is hashed as it is read, from start to end once; a look at its start does not count."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self.digest, self.size, self._seen = raw, hashlib.sha256(), 0, 0

    def read(self, size: int = -1) -> bytes:
        block = self._raw.read(size)
        at = self._raw.tell()
        if at > self._seen:
            self.digest.update(block[len(block) - (at - self._seen) :])
            self.size = self._seen = at
        return block

    def seek(self, place: int, whence: int = 0) -> int:
        return self._raw.seek(place, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _rows(file: File) -> Iterator[bytes]:
    """The rows of a parquet file's text column, each as a JSON string on a line."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise BertkitError("to read .parquet files: pip install 'bertkit[corpus]'") from None
    assert isinstance(file.format, Jsonl)
    try:
        with parquet.ParquetFile(file.path) as table:
            if file.format.field not in table.schema_arrow.names:
                there = ", ".join(table.schema_arrow.names[:8])
                raise BertkitError(
                    f"{file.name} has no column {file.format.field!r}. Its columns: {there}. Choose one with --field"
                )
            for batch in table.iter_batches(1024, columns=[file.format.field]):
                yield b"".join(json.dumps(text).encode() + b"\n" for text in batch.column(0).to_pylist())
    except pyarrow.ArrowInvalid as error:
        raise OSError(f"it is no parquet file: {error}") from error


def _whole_lines(stream: Iterator[bytes], refuse: Refuser) -> Iterator[tuple[int, bytes]]:
    """The same bytes in whole lines, with the number of the first (from 1); a line without end is refused."""
    rest, line = b"", 1
    for block in stream:
        rest += block
        cut = rest.rfind(b"\n") + 1
        if cut:
            yield line, rest[:cut]
            line += rest.count(b"\n", 0, cut)
            rest = rest[cut:]
        if len(rest) > LONGEST_LINE:
            refuse(line - 1, f"is longer than {LONGEST_LINE // 2**20} MB, which no text is")
            rest, line = _after_line(stream), line + 1
    if rest:
        yield line, rest


def _after_line(stream: Iterator[bytes]) -> bytes:
    """What follows the end of the line that is being read."""
    for block in stream:
        at = block.find(b"\n")
        if at >= 0:
            return block[at + 1 :]
    return b""


def _cut(blocks: Iterator[tuple[int, bytes]], format: Format) -> Iterator[tuple[int, bytes]]:
    """Pieces, each with the number of its first line; cut where a document ends, or within one that is far too long."""
    buffer, line, following = bytearray(), 1, 1
    for number, block in blocks:
        if buffer and number != following:  # a line between was left out
            yield line, bytes(buffer)
            buffer.clear()
        if not buffer:
            line = number
        buffer += block
        following = number + block.count(b"\n")
        while len(buffer) >= PIECE and (cut := _place(buffer, format)):
            yield line, bytes(memoryview(buffer)[:cut])
            line += buffer.count(b"\n", 0, cut)
            del buffer[:cut]
    if buffer:
        yield line, bytes(buffer)


def _place(buffer: bytearray, format: Format) -> int:
    """Where to cut; 0 to read on."""
    found = format.boundary.search(buffer, PIECE - 1)
    if found:
        return found.end()
    return buffer.rfind(b"\n") + 1 if len(buffer) >= 2 * PIECE else 0


def _decoded(piece: Piece, refuse: Refuser) -> str:
    data = piece.data.removeprefix(b"\xef\xbb\xbf") if piece.line == 1 else piece.data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return "\n".join(_decoded_lines(data, piece.file.format.by_line, refuse))


def _decoded_lines(data: bytes, by_line: bool, refuse: Refuser) -> Iterator[str]:
    for number, line in enumerate(data.split(b"\n")):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            refuse(number, f"is not UTF-8 at byte {error.start + 1} ({line[error.start]:#04x})")
            if by_line:
                yield ""  # so that lines are still counted right
