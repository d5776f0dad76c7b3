"""Building a corpus: sources to shards, by several processes, in bounded memory, and never twice.

The same sources, tokenizer and options give the same bytes, whatever the number of workers. While a corpus grows it
lies in OUTPUT.partial, with a line in `done.jsonl` for each finished shard; the same command after a kill finds the
shards whose text is unchanged and makes the others. The finished corpus appears at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertkit import artifact
from bertkit.corpus.crew import Crew, Message
from bertkit.corpus.source import File, Fingerprint, Piece, Skipped, bundles, pieces
from bertkit.corpus.worker import COUNTED, DICTIONARY, HELD_OUT, LEARNED, LEXICONS, TOKENIZER, Worker, job_of, name_of
from bertkit.errors import BertkitError, look_up
from bertkit.text import Tokenizer
from bertkit.text.chunks import is_chinese
from bertkit.text.files import read_object
from bertkit.text.sentences import SPLITTERS

Run = Callable[[Iterator[tuple[Message, bytes]]], Iterator[Message]]
"""jobs to answers"""
Shards = dict[str, list[Message]]
"""the facts of those that are learned from, and of those that are held out"""

VERSION = 1
INDEX = "corpus.json"
SHOWN = 100
"""skipped lines that are listed; all are counted"""

CHINESE_CHARACTERS = 2000
"""in a vocabulary that is for Chinese text"""
BOSS_MEMORY, WORKER_MEMORY = 150 * 2**20, 350 * 2**20
"""what each kind of process needs at most, whatever the size of the corpus"""


@dataclass(frozen=True)
class Options:
    """What decides the bytes of a corpus, beside its sources and its tokenizer."""

    on_error: str = "stop"
    """stop, or skip: leave out lines that cannot be read, and list them"""
    sentences: str = "rules"
    """a name of `bertkit.text.sentences.SPLITTERS`"""
    words: str = "auto"
    """how Chinese characters make words: none (each is one), jieba, spaces; auto: jieba if the vocabulary is Chinese"""
    dictionary: Path | None = None
    """words that jieba does not know"""
    lexicons: Mapping[str, Path] = field(default_factory=dict)
    """files of phrases, by name"""
    held_out: float = 0.0
    """the share of the documents that is not learned from; a text that comes again is never on both sides"""

    def __post_init__(self) -> None:
        look_up("way with errors", self.on_error, dict.fromkeys(("stop", "skip")))
        look_up("splitter", self.sentences, SPLITTERS)
        look_up("segmenter", self.words, dict.fromkeys(("auto", "none", "jieba", "spaces")))
        if not 0 <= self.held_out < 1:
            raise BertkitError(f"held_out is {self.held_out}: give a share of the documents, such as 0.01")
        if self.dictionary is not None and self.words not in {"auto", "jieba"}:
            raise BertkitError(f"a dictionary is for words by jieba, not for {self.words!r}: add --words jieba")

    def settings(self, tokenizer: Tokenizer) -> Message:
        """The same as JSON, with what the files hold in place of their names."""
        chosen = "jieba" if self.dictionary or _is_chinese(tokenizer) else "none"
        return {
            "on_error": self.on_error,
            "sentences": self.sentences,
            "words": chosen if self.words == "auto" else self.words,
            "dictionary": _digest(self.dictionary) if self.dictionary else None,
            "lexicons": {name: _digest(path) for name, path in sorted(self.lexicons.items())},
            "held_out": self.held_out,
        }


def build(
    sources: list[File],
    tokenizer: Tokenizer,
    output: Path,
    options: Options = Options(),  # noqa: B008 - frozen
    workers: int = 1,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Write the corpus at `output`; what its index says. `progress` hears how many bytes of files were read."""
    partial = _partial(output)
    settings: Message = {"version": VERSION, "tokenizer": tokenizer.fingerprint, "options": options.settings(tokenizer)}
    require_free(output, overwrite)
    with _own(partial, settings):
        if not overwrite and (output / INDEX).is_file():  # it was killed when only the partial was to go
            shutil.rmtree(partial)
            return read_object(output / INDEX)
        files: list[Fingerprint] = []
        with _hands({**settings["options"], "directory": str(partial)}, tokenizer, workers) as run:
            _equip(partial, tokenizer, options)
            shards, skipped = _make(sources, partial, settings, run, files.append, progress)
        index = _index(settings, tokenizer, files, shards, skipped)
        if not index["tokens"]:
            shutil.rmtree(partial)
            left = f". What was left out: {skipped[0]}" if skipped else ""
            raise BertkitError(f"the corpus is empty: there is no text in {_named(sources)}{left}")
        with artifact.directory(output, "corpus", overwrite=overwrite, facts={"tokens": index["tokens"]}) as content:
            for made in (*shards[LEARNED], *shards[HELD_OUT]):
                _link(partial / made["file"], content / made["file"])
            shutil.copytree(partial / TOKENIZER, content / TOKENIZER)
            (content / INDEX).write_text(json.dumps(index, indent=1, ensure_ascii=False), encoding="utf-8")
        shutil.rmtree(partial)
    return index


