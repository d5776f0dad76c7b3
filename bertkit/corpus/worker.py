"""A worker: a bundle of text in, a shard on disk and its facts out. Run as `python -m bertkit.corpus.worker`."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bertkit.corpus import shard, source
from bertkit.corpus.crew import Message, receive, send
from bertkit.corpus.format import FORMATS
from bertkit.corpus.source import Bundle, File, Piece, Skipped
from bertkit.errors import BertkitError
from bertkit.text import Tokenizer, segment
from bertkit.text.bulk import Array, Bulk, Tokens
from bertkit.text.lexicon import Lexicon
from bertkit.text.sentences import SPLITTERS

TOKENIZER, DICTIONARY, LEXICONS = "tokenizer", "words.txt", "lexicons"
COUNTED = ("tokens", "words", "sentences", "documents")
LEARNED, HELD_OUT = "shard", "held"
"""what is learned from, and what is only asked about"""


class Worker:
    """Turns bundles into shards in a directory, which also holds the word lists to use."""

    def __init__(self, settings: Message, tokenizer: Tokenizer) -> None:
        self._directory = Path(settings["directory"])
        self._skips, self._held_out = settings["on_error"] == "skip", settings["held_out"]
        self._unknown = tokenizer.unk_id
        self._bulk = Bulk(
            tokenizer,
            SPLITTERS[settings["sentences"]](),
            _segmenter(settings["words"], self._directory / DICTIONARY),
            {name: Lexicon.load(self._directory / LEXICONS / name, tokenizer) for name in settings["lexicons"]},
        )

    def __call__(self, job: Message, data: bytes) -> Message:
        """Write the shard of a bundle; none where there are no tokens."""
        skipped: list[Skipped] = []
        skip = skipped.append if self._skips else None
        tokens = self._bulk.read("\n\n".join(source.plain(piece, skip) for piece in _pieces(job, data)))
        held = drawn(tokens, self._held_out)
        parts = {LEARNED: tokens.of(~held), HELD_OUT: tokens.of(held)} if held.any() else {LEARNED: tokens}
        made = {}
        for part, found in parts.items():
            if len(found.ids):
                shard.write(self._directory / name_of(job["number"], part), found)
                made[part] = self._counts(found)
        return {"number": job["number"], "made": made, "skipped": [list(found) for found in skipped]}

    def _counts(self, tokens: Tokens) -> Message:
        counts = len(tokens.ids), int(tokens.words.sum()), len(tokens.sentences), len(tokens.documents)
        unknown = int(np.count_nonzero(tokens.ids == self._unknown))
        return {**dict(zip(COUNTED, counts, strict=True)), "unknown": unknown}


def _segmenter(words: str, dictionary: Path) -> segment.Segment | None:
    match words:
        case "jieba":
            return segment.jieba(dictionary if dictionary.is_file() else None)
        case "spaces":
            return segment.spaces
    return None


def name_of(number: int, part: str = LEARNED) -> str:
    """The file of a shard."""
    return f"{part}-{number:05d}.safetensors"


def drawn(tokens: Tokens, share: float) -> Array:
    """Which documents are held out, [D]: those whose own ids say so, so that a text that comes again is not split."""
    if not share:
        return np.zeros(len(tokens.documents), bool)
    firsts = tokens.sentences[tokens.documents]
    chances = [
        int.from_bytes(hashlib.blake2b(ids.tobytes(), digest_size=8).digest(), "little") / 2**64
        for ids in np.split(tokens.ids, firsts[1:])
    ]
    return np.array(chances) < share


def job_of(bundle: Bundle) -> tuple[Message, bytes]:
    """A bundle as it goes through a pipe."""
    pieces = [
        {
            "file": piece.file.name,
            "format": piece.file.format.name,
            "field": getattr(piece.file.format, "field", ""),
            "line": piece.line,
            "size": len(piece.data),
        }
        for piece in bundle.pieces
    ]
    return {"number": bundle.number, "pieces": pieces}, b"".join(piece.data for piece in bundle.pieces)


def _pieces(job: Message, data: bytes) -> Iterator[Piece]:
    at = 0
    for told in job["pieces"]:
        file = File(Path(told["file"]), told["file"], FORMATS[told["format"]](told["field"]))
        yield Piece(file, told["line"], data[at : at + told["size"]])
        at += told["size"]


def main() -> None:
    """Answer every message until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the boss, who closes the pipe
    pipe_in, pipe_out = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else may write into the pipe
    told = receive(pipe_in)
    if told is None:
        return
    settings, tokenizer = told
    try:
        worker = Worker(settings, Tokenizer.from_json(tokenizer.decode()))
        while (job := receive(pipe_in)) is not None:
            send(pipe_out, worker(*job))
    except BertkitError as error:
        send(pipe_out, {"error": str(error)})
        while receive(pipe_in) is not None:
            pass  # the boss will hear it and end all workers
    except BrokenPipeError:  # nobody listens any more
        os._exit(1)  # without another word from what was to be written


if __name__ == "__main__":
    main()
