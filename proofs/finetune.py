"""Real tasks side by side with transformers' Trainer: the same rows, the same examples, the same network to begin with,
the same settings. Both networks are then asked the same questions and scored by the same counts.

`python -m proofs.run finetune`, restartable after each seed of each task; about 80 minutes on two cores.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
import transformers
from transformers import Trainer, TrainingArguments

import bertkit
from bertkit.batch import Example
from bertkit.tasks.finetune import finetune
from bertkit.tasks.finetuned import Finetuned
from bertkit.tasks.known import known
from bertkit.tasks.lessons import lessons_of
from bertkit.tasks.task import Lesson, Reader
from bertkit.tasks.tuning import Tuning, read
from tests.pretrained import CHINESE_SENTENCE, pretrained

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

CLAIM = (
    "fine-tuned at the same settings on the same rows, networks score no less than those of transformers' Trainer, "
    "within two standard errors: MRPC, CoLA, RTE and STS-B with three seeds, SST-2, CoNLL, SQuAD, CODAH and "
    "ChnSentiCorp with one"
)
TASKS = (
    *("finetune", "lessons", "tuning", "task", "item", "texts", "tags"),
    *("layout", "table", "columns", "values", "conll", "squad", "choices"),
    *("classification", "regression", "tagging", "answering", "choosing"),
)
"""what decides how a network learns; both networks are then asked and scored by the same code, which tests hold to its
references"""
COVERS = (
    *(f"bertkit/tasks/{name}.py" for name in TASKS),
    *("bertkit/objectives", "bertkit/parts", "bertkit/train", "bertkit/batch.py"),
    *("bertkit/text/reading.py", "bertkit/text/truncate.py"),
)
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
RECIPES = Path(__file__).resolve().parents[1] / "recipes" / "finetune"
CHINESE = "bert-base-chinese"
"""what a recipe names, and for which a smaller Chinese network stands in here"""
ERRORS = 2.0
"""standard errors by which ours may be below theirs"""
Result = dict[str, int | float | str]


@dataclass(frozen=True)
class Course:
    """A recipe, its rows, and with how many seeds it is learned."""

    name: str
    seeds: int
    rows: int
    """of the training set that are taken, by chance but always the same"""


COURSES = (
    Course("mrpc", 3, 1200),
    Course("cola", 3, 1600),
    Course("rte", 3, 800),
    Course("stsb", 3, 1200),
    Course("sst2", 1, 8000),
    Course("conll", 1, 3000),
    Course("squad", 1, 2000),
    Course("codah", 1, 10**6),
    Course("chnsenticorp", 1, 2000),
)
READS = {
    f"{course.name} seed {seed}": (f"recipes/finetune/{course.name}.toml",)
    for course in COURSES
    for seed in range(course.seeds)
}


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for course in COURSES:
        for seed in range(course.seeds):
            yield f"{course.name} seed {seed}", partial(side_by_side, course, seed)


def summary(results: list[Result]) -> str:
    told, wrong = [], []
    for course in COURSES:
        found = [result for result in results if result["task"] == course.name]
        ours, theirs = ([float(result[side]) for result in found] for side in ("ours", "theirs"))
        allowed = ERRORS * math.hypot(*(_error(scores, int(found[0]["rows"])) for scores in (ours, theirs)))
        if mean(ours) < mean(theirs) - allowed:
            wrong.append(course.name)
        told.append(f"{course.name} ({found[0]['measure']}) {_spread(ours)}, Trainer {_spread(theirs)}")
    minutes = sum(float(result["minutes"]) for result in results)
    failed = f"FAILED ({', '.join(wrong)}): " if wrong else ""
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}"
    return f"{failed}{'; '.join(told)} (percent, in {minutes:.0f} minutes; {versions})"


def _spread(scores: Sequence[float]) -> str:
    return f"{mean(scores):.1f}" + (f" ± {stdev(scores):.1f}" if len(scores) > 1 else "")


def _error(scores: Sequence[float], rows: int) -> float:
    """The standard error of a mean: of seeds, or of one score over so many rows, whichever is larger; percent."""
    share = min(max(mean(scores) / 100, 0.01), 0.99)
    alone = 100 * math.sqrt(share * (1 - share) / rows / len(scores))
    return max(alone, stdev(scores) / math.sqrt(len(scores)) if len(scores) > 1 else 0.0)


def side_by_side(course: Course, seed: int) -> Result:
    """Both, one after the other."""
    torch.set_num_threads(2)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        train, dev = files(course, home)
        changes = [f"output={home / 'run'}", f"train={train}", "held_out=0.0", f"seed={seed}"]
        tuning = read(RECIPES / f"{course.name}.toml", changes)
        tuning = replace(tuning, model=str(beginning(tuning, home / "begun")))
        ours = Finetuned.load(finetune(tuning)).evaluate(dev)
        theirs = trained(tuning, home / "theirs").evaluate(dev)
    scale = 1 if ours.main == "f1" and max(ours.scores["f1"], theirs.scores["f1"]) > 1 else 100
    return {
        "task": course.name,
        "seed": seed,
        "measure": ours.main,
        "rows": ours.rows,
        "ours": scale * ours.scores[ours.main],
        "theirs": scale * theirs.scores[ours.main],
        "minutes": (time.perf_counter() - begun) / 60,
    }


def beginning(tuning: Tuning, path: Path) -> Path:
    """Somebody's encoder with new heads, saved, so that both begin with the same numbers."""
    weights = pretrained(CHINESE_SENTENCE) if tuning.model == CHINESE else tuning.model
    torch.manual_seed(tuning.seed)
    made = bertkit.load(weights, tuning.task.objective.heads)
    return bertkit.Model(made.network, made.tokenizer, config=made.config).save(path)


