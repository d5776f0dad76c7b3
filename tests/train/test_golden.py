"""The losses of a tiny run as they were once: what no other test holds still cannot change without being seen.

python -m tests.train.test_golden    # writes golden.json anew, after a change that was meant
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from bertkit.corpus import build
from bertkit.corpus.source import files
from bertkit.text import Tokenizer
from bertkit.train import recipe
from bertkit.train.journal import NAME as JOURNAL
from bertkit.train.journal import lines
from bertkit.train.pretrain import pretrain

GOLDEN = Path(__file__).with_name("golden.json")
TEXT = """
The ferry left the harbour before sunrise. Its deck was wet with rain, and nobody stood outside.
In the cabin an old woman sold tea from a copper pot. She knew every passenger by name.
When the wind turned, the captain slowed down. The island was still an hour away.

Bread needs flour, water, salt and time. Too much flour makes the dough dry.
Leave it in a warm place until it has doubled. Then fold it twice and let it rest again.
The oven must be hot before the bread goes in. A bowl of water keeps the crust soft.

Our school has a garden behind the gym. Each class looks after one bed.
We grew beans this summer, and the younger children grew pumpkins. One pumpkin was heavier than a dog.
In autumn we cook soup for the whole street. Nobody has to pay for it.

A bicycle is repaired faster than most people think. First turn it over, so that it stands on its saddle.
Take the wheel off and pull out the tube. Hold it under water, and bubbles show the hole.
Rub the rubber with sandpaper, glue on a patch, and wait five minutes. Then pump it up again.

The river rose for three days. On the fourth morning the bridge was closed.
Men with boats carried letters and milk across the water. The children thought it was a holiday.
When the water fell, it left mud in every cellar. It took the village a month to clean them.
"""
RECIPE = """
objective = [{ part = "Nsp" }, { part = "MaskedLm" }]

[data]
corpus = "corpus"

[model]
size = "bert-tiny"
dropout = 0.1

[train]
steps = 12
phases = [
    { inputs = { part = "SegmentPairs", length = 24 }, rows = 8, micro = 4, share = 2 },
    { inputs = { part = "SegmentPairs", length = 48 }, rows = 4, micro = 4 },
]
optimizer = { part = "Adam", rate = 5e-4, decay = 0.5 }  # so much that it is seen in twelve steps
schedule = { part = "Linear", warmup = 4 }
log_every = 1
evaluate_every = 6
"""
COUNTED, MEASURED = ("kind", "step", "tokens"), ("loss", "losses", "norm")


def trained(place: Path) -> list[dict[str, Any]]:
    """What the run measures: counts, and numbers that were summed."""
    specials, characters = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], sorted(set(TEXT.lower()) - {" ", "\n"})
    words = sorted({word.strip(".,") for word in TEXT.lower().split()})
    pieces = dict.fromkeys([*specials, *characters, *(f"##{one}" for one in characters), *words])
    (place / "text.txt").write_text(TEXT, encoding="utf-8")
    (place / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    tokenizer = Tokenizer.from_vocabulary(list(pieces))
    build.build(files([str(place / "text.txt")]), tokenizer, place / "corpus", build.Options(held_out=0.5))
    changes = [f"data.corpus={place / 'corpus'}", f"output={place / 'run'}"]
    pretrain(recipe.read(place / "recipe.toml", changes))
    told = [line for line in lines(place / "run" / JOURNAL) if line["kind"] in {"step", "held-out"}]
    return [{name: line[name] for name in (*COUNTED, *MEASURED) if name in line} for line in told]


def test_a_tiny_run_has_the_losses_it_had(tmp_path: Path) -> None:
    """Within 1e-5: other processors and threads add in another order, which comes to 1e-7 here, SSE to AVX-512."""
    golden, ours = json.loads(GOLDEN.read_text(encoding="utf-8")), trained(tmp_path)
    assert len(ours) == len(golden)
    for line, expected in zip(ours, golden, strict=True):
        for name, value in expected.items():
            close = pytest.approx(value, rel=1e-5) if name in MEASURED else value
            assert line[name] == close, f"{name} of {expected['kind']} {expected['step']}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        rows = ",\n".join(json.dumps(line) for line in trained(Path(folder)))
    GOLDEN.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
    print(f"wrote {GOLDEN}. Next: git diff {GOLDEN}")
