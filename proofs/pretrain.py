"""Kill pre-training with signal 9 at random moments and in the middle of saves; what goes on must end the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from bertkit import artifact
from bertkit.corpus import build
from bertkit.corpus.source import files
from bertkit.errors import BertkitError
from bertkit.text import Tokenizer
from bertkit.train import checkpoint, recipe
from bertkit.train.journal import NAME as JOURNAL
from bertkit.train.journal import lines
from bertkit.train.pretrain import pretrain
from bertkit.train.recipe import Recipe
from proofs.corpus import content

CLAIM = (
    "Pre-training killed 100 times with signal 9, at random moments and during saves, with dropout, accumulation, two "
    "phases and 0, 1 and 2 loader workers, goes on and ends with the weights, checkpoints and losses of a run that "
    "nothing happened to, bit for bit"
)
_CORPUS = ("chance", "corpus", "examples", "flat", "inputs", "permutation", "shard", "units")
COVERS = (
    *(f"bertkit/{name}" for name in ("train", "objectives", "parts")),
    *(f"bertkit/{name}.py" for name in ("artifact", "batch", "manifest", "model", "workspace")),
    *(f"bertkit/corpus/{name}.py" for name in _CORPUS),
)
KILLS, PIECE = 100, 10
SAVING = 5
"""of so many kills at least one comes in the middle of a save"""
WORKERS = (0, 1, 2, 2, 1, 0)
"""of one start after the other, so that a run goes on with as many as before, with more and with fewer"""
SAVE = 0.015
"""seconds after which a save is likely to be still at work"""
TIMED = {"tokens_per_second", "waited"}
RECIPE = """
objective = [{ part = "Nsp" }, { part = "MaskedLm" }]
data = { corpus = "" }
model = { size = "bert-tiny", dropout = 0.1 }

