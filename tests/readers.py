"""Every reader of foreign files, as a function of the bytes of one file, for fuzzing in tests and proofs.

    python -m tests.readers CASES      # damage each reader's own file so often; prints what happened as JSON

A reader opens what it is given, or raises one BertkitError that says why not. Anything else, a wait of some seconds or
an allocation beyond what the file can justify, is a fault.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import bertkit
from bertkit import artifact
from bertkit.convert import convert
from bertkit.family.bert import stack
from bertkit.parts.attention import Attention
from bertkit.parts.dense import Dense
from bertkit.parts.embed import Embed
from bertkit.parts.feed import Feed
from bertkit.parts.heads import Mlm, Pooler
from bertkit.parts.network import Network
from bertkit.parts.positions import Learned
from bertkit.text import Tokenizer
from bertkit.weights import directory, google, sentence, table
from bertkit.weights.bundle import Bundle
from bertkit.weights.crc import crc32c, masked
from bertkit.weights.tensors import Tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = 1 << 30
"""bytes that opening a file of some kilobytes may take beyond what the process has"""
SECONDS = 20
"""time that it may take"""


@dataclass(frozen=True)
class Reader:
    """A whole model directory, the file in it that is replaced, and what opens it."""

    model: str
    file: str
    open: Callable[[Path], object]
    wrap: Callable[[bytes], bytes] = bytes
    """what is written for given bytes: themselves, or something with right checksums around them"""
    seed: Callable[[bytes], bytes] = bytes
    """bytes for which `wrap` makes about the original file"""


def tensors(path: Path) -> None:
    found = Tensors.open(path)
    for name in found.names:
        found.read(name)


def checkpoint(path: Path) -> None:
    found = Bundle(google.find(path))
    for name in found.names:
        found.read(name)


def tokenizer(path: Path) -> None:
    found = Tokenizer.load(path)
    found.encode("Cats and 猫 [MASK]\u0301s [NEW]", "dogs")
    found.fingerprint  # noqa: B018 - writes it all out


def with_rows(data: bytes) -> bytes:
    """An index with right checksums around keys and values, each behind its length in two bytes."""
    block, parts, at = b"", [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 2], "little")
        parts.append(data[at + 2 : at + 2 + size])
        at += 2 + size
    for key, value in zip(parts[::2], parts[1::2], strict=False):
        block += b"\0" + table.to_varint(len(key)) + table.to_varint(len(value)) + key + value
    return with_block(block + struct.pack("<II", 0, 1))


def rows_of(index: bytes) -> bytes:
    parts = [part for row in table.read(index) for part in row]
    return b"".join(len(part).to_bytes(2, "little") + part for part in parts)


def with_block(data: bytes) -> bytes:
    """An index whose one block of entries is the given bytes, with right checksums."""

    def sealed(block: bytes) -> bytes:
        return block + b"\0" + struct.pack("<I", masked(crc32c(block + b"\0")))

    handle = table.to_varint(0) + table.to_varint(len(data))
    index = bytes([0, 1, len(handle)]) + b"z" + handle + struct.pack("<II", 0, 1)
    at = len(data) + 5
    footer = table.to_varint(at) + table.to_varint(0) + table.to_varint(at) + table.to_varint(len(index))
    return sealed(data) + sealed(index) + footer.ljust(table.FOOTER - 8, b"\0") + table.MAGIC


def block_of(index: bytes) -> bytes:
    """The first block of entries, without its compression and checksum."""
    _, at = table.varint(index, len(index) - table.FOOTER)
    _, at = table.varint(index, at)
    place, at = table.varint(index, at)
    size, _ = table.varint(index, at)
    ((_, handle),) = table._entries(index[place : place + size], len(index))
    start, at = table.varint(handle, 0)
    length, _ = table.varint(handle, at)
    return index[start : start + length]


READERS: dict[str, Reader] = {
    "tf-index": Reader("google", "bert_model.ckpt.index", checkpoint),
    "tf-index-rows": Reader("google", "bert_model.ckpt.index", checkpoint, with_rows, rows_of),
    "tf-index-block": Reader("google", "bert_model.ckpt.index", checkpoint, with_block, block_of),
    "tf-data": Reader("google", "bert_model.ckpt.data-00000-of-00001", checkpoint),
    "tf-config": Reader("google", "bert_config.json", google.read),
    "tf-latest": Reader("google", "checkpoint", google.read),
    "config": Reader("hf", "config.json", directory.read),
    "safetensors": Reader("hf", "model.safetensors", tensors),
    "safetensors-index": Reader("shards", "model.safetensors.index.json", tensors),
    "vocab": Reader("google", "vocab.txt", tokenizer),
    "tokenizer": Reader("hf", "tokenizer.json", tokenizer),
    "tokenizer-config": Reader("hf", "tokenizer_config.json", tokenizer),
    "special-tokens": Reader("hf", "special_tokens_map.json", tokenizer),
    "modules": Reader("hf", "modules.json", sentence.read),
    "pooling": Reader("hf", "1_Pooling/config.json", sentence.read),
    "dense": Reader("hf", "2_Dense/config.json", sentence.read),
    "dense-weights": Reader("hf", "2_Dense/model.safetensors", sentence.read),
    "lengths": Reader("hf", "sentence_bert_config.json", sentence.read),
    "settings": Reader("hf", "config_sentence_transformers.json", sentence.read),
    "manifest": Reader("saved", "bertkit-manifest.json", artifact.verify),
}


class Harness:
    """One reader on a copy of its model, ready for any number of cases."""

    def __init__(self, name: str, models: Path, folder: Path) -> None:
        self.reader = READERS[name]
        self.path = folder / name
        shutil.copytree(models / self.reader.model, self.path)
        self.file = self.path / self.reader.file
        self.seed = self.reader.seed(self.file.read_bytes())

    def opens(self, data: bytes) -> bool:
        """Whether a file of these bytes is opened; False where it is refused with words; any other end is raised."""
        self.file.write_bytes(self.reader.wrap(data))
        try:
            self.reader.open(self.path)
        except bertkit.BertkitError as error:
            if not str(error).strip():
                raise AssertionError("an error without words") from error
            return False
        return True


def build(folder: Path) -> Path:
    """The whole models that the readers damage: a saved one, Hugging Face's, in shards, and Google's."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "dog", "##s", "猫"]
    encoder = stack(1, 8, Embed(len(words), 8, Learned(16)), Attention(2, 4), Feed(16))
    network = Network(encoder, {"pooler": Pooler(), "mlm": Mlm()}).build().eval()
    made = bertkit.Model(network, Tokenizer.from_vocabulary(words))
    made.save(folder / "shards", shard_bytes=2_000)
    convert(folder / "shards", folder / "google", to="tf")
    for part in ("index", "data-00000-of-00001"):  # a second checkpoint, so that somebody must say which one is meant
        shutil.copy(folder / "google" / f"bert_model.ckpt.{part}", folder / "google" / f"model.ckpt-7.{part}")
    (folder / "google" / "checkpoint").write_text('model_checkpoint_path: "bert_model.ckpt"\n')
    made.add_special_tokens(["[NEW]"])
    made.dense.append(Dense(8, 4).build())
    made.normalize, made.limit, made.prompts, made.default_prompt = True, 12, {"query": "cat: "}, "query"
    made.save(folder / "saved")
    for name in ("shards", "google"):
        (folder / name / "bertkit-manifest.json").unlink()
    shutil.copytree(folder / "saved", folder / "hf", ignore=shutil.ignore_patterns("bertkit-manifest.json"))
    return folder


