"""TensorFlow's checkpoint files without TensorFlow: what it wrote is read, what is written comes back, damage is found.

`proofs/tensorflow.py` asks TensorFlow itself.
"""

from __future__ import annotations

import random
import struct
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bertkit.errors import BertkitError
from bertkit.weights import bundle, table
from bertkit.weights.bundle import Bundle
from bertkit.weights.crc import crc32c, masked
from tests.pretrained import SIMBERT, pretrained

# TensorFlow 2.21's Saver wrote this for four variables of ours
INDEX = bytes.fromhex(
    "00000608011a02080100060f622f6269617308091204120208022810350d3efaf70206156b65726e656c08011208120208021202080320"
    "1028183569bfef4f00041168616c66080e1204120208022028280435e441d1c200040d7374657008031200202c280435da7428d6000000"
    "0001000000001ba53934000000000100000000c0f2a1b0000102740073000000000100000000f32f23ae780885010e0000000000000000"
    "00000000000000000000000000000000000000000000000000000057fb808b247547db"
)
DATA = bytes.fromhex("0700000000000000f8ffffffffffffff0000c03f000000c000004040000000000000803e286b6e4e803f00bf0c000000")
VARIABLES = {
    "b/bias": np.array([7, -8], np.int64),
    "b/kernel": np.array([[1.5, -2, 3], [0, 0.25, 1e9]], np.float32),
    "half": np.array([1.0, -0.5], np.float32),
    "step": np.array(12, np.int32),
}


def put(path: Path, index: bytes, *data: bytes) -> Path:
    """The files of a checkpoint; the prefix they share."""
    path.with_name(path.name + ".index").write_bytes(index)
    for shard, content in enumerate(data):
        path.with_name(f"{path.name}.data-{shard:05d}-of-{len(data):05d}").write_bytes(content)
    return path


def read_all(prefix: Path) -> dict[str, np.ndarray]:
    opened = Bundle(prefix)
    return {name: opened.read(name) for name in opened.names}


def equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Names in order, kinds, shapes and every bit."""
    return list(one) == list(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(one.values(), other.values(), strict=True)
    )


# What TensorFlow writes ─────────────────────────────────────────────────────────────────────────────────────────────


def test_what_tensorflow_wrote(tmp_path: Path) -> None:
    prefix = put(tmp_path / "model.ckpt-12", INDEX, DATA)
    assert equal(read_all(prefix), VARIABLES)
    assert [Bundle(prefix).dtype(name) for name in VARIABLES] == ["int64", "float32", "bfloat16", "int32"]


def test_we_write_what_tensorflow_wrote(tmp_path: Path) -> None:
    """Byte for byte, but for bfloat16, which NumPy lacks, and what comes after it."""
    bundle.write({name: VARIABLES[name] for name in ("b/kernel", "b/bias")}, tmp_path / "x")
    theirs, ours = list(table.read(INDEX)), list(table.read((tmp_path / "x.index").read_bytes()))
    assert ours == theirs[:3]
    assert (tmp_path / "x.data-00000-of-00001").read_bytes() == DATA[:40]


def test_a_real_checkpoint_is_whole(tmp_path: Path) -> None:
    """Every checksum of the Chinese SimBERT agrees; written again, its data and its entries are the same bytes."""
    prefix = pretrained(SIMBERT) / "bert_model.ckpt"
    variables = read_all(prefix)
    assert len(variables) == 78
    assert sum(array.nbytes for array in variables.values()) == 33_854_952
    assert variables["bert/embeddings/word_embeddings"].dtype == np.float64
    bundle.write(variables, tmp_path / "again")
    for end in (".index", ".data-00000-of-00001"):
        theirs, ours = (path.with_name(path.name + end).read_bytes() for path in (prefix, tmp_path / "again"))
        assert (list(table.read(ours)) == list(table.read(theirs))) if end == ".index" else (ours == theirs)


# Checksums ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"\0" * 32, 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_checksums_of_rfc_3720(data: bytes, crc: int) -> None:
    assert crc32c(data) == crc


def one_by_one(data: bytes) -> int:
    """The definition: bit after bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("around", [0, 4, 8, 256, 1 << 16])
def test_checksums_of_all_lengths_around_a_row(around: int) -> None:
    data = random.Random(around).randbytes(around + 9)
    for length in range(max(around - 3, 0), around + (6 if around < 1000 else 3)):
        assert crc32c(data[:length]) == one_by_one(data[:length])


