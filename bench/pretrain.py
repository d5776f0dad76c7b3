"""Pre-training: a step of masked language model and next sentence on batches that all have, and the memory it takes.

Where the time of our own step goes, by kinds of operators: `python -m bench.pretrain --profile [CASE]`.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

import bertkit
from bench import forward, machine, peer
from bench.corpus import rectangle
from bench.measure import Amount, AtMost, Bar, Case, Weighing
from bench.pipe import Array
from bench.prose import REAL, file, prose, taken
from bertkit import family
from bertkit.corpus import build, source
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.flat import Flat
from bertkit.corpus.inputs import SentencePairs
from bertkit.objectives.mask import MARK, Vocabulary
from bertkit.objectives.masked_lm import MaskedLm
from bertkit.objectives.pairs import Nsp
from bertkit.parts import attend, embed, residual
from bertkit.parts.encoder import Encoder
from bertkit.spec import to_json
from bertkit.text import Tokenizer
from bertkit.weights.find import find

PEER = "transformers"
OBJECTIVE = Nsp() + MaskedLm()
BARS = {"mini": 2.7, "mini-mixed": 4.0, "small": 2.0, "base": 1.2}
MEMORY = AtMost(0.5)
STEPS = 8
"""of which the memory is measured"""
CHECKED = 2
"""steps without dropout whose losses are compared; the second one has seen an update"""
CLIP = 1.0
TEXT = 1.0
"""megabytes that sentences are taken from"""


class Shape(NamedTuple):
    """Batches of one case, each learned from once in a turn."""

    rows: int
    length: int
    """of the longest example"""
    batches: int


SHAPES = {
    "mini": Shape(32, 128, 4),
    "mini-mixed": Shape(32, 128, 4),
    "small": Shape(32, 128, 2),
    "base": Shape(8, 128, 1),
}
QUICK = Shape(4, 32, 2)


class Work(NamedTuple):
    """What everybody learns."""

    title: str
    arguments: dict[str, Any]
    array: Array
    """[batches, 3, B, L]: ids, segments, and the true ids where they are asked for; 0 where there is nothing"""
    tokens: float
    """in a step, padding apart"""
    flops: float
    """of a step that are of use"""
    real: bool
    """whether lengths are those of real text, or all alike"""


def cases(quick: bool) -> Iterable[Case]:
    """BERT's sizes in rectangles, mini on pairs of real sentences too; the memory of mini."""
    for name in ("mini", "mini-mixed") if quick else SHAPES:
        found = work(name, QUICK if quick else SHAPES[name])
        bars = {PEER: Bar(BARS[name])} if found.real else {}
        amount, calls = Amount(found.tokens, "tokens"), len(found.array)
        yield Case(
            found.title, "pretrain", found.arguments, (PEER,), found.flops, found.array, calls, bars=bars, amount=amount
        )
        if name == "mini":
            memory, bars = f"memory of {found.title}", {PEER: MEMORY}
            yield Weighing(
                memory, "pretrain_memory", found.arguments, (PEER,), 0.0, found.array, STEPS, bars=bars, amount=amount
            )


def work(name: str, shape: Shape) -> Work:
    """The batches of a case and the weights that both sides begin with."""
    size, _, mixed = name.partition("-")
    tokenizer = Tokenizer.load(find("minilm"))  # whose vocabulary is BERT's uncased one
    named, flats = sentences(shape, tokenizer) if mixed else ("", drawn(shape, tokenizer))
    vocabulary = Vocabulary.of(tokenizer)
    flats = [OBJECTIVE.corrupt(flat, vocabulary) for flat in flats]
    encoder = family.encoder(f"bert-{size}", len(tokenizer))
    return Work(
        f"{name} {shape.rows}×≤{shape.length}, {named}" if mixed else f"{name} {shape.rows}×{shape.length}",
        {
            "model": str(weights(size, tokenizer)),
            "objective": to_json(OBJECTIVE),
            "label": Nsp.label,
            "labels": [flat.labels[Nsp.label].tolist() for flat in flats],
            "checked": CHECKED,
            "clip": CLIP,
        },
        np.stack([planes(flat, shape.length) for flat in flats]),
        float(np.mean([len(flat.ids) for flat in flats])),
        float(np.mean([flops(flat, encoder) for flat in flats])),
        named in ("", REAL),
    )