def require_free(output: Path, overwrite: bool) -> None:
    """Refuse a place that is taken, unless an unfinished command has its work beside it."""
    if overwrite or not _partial(output).is_dir():
        artifact.require_free(output, overwrite=overwrite)


def _partial(output: Path) -> Path:
    return output.with_name(f"{output.name}.partial")


def workers_within(memory: int, asked: int) -> int:
    """How many workers fit into so many bytes, at most those asked for."""
    fitting = (memory - BOSS_MEMORY) // WORKER_MEMORY
    if fitting < 1:
        least = (BOSS_MEMORY + WORKER_MEMORY) // 2**20
        raise BertkitError(f"--max-ram is {memory // 2**20} MB: building a corpus of any size needs {least} MB")
    return min(asked, fitting)


def _is_chinese(tokenizer: Tokenizer) -> bool:
    """Google's Chinese and multilingual vocabularies have thousands of Chinese characters, the English ones 500."""
    return sum(map(is_chinese, tokenizer.vocabulary)) >= CHINESE_CHARACTERS


def _named(sources: list[File]) -> str:
    return ", ".join(file.name for file in sources[:3]) + (", …" if len(sources) > 3 else "")


def _digest(path: Path) -> str:
    """Of a list of words or phrases, which must be UTF-8."""
    try:
        data = path.read_bytes()
        data.decode("utf-8")
    except OSError as error:
        raise BertkitError(f"{path} cannot be read: {error.strerror}. Give a file with a word on each line") from error
    except UnicodeDecodeError as error:
        raise BertkitError(f"{path} is not UTF-8 at byte {error.start + 1}: write a word on each line") from None
    return hashlib.sha256(data).hexdigest()


def _digest_of(told: Message, data: bytes) -> str:
    """Of all that a shard depends on."""
    digest = hashlib.blake2b(json.dumps(told).encode(), digest_size=16)
    digest.update(data)
    return digest.hexdigest()


def _link(made: Path, place: Path) -> None:
    try:
        os.link(made, place)
    except OSError:  # some file systems have no links
        shutil.copyfile(made, place)


def _equip(partial: Path, tokenizer: Tokenizer, options: Options) -> None:
    """Put what the corpus needs beside the work, so that the user's own files may change meanwhile."""
    if not (partial / TOKENIZER).is_dir():
        with artifact.directory(partial / TOKENIZER, "tokenizer") as place:
            tokenizer.save_files(place)
    if options.dictionary:
        shutil.copyfile(options.dictionary, partial / DICTIONARY)
    if options.lexicons:
        (partial / LEXICONS).mkdir(exist_ok=True)
    for name, path in options.lexicons.items():
        shutil.copyfile(path, partial / LEXICONS / name)


