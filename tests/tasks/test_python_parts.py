"""Paragraphs of Python's documentation with labels: each once, the same every time, none on both sides."""

from __future__ import annotations

import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from bertkit.corpus import python_docs
from bertkit.tasks import python_parts


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[list[str]], list[list[str]]]:
    """Of every third module, which takes a third of the time."""
    files = python_docs._files
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python_docs, "_files", lambda library: files(library)[::3])
        train, dev = python_parts.write(tmp_path_factory.mktemp("parts"))
        again = python_parts.write(tmp_path_factory.mktemp("again"))
    assert (train.read_bytes(), dev.read_bytes()) == tuple(path.read_bytes() for path in again)
    return _read(train), _read(dev)


def _read(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_paragraph_is_there_once(tables: tuple[list[list[str]], list[list[str]]]) -> None:
    train, dev = tables
    texts = [text for _, text in (*train, *dev)]
    assert len(texts) == len(set(texts)) > 500
    assert {label for label, _ in train} <= set(python_parts.PARTS)


def test_a_tenth_of_every_label_is_kept_for_exams(tables: tuple[list[list[str]], list[list[str]]]) -> None:
    train, dev = (Counter(label for label, _ in rows) for rows in tables)
    for label, count in train.items():
        assert abs(dev[label] - (count + dev[label]) / 10) <= 1


def test_labels_are_right(tables: tuple[list[list[str]], list[list[str]]]) -> None:
    modules = {module for modules in python_parts.PARTS.values() for module in modules.split()}
    assert len(modules) == sum(len(modules.split()) for modules in python_parts.PARTS.values()), "each in one part"
    modules_of: dict[str, str] = {}
    for module in ("tkinter", "asyncio", "email", "xml"):
        for path in (Path(sysconfig.get_path("stdlib")) / module).rglob("*.py"):
            docs = [one for group in python_docs._docstrings(path) for one in group]
            modules_of |= {text: module for one in docs for text in python_docs.paragraphs(one)}
    checked = [(label, modules_of[text]) for label, text in tables[1] if text in modules_of]
    assert len(checked) > 20
    assert all(module in python_parts.PARTS[label].split() for label, module in checked)
