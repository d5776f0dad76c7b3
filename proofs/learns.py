"""It learns: a small BERT from raw English text on two cores, and what it learned is worth something.

Wikipedia, novels, news, speeches and talk become a vocabulary and a corpus, of which some documents are held out. From
each seed a BERT-mini learns masked tokens and next sentences. Then it is fine-tuned on 2,000 sentences of SST-2, and so
is the same network from random weights: each with the better of two rates, chosen on 1,000 other training sentences,
and judged on the development set.
"""

from __future__ import annotations

import gzip
import random
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bertkit import artifact, model
from bertkit.batch import Batch, Example, collate
from bertkit.model import Model
from bertkit.objectives.objective import Asked, Objective
from bertkit.parts.encoder import Encoder
from bertkit.parts.heads import Classify, Head, Pooler
from bertkit.parts.network import NetworkModule
from bertkit.parts.surprise import surprise
from bertkit.train import loop
from bertkit.train.exam import examine
from bertkit.train.journal import lines
from bertkit.train.learner import Learner
from bertkit.train.material import Data
from bertkit.train.optimizer import Adam
from bertkit.train.recipe import read
from bertkit.train.run import pretrain
from bertkit.train.schedule import Linear
from proofs.run import Repository

CLAIM = (
    "a BERT-mini learns from 29 MB of English text on two cores: on held-out text its masked-token loss is well below "
    "the unigram entropy and it judges next sentences clearly better than chance, and fine-tuned on 2,000 sentences of "
    "SST-2 it beats the same network from random weights"
)
_LEARNING = ("train/loop", "train/learner", "train/optimizer", "train/schedule", "train/feed", "parts/surprise")
COVERS = (
    *(f"bertkit/{name}.py" for name in _LEARNING),
    *("bertkit/objectives", "bertkit/parts/dropout.py", "bertkit/corpus/inputs.py", "bertkit/corpus/examples.py"),
)
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
HOME = Path(__file__).resolve().parents[1] / ".proofs" / "learns"
SEEDS = 3
PARAGRAPHS = 20
"""of a book, or items of news or talk, that are a document"""
SENTENCES, CHOOSING, EPOCHS, ROWS = 2000, 1000, 4, 16
"""of SST-2"""
RATES = (1e-4, 4e-4)
BELOW, ABOVE, MARGIN = 0.5, 0.55, 0.02
"""nats below the unigram entropy, share of pairs, points of accuracy: what every seed must exceed"""

RECIPE = """
objective = [{ part = "Nsp" }, { part = "MaskedLm", mask = { rate = 0.3 } }]

[data]
corpus = "corpus"

[model]
size = "bert-mini"
dropout = 0.0
spread = 0.06

[train]
steps = 3600
phases = [{ inputs = { part = "SegmentPairs", length = 64 }, rows = 16, micro = 16 }]
optimizer = { part = "Adam", rate = 5e-4, beta2 = 0.98 }
schedule = { part = "Linear", warmup = 200 }
checkpoint_every = 200
evaluate_every = 600
questions = 2048
"""

Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for seed in range(SEEDS):
        yield f"seed {seed}", partial(learned, seed)


def summary(results: list[Result]) -> str:
    def told(name: str, form: str) -> str:
        return ", ".join(format(result[name], form) for result in results)

    margins = [float(result["pretrained"]) - float(result["random"]) for result in results]
    unigram = fmean(float(result["unigram"]) for result in results)
    right = all(
        float(result["mlm"]) < float(result["unigram"]) - BELOW and float(result["next"]) > ABOVE for result in results
    )
    return (
        f"{'' if right and min(margins) > MARGIN else 'FAILED: '}{len(results)} seeds; masked-token loss "
        f"{told('mlm', '.2f')} with a unigram entropy of {unigram:.2f}; next sentence right in {told('next', '.1%')}; "
        f"SST-2 {told('pretrained', '.1%')} pre-trained, {told('random', '.1%')} from random weights"
    )


def learned(seed: int) -> Result:
    """What one seed comes to. A run that was stopped goes on."""
    torch.set_num_threads(2)
    _write_texts()
    Data(texts=(str(HOME / "texts"), str(SHARED / "en-wikipedia-featured"))).prepare(HOME, print)
    code = Repository(HOME.parents[1]).fingerprint((*COVERS, "proofs/learns.py"))[:12]
    recipe, run = HOME / "recipe.toml", HOME / f"seed-{seed}-{code}"  # other code begins anew
    with artifact.file(recipe, overwrite=True) as file:
        file.write(RECIPE.encode())
    made = pretrain(read(recipe, [f"data.corpus={HOME / 'corpus'}", f"output={run}", f"seed={seed}"]))
    told = list(lines(run / "log.jsonl"))
    last = [line for line in told if line["kind"] == "held-out"][-1]
    tokenizer = model.load(made).tokenizer
    sst2 = Sst2.read(seed)
    return {
        "unigram": told[0]["unigram"],
        "mlm": last["losses"]["mlm"],
        "next": last["right"]["next"],
        "pretrained": fine_tuned(partial(model.load, made), sst2, seed),
        "random": fine_tuned(lambda heads: model.create("bert-mini", tokenizer, heads, seed), sst2, seed),
    }


