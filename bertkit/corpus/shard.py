"""A shard: the tokens of some documents in one file, read through the system's page cache and never as a whole.

It is a safetensors file of a few arrays, for T tokens in S sentences in D documents:

    ids        [T]       uint16, or uint32 where the vocabulary needs it
    words      [T / 8]   a bit for each token, the lowest first: whether a word starts there
    sentences  [S + 1]   uint32: the first token of each sentence, then T
    documents  [D + 1]   uint32: the first sentence of each document, then S
    units.NAME [T / 8]   as `words`, for each lexicon: whether a word or one of its phrases starts there

Nothing is padded and nothing is masked in it; lengths, pairs and masks are chosen when examples are made.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from bertkit import artifact
from bertkit.errors import BertkitError, look_up
from bertkit.text.bulk import Tokens

Array = np.ndarray[Any, np.dtype[Any]]

_TYPES = {"U8": np.uint8, "U16": np.uint16, "U32": np.uint32}
_UNITS = "units."
_ARRAYS = {"ids": ("U16", "U32"), "words": ("U8",), "sentences": ("U32",), "documents": ("U32",)}


def write(path: Path, tokens: Tokens) -> None:
    """Write one shard, whole or not at all; one that stands there already is replaced."""
    arrays = {
        "ids": tokens.ids,
        "words": np.packbits(tokens.words, bitorder="little"),
        "sentences": np.append(tokens.sentences, np.uint32(len(tokens.ids))),
        "documents": np.append(tokens.documents, np.uint32(len(tokens.sentences))),
        **{f"{_UNITS}{name}": np.packbits(starts, bitorder="little") for name, starts in tokens.units.items()},
    }
    with artifact.file(path, overwrite=True) as file:
        file.write(save(arrays))  # without metadata, whose order would differ from run to run


class Shard:
    """A shard on disk; every array is a view of the file.

    >>> import tempfile
    >>> from bertkit.text import Tokenizer
    >>> from bertkit.text.bulk import Bulk
    >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "##s", "."])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write(Path(place, "shard"), Bulk(tokenizer).read("A cat. Cats."))
    ...     shard = Shard(Path(place, "shard"))
    ...     shard.ids.tolist(), shard.sentences.tolist(), shard.documents.tolist(), shard.words(3, 6).tolist()
    ([5, 6, 8, 6, 7, 8], [0, 3, 6], [0, 2], [True, False, True])
    """

    def __init__(self, path: Path) -> None:
        views = _views(path)
        self.ids, self.sentences, self.documents = views["ids"], views["sentences"], views["documents"]
        self._words = views["words"]
        self._units = {name.removeprefix(_UNITS): bits for name, bits in views.items() if name.startswith(_UNITS)}
        _check(path, self.ids, [self._words, *self._units.values()], self.sentences, self.documents)

    def __len__(self) -> int:
        """How many tokens there are."""
        return len(self.ids)

    def words(self, start: int, stop: int) -> Array:
        """Whether a word starts at each of the tokens from `start` to before `stop`: [stop - start]."""
        return _bits(self._words, start, stop)

    def starts_word(self, at: Array) -> Array:
        """Whether a word starts at each of these tokens: [N] -> [N]."""
        return _bits_at(self._words, at)

    def units(self, lexicon: str, start: int, stop: int) -> Array:
        """Whether a word or a phrase of this lexicon starts at each of these tokens: [stop - start]."""
        return _bits(look_up("lexicon", lexicon, self._units), start, stop)

    def starts_unit(self, lexicon: str, at: Array) -> Array:
        """Whether a word or a phrase of this lexicon starts at each of these tokens: [N] -> [N]."""
        return _bits_at(look_up("lexicon", lexicon, self._units), at)

    @property
    def lexicons(self) -> list[str]:
        """Those whose phrases were looked for."""
        return list(self._units)


def _bits(packed: Array, start: int, stop: int) -> Array:
    bits = np.unpackbits(packed[start // 8 : (stop + 7) // 8], bitorder="little")
    return bits[start % 8 : start % 8 + stop - start].view(bool)


def _bits_at(packed: Array, at: Array) -> Array:
    bits: Array = (packed[at >> 3] >> (at & 7).astype(np.uint8)) & 1
    return bits.view(bool)


def _views(path: Path) -> dict[str, Array]:
    try:
        with safe_open(path, "np") as file:  # checks that the header fits the file
            names = set(file.keys())
        with path.open("rb") as raw:
            (length,) = struct.unpack("<Q", raw.read(8))
            header = json.loads(raw.read(length))
        content = np.asarray(np.memmap(path, np.uint8, "r"))
    except (SafetensorError, OSError) as error:
        raise BertkitError(f"{path} is no shard: {error}. Build the corpus again.") from error
    views = {}
    wanted = {**_ARRAYS, **{name: ("U8",) for name in sorted(names) if name.startswith(_UNITS)}}
    for name, types in wanted.items():
        entry = header[name] if name in names else None
        if entry is None or entry["dtype"] not in types or len(entry["shape"]) != 1:
            raise BertkitError(f"{path} is no shard: it has no {name!r} of type {' or '.join(types)}. Build it again.")
        start, stop = entry["data_offsets"]
        views[name] = content[8 + length + start : 8 + length + stop].view(_TYPES[entry["dtype"]])
    return views


def _check(path: Path, ids: Array, bits: Sequence[Array], sentences: Array, documents: Array) -> None:
    """Refuse what would make an index run out of the file later."""
    fits = (
        all(len(packed) == -(-len(ids) // 8) for packed in bits)
        and len(sentences) > 0
        and len(documents) > 0
        and sentences[-1] == len(ids)
        and documents[-1] == len(sentences) - 1
    )
    if not fits:
        raise BertkitError(f"{path} is no shard: its arrays do not fit each other. Build the corpus again.")