def damaged(original: bytes, dice: random.Random) -> bytes:
    """Bytes overwritten, put in, taken out, cut off; or one piece of the text replaced by something nasty."""
    at = dice.randrange(min(len(original), 4000) or 1)
    some = bytes(dice.randrange(256) for _ in range(dice.randint(1, 6)))
    nasty = dice.choice(
        [b"null", b"-1", b"1e999", b"[]", b"{}", b'""', b"true", b"99999999999999999999", b"NaN", b'"\\ud800"']
    )
    match dice.randrange(6):
        case 0:
            return original[:at] + some + original[at + len(some) :]
        case 1:
            return original[:at] + some + original[at:]
        case 2:
            return original[:at] + original[at + dice.randint(1, 20) :]
        case 3:
            return original[:at]
        case 4:
            return original[:at] + nasty + original[at + len(nasty) :]
        case _:
            colon = original.find(b":", at)
            end = min((found for found in (original.find(mark, colon) for mark in b",}]") if found > 0), default=at)
            return original[: colon + 1] + nasty + original[end:] if 0 < colon < end else original[:at] + nasty


def bound_memory() -> None:
    """From here on an allocation beyond MEMORY fails."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)


@contextmanager
def bounded_time() -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError(f"still reading after {SECONDS} seconds")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)


def run(cases: int) -> dict[str, dict[str, int]]:
    """How many damaged files each reader opened and refused."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        models = build(Path(folder) / "models")
        bound_memory()
        for name in READERS:
            harness, dice = Harness(name, models, Path(folder)), random.Random(name)
            counts = Counter({"opened": 0, "refused": 0, "whole": int(harness.opens(harness.seed))})
            for number in range(cases):
                data = damaged(harness.seed, dice)
                try:
                    with bounded_time():
                        counts["opened" if harness.opens(data) else "refused"] += 1
                except Exception as error:
                    raise AssertionError(
                        f"{name}, case {number}, {type(error).__name__}: {error}: {data[:4000]!r}"
                    ) from error
            found[name] = dict(counts)
    return found


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]))))