def drawn(shape: Shape, tokenizer: Tokenizer) -> list[Flat]:
    """Pairs that are all as long as can be, of tokens by chance."""
    dice, (rows, length, batches) = np.random.default_rng(0), shape
    made = []
    for _ in range(batches):
        # ids below 1000 are special tokens and characters
        ids = dice.integers(1000, len(tokenizer), (rows, length)).astype(np.uint16)
        ids[:, 0], ids[:, length // 2], ids[:, -1] = tokenizer.cls_id, tokenizer.sep_id, tokenizer.sep_id
        segments = np.broadcast_to(np.arange(length) > length // 2, (rows, length)).astype(np.uint8)
        starts, keys = np.arange(rows + 1) * length, dice.integers(0, 2**64, rows, np.uint64)
        labels = {Nsp.label: dice.integers(0, 2, rows)}
        made.append(Flat(ids.ravel(), segments.ravel(), np.ones(ids.size, bool), starts, keys, labels))
    return made


def sentences(shape: Shape, tokenizer: Tokenizer) -> tuple[str, list[Flat]]:
    """Where text is from, and pairs of its sentences: neighbours, or of two documents."""
    found, made = prose(), peer.HOME / "corpora" / "sentences"
    text = file("sentences-of-pairs", taken(found.documents, TEXT))
    made.parent.mkdir(parents=True, exist_ok=True)
    build.build(source.files([str(text)]), tokenizer, made, overwrite=True)
    examples = Examples(Corpus(made), SentencePairs(shape.length))
    firsts = range(0, shape.rows * shape.batches, shape.rows)
    return found.name, [examples.read(0, range(first, first + shape.rows)) for first in firsts]


def planes(flat: Flat, length: int) -> Array:
    """Masked examples as rectangles, [3, B, L]."""
    at, asked = flat.marks[MARK]
    true = np.zeros(len(flat.ids), np.int64)
    true[at] = asked
    return np.stack([rectangle(column, flat.starts, length) for column in (flat.ids, flat.segments, true)])


def flops(flat: Flat, encoder: Encoder) -> float:
    """Of a step: matrices of the encoder on real tokens, of the vocabulary on masked ones, of the pooler on the first.

    Forward once, and twice as much backward: for what went in, and for the matrices.
    """
    masked, (width, table) = len(flat.marks[MARK][0]), (encoder.width, encoder.embed.vocabulary)
    encoded = forward.flops(flat.lengths.tolist(), len(encoder.order), width, encoder.feeds[0].inner)
    head = 2 * masked * (width**2 + width * table)
    pooler = 2 * len(flat) * (width**2 + 2 * width)
    return 3 * (encoded + head + pooler)


def weights(size: str, tokenizer: Tokenizer) -> str:
    """A network of BERT's with the heads of pre-training, drawn at random once and kept."""
    path = peer.HOME / "models" / f"pretrain-{size}" / "model"
    if not path.exists():
        bertkit.create(f"bert-{size}", tokenizer, OBJECTIVE.heads, seed=0).save(path)
    return str(path)


# Where the time goes ─────────────────────────────────────────────────────────────────────────────────────────────────

DROPOUT = "dropout"
_DROPPING = ((attend, "drop"), (embed, "drop"), (residual, "factors"))
"""what is told to torch's profiler as dropout: drawing happens in NumPy, where it sees nothing"""

_PARTS = {
    "optimizer and clipping": r"Optimizer\.|linalg_vector_norm|_foreach_",
    "vocabulary loss": r"_Surprise",
    "dropout, with the sums around blocks": rf">{DROPOUT}>|aten::addcmul|AddcmulBackward|MulBackward",
    "layer norm": r"native_layer_norm|NativeLayerNormBackward",
    "GELU": r"gelu",
    "embeddings": r"[eE]mbedding",
    "biases": r"aten::addmm>aten::copy_>$|AddmmBackward0>aten::sum>",
    "matrix products": r"aten::(add)?mm>$",
    "attention": r"aten::bmm>$|softmax|aten::div|scaled_dot_product",
    "copies": r"aten::(copy_|cat|clone|contiguous)>$",
    "sums of gradients": r"aten::add_?>$",
}
"""the part of a step that an operator belongs to: the first that fits the operator and those that it runs in"""
_REST = "the rest: Python, views, bookkeeping"


@dataclass
class Part:
    """What a part of a step took."""

    seconds: float = 0.0
    operators: int = 0
    flops: float = 0.0


def part_of(path: str) -> str:
    """The part of a step that an operator belongs to, by its name after the names of those that it runs in.

    >>> part_of(">aten::linear>aten::addmm>"), part_of(">aten::linear>aten::addmm>aten::copy_>")
    ('matrix products', 'biases')
    """
    return next((part for part, pattern in _PARTS.items() if re.search(pattern, path)), _REST)


def profiled(call: Callable[[], object], calls: int) -> dict[str, Part]:
    """The parts of a call, means over some of them; what torch's profiler does not see is in the rest."""
    parts = {name: Part() for name in (*_PARTS, _REST)}
    with _dropout_told(), profile(activities=[ProfilerActivity.CPU], with_flops=True) as seen:
        begun = time.perf_counter()
        for _ in range(calls):
            call()
        unseen = time.perf_counter() - begun
    for event in seen.events():
        part, seconds = parts[part_of(_path(event))], event.self_cpu_time_total / 1e6
        part.seconds += seconds / calls
        part.operators += 1
        part.flops += (event.flops or 0) / calls
        unseen -= seconds
    parts[_REST].seconds += unseen / calls
    for part in parts.values():
        part.operators //= calls
    return parts


@contextmanager
def _dropout_told() -> Iterator[None]:
    with ExitStack() as stack:
        for module, name in _DROPPING:
            stack.enter_context(patch.object(module, name, record_function(DROPOUT)(getattr(module, name))))
        yield


def _path(event: FunctionEvent) -> str:
    path = ">"
    at: FunctionEvent | None = event
    while at is not None:
        path, at = f">{at.name}{path}", at.cpu_parent
    return path


def to_markdown(title: str, parts: dict[str, Part], seconds: float, peak: float) -> str:
    """Parts as a table, the largest first."""
    total = sum(part.seconds for part in parts.values())
    lines = [
        f"One step of {title}: {seconds * 1e3:,.0f} ms, {total * 1e3:,.0f} while it was watched. "
        f"GEMM peak: {peak / 1e9:.1f} GFLOP/s.",
        "",
        "| part | ms | share | operators | GFLOP/s |",
        "|---|---|---|---|---|",
    ]
    for name, part in sorted(parts.items(), key=lambda item: -item[1].seconds):
        speed = f"{part.flops / part.seconds / 1e9:,.0f}" if part.flops > 1e9 else ""
        share = part.seconds / total
        lines.append(f"| {name} | {part.seconds * 1e3:,.1f} | {share:.1%} | {part.operators:,} | {speed} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    from bench.peers.bertkit import pretrain
    from bench.run import THREADS

    parser = argparse.ArgumentParser(
        prog="python -m bench.pretrain",
        description="Where the time of a step goes. Against peers: python -m bench.run pretrain",
    )
    told = f"which one: {', '.join(SHAPES)}; mini when none is named"
    parser.add_argument("--profile", nargs="?", const="mini", choices=list(SHAPES), required=True, help=told)
    name = parser.parse_args(arguments).profile
    torch.set_num_threads(THREADS)
    found = work(name, SHAPES[name])
    job, calls = pretrain(**found.arguments, array=found.array), len(found.array)

    def call() -> None:
        job.call(None)

    call()  # warm
    begun = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = (time.perf_counter() - begun) / calls
    print(to_markdown(found.title, profiled(call, calls), seconds, machine.peak(THREADS)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
