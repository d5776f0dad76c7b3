"""It learns: a small BERT from raw English text on two cores, and what it learned is worth something.

Wikipedia, novels, news, speeches, talk and the sentences of SST-2, without what they are labelled, become a vocabulary
and a corpus, of which some documents are held out. From each seed a BERT-mini learns masked tokens, in short inputs
first, then next sentences as well. Then it is fine-tuned on 2,000 sentences of SST-2, and so is the same network from
random weights: each with the better of two rates, chosen with 1,000 other sentences. The development set judges, and so
do all training sentences that neither learned from nor chose with, as they are five times as many.
"""

from __future__ import annotations

import gzip
import random
import re
import time
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
    "a BERT-mini learns from 23 MB of English text on two cores in less than 45 minutes for three seeds: on held-out "
    "text its masked-token loss is well below the unigram entropy and it judges next sentences clearly better than "
    "chance, and fine-tuned on 2,000 sentences of SST-2 it beats the same network from random weights"
)
_TRAIN = ("loop", "learner", "optimizer", "schedule", "feed", "neighbours")
COVERS = (
    *(f"bertkit/train/{name}.py" for name in _TRAIN),
    *("bertkit/parts/surprise.py", "bertkit/parts/dropout.py", "bertkit/objectives"),
    *("bertkit/corpus/inputs.py", "bertkit/corpus/examples.py"),
)
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
HOME = Path(__file__).resolve().parents[1] / ".proofs" / "learns"
SEEDS = 3
PARAGRAPHS = 20
"""of a book, or items of news or talk, that are a document"""
ARTICLES = 5
"""files of Wikipedia"""
VOCABULARY = 6000
SENTENCES, CHOOSING, EPOCHS, ROWS = 2000, 1000, 4, 16
"""of SST-2"""
RATES = (1.5e-4, 3e-4)
BELOW, ABOVE, MARGIN = 1.0, 0.6, 0.02
"""nats below the unigram entropy, share of pairs, points of accuracy: what every seed must exceed"""

WORDS = """
objective = [{ part = "MaskedLm", mask = { rate = 0.4 } }]

[data]
corpus = "corpus"

[model]
size = "bert-mini"
dropout = 0.0
spread = 0.06
neighbours = 5

[train]
steps = 2000
phases = [
    { inputs = { part = "FullSentences", length = 16 }, rows = 64, micro = 64, share = 3 },
    { inputs = { part = "FullSentences", length = 32 }, rows = 32, micro = 32, share = 4 },
    { inputs = { part = "FullSentences", length = 64 }, rows = 16, micro = 16, share = 3 },
]
optimizer = { part = "Adam", rate = 7e-4, beta2 = 0.98 }
schedule = { part = "Linear", warmup = 200 }
checkpoint_every = 200
evaluate_every = 500
questions = 512
"""

PAIRS = """
objective = [{ part = "Nsp" }, { part = "MaskedLm", mask = { rate = 0.4 } }]

[data]
corpus = "corpus"

[train]
steps = 350
phases = [{ inputs = { part = "SegmentPairs", length = 64 }, rows = 32, micro = 32 }]
optimizer = { part = "Adam", rate = 5e-4, beta2 = 0.98 }
schedule = { part = "Linear", warmup = 50 }
checkpoint_every = 50
questions = 2048
"""

Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for seed in range(SEEDS):
        yield f"seed {seed}", partial(learned, seed)


def summary(results: list[Result]) -> str:
    def told(name: str, form: str = ".1%") -> str:
        return ", ".join(format(result[name], form) for result in results)

    unigram, minutes = fmean(float(result["unigram"]) for result in results), sum(float(r["minutes"]) for r in results)
    right = minutes < 45 and all(map(_is_right, results))
    return (
        f"{'' if right else 'FAILED: '}{len(results)} seeds in {minutes:.0f} minutes; masked-token loss "
        f"{told('mlm', '.2f')} with a unigram entropy of {unigram:.2f}; next sentence right in {told('next')}; SST-2, "
        f"development set: {told('pretrained dev')} pre-trained, {told('random dev')} from random weights; "
        f"{results[0]['others']:,} other sentences: {told('pretrained others')} and {told('random others')}"
    )


def _is_right(result: Result) -> bool:
    """Whether a seed shows what is claimed."""
    found = {name: float(value) for name, value in result.items()}
    learned = found["mlm"] < found["unigram"] - BELOW and found["next"] > ABOVE
    return learned and all(found[f"pretrained {by}"] > found[f"random {by}"] + MARGIN for by in ("dev", "others"))


