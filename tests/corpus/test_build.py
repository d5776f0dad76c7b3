"""Building a corpus: the same bytes whoever builds it and however often it is stopped."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bertkit import artifact
from bertkit.corpus import build as building
from bertkit.corpus import source
from bertkit.corpus.build import Options, build, workers_within
from bertkit.corpus.shard import Shard
from bertkit.corpus.source import files
from bertkit.errors import BertkitError
from bertkit.text import Tokenizer

WORDS = [
    "the",
    "cat",
    "dog",
    "sat",
    "on",
    "a",
    "mat",
    "playing",
    "played",
    "unable",
    "runs",
    "fast",
    "slow",
    "house",
    "猫",
    "狗",
    "坐",
    "zebra",
]
PIECE = 7000


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that each of our files makes a shard of its own."""
    monkeypatch.setattr(source, "PIECE", PIECE)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder of many small files, plain and packed."""
    draw = random.Random(0)
    place = tmp_path / "texts"
    place.mkdir()
    for number in range(24):
        lines = [" ".join(draw.choices(WORDS, k=draw.randint(3, 30))) + "." for _ in range(60)]
        text = "\n".join(line + ("\n" if draw.random() < 0.3 else "") for line in lines).encode()
        path = place / f"{number:02d}.txt{'.gz' if number % 3 == 0 else ''}"
        path.write_bytes(gzip.compress(text) if number % 3 == 0 else text)
    return place


@pytest.fixture
def vocabulary(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    (tmp_path / "vocabulary").mkdir()
    tokenizer.save_files(tmp_path / "vocabulary")
    return tmp_path / "vocabulary"


def content(path: Path) -> dict[str, str]:
    """Every file of a directory by its hash."""
    found = sorted(below for below in path.rglob("*") if below.is_file())
    return {str(below.relative_to(path)): hashlib.sha256(below.read_bytes()).hexdigest() for below in found}


def test_shards_hold_the_documents(texts: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    sources = files([str(texts)])
    index = build(sources, tokenizer, tmp_path / "shards")
    assert artifact.verify(tmp_path / "shards").kind == "corpus"
    assert not (tmp_path / "shards.partial").exists()
    documents = 0
    for made, file in zip(index["shards"], sources, strict=True):
        shard = Shard(tmp_path / "shards" / made["file"])
        text = "\n\n".join(source.plain(piece) for piece in source.pieces([file]))
        lines = [line for line in text.split("\n") if line]
        bounds = shard.sentences.tolist()
        decoded = [tokenizer.decode(shard.ids[a:b].tolist()) for a, b in pairwise(bounds)]
        assert decoded == [tokenizer.decode(tokenizer.encode(line, special_tokens=False).ids) for line in lines]
        starts = np.array([not tokenizer.token(int(i)).startswith("##") for i in shard.ids])
        assert np.array_equal(shard.words(0, len(shard)), starts)
        assert (made["tokens"], made["sentences"], made["documents"]) == (
            len(shard),
            len(lines),
            len(shard.documents) - 1,
        )
        documents += made["documents"]
    assert index["documents"] == documents
    assert index["bytes_per_id"] == 2
    assert index["sources"][1]["sha256"] == hashlib.sha256((texts / "01.txt").read_bytes()).hexdigest()
    assert index["tokenizer"] == tokenizer.fingerprint == Tokenizer.load(tmp_path / "shards" / "tokenizer").fingerprint


def test_any_number_of_workers_gives_the_same_bytes(
    texts: Path, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "PIECE", 1000)
    for workers in (1, 2, 4):
        build(files([str(texts)]), tokenizer, tmp_path / f"of-{workers}", workers=workers)
    assert len(list((tmp_path / "of-1").glob("shard-*"))) > 40
    assert content(tmp_path / "of-1") == content(tmp_path / "of-2") == content(tmp_path / "of-4")


def command(texts: Path, vocabulary: Path, output: Path, workers: int) -> list[str]:
    options = ["--tokenizer", str(vocabulary), "--output", str(output), "--workers", str(workers)]
    run = f"from bertkit.corpus import source; source.PIECE = {PIECE}; from bertkit.cli import main; main()"
    return [sys.executable, "-c", run, "corpus", "build", str(texts), *options]


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_anywhere_it_goes_on_and_ends_the_same(
    texts: Path, vocabulary: Path, tmp_path: Path, workers: int
) -> None:
    build(files([str(texts)]), Tokenizer.load(vocabulary), tmp_path / "whole")
    draw, again = random.Random(workers), command(texts, vocabulary, tmp_path / "shards", workers)
    kills = 0
    while kills < 3:
        process = subprocess.Popen(again, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        partial, wanted = tmp_path / "shards.partial", draw.randint(1, 20)
        while process.poll() is None and len(list(partial.glob("shard-*"))) < wanted:
            time.sleep(0.001)
        process.kill()
        process.wait()
        if (tmp_path / "shards").exists() and not partial.exists():  # too late, on a busy machine: begin anew
            shutil.rmtree(tmp_path / "shards")
            continue
        kills += 1
        if not (tmp_path / "shards").exists():
            assert partial.is_dir()
    subprocess.run(again, check=True, capture_output=True)
    assert content(tmp_path / "shards") == content(tmp_path / "whole")
    assert not (tmp_path / "shards.partial").exists()


def test_what_is_done_is_not_done_again(
    texts: Path, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    work = building.Worker.__call__

    def counted(self: building.Worker, job: building.Message, data: bytes) -> building.Message:
        if len(made) == 10:
            raise KeyboardInterrupt
        made.append(job["number"])
        return work(self, job, data)

    monkeypatch.setattr(building.Worker, "__call__", counted)
    with pytest.raises(KeyboardInterrupt):
        build(files([str(texts)]), tokenizer, tmp_path / "shards")
    (texts / "03.txt.gz").write_bytes(gzip.compress(b"the cat has changed. " * 250))
    made.append(made.pop())
    first, made[:] = made[:], []
    monkeypatch.setattr(building.Worker, "__call__", work)

    def recorded(self: building.Worker, job: building.Message, data: bytes) -> building.Message:
        made.append(job["number"])
        return work(self, job, data)

    monkeypatch.setattr(building.Worker, "__call__", recorded)
    build(files([str(texts)]), tokenizer, tmp_path / "shards")
    assert first == list(range(10))
    assert made == [3, *range(10, 24)], "and what was changed meanwhile is"
    build(files([str(texts)]), tokenizer, tmp_path / "fresh")
    assert content(tmp_path / "shards") == content(tmp_path / "fresh")


def test_ctrl_c_leaves_what_is_done(texts: Path, vocabulary: Path, tmp_path: Path) -> None:
    again = command(texts, vocabulary, tmp_path / "shards", 2)
    with subprocess.Popen(again, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None and len(list((tmp_path / "shards.partial").glob("shard-*"))) < 3:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    if process.returncode != 0:  # it may have been done already
        assert process.returncode == 130
        assert said.endswith("bertkit: stopped. The same command goes on from " + f"{tmp_path / 'shards'}.partial\n")
    subprocess.run(again, check=False, capture_output=True)
    assert artifact.verify(tmp_path / "shards")


def test_killed_at_the_very_end_it_is_done(
    texts: Path, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = building.shutil.rmtree

    def killed(path: Path, **options: bool) -> None:
        if Path(path).name == "shards.partial":
            raise KeyboardInterrupt
        remove(path, **options)

    monkeypatch.setattr(building.shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        build(files([str(texts)]), tokenizer, tmp_path / "shards")
    monkeypatch.setattr(building.shutil, "rmtree", remove)
    made = content(tmp_path / "shards")
    index = build(files([str(texts)]), tokenizer, tmp_path / "shards")
    assert content(tmp_path / "shards") == made
    assert index["documents"] == build(files([str(texts)]), tokenizer, tmp_path / "fresh")["documents"]
    assert not (tmp_path / "shards.partial").exists()


def test_two_at_once_and_another_command(texts: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    output = tmp_path / "shards"
    with (
        building._own(tmp_path / "shards.partial", {"version": 1}),
        pytest.raises(
            BertkitError, match=r"shards.partial is being written by another process. Wait for it, or stop it"
        ),
    ):
        build(files([str(texts)]), tokenizer, output)
    other = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"])
    settings = {"version": 1, "tokenizer": other.fingerprint, "options": Options().settings(other)}
    with building._own(tmp_path / "other.partial", settings):
        pass
    with pytest.raises(BertkitError, match=r"unfinished work of a command with another tokenizer. Repeat that command"):
        build(files([str(texts)]), tokenizer, tmp_path / "other")


def test_an_output_that_is_there_is_refused_before_the_work(texts: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    build(files([str(texts)]), tokenizer, tmp_path / "shards")
    with pytest.raises(BertkitError, match="exists and is not empty"):
        build(files([str(texts)]), tokenizer, tmp_path / "shards")
    assert not (tmp_path / "shards.partial").exists()
    build(files([str(texts / "01.txt")]), tokenizer, tmp_path / "shards", overwrite=True)
    assert len(list((tmp_path / "shards").glob("shard-*"))) == 1


def test_an_empty_corpus(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" \n\n\x00\n")
    with pytest.raises(BertkitError, match=r"the corpus is empty: there is no text in .*a.txt"):
        build(files([str(tmp_path / "a.txt")]), tokenizer, tmp_path / "shards")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt"]


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_lines_stop_or_are_listed(tokenizer: Tokenizer, tmp_path: Path, workers: int) -> None:
    (tmp_path / "a.txt").write_bytes(b"the cat\n\nthe d\xffog\n\na mat\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(os.urandom(5000))[:15])
    sources = files([str(tmp_path)])
    with pytest.raises(BertkitError, match=r"a.txt, line 3: is not UTF-8 at byte 6 \(0xff\)"):
        build(sources[:1], tokenizer, tmp_path / "shards", workers=workers)
    with pytest.raises(BertkitError, match=r"b.txt.gz, line 1: the file cannot be read further"):
        build(sources[1:], tokenizer, tmp_path / "packed", workers=workers)
    again = build(sources[:1], tokenizer, tmp_path / "shards", Options(on_error="skip"), workers=workers)
    assert again["skipped"] == 1, "the advice of the error can be followed"
    index = build(sources, tokenizer, tmp_path / "skipped", Options(on_error="skip"), workers=workers)
    assert index["documents"] == 2
    assert [line.partition(": ")[0].rpartition("/")[2] for line in index["skipped_lines"]][:1] == ["a.txt, line 3"]
    assert "cannot be read further" in index["skipped_lines"][-1]
    assert json.loads((tmp_path / "skipped" / "corpus.json").read_text())["skipped"] == index["skipped"]


@pytest.fixture
def small_disk() -> Iterator[None]:
    """No file may grow past 4,000 bytes: a write fails in the system, as on a full disk."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_is_said_and_loses_nothing(
    texts: Path, tokenizer: Tokenizer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (texts / "05.txt").write_text("the cat sat. " * 2000)
    build(files([str(texts)]), tokenizer, tmp_path / "whole")
    request.getfixturevalue("small_disk")
    with pytest.raises(BertkitError, match=r"shard-00005.safetensors was not written: a file is larger than"):
        build(files([str(texts)]), tokenizer, tmp_path / "shards")
    assert len(list((tmp_path / "shards.partial").glob("shard-*"))) == 5
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    build(files([str(texts)]), tokenizer, tmp_path / "shards")
    assert content(tmp_path / "shards") == content(tmp_path / "whole")