def _write_texts() -> None:
    """Books, news, speeches and talk as plain text: a paragraph on a line, an empty line between documents."""
    if (HOME / "texts").is_dir():
        return
    HOME.mkdir(parents=True, exist_ok=True)
    with artifact.directory(HOME / "texts", "texts") as content:
        for name, paragraphs in _texts():
            kept = [" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip()]
            documents = ["\n".join(kept[at : at + PARAGRAPHS]) for at in range(0, len(kept), PARAGRAPHS)]
            (content / f"{name}.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")


def _texts() -> Iterator[tuple[str, list[str]]]:
    for path in sorted((SHARED / "gutenberg").glob("*.txt.gz")):
        text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        yield path.name.split(".")[0], re.split(r"\n\s*\n", text)
    for name in ("abc", "state_union", "webtext"):
        with zipfile.ZipFile(SHARED / "nltk-corpora" / f"{name}.zip") as archive:
            for member in sorted(member for member in archive.namelist() if member.endswith(".txt")):
                text = archive.read(member).decode("latin-1")
                yield f"{name}-{Path(member).stem}", re.split(r"\n\s*\n" if name == "state_union" else r"\n", text)


Labelled = list[tuple[str, int]]


class Sst2(NamedTuple):
    """Sentences and whether they are in favour: to learn from, to choose a rate with, to be judged by."""

    learned: Labelled
    chosen: Labelled
    judged: Labelled

    @classmethod
    def read(cls, seed: int) -> Sst2:
        train = _rows(gzip.decompress((SHARED / "GLUE" / "SST-2" / "train.tsv.gz").read_bytes()))
        random.Random(seed).shuffle(train)
        judged = _rows((SHARED / "GLUE" / "SST-2" / "dev.tsv").read_bytes())
        return cls(train[:SENTENCES], train[SENTENCES : SENTENCES + CHOOSING], judged)


def _rows(data: bytes) -> Labelled:
    return [(text, int(label)) for text, label in (row.split("\t") for row in data.decode().splitlines()[1:])]


@dataclass(frozen=True)
class Sentiment(Objective):
    """Is a sentence in favour?"""

    def heads(self, encoder: Encoder) -> dict[str, Head]:
        return {"pooler": Pooler(), "classify": Classify(("negative", "positive"))}

    def counts(self, batch: Batch) -> dict[str, int]:
        return {"sentiment": len(batch.labels["sentiment"])}

    def loss(self, network: NetworkModule, hidden: Tensor, batch: Batch) -> dict[str, Asked]:
        logits = network.logits("classify", hidden, batch.layout)  # [B, 2]
        return {"sentiment": Asked(*surprise(logits, batch.labels["sentiment"]))}


def fine_tuned(start: Callable[[dict[str, Head]], Model], sst2: Sst2, seed: int) -> float:
    """The accuracy on the development set with the rate that does best on other sentences."""
    heads = {"pooler": Pooler(), "classify": Classify(("negative", "positive"))}
    tried = [_fine_tuned(start(heads), sst2, rate, seed) for rate in RATES]
    return max(tried)[1]


def _fine_tuned(made: Model, sst2: Sst2, rate: float, seed: int) -> tuple[float, float]:
    """The accuracy on the sentences for choosing, and on those that judge."""
    network, objective, schedule = made.network.train(), Sentiment(), Linear(warmup=50)
    optimizer, learner, draw = Adam(rate=rate).build(network), Learner(network, objective), random.Random(seed)
    steps = EPOCHS * SENTENCES // ROWS
    order = [place for _ in range(EPOCHS) for place in draw.sample(range(SENTENCES), SENTENCES)]
    for step in range(steps):
        rows = [sst2.learned[place] for place in order[step * ROWS : (step + 1) * ROWS]]
        for group in optimizer.param_groups:
            group["lr"] = rate * schedule.share(step, steps)
        loop.step(learner, objective, [_batch(made, rows)], optimizer, 1.0, seed, step)
    chosen, judged = (_accuracy(made, rows) for rows in (sst2.chosen, sst2.judged))
    return chosen, judged


def _accuracy(made: Model, rows: Labelled) -> float:
    batches = [_batch(made, rows[at : at + 64]) for at in range(0, len(rows), 64)]
    return examine(made, Sentiment(), batches).right["sentiment"]


def _batch(made: Model, rows: Sequence[tuple[str, int]]) -> Batch:
    examples = []
    for text, label in rows:
        ids = np.array(made.tokenizer.encode(text).ids)
        examples.append(Example({"ids": ids, "segments": np.zeros_like(ids)}, labels={"sentiment": label}))
    return collate(examples)
