"""What a worker does: a piece of a file in, a shard on disk and its facts out. Run as `python -m bertkit.corpus.worker`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

from bertkit.corpus import shard, source
from bertkit.corpus.crew import Message, receive, send
from bertkit.corpus.format import FORMATS
from bertkit.corpus.source import File, Piece, Skipped
from bertkit.errors import BertkitError
from bertkit.text import Tokenizer, segment
from bertkit.text.bulk import Bulk
from bertkit.text.lexicon import Lexicon
from bertkit.text.sentences import SPLITTERS

TOKENIZER, DICTIONARY, LEXICONS = "tokenizer", "words.txt", "lexicons"
COUNTED = ("tokens", "words", "sentences", "documents")


class Worker:
    """Turns pieces into shards in a directory, which also holds the tokenizer and the word lists to use."""

    def __init__(self, settings: Message) -> None:
        self._directory = Path(settings["directory"])
        self._skips = settings["on_error"] == "skip"
        tokenizer = Tokenizer.load(self._directory / TOKENIZER)
        self._bulk = Bulk(
            tokenizer,
            SPLITTERS[settings["sentences"]](),
            _segmenter(settings["words"], self._directory / DICTIONARY),
            {name: Lexicon.load(self._directory / LEXICONS / name, tokenizer) for name in settings["lexicons"]},
        )

    def __call__(self, job: Message, data: bytes) -> Message:
        """Write the shard of a piece; none for a piece without tokens."""
        skipped: list[Skipped] = []
        piece = Piece(job["number"], _file(job), job["line"], data)
        tokens = self._bulk.read(source.plain(piece, skipped.append if self._skips else None))
        if len(tokens.ids):
            shard.write(self._directory / name_of(piece.number), tokens)
        counts = len(tokens.ids), int(tokens.words.sum()), len(tokens.sentences), len(tokens.documents)
        answer: Message = dict(zip(COUNTED, counts, strict=True))
        return {**answer, "number": piece.number, "skipped": [list(found) for found in skipped]}


def _segmenter(words: str, dictionary: Path) -> segment.Segment | None:
    match words:
        case "jieba":
            return segment.jieba(dictionary if dictionary.is_file() else None)
        case "spaces":
            return segment.spaces
    return None


def name_of(number: int) -> str:
    """The file of a shard."""
    return f"shard-{number:05d}.safetensors"


def job_of(piece: Piece) -> tuple[Message, bytes]:
    """A piece as it goes through a pipe."""
    format = piece.file.format
    told: dict[str, Any] = {"number": piece.number, "line": piece.line, "file": piece.file.name, "format": format.name}
    return {**told, "field": getattr(format, "field", "")}, piece.data


def _file(job: Message) -> File:
    return File(Path(job["file"]), job["file"], FORMATS[job["format"]](job["field"]))


def main() -> None:
    """Answer every message until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the boss, who closes the pipe
    pipe_in, pipe_out = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else may write into the pipe
    told = receive(pipe_in)
    if told is None:
        return
    worker = None
    while (job := receive(pipe_in)) is not None:
        try:
            worker = worker or Worker(told[0])
            answer = worker(*job)
        except BertkitError as error:
            answer = {"error": str(error)}
        send(pipe_out, answer)


if __name__ == "__main__":
    main()
