"""What reading costs: steps of BERT-mini whose batches lie ready, are read in the process that learns, or by workers.

    python -m bench.loader

The ways take turns, as contestants do in the other workloads. Above 1, a step takes longer than with batches that lie
ready.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np
import torch

import bertkit
from bench import peer, pretrain
from bench.pipe import Array
from bench.prose import file, prose, taken
from bench.run import THREADS
from bertkit.batch import Batch
from bertkit.corpus import build, source
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.inputs import SentencePairs
from bertkit.objectives.learner import Learner
from bertkit.text import Tokenizer
from bertkit.train import loop
from bertkit.train.feed import Feed, Place, Reading, portions
from bertkit.train.optimizer import Adam
from bertkit.weights.find import find

READY = "lie ready"
WORKERS = (0, 1, 2)
ROWS, LENGTH = 32, 128
ROUNDS, STEPS = 4, 8
"""turns of each way, and steps of a turn: more than workers read ahead while others have their turn"""


def main() -> int:
    """The command line."""
    torch.set_num_threads(THREADS)
    tokenizer = Tokenizer.load(find("minilm"))
    ways = _ways(tokenizer)
    network = bertkit.load(pretrain.weights("mini", tokenizer)).network.train()
    learner, optimizer = Learner(network, pretrain.OBJECTIVE), Adam().build(network)
    seconds = {name: np.empty(ROUNDS) for name in ways}
    for number in range(-1, ROUNDS):  # the first is to warm up
        for name in ways if number % 2 else reversed(ways):
            begun = time.perf_counter()
            for step, batch in enumerate(islice(ways[name], STEPS)):
                loop.step(learner, pretrain.OBJECTIVE, [batch], optimizer, pretrain.CLIP, 0, step)
            seconds[name][number] = time.perf_counter() - begun
    print(to_markdown(seconds))
    return 0


def _ways(tokenizer: Tokenizer) -> dict[str, Iterator[Batch]]:
    """Batches without end, by the way in which they come."""
    text, made = file("sentences-of-pairs", taken(prose().documents, pretrain.TEXT)), peer.HOME / "corpora" / "loader"
    made.parent.mkdir(parents=True, exist_ok=True)
    build.build(source.files([str(text)]), tokenizer, made, overwrite=True)
    examples = Examples(Corpus(made), SentencePairs(LENGTH))

    def read(workers: int) -> Iterator[Batch]:
        steps = portions(examples, Place(), ROWS, ROWS)
        return (
            batch for _, batches in Feed(Reading(examples, pretrain.OBJECTIVE), steps, workers) for batch in batches
        )

    ready = cycle(list(islice(read(0), STEPS)))
    return {READY: ready, **{f"read by {workers} workers": read(workers) for workers in WORKERS}}


def to_markdown(seconds: dict[str, Array]) -> str:
    """The time of each way over that of batches that lie ready, round by round: the median, and the spread.

    >>> print(to_markdown({READY: np.array([1.0, 2.0]), "read by 0 workers": np.array([1.1, 2.0])}))
    | batches | time | spread |
    |---|---|---|
    | read by 0 workers | 1.05 | 1.01–1.09 |
    """
    lines = ["| batches | time | spread |", "|---|---|---|"]
    for name, times in seconds.items():
        if name != READY:
            low, middle, high = np.percentile(times / seconds[READY], (10, 50, 90))
            lines.append(f"| {name} | {middle:.2f} | {low:.2f}–{high:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
