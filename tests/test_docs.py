"""What the README and the guide tell people to type works, and the tree in the README is the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bertkit.family import families

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
FINETUNING = (ROOT / "docs" / "finetuning.md").read_text(encoding="utf-8")
CORPUS = (ROOT / "docs" / "corpus.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


COMMANDS = [line for block in blocks(README, "console") for line in block.splitlines() if line != "make test"]


def test_the_two_commands_are_there() -> None:
    first = blocks(README, "console")[0].splitlines()
    assert first == ["make demo", "make test"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands write; later ones read what earlier ones wrote."""
    return tmp_path_factory.mktemp("readme")


@pytest.mark.parametrize("command", COMMANDS)
def test_readme_commands(command: str, place: Path) -> None:
    if command == "make demo" or command.startswith("make demo TORCH"):
        command += f" DEMO='output={place / 'demo'} train.steps=30 train.evaluate_every=0'"
    for output in (
        "runs/first",
        "runs/electra",
        "runs/films",
        "vectors.npy",
        "page.html",
        "google-minilm",
        "minilm-onnx",
        "audit.html",
        "vocabulary",
        "shards",
    ):
        command = re.sub(rf"(?<=[ =]){re.escape(output)}\b", str(place / output), command)
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    expected = {
        "bertkit export": "sentence_embedding [B, 384]",
        "bertkit parity": "1.000000",
        "corpus audit": "python-docs: ",
        "vocab train": "tokens per word",
        "corpus build": "bytes per id  2",
        "corpus inspect": "Examples 0 to 2 of ",
        "make demo": "Sentences it never learned from",
        "pretrain": "wrote ",
        "checkpoint verify": "the run would go on from step 100",
        "bertkit finetune": "wrote ",
        "bertkit evaluate": "fingerprint",
        "bertkit predict": "\tI was bored to tears.",
        "bertkit report": "report.html. Next: open it in a browser",
        "bertkit fill": "Return a copy of the ",
        "info": "22,713,216",
        "tokenize": "##ffa",
        "embed": "vectors of width 384",
        "lengths": "Proposed sequence length",
        "convert": "took                encoder, pooler",
        "doctor": "0 failed",
    }
    word = next(word for key, word in expected.items() if key in command)
    assert word in done.stdout + done.stderr


@pytest.mark.parametrize("snippet", blocks(README, "python"))
def test_readme_python(snippet: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(snippet, "README.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "(3, 384)" in shown
    assert len([line for line in snippet.splitlines() if line]) <= 5


def test_corpus_python(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    names: dict[str, Any] = {}
    for snippet in blocks(CORPUS, "python"):
        exec(compile(snippet, "corpus.md", "exec"), names)
    assert names["corpus"].tokens.sum() > 100_000
    assert set(names["batch"].labels) == {"next"}


def test_guide_python(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for snippet in blocks(GUIDE, "python"):
        exec(compile(snippet, "guide.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "took encoder, pooler; left none; made new classify" in shown
    assert "\n2000\n" in shown
    assert "'[CLS]', '[CAT=SPORT]', 'the'" in shown


def test_finetuning_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for snippet in blocks(FINETUNING, "python"):
        exec(compile(snippet, "finetuning.md", "exec"), names)
    assert names["result"].rows == 2
    assert names["answer"].label == "bad"


def test_the_tree_in_the_readme_is_the_tree() -> None:
    (tree,) = re.findall(r"^```\n(bertkit/.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    folder = Path()
    named = set()
    for line in tree.splitlines():
        name = line.split()[0]
        folder = folder if line.startswith("  ") else Path()
        assert (ROOT / folder / name).exists(), line
        named.add(str(folder / name))
        if name.endswith("/") and not line.startswith("  "):
            folder = Path(name)
    rooms = {f"bertkit/{path.name}" for path in (ROOT / "bertkit").iterdir() if path.is_dir() and path.name[0] != "_"}
    assert rooms <= named


def test_links_lead_somewhere() -> None:
    pages = [
        ROOT / name
        for name in (
            "README.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "docs/guide.md",
            "docs/architecture.md",
            "docs/pretraining.md",
            "docs/finetuning.md",
            "docs/papers.md",
            "docs/variants.md",
        )
    ]
    for page in pages:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_paper_has_its_files_and_every_file_its_paper() -> None:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    address = re.compile(r"https://arxiv\.org/abs/[0-9.]*[0-9]")
    told: set[tuple[str, str]] = set()
    for row in page.splitlines():
        for paper in address.findall(row):
            told |= {(paper, link) for link in re.findall(r"\]\(\.\./([^)]+)\)", row)}
    assert len(told) > 25
    for paper, link in told:
        assert paper in (ROOT / link).read_text(encoding="utf-8"), f"{link} does not name {paper}"
    files = [*(ROOT / "bertkit").rglob("*.py"), *(ROOT / "recipes").rglob("*.toml")]
    there = {
        (paper, path.relative_to(ROOT).as_posix())
        for path in files
        for paper in address.findall(path.read_text(encoding="utf-8"))
    }
    assert there <= told, "a paper that a file names is not beside it in docs/papers.md"
    assert {f"bertkit/family/{name.replace('-', '_')}.py" for name in families()} <= {link for _, link in told}


def test_the_variant_of_the_page_takes_one_file(tmp_path: Path) -> None:
    """In a copy of the package, with nothing changed but that one file is added, the tests of all families pass."""
    page = (ROOT / "docs" / "variants.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    for folder in ("bertkit", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "bertkit" / "family" / "alibi.py").write_text(code, encoding="utf-8")
    (command,) = re.findall(r"^python -m (pytest .*)$", page, flags=re.MULTILINE)
    place = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=tmp_path, env=place, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"^\.{12,}", done.stdout), "a dozen tests and more"
