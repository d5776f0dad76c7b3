"""Fixtures that several rooms share."""

import atexit
import hashlib
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from bertkit.text import Tokenizer

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real datasets and vocabularies that live beside the project."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("needs ../shared (real datasets beside the project); not found")
    return path


@pytest.fixture
def tokenizer() -> Tokenizer:
    """A small uncased tokenizer of our own."""
    words = "the cat dog sat on a mat play ##ing ##ed un ##able runs fast slow house . , ! 猫 狗 坐"
    return Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words.split()])


@pytest.fixture(autouse=True)
def logger() -> Iterator[None]:
    """A command that runs in this process writes its messages to a stream that ends with the test."""
    ours = logging.getLogger("bertkit")
    before = ours.handlers, ours.level
    yield
    ours.handlers, ours.level = before


# what somebody measured here before, or another test, must not choose the engines of a test
CACHES = tempfile.mkdtemp(prefix="bertkit-tests-")
atexit.register(shutil.rmtree, CACHES, ignore_errors=True)
os.environ["BERTKIT_CACHE"] = CACHES


@pytest.fixture(autouse=True)
def cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place of its own for what a test measures; nothing is there yet."""
    name = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]
    monkeypatch.setenv("BERTKIT_CACHE", f"{CACHES}/{name}")


# the same cases in every run of `make test`: a failure there is a change, not luck. `make proofs` draws new ones
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

# a shell starts what runs in the background deaf to Ctrl-C, and so would be the commands that tests interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)
