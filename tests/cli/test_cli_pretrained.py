"""What commands answer with real checkpoints of variants."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.running import Bertkit
from tests.pretrained import CHINESE_ALBERT, KOREAN_ALBERT, SIMBERT, pretrained


@pytest.mark.parametrize(
    ("package", "text", "word", "score"),
    [
        (CHINESE_ALBERT, "他是一名大学老[MASK]", "师", 0.835),
        (KOREAN_ALBERT, "오늘 날씨가 정말 [MASK]", "좋네요", 0.270),
    ],
    ids=["chinese", "korean"],
)
def test_fill_gives_the_known_word(run: Bertkit, package: tuple[str, str], text: str, word: str, score: float) -> None:
    done = run("fill", pretrained(package), text, "--json")
    best = json.loads(done.out)[0][0]
    assert (best["token"], best["text"]) == (word, text.replace("[MASK]", word))
    assert best["score"] == pytest.approx(score, abs=0.001)


def test_embed_tells_paraphrases_from_others(run: Bertkit, tmp_path: Path) -> None:
    """SimBERT compares what its pooler makes of the first token."""
    (tmp_path / "texts.txt").write_text("怎么学好英语\n如何学习英语\n今天天气不错\n")
    out = tmp_path / "vectors.npy"
    done = run("embed", pretrained(SIMBERT), "--input", tmp_path / "texts.txt", "--output", out, "--pool", "pooler")
    assert done.code == 0, done.err
    vectors = np.load(out)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert vectors[0] @ vectors[1] > 0.6 > 0.2 > vectors[0] @ vectors[2]
