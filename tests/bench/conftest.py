"""Text for the bench that every machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import prose
from bertkit.corpus import python_docs


@pytest.fixture(scope="session")
def documents() -> list[str]:
    """Some of Python's documentation; reading all of it takes seconds."""
    return prose.taken(python_docs.documents(), 0.7)


@pytest.fixture
def without_shared(documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without datasets."""
    monkeypatch.setattr(prose, "SHARED", tmp_path / "absent")
    monkeypatch.setattr(python_docs, "documents", lambda: iter(documents))