def learned(seed: int) -> Result:
    """What one seed comes to. A run that was stopped goes on."""
    since = time.monotonic()
    torch.set_num_threads(2)
    _write_texts()
    articles = sorted((SHARED / "en-wikipedia-featured").rglob("wiki_*"))[:ARTICLES]
    texts = (str(HOME / "texts"), *map(str, articles))
    Data(texts=texts, vocabulary=VOCABULARY).prepare(HOME, print)
    code = Repository(HOME.parents[1]).fingerprint((*COVERS, "proofs/learns.py"))[:12]
    run = HOME / f"seed-{seed}-{code}"  # other code begins anew
    words = _pretrained(WORDS, run / "words", seed)
    made = _pretrained(PAIRS, run / "pairs", seed, f"model.weights={words}")
    told = list(lines(run / "pairs" / "log.jsonl"))
    last = [line for line in told if line["kind"] == "held-out"][-1]
    tokenizer, known = model.load(made).tokenizer, dict(model.load(made).network.named_parameters())

    def fresh(heads: dict[str, Head]) -> Model:
        return model.create("bert-mini", tokenizer, heads, seed)

    def pretrained(heads: dict[str, Head]) -> Model:
        begun = fresh(heads)
        for name, parameter in begun.network.named_parameters():
            if name in known:
                parameter.data.copy_(known[name].data)
        return begun

    sst2 = Sst2.read(seed)
    result: Result = {
        "unigram": told[0]["unigram"],
        "mlm": last["losses"]["mlm"],
        "next": last["right"]["next"],
        "others": len(sst2.others),
    }
    for name, start in (("pretrained", pretrained), ("random", fresh)):
        result[f"{name} dev"], result[f"{name} others"] = fine_tuned(start, sst2, seed)
    return {**result, "minutes": (time.monotonic() - since) / 60}


def _pretrained(recipe: str, run: Path, seed: int, *changes: str) -> Path:
    """The model of one stage."""
    path = run.with_suffix(".toml")
    path.parent.mkdir(exist_ok=True)
    with artifact.file(path, overwrite=True) as file:
        file.write(recipe.encode())
    return pretrain(read(path, [f"data.corpus={HOME / 'corpus'}", f"output={run}", f"seed={seed}", *changes]))


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
    yield "sst2", [text for text, _ in _rows(_train())]


Labelled = list[tuple[str, int]]


class Sst2(NamedTuple):
    """Sentences and whether they are in favour: to learn from, to choose a rate with, to be judged by."""

    learned: Labelled
    chosen: Labelled
    dev: Labelled
    others: Labelled

    @classmethod
    def read(cls, seed: int) -> Sst2:
        train = _whole(_rows(_train()))
        random.Random(seed).shuffle(train)
        dev = _rows((SHARED / "GLUE" / "SST-2" / "dev.tsv").read_bytes())
        last = SENTENCES + CHOOSING
        return cls(train[:SENTENCES], train[SENTENCES:last], dev, train[last:])


def _train() -> bytes:
    return gzip.decompress((SHARED / "GLUE" / "SST-2" / "train.tsv.gz").read_bytes())


def _whole(rows: Labelled) -> Labelled:
    """Those that are sentences. Most rows of the training file are parts of other rows."""
    kept, longer = Labelled(), dict[str, list[str]]()
    for text, label in sorted(dict(rows).items(), key=lambda row: (-len(row[0]), row[0])):
        words, spaced = text.split(), f" {text} "
        if not any(spaced in other for other in longer.get(max(words, key=len), [])):
            kept.append((text, label))
            for word in set(words):
                longer.setdefault(word, []).append(spaced)
    return kept


def _rows(data: bytes) -> Labelled:
    return [(text.strip(), int(label)) for text, label in (row.split("\t") for row in data.decode().splitlines()[1:])]


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


def fine_tuned(start: Callable[[dict[str, Head]], Model], sst2: Sst2, seed: int) -> tuple[float, float]:
    """The accuracy on the development set and on other sentences, with the rate that does best on a third kind."""
    heads = {"pooler": Pooler(), "classify": Classify(("negative", "positive"))}
    tried = [_fine_tuned(start(heads), sst2, rate, seed) for rate in RATES]
    made = max(tried, key=lambda made: _accuracy(made, sst2.chosen))
    return _accuracy(made, sst2.dev), _accuracy(made, sst2.others)


def _fine_tuned(made: Model, sst2: Sst2, rate: float, seed: int) -> Model:
    network, objective, schedule = made.network.train(), Sentiment(), Linear(warmup=50)
    optimizer, learner, draw = Adam(rate=rate).build(network), Learner(network, objective), random.Random(seed)
    steps = EPOCHS * SENTENCES // ROWS
    order = [place for _ in range(EPOCHS) for place in draw.sample(range(SENTENCES), SENTENCES)]
    for step in range(steps):
        rows = [sst2.learned[place] for place in order[step * ROWS : (step + 1) * ROWS]]
        for group in optimizer.param_groups:
            group["lr"] = rate * schedule.share(step, steps)
        loop.step(learner, objective, [_batch(made, rows)], optimizer, 1.0, seed, step)
    return made


def _accuracy(made: Model, rows: Labelled) -> float:
    batches = [_batch(made, rows[at : at + 64]) for at in range(0, len(rows), 64)]
    return examine(made, Sentiment(), batches).right["sentiment"]


def _batch(made: Model, rows: Sequence[tuple[str, int]]) -> Batch:
    examples = []
    for text, label in rows:
        ids = np.array(made.tokenizer.encode(text).ids)
        examples.append(Example({"ids": ids, "segments": np.zeros_like(ids)}, labels={"sentiment": label}))
    return collate(examples)