# There and back ─────────────────────────────────────────────────────────────────────────────────────────────────────

KINDS = [kind for kind in bundle.NUMBERS.values() if kind != "bfloat16"]
TENSORS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40),
    st.sampled_from(KINDS).flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0))),
    max_size=20,
)


@settings(max_examples=60)
@given(TENSORS)
def test_what_is_written_comes_back(tensors: dict[str, np.ndarray]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bundle.write(tensors, Path(folder) / "x.ckpt")
        assert equal(read_all(Path(folder) / "x.ckpt"), {name: tensors[name] for name in sorted(tensors)})


def test_many_names_fill_many_blocks(tmp_path: Path) -> None:
    names = [f"bert/encoder/layer_{layer}/{'deep/' * 20}{part}" for layer in range(1200) for part in ("bias", "kernel")]
    tensors = {name: np.float32([number]) for number, name in enumerate(names)}
    bundle.write(tensors, tmp_path / "x")
    assert equal(read_all(tmp_path / "x"), {name: tensors[name] for name in sorted(tensors)})
    assert (tmp_path / "x.index").read_bytes().count(b"bert/encoder") > 2400 / 16


def test_arrays_of_other_orders(tmp_path: Path) -> None:
    turned = np.arange(6, dtype=">f4").reshape(2, 3).T
    bundle.write({"x": turned}, tmp_path / "x")
    assert np.array_equal(Bundle(tmp_path / "x").read("x"), turned)


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    for tensors in ({"x": np.array(["text"])}, {"": np.zeros(1)}, {"x": np.array([None])}):
        with pytest.raises(BertkitError, match="not written to a checkpoint"):
            bundle.write(tensors, tmp_path / "x")


# Hand-made files ────────────────────────────────────────────────────────────────────────────────────────────────────


def number(value: int) -> bytes:
    out = b""
    while value >= 128:
        out, value = out + bytes([value % 128 + 128]), value // 128
    return out + bytes([value])


def field(place: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return number(place * 8) + number(value)
    return number(place * 8 + 2) + number(len(value)) + value


def entry(
    shape: tuple[int, ...] = (2,), kind: int = 1, shard: int = 0, offset: int = 0, size: int = 8, of: bytes = b"\0" * 8
) -> bytes:
    sizes = b"".join(field(2, field(1, dimension % 2**64)) for dimension in shape)
    places = field(1, kind) + field(2, sizes) + field(3, shard) + field(4, offset) + field(5, size)
    return places + number(6 * 8 + 5) + struct.pack("<I", masked(crc32c(of)))


HEADER = field(1, 1) + field(3, field(1, 1))


def index(*rows: tuple[bytes, bytes], header: bytes = HEADER) -> bytes:
    return table.write([(b"", header), *rows])


def test_several_data_files(tmp_path: Path) -> None:
    one, two = np.float32([1, 2]), np.float32([3, 4])
    rows = (b"a", entry(shard=1, of=one.tobytes())), (b"b", entry(shard=0, of=two.tobytes()))
    made = index(*rows, header=field(1, 3) + field(3, field(1, 1)))
    prefix = put(tmp_path / "x", made, two.tobytes(), one.tobytes(), b"nobody asks for this one")
    assert equal(read_all(prefix), {"a": one, "b": two})
    assert Bundle(prefix).where("a").name == "x.data-00001-of-00003"


def test_texts_are_listed_but_not_read(tmp_path: Path) -> None:
    prefix = put(tmp_path / "x", index((b"graph", entry((), 7, size=5)), (b"x", entry(offset=8))), b"\0" * 16)
    opened = Bundle(prefix)
    assert (opened.names, opened.dtype("graph")) == (("graph", "x"), "type 7")
    assert opened.read("x").tolist() == [0, 0]
    with pytest.raises(BertkitError, match="graph holds no numbers that are read here"):
        opened.read("graph")


def one(value: bytes, key: bytes = b"x") -> bytes:
    return index((key, value))


def sealed(block: bytes, kind: int = 0) -> bytes:
    """A file whose only block is this one, with a good checksum and an index that finds it."""
    first = block + bytes([kind])
    out = first + struct.pack("<I", masked(crc32c(first)))
    at = len(out)
    second = b"\0\1" + bytes([len(number(0) + number(len(block)))]) + b"z" + number(0) + number(len(block))
    second += struct.pack("<II", 0, 1)
    out += second + b"\0" + struct.pack("<I", masked(crc32c(second + b"\0")))
    footer = number(at) + number(len(second)) + number(at) + number(len(second))
    return out + footer.ljust(40, b"\0") + table.MAGIC


TAIL = struct.pack("<II", 0, 1)
FIRST = b"\0\0" + number(len(HEADER)) + HEADER
LONG = b"\0" + number(4000) + b"\0" + b"k" * 4000 + b"".join(number(4000 + i) + b"\1\0k" for i in range(999))
HOSTILE = {
    "empty": (b"", "it is cut short"),
    "cut short": (INDEX[:-1], "it is cut short"),
    "of another kind": (b"x" * 100, "of another kind"),
    "a footer alone": (INDEX[-48:], "a block lies beyond its end"),
    "a flipped bit": (INDEX[:20] + bytes([INDEX[20] ^ 1]) + INDEX[21:], "checksum of a block is wrong"),
    "compressed": (sealed(b"\0" * 8, kind=1), "it is compressed"),
    "block without room for its restarts": (sealed(struct.pack("<I", 2**31)), "shorter than it says"),
    "block of two bytes": (sealed(b"\0\0"), "shorter than it says"),
    "a number that never ends": (sealed(b"\x80" * 20 + TAIL), "more than 64 bits"),
    "a number of 65 bits": (sealed(b"\xff" * 9 + b"\x7f" + TAIL), "more than 64 bits"),
    "an entry beyond its block": (sealed(b"\0\x7f\0" + TAIL), "longer than its block"),
    "a key that shares what is not there": (sealed(b"\5\1\0a" + TAIL), "longer than its block"),
    "names without end": (sealed(FIRST + LONG + TAIL), "names are longer"),
    "keys backwards": (index((b"b", entry()), (b"a", entry())), "not in order"),
    "a key twice": (index((b"a", entry()), (b"a", entry())), "not in order, or one is there twice"),
    "no rows": (table.write([]), "no header"),
    "no header": (table.write([(b"x", entry())]), "no header"),
    "no data files": (index(header=field(3, field(1, 1))), "there are 0 data files"),
    "a million data files": (index(header=field(1, 10**6)), "there are 1000000 data files"),
    "big-endian": (index(header=field(1, 1) + field(2, 1)), "big-endian"),
    "a later version": (index(header=field(1, 1) + field(3, field(2, 9))), "later version"),
    "version that is a number": (index(header=field(1, 1) + field(3, 9)), "where a message belongs"),
    "a name that is not text": (one(entry(), b"\xff\xfe"), "not UTF-8"),
    "a slice": (one(entry(), b"\0\1x"), "partitioned"),
    "slices": (one(entry() + field(7, b"")), "x: it is in slices"),
    "negative dimension": (one(entry((-1, 2))), "no variable is so large"),
    "dimensions that overflow": (one(entry((2**32, 2**32, 2))), "no variable is so large"),
    "nothing, of a huge shape": (one(entry((0, 2**40, 2**40), size=0)), "no variable is so large"),
    "a thousand dimensions": (one(entry((1,) * 1000)), "no variable is so large"),
    "unknown shape": (one(field(1, 1) + field(2, field(3, 1))), "shape is not known"),
    "shape that is not its size": (one(entry((3,))), "8 bytes are not \\[3\\] numbers of float32"),
    "a data file too many": (one(entry(shard=1)), "data file 1 of 1"),
    "beyond the data": (one(entry(offset=4)), "ends before x does"),
    "far beyond the data": (one(entry(offset=2**63)), "ends before x does"),
    "one on another": (index((b"a", entry()), (b"b", entry())), "b lies where another variable lies"),
    "a field that ends early": (one(b"\x12\x7f"), "longer than its message"),
    "a field of no kind": (one(b"\x0b"), "unknown kind 3"),
    "a size that is text": (one(field(1, 1) + field(5, b"8")), "field 5 is not a number"),
    "wrong checksum": (one(entry(of=b"other")), "numbers of x are not those that were written"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files(case: str, tmp_path: Path) -> None:
    content, message = HOSTILE[case]
    prefix = put(tmp_path / "x.ckpt", content, b"\0" * 8)
    with pytest.raises(BertkitError, match=message) as caught:
        read_all(prefix)
    assert str(tmp_path / "x.ckpt.") in str(caught.value)


def blocks(*contents: bytes, twice: int = 0) -> bytes:
    """An index of several blocks, in order; the first once more so often, each under a key of its own."""
    out, places = b"", []
    for content in contents:
        places.append(number(len(out)) + number(len(content)))
        out += content + b"\0" + struct.pack("<I", masked(crc32c(content + b"\0")))
    places += places[:1] * twice
    rows = b"".join(b"\0\1" + number(len(place)) + b"a" + place for place in places) + TAIL
    footer = (number(0) + number(0) + number(len(out)) + number(len(rows))).ljust(40, b"\0")
    return out + rows + b"\0" + struct.pack("<I", masked(crc32c(rows + b"\0"))) + footer + table.MAGIC


def test_blocks_are_read_once_and_in_order() -> None:
    """A block of nothing but four megabytes of restarts, named two hundred times, would be read for a minute."""
    first, second = b"\0\1\1a1" + TAIL, b"\0\1\1b2" + TAIL
    assert list(table.read(blocks(first, second))) == [(b"a", b"1"), (b"b", b"2")]
    assert list(table.read(blocks(TAIL))) == []
    restarts = 1 << 20
    empty = struct.pack("<I", 0) * restarts + struct.pack("<I", restarts)
    started = time.perf_counter()
    with pytest.raises(BertkitError, match=r"a block has no entries|before the end of the one before it"):
        list(table.read(blocks(empty, twice=200)))
    assert time.perf_counter() - started < 5
    with pytest.raises(BertkitError, match="a block lies before the end of the one before it"):
        list(table.read(blocks(first, second, twice=1)))
    with pytest.raises(BertkitError, match="a block has no entries"):
        list(table.read(blocks(first, TAIL)))


def test_files_that_are_missing_or_too_large(tmp_path: Path) -> None:
    prefix = put(tmp_path / "x", one(entry()))
    with pytest.raises(BertkitError, match=r"data file x\.data-00000-of-00001 is not beside it"):
        Bundle(prefix)
    with pytest.raises(BertkitError, match="cannot be read: No such file"):
        Bundle(tmp_path / "y")
    with (tmp_path / "z.index").open("wb") as file:
        file.truncate(2**34)
    with pytest.raises(BertkitError, match="more than the index of any BERT"):
        Bundle(tmp_path / "z")


def test_data_that_changes_after_opening(tmp_path: Path) -> None:
    opened = Bundle(put(tmp_path / "x", one(entry()), b"\0" * 8))
    for content in (b"\0" * 7, b"\0" * 7 + b"\1"):
        put(tmp_path / "x", one(entry()), content)
        with pytest.raises(BertkitError, match="are not those that were written"):
            opened.read("x")


def opened_or_refused(prefix: Path) -> bool:
    try:
        read_all(prefix)
    except BertkitError:
        return False
    return True


ROWS = list(table.read(INDEX))
BLOCK = INDEX[:115]
BYTES = st.binary(max_size=8)


@settings(max_examples=200)
@given(st.integers(0, len(INDEX)), st.integers(0, 8), BYTES, st.integers(0, len(DATA)), st.integers(0, 2), BYTES)
def test_any_damage_is_found(at: int, out: int, put_in: bytes, place: int, gone: int, other: bytes) -> None:
    """Bytes taken out and put in, in index and data: what opens is what was written."""
    made = INDEX[:at] + put_in + INDEX[at + out :]
    data = DATA[:place] + other + DATA[place + gone :]
    with tempfile.TemporaryDirectory() as folder:
        prefix = put(Path(folder) / "x", made, data)
        if opened_or_refused(prefix):
            assert equal(read_all(prefix), VARIABLES)


@settings(max_examples=200)
@given(st.integers(0, len(ROWS) - 1), st.integers(0, 40), st.integers(0, 8), BYTES)
def test_any_message_under_a_good_checksum(row: int, at: int, out: int, put_in: bytes) -> None:
    rows = list(ROWS)
    key, value = rows[row]
    rows[row] = key, value[:at] + put_in + value[at + out :]
    with tempfile.TemporaryDirectory() as folder:
        opened_or_refused(put(Path(folder) / "x", table.write(rows), DATA))


@settings(max_examples=200)
@given(st.integers(0, len(BLOCK)), st.integers(0, 8), BYTES)
def test_any_block_under_a_good_checksum(at: int, out: int, put_in: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        opened_or_refused(put(Path(folder) / "x", sealed(BLOCK[:at] + put_in + BLOCK[at + out :]), DATA))


def test_the_block_under_test_is_the_real_one(tmp_path: Path) -> None:
    assert equal(read_all(put(tmp_path / "x", sealed(BLOCK), DATA)), VARIABLES)
