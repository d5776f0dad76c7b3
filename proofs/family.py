"""RoBERTa, XLM-R, ALBERT and ELECTRA against transformers: random networks of every class, and tokens of real text."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import torch
import transformers

from bertkit.text import Tokenizer
from proofs.tokenizer import SHARED, real_lines
from tests.family import test_equality as networks
from tests.text import test_families as tokens
from tests.text.families import published

CLAIM = (
    "every class of RoBERTa, XLM-R, ALBERT and ELECTRA equals transformers within 1e-5, outputs and gradients, padded "
    "and packed, in 2,000 random small configurations; their tokenizers give transformers' ids, offsets, segments and "
    "words on 50,000 lines of English and Chinese"
)
COVERS = (
    *("bertkit/family", "bertkit/parts", "bertkit/batch.py", "bertkit/names.py", "bertkit/weights/directory.py"),
    *(f"bertkit/text/{name}.py" for name in ("tokenizer", "template", "pieces", "bytelevel", "unigram", "spiece")),
    *(f"bertkit/text/{name}.py" for name in ("directory", "opened", "added", "encoding")),
)

EACH = -(-2000 // len(networks.CASES))
"""networks of a class"""
TEXTS = ("gutenberg/austen-emma.txt.gz", "gutenberg/melville-moby_dick.txt.gz", tokens.CHINESE)
LINES, CALL = 40_000, 2000
"""of each text at most, and at a time"""
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for number, (model_type, task) in enumerate(networks.CASES):
        yield f"{model_type} {task}", partial(_random, number, model_type, task)
    for name in tokens.PUBLISHED:
        yield f"tokens of {name}", partial(_tokens, name)


def summary(results: list[Result]) -> str:
    made = [result for result in results if "networks" in result]
    read = [result for result in results if "lines" in result]
    outputs, slopes = (max(float(result[key]) for result in made) for key in ("outputs", "gradients"))
    return (
        f"{sum(int(result['networks']) for result in made):,} networks of {len(made)} classes: largest difference "
        f"{outputs:.1e} in outputs, {slopes:.1e} in gradients; {len(read)} tokenizers, "
        f"{sum(int(result['lines']) for result in read):,} lines, 0 differences (torch {torch.__version__}, "
        f"transformers {transformers.__version__})"
    )


def _random(number: int, model_type: str, task: str) -> Result:
    dice = random.Random(number)
    found = [_small(dice, model_type, task) for _ in range(EACH)]
    outputs, slopes = (max(values) for values in zip(*found, strict=True))
    return {"networks": EACH, "outputs": outputs, "gradients": slopes}


def _small(dice: random.Random, model_type: str, task: str) -> tuple[float, float]:
    config = {
        "num_hidden_layers": dice.randint(1, 4),
        "num_attention_heads": dice.randint(1, 4),
        "head": dice.choice([4, 8, 16]),
        "intermediate_size": dice.choice([8, 20, 64]),
        "vocab_size": dice.choice([17, 60, 200]),
        "type_vocab_size": dice.choice([1, 2]),
        "hidden_act": dice.choice(["gelu", "gelu_new", "relu"]),
        "layer_norm_eps": dice.choice([1e-12, 1e-5]),
        "num_labels": dice.randint(2, 5),
    }
    lengths, seed = [dice.randint(1, 40) for _ in range(dice.randint(1, 8))], dice.randrange(10**6)
    found = networks.differences(model_type, task, config, lengths, seed)
    assert max(found) <= networks.TOLERANCE, (model_type, task, config, lengths, seed, found)
    return found


def _tokens(name: str) -> Result:
    names, said = tokens.PUBLISHED[name]
    with tempfile.TemporaryDirectory() as place:
        directory = published(SHARED, Path(place) / "theirs", names, said)
        ours, theirs = Tokenizer.load(directory), transformers.AutoTokenizer.from_pretrained(directory)
    count = 0
    for lines in _lines():
        if name.startswith("XLNet's pieces in ALBERT"):  # their class takes row 1 for <unk>, which is ALBERT's
            lines = [line for line, ids in zip(lines, ours.ids_of_many(lines), strict=True) if ours.unk_id not in ids]
        tokens.same(ours, theirs, lines)
        count += len(lines)
    return {"lines": count}


def _lines() -> Iterator[list[str]]:
    for text in TEXTS:
        lines = real_lines(SHARED / "data" / text)[0][:LINES]
        yield from (lines[first : first + CALL] for first in range(0, len(lines), CALL))