def trained(tuning: Tuning, home: Path) -> Finetuned:
    """What Trainer makes of the same examples: padded as far as their batch needs, neighbours in length together."""
    model = bertkit.load(tuning.model)
    model.limit = tuning.limit
    reader = Reader(model.tokenizer, tuning.limit, tuning.policy)
    lessons = list(lessons_of(tuning.task, tuning.layout.items(Path(tuning.train)), reader))
    kind = transformers.AutoConfig.from_pretrained(tuning.model).architectures[0]
    network = getattr(transformers, kind).from_pretrained(tuning.model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tuning.model)
    rows, collator = _rows(lessons, kind), _collator(kind, tokenizer)
    arguments = TrainingArguments(
        str(home / "trainer"),
        per_device_train_batch_size=tuning.rows,
        num_train_epochs=tuning.epochs,
        adam_epsilon=tuning.optimizer.epsilon,
        learning_rate=tuning.optimizer.rate,
        weight_decay=tuning.optimizer.decay,
        warmup_steps=tuning.warmup,
        max_grad_norm=tuning.clip,
        seed=tuning.seed,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        use_cpu=True,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        train_sampling_strategy="group_by_length",
    )
    Trainer(network, arguments, train_dataset=rows, data_collator=collator).train()
    network.save_pretrained(home / "model")
    made = bertkit.load(home / "model") if (home / "model" / "vocab.txt").is_file() else _opened(home / "model", model)
    made.limit = tuning.limit
    return Finetuned(made, tuning.task, tuning.layout, tuning.policy)


def _opened(path: Path, model: bertkit.Model) -> bertkit.Model:
    model.tokenizer.save_files(path)
    return bertkit.load(path)


def _rows(lessons: list[Lesson], kind: str) -> list[dict[str, Any]]:
    """Our examples as transformers' collators take them."""
    if kind.endswith("MultipleChoice"):
        return [
            {
                **{name: [row[name] for row in map(_tokens, lesson)] for name in _tokens(lesson[0])},
                "labels": next(place for place, one in enumerate(lesson) if one.labels["right"]),
            }
            for lesson in lessons
        ]
    rows = []
    for (one,) in lessons:
        row = _tokens(one)
        if kind.endswith("TokenClassification"):
            tags = np.full(len(one), -100)
            at, true = one.marks["tag"]
            tags[at] = true
            row["labels"] = tags.tolist()
        elif kind.endswith("QuestionAnswering"):
            row |= {"start_positions": one.labels["start"], "end_positions": one.labels["end"]}
        else:
            row["labels"] = one.labels["label"] if "label" in one.labels else float(one.labels["number"])
        rows.append(row)
    return rows