[train]
steps = 15
phases = [
    { inputs = { part = "SegmentPairs", length = 24 }, rows = 8, micro = 3, share = 2 },
    { inputs = { part = "SegmentPairs", length = 48 }, rows = 6, micro = 4 },
]
optimizer = { part = "Adam", rate = 1e-3 }
schedule = { part = "Linear", warmup = 4 }
checkpoint_every = 2
keep_last = 2
log_every = 1
evaluate_every = 4
questions = 8
"""
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for piece in range(KILLS // PIECE):
        yield f"kills {piece * PIECE}-{(piece + 1) * PIECE - 1}", partial(apart, PIECE, piece, WORKERS)


def summary(results: list[Result]) -> str:
    total = Counter[str]()
    for result in results:
        total.update({name: int(number) for name, number in result.items()})
    assert total["kills"] >= KILLS, f"{total['kills']} kills instead of {KILLS}"
    assert total["saving"] >= KILLS // SAVING, f"{total['saving']} kills during a save instead of {KILLS // SAVING}"
    among = ", ".join(f"{total[f'workers={workers}']} with {workers}" for workers in sorted(set(WORKERS)))
    return (
        f"{total['kills']} kills ({among} loader workers), {total['saving']} of them during a save; {total['runs']} "
        "runs went on to their end: 0 differences"
    )


def apart(kills: int, seed: int, workers: Sequence[int]) -> Result:
    """`kill_at_random` in a process of its own, which forks the runs: torch is imported once, and has no threads."""
    command = [sys.executable, "-m", "proofs.pretrain", str(kills), str(seed), *map(str, workers)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    if done.returncode:
        raise AssertionError(done.stderr[-1000:])
    return dict(json.loads(done.stdout))


def kill_at_random(place: Path, kills: int, seed: int, workers: Iterable[int]) -> Counter[str]:
    """Run after run, each killed and started again until it comes through."""
    draw, counts, readers = random.Random(seed), Counter[str](), cycle(workers)
    _end(_fork(partial(_build, place / "corpus", seed)))
    begun = time.monotonic()
    _end(_fork(partial(pretrain, _plan(place / "whole", seed))))
    took, whole = time.monotonic() - begun, outcome(place / "whole")

    def enough() -> bool:
        return counts["kills"] >= kills and counts["saving"] >= kills // SAVING

    while not enough():
        run, killed = place / f"run-{counts['runs']}", True
        while killed and not enough():
            plan = _plan(run, seed, next(readers))
            told = _killed(plan, draw, took, at_a_save=counts["kills"] % 2 == 0)
            killed = bool(told)
            counts.update(told)
        if killed:
            _end(_fork(partial(pretrain, _plan(run, seed, next(readers)))))
        ours = outcome(run)
        differing = sorted(name for name in ours.keys() | whole.keys() if ours.get(name) != whole.get(name))
        assert not differing, f"{run.name} ended with another {', '.join(differing)}"
        counts["runs"] += 1
    return counts


def _killed(plan: Recipe, draw: random.Random, took: float, at_a_save: bool) -> list[str]:
    """Start a run and kill it: what is to be counted, nothing where it was done before the signal came."""
    run = Path(plan.output)
    before = _growing(run)
    child = _fork(partial(pretrain, plan))
    if at_a_save:
        _wait_for_a_save(run, before, child, draw.randrange(3))
    time.sleep(draw.uniform(0, SAVE if at_a_save else took))
    if not _kill(child):
        return []
    for _, newest in checkpoint.steps(run)[-1:]:
        artifact.verify(newest)
    return ["kills", f"workers={plan.data.workers}", *(["saving"] if _growing(run) - before else [])]


def outcome(run: Path) -> dict[str, Any]:
    """All of a run that may not depend on what happened on the way: files by their hash, the journal but for times."""
    kept = [path for _, path in checkpoint.steps(run)[-2:]]
    made = [path for path in (run / "model", run / "best") if path.exists()]
    for path in (*made, *kept):
        artifact.verify(path)
    measured = [{name: value for name, value in line.items() if name not in TIMED} for line in lines(run / JOURNAL)]
    journal = [line for line in measured if line.get("name") != "starved"]  # an alarm about times
    return {"journal": journal, **{path.name: content(path) for path in (*made, *kept)}}


def _build(path: Path, seed: int) -> None:
    """Sentences of random words, few enough for a run to read them more than once."""
    draw, words = random.Random(seed), [f"{first}{last}" for first in "bdgklmnrst" for last in ("a", "en", "ill", "or")]
    tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, "##s", "."])
    documents = [
        "\n".join(" ".join(draw.choices(words, k=draw.randint(4, 12))) + "." for _ in range(6)) for _ in range(40)
    ]
    text = path.with_name("text.txt")
    text.write_text("\n\n".join(documents), encoding="utf-8")
    build.build(files([str(text)]), tokenizer, path, build.Options(held_out=0.2))


def _plan(run: Path, seed: int, workers: int = 0) -> Recipe:
    path = run.with_name("recipe.toml")
    path.write_text(RECIPE, encoding="utf-8")
    changes = {"data.corpus": run.with_name("corpus"), "data.workers": workers, "output": run, "seed": seed}
    return recipe.read(path, [f"{name}={value}" for name, value in changes.items()])


def _fork(work: Callable[[], object]) -> int:
    """A process that does one thing and ends, 0 where it went well."""
    child = os.fork()
    if child == 0:
        failed = 1
        try:
            work()
            failed = 0
        except BaseException:
            traceback.print_exc(limit=-2)
        finally:
            os._exit(failed)
    return child


def _end(child: int) -> None:
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"a run that nobody killed ended with {status}"


def _kill(child: int) -> bool:
    """Whether the signal came before the end."""
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), f"a run ended by itself, with {status}"
    return status != 0


def _growing(run: Path) -> set[Path]:
    """Workspaces of checkpoints and models that are not shown yet, or that a kill left behind."""
    return {path for name in ("checkpoints/.step-", ".best.", ".model.") for path in run.glob(f"{name}*.tmp")}


def _wait_for_a_save(run: Path, before: set[Path], child: int, skipped: int) -> None:
    """Until a save is at work, after some that are let through; or until the run ends."""
    seen = set[Path]()
    while len(seen) <= skipped and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(0.0005)
        seen |= _growing(run) - before


def _main(kills: str, seed: str, *workers: str) -> None:
    import torch._dynamo  # every optimiser does, which costs each run a second

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        try:
            counts = kill_at_random(Path(folder), int(kills), int(seed), map(int, workers))
        except (AssertionError, BertkitError) as error:
            sys.exit(f"seed {seed}: {error}")
    print(json.dumps(counts))


if __name__ == "__main__":
    _main(*sys.argv[1:])