def test_a_worker_that_is_killed_is_told(texts: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    from bertkit.corpus import crew

    class Doomed(crew.Crew):
        def __enter__(self) -> crew.Crew:
            super().__enter__()
            self._workers[0].kill()
            self._workers[0].wait()
            return self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "Crew", Doomed)
        with pytest.raises(BertkitError, match=r"a worker process was killed, most likely because memory ran out"):
            build(files([str(texts)]), tokenizer, tmp_path / "shards", workers=2)
    build(files([str(texts)]), tokenizer, tmp_path / "shards", workers=2)


def test_words_phrases_and_options(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat sat. 猫坐\nthe dog", encoding="utf-8")
    (tmp_path / "pets").write_text("the cat\n")
    options = Options(words="spaces", sentences="lines", lexicons={"pets": tmp_path / "pets"})
    build(files([str(tmp_path / "a.txt")]), tokenizer, tmp_path / "shards", options)
    shard = Shard(tmp_path / "shards" / "shard-00000.safetensors")
    assert shard.sentences.tolist() == [0, 6, 8]
    assert shard.words(0, 8).astype(int).tolist() == [1, 1, 1, 1, 1, 0, 1, 1]
    assert shard.units("pets", 0, 8).astype(int).tolist() == [1, 0, 1, 1, 1, 0, 1, 1]
    with pytest.raises(BertkitError, match="unknown lexicon 'places'"):
        shard.units("places", 0, 1)
    with pytest.raises(BertkitError, match="unknown splitter 'nltk'"):
        Options(sentences="nltk")
    with pytest.raises(BertkitError, match="a dictionary is for words by jieba, not for 'none': add --words jieba"):
        Options(words="none", dictionary=tmp_path / "pets")


def test_small_files_share_a_shard_and_keep_their_documents(
    texts: Path, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = build(files([str(texts)]), tokenizer, tmp_path / "apart")
    monkeypatch.setattr(source, "PIECE", 30_000)
    together = build(files([str(texts)]), tokenizer, tmp_path / "together", workers=2)
    assert len(apart["shards"]) == 24
    assert len(together["shards"]) == 4
    assert {name: together[name] for name in ("tokens", "words", "sentences", "documents")} == {
        name: apart[name] for name in ("tokens", "words", "sentences", "documents")
    }
    ids = [
        np.concatenate([Shard(tmp_path / where / made["file"]).ids for made in index["shards"]])
        for where, index in (("apart", apart), ("together", together))
    ]
    assert np.array_equal(*ids)


def test_chinese_vocabularies_get_chinese_words(tokenizer: Tokenizer, tmp_path: Path) -> None:
    assert Options().settings(tokenizer)["words"] == "none"
    characters = [chr(code) for code in range(0x4E00, 0x4E00 + 6000)]
    chinese = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters])
    assert Options().settings(chinese)["words"] == "jieba"
    assert Options(words="none").settings(chinese)["words"] == "none"
    (tmp_path / "own").write_text("之一")
    assert Options(dictionary=tmp_path / "own").settings(tokenizer)["words"] == "jieba"


