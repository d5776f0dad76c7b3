"""A corpus on disk: its index, its tokenizer, and its shards, which are opened when they are needed."""

from __future__ import annotations

import hashlib
import os
import re
from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bertkit import artifact
from bertkit.corpus.build import INDEX, VERSION
from bertkit.corpus.chance import Array
from bertkit.corpus.shard import Shard
from bertkit.corpus.worker import COUNTED, TOKENIZER
from bertkit.errors import BertkitError, about
from bertkit.text import Tokenizer
from bertkit.text.files import read_object

OPEN = 32
"""shards that are open at once; each takes a few of the files that a process may have"""
_FILE = re.compile(r"(?:shard|held)-[0-9]{5,12}\.safetensors")
_AGAIN = "Copy the corpus again, or build it again: bertkit corpus build"


class Corpus:
    """What `bertkit corpus build` wrote. `tokens`, `words`, `sentences`, `documents` [shards] are counts of each."""

    tokens: Array
    words: Array
    sentences: Array
    documents: Array

    def __init__(self, path: str | os.PathLike[str], held_out: bool = False) -> None:
        self.path, self._held_out = artifact.resolved(path), held_out
        self.index = _index(self.path)
        listed = self.index["held_out" if held_out else "shards"]
        if not listed:
            raise BertkitError(f"{self.path} holds no text out. Build it again: bertkit corpus build … --held-out 0.01")
        self._files = [self.path / entry["file"] for entry in listed]
        for name in COUNTED:
            setattr(self, name, np.array([entry[name] for entry in listed], np.int64))
        self.id_type = np.uint16 if self.index["vocabulary"] <= 2**16 else np.uint32
        self._opened: OrderedDict[int, Shard] = OrderedDict()

    def __len__(self) -> int:
        """How many shards there are."""
        return len(self._files)

    def __reduce__(self) -> tuple[type[Corpus], tuple[Path, bool]]:
        return Corpus, (self.path, self._held_out)  # another process opens the files itself

    @property
    def fingerprint(self) -> str:
        """Of the texts it was built from, and how: another corpus at the same place has another."""
        return hashlib.sha256((self.path / INDEX).read_bytes()).hexdigest()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that made the ids."""
        loaded = Tokenizer.load(self.path / TOKENIZER)
        if loaded.fingerprint != self.index["tokenizer"]:
            raise BertkitError(f"{self.path / TOKENIZER} is not the tokenizer that made these shards. {_AGAIN}")
        return loaded

    def require(self, tokenizer: Tokenizer) -> None:
        """Refuse a tokenizer whose ids mean other tokens than those of the shards."""
        if tokenizer.fingerprint != self.index["tokenizer"]:
            raise BertkitError(
                f"this tokenizer ({len(tokenizer)} tokens) is not the one that made {self.path.name} "
                f"({self.index['vocabulary']} tokens, fingerprint {self.index['tokenizer'][:12]}…). Use the one in "
                f"{self.path / TOKENIZER}, or build the corpus again with this one"
            )

    def shard(self, number: int) -> Shard:
        """One shard, memory-mapped."""
        found = self._opened.pop(number) if number in self._opened else self._open(number)
        self._opened[number] = found
        if len(self._opened) > OPEN:
            self._opened.popitem(last=False)
        return found

    def _open(self, number: int) -> Shard:
        shard, path = Shard(self._files[number]), self._files[number]
        sentences, documents = (bounds.astype(np.int64) for bounds in (shard.sentences, shard.documents))
        counts = len(shard), len(sentences) - 1, len(documents) - 1
        if shard.ids.dtype != self.id_type:
            raise BertkitError(f"{path} has {shard.ids.dtype} ids, other than its vocabulary needs. {_AGAIN}")
        if counts != (self.tokens[number], self.sentences[number], self.documents[number]):
            raise BertkitError(f"{path} has other counts of tokens, sentences or documents than {INDEX} says. {_AGAIN}")
        if sentences[0] or documents[0] or np.any(np.diff(sentences) < 1) or np.any(np.diff(documents) < 1):
            raise BertkitError(f"{path} is no shard: its sentences or documents are not in order. {_AGAIN}")
        return shard


def _index(path: Path) -> dict[str, Any]:
    """What the index says, once it can be relied on."""
    if not artifact.recover(path) or not (path / INDEX).is_file():
        partial = path.with_name(f"{path.name}.partial")
        what = f"is not finished ({partial.name} is)" if partial.is_dir() else f"is no corpus: it has no {INDEX}"
        how = "Repeat the command that builds it" if partial.is_dir() else "Build one: bertkit corpus build --help"
        raise BertkitError(f"{path} {what}. {how}")
    index = read_object(path / INDEX)
    with about(path / INDEX):
        _check(index)
        listed = [*index["shards"], *index["held_out"]]
        missing = [entry["file"] for entry in listed if not (path / entry["file"]).is_file()]
        if missing:
            shown = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
            raise BertkitError(f"{len(missing)} of {len(listed)} shards are missing: {shown}. {_AGAIN}")
    return index


def _check(index: dict[str, Any]) -> None:
    if index.get("version") != VERSION:
        raise BertkitError(
            f"its format is version {index.get('version')!r}, and this bertkit reads version {VERSION}. {_AGAIN}"
        )
    shards, held_out = index.get("shards"), index.setdefault("held_out", [])  # older ones hold nothing out
    if not (isinstance(index.get("tokenizer"), str) and isinstance(shards, list) and shards):
        raise BertkitError(f"it names no tokenizer or no shards. {_AGAIN}")
    if not isinstance(index.get("options"), dict):
        raise BertkitError(f"it does not say how the corpus was built. {_AGAIN}")
    if not isinstance(index.get("vocabulary"), int):
        raise BertkitError(f"it does not say how large the vocabulary is. {_AGAIN}")
    if not isinstance(held_out, list):
        raise BertkitError(f"it does not say what was held out. {_AGAIN}")
    for number, entry in enumerate([*shards, *held_out]):
        right = (
            isinstance(entry, dict)
            and _FILE.fullmatch(str(entry.get("file")))
            and all(isinstance(entry.get(name), int) and 0 < entry[name] < 2**32 for name in COUNTED)
        )
        if not right:
            raise BertkitError(f"its shard {number} has no file name or counts that could be right. {_AGAIN}")