@contextmanager
def _own(partial: Path, settings: Message) -> Iterator[None]:
    """The place where a corpus grows, ours alone; the unfinished work of another command is not touched."""
    partial.mkdir(parents=True, exist_ok=True)
    with (partial / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BertkitError(f"{partial} is being written by another process. Wait for it, or stop it") from None
        note = partial / "settings.json"
        before = json.loads(note.read_text(encoding="utf-8")) if note.is_file() else settings
        old, new = ({**told, **told.get("options", {})} for told in (before, settings))
        # what was made before an error is right whatever shall happen to errors
        differs = ", ".join(sorted(name for name in {*new} - {"options", "on_error"} if old.get(name) != new[name]))
        if differs:
            raise BertkitError(
                f"{partial} holds the unfinished work of a command with another {differs}. Repeat that command to "
                f"finish it, or delete {partial}"
            )
        with artifact.file(note, overwrite=True) as file:
            file.write(json.dumps(settings).encode())
        yield


def _make(
    sources: list[File],
    partial: Path,
    settings: Message,
    run: Run,
    read: Callable[[Fingerprint], None],
    progress: Callable[[int], None] | None,
) -> tuple[Shards, list[Skipped]]:
    """The facts of every shard, in order; what is there already is not made again."""
    options = settings["options"]
    done, skipped = _Done(partial, options["on_error"] == "skip"), list[Skipped]()
    skip = skipped.append if options["on_error"] == "skip" else None
    firsts: dict[int, Piece] = {}
    digests: dict[int, str] = {}

    def jobs() -> Iterator[tuple[Message, bytes]]:
        for bundle in bundles(pieces(sources, skip, read)):
            firsts[bundle.number] = bundle.pieces[0]._replace(data=b"")
            told, data = job_of(bundle)
            digests[bundle.number] = _digest_of(told, data)
            if not done.has(bundle.number, digests[bundle.number]):
                yield told, data
            if progress:
                progress(bundle.pieces[-1].read)

    for answer in run(jobs()):
        done.add(answer, digests[answer["number"]])
    shards: Shards = {LEARNED: [], HELD_OUT: []}
    for number, first in firsts.items():
        answer = done.answers[number]
        skipped += [Skipped(*found) for found in answer["skipped"]]
        for part, counts in answer["made"].items():
            facts = {"file": name_of(number, part), **counts, "source": first.file.name, "line": first.line}
            shards[part].append(facts)
    return shards, sorted(skipped)


@contextmanager
def _hands(settings: Message, tokenizer: Tokenizer, workers: int) -> Iterator[Run]:
    """Those who do the work: we, or a crew that starts now."""

    def alone(jobs: Iterator[tuple[Message, bytes]]) -> Iterator[Message]:
        worker = Worker(settings, tokenizer)
        for message, data in jobs:
            yield worker(message, data)

    if workers == 1:
        yield alone
    else:
        with Crew("bertkit.corpus.worker", settings, tokenizer.to_json().encode(), workers) as crew:
            yield crew.run


class _Done:
    """The shards that are finished: a line for each, written when the shard is on the disk."""

    def __init__(self, partial: Path, skips: bool) -> None:
        self._path = partial / "done.jsonl"
        self.answers: dict[int, Message] = {}
        self._digests: dict[int, str] = {}
        if self._path.is_file():
            for line in self._path.read_bytes().splitlines(keepends=True):
                with suppress(ValueError, KeyError, TypeError):  # a line that a kill cut off is no line
                    found = json.loads(line)
                    whole = skips or not found["skipped"]
                    if whole and all((partial / name_of(found["number"], part)).is_file() for part in found["made"]):
                        self.answers[found["number"]] = found
                        self._digests[found["number"]] = found.pop("digest")

    def has(self, number: int, digest: str) -> bool:
        return self._digests.get(number) == digest

    def add(self, answer: Message, digest: str) -> None:
        with self._path.open("ab") as file:
            file.write(b"\n" + json.dumps({**answer, "digest": digest}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.answers[answer["number"]] = answer


def _index(
    settings: Message, tokenizer: Tokenizer, files: list[Fingerprint], shards: Shards, skipped: list[Skipped]
) -> dict[str, Any]:
    totals = {name: sum(made[name] for made in shards[LEARNED]) for name in (*COUNTED, "unknown")}
    return {
        **settings,
        "vocabulary": len(tokenizer),
        "bytes_per_id": 2 if len(tokenizer) <= 2**16 else 4,
        **totals,
        "skipped": len(skipped),
        "skipped_lines": [str(found) for found in skipped[:SHOWN]],
        "sources": [found._asdict() for found in files],
        "shards": shards[LEARNED],
        "held_out": shards[HELD_OUT],
    }