def _tokens(one: Example) -> dict[str, list[int]]:
    ids = one.tokens["ids"].tolist()
    return {"input_ids": ids, "token_type_ids": one.tokens["segments"].tolist(), "attention_mask": [1] * len(ids)}


def _collator(kind: str, tokenizer: Any) -> Any:
    if kind.endswith("MultipleChoice"):
        return transformers.DataCollatorForMultipleChoice(tokenizer)
    if kind.endswith("TokenClassification"):
        return transformers.DataCollatorForTokenClassification(tokenizer)
    return transformers.DataCollatorWithPadding(tokenizer)


def files(course: Course, home: Path) -> tuple[Path, Path]:
    """The rows that are learned from, and the rows that are asked."""
    match course.name:
        case "squad":
            return _articles(course.rows, home)
        case "conll":
            train = _sentences(SHARED / "CoNLL-2003" / "eng.train.gz", course.rows, home / "train.txt")
            return train, SHARED / "CoNLL-2003" / "eng.testa.gz"
        case "chnsenticorp":
            train = _table(SHARED / "ChnSentiCorp" / "train.tsv.gz", course.rows, home / "train.tsv", header=True)
            return train, SHARED / "ChnSentiCorp" / "dev.tsv"
        case "codah":
            folder = SHARED / "CODAH" / "cv_split" / "fold_1"
            return _table(folder / "train.tsv", course.rows, home / "train.tsv", header=False), folder / "test.tsv"
    one = known(course.name)
    folder = SHARED / "GLUE" / one.title
    train = _table(one.required(folder, "train"), course.rows, home / "train.tsv", header=course.name != "cola")
    return train, one.required(folder, "dev")


def _table(source: Path, rows: int, path: Path, header: bool) -> Path:
    """Some lines of a table, always the same."""
    text = gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes()
    first, *rest = text.decode("utf-8-sig").splitlines() if header else ("", *text.decode().splitlines())
    chosen = random.Random(0).sample(rest, min(rows, len(rest)))
    path.write_text("\n".join([first, *chosen] if header else chosen) + "\n", encoding="utf-8")
    return path


def _sentences(source: Path, rows: int, path: Path) -> Path:
    found = [one for one in gzip.decompress(source.read_bytes()).decode().split("\n\n") if "DOCSTART" not in one]
    chosen = random.Random(0).sample([one for one in found if one.strip()], rows)
    path.write_text("\n\n".join(chosen) + "\n", encoding="utf-8")
    return path


def _articles(questions: int, home: Path) -> tuple[Path, Path]:
    """Articles of SQuAD's development set: some to learn from until there are enough questions, others to be asked."""
    data = json.loads(gzip.decompress((SHARED / "SQuAD1.1" / "dev-v1.1.json.gz").read_bytes()))
    articles = data["data"]
    random.Random(0).shuffle(articles)
    rest = iter(articles)
    written = []
    for name, most in (("train", questions), ("dev", questions // 2)):
        written.append(home / f"{name}.json")
        written[-1].write_text(json.dumps({"version": "1.1", "data": list(_until(rest, most))}), encoding="utf-8")
    return written[0], written[1]


def _until(articles: Iterator[dict[str, Any]], most: int) -> Iterator[dict[str, Any]]:
    """Whole paragraphs of whole articles, until there are so many questions."""
    left = most
    for article in articles:
        kept = []
        for paragraph in article["paragraphs"]:
            if left <= 0:
                break
            kept.append({**paragraph, "qas": paragraph["qas"][:left]})
            left -= len(kept[-1]["qas"])
        yield {**article, "paragraphs": kept}
        if left <= 0:
            return
