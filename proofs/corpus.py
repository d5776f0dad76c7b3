"""Build corpora: kill the builder at random moments, count the workers, watch the memory."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from bertkit.corpus import python_docs
from bertkit.text import Tokenizer

CLAIM = (
    "`bertkit corpus build` gives the same bytes with 1, 2 and 4 workers and after being killed at random moments, "
    "and needs no more memory for 2 GB of text than for 10 MB"
)
_TEXT = (
    *(
        "bulk",
        "chunks",
        "column",
        "lexicon",
        "numbering",
        "ranges",
        "runs",
        "segment",
        "sentences",
        "spelling",
        "table",
    ),
)
_BUILD = ("build", "crew", "format", "python_docs", "shard", "source", "worker")
COVERS = (
    *(f"bertkit/text/{name}.py" for name in _TEXT),
    *(f"bertkit/corpus/{name}.py" for name in _BUILD),
    *("bertkit/cli/corpus.py", "bertkit/cli/sources.py", "bertkit/artifact.py"),
)
KILLS = 20
SIZES = (10, 100, 500, 2000)
"""MB"""
ALLOWED = 1.1
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for workers in (1, 2):
        yield f"kills, {workers} workers", partial(_kills, workers)
    for size in SIZES:
        yield f"memory, {size} MB", partial(_memory, size)


def summary(results: list[Result]) -> str:
    kills = sum(int(result.get("kills", 0)) for result in results)
    peaks = {int(result["size"]): float(result["megabytes"]) for result in results if "size" in result}
    assert max(peaks.values()) <= ALLOWED * min(peaks.values()), peaks
    share = max(float(result["stored"]) for result in results if "stored" in result)
    told = ", ".join(f"{peak:.0f} MB for {size:,} MB" for size, peak in peaks.items())
    equal = f"{kills} kills, 0 differences; 1, 2 and 4 workers equal"
    return f"{equal}; peak of all processes {told}; shards are at most {share:.0%} of the text"


def _vocabulary(place: Path) -> Path:
    """A WordPiece vocabulary of the words that are frequent in the text, and of all its characters."""
    counts: dict[str, int] = {}
    for word in python_docs.text().decode().lower().split():
        counts[word] = counts.get(word, 0) + 1
    letters = sorted({char for word in counts for char in word})
    words = [
        word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:20_000] if word.isalpha()
    ]
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = dict.fromkeys([*specials, *letters, *(f"##{char}" for char in letters), *words])
    place.mkdir()
    Tokenizer.from_vocabulary(list(tokens)).save_files(place)
    return place


def text(size: int, seed: int) -> Iterator[str]:
    """Real text over and over, with 1 % of fresh random words in it, about `size` bytes."""
    draw = random.Random(seed)
    parts = re.split(r"(\s+)", python_docs.text().decode())  # every other one is a word
    words = range(0, len(parts), 2)
    while size > 0:
        changed = list(parts)
        for place in draw.sample(words, len(words) // 100):
            changed[place] = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(4, 12)))
        block = ("".join(changed) + "\n\n")[:size]
        size -= len(block)
        yield block


def _command(path: Path, vocabulary: Path, output: Path, workers: int) -> list[str]:
    options = ["--tokenizer", str(vocabulary), "--output", str(output), "--workers", str(workers)]
    return [sys.executable, "-m", "bertkit", "corpus", "build", str(path), *options]


def content(path: Path) -> dict[str, str]:
    """Every file of a directory by its hash."""
    found = sorted(below for below in path.rglob("*") if below.is_file())
    return {str(below.relative_to(path)): hashlib.sha256(below.read_bytes()).hexdigest() for below in found}


def _kills(workers: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        vocabulary, path = _vocabulary(place / "vocabulary"), place / "text.txt"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(text(60_000_000, 0))
        whole = {}
        for count in (1, 2, 4):
            begun = time.monotonic()
            subprocess.run(_command(path, vocabulary, place / f"of-{count}", count), check=True, capture_output=True)
            whole[count] = time.monotonic() - begun
        expected = content(place / "of-1")
        assert expected == content(place / "of-2") == content(place / "of-4")
        draw, kills, output = random.Random(workers), 0, place / "killed"
        again = _command(path, vocabulary, output, workers)
        while kills < KILLS // 2:
            process = subprocess.Popen(again, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(draw.uniform(0.3, whole[workers] * 0.6))
            if process.poll() is None:
                process.kill()
                process.wait()
                kills += 1
                continue
            assert content(output) == expected, "it was done in between"
            subprocess.run(["rm", "-r", str(output)], check=True)
        subprocess.run(again, check=True, capture_output=True)
        assert content(output) == expected
        assert not output.with_name("killed.partial").exists()
    return {"kills": kills}


def _memory(size: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        vocabulary, path = _vocabulary(place / "vocabulary"), place / "text.txt"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(text(size * 1_000_000, 1))
        peak = peak_of(_command(path, vocabulary, place / "shards", 2))
        stored = sum(shard.stat().st_size for shard in (place / "shards").glob("shard-*"))
        assert stored <= path.stat().st_size, "shards are not larger than the text"
    return {"size": size, "megabytes": peak / 1e6, "stored": stored / (size * 1e6)}


def peak_of(command: list[str]) -> int:
    """The most bytes of memory that a command and its children hold together."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        peak = max(peak, _resident(process.pid))
        time.sleep(0.02)
    assert process.returncode == 0, process.stderr and process.stderr.read().decode()
    return peak


def _resident(root: int) -> int:
    """Bytes of memory that a process and its children hold."""
    total, page = 0, os.sysconf("SC_PAGE_SIZE")
    for number in (root, *_children(root)):
        try:
            total += int(Path(f"/proc/{number}/statm").read_text().split()[1]) * page
        except (OSError, IndexError):  # it has ended
            continue
    return total


def _children(root: int) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(place.read_text().rpartition(")")[2].split()[1]) == root:
                found.append(int(place.parent.name))
        except (OSError, IndexError):
            continue
    return found