def test_memory_decides_how_many_workers() -> None:
    assert workers_within(2 * 2**30, 2) == 2
    assert workers_within(2 * 2**30, 64) == 5
    with pytest.raises(BertkitError, match="--max-ram is 100 MB: building a corpus of any size needs 500 MB"):
        workers_within(100 * 2**20, 1)


def test_hostile_shards(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat sat. a dog")
    build(files([str(tmp_path / "a.txt")]), tokenizer, tmp_path / "shards")
    good = (tmp_path / "shards" / "shard-00000.safetensors").read_bytes()
    bad = tmp_path / "bad.safetensors"
    draw = random.Random(0)
    for _ in range(300):
        data = bytearray(good)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        bad.write_bytes(data[: draw.choice([len(data), draw.randrange(len(data))])])
        try:
            shard = Shard(bad)
            shard.words(0, len(shard))
        except BertkitError as error:
            assert "is no shard" in str(error)  # noqa: PT017


def test_a_broken_file_gives_what_can_be_read(tokenizer: Tokenizer, tmp_path: Path) -> None:
    text = "\n\n".join(f"the cat {number} sat on a mat {random.Random(number).random()}" for number in range(20_000))
    packed = gzip.compress(text.encode())
    (tmp_path / "cut.txt.gz").write_bytes(packed[: len(packed) // 2])
    index = build(files([str(tmp_path)]), tokenizer, tmp_path / "shards", Options(on_error="skip"))
    assert 9_000 < index["documents"] < 11_000
    assert len(index["sources"]) == index["skipped"] == 1
    (tmp_path / "none.txt.gz").write_bytes(packed[:20])
    with pytest.raises(BertkitError, match=r"the corpus is empty: .*left out: .*none.txt.gz, line 1: the file"):
        build(files([str(tmp_path / "none.txt.gz")]), tokenizer, tmp_path / "none", Options(on_error="skip"))


def test_lists_that_cannot_be_read(tokenizer: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"nope.txt cannot be read: No such file"):
        Options(dictionary=tmp_path / "nope.txt").settings(tokenizer)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(BertkitError, match=r"latin.txt is not UTF-8 at byte 4"):
        Options(lexicons={"a": tmp_path / "latin.txt"}).settings(tokenizer)


def test_unknown_tokens_are_counted(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat sat. xyzzy xyzzy")
    index = build(files([str(tmp_path)]), tokenizer, tmp_path / "shards")
    assert index["unknown"] == 2
