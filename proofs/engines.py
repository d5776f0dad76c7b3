"""Every engine beside torch, on every family that it takes, with sequences of 1 to 512 tokens by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bertkit.runtime.engines import ENGINES
from bertkit.runtime.engines.engine import Setup
from tests.runtime.networks import ENCODERS, SMALL, SMALL_RELATIVE, computed, examples, expected, network

CLAIM = (
    "hidden states of every engine are those of torch for every family it takes, batches of one to four sequences of "
    "1 to 512 tokens: within 1e-4, cosine at least 0.9999"
)
COVERS = (
    "bertkit/runtime/engines",
    "bertkit/runtime/lanes.py",
    "bertkit/parts",
    "bertkit/family",
    "bertkit/batch.py",
    "tests/runtime/networks.py",
)

CASES = 150
"""batches for each engine and family"""
LARGEST, NEAREST = 1e-4, 0.9999
FAMILIES = {**ENCODERS, "one layer": SMALL, "one layer, relative": SMALL_RELATIVE}
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for name, kind in ENGINES.items():
        for family, encoder in FAMILIES.items():
            if not kind.refusal(encoder):
                yield f"{name}, {family}", partial(compared, name, family)


def summary(results: list[Result]) -> str:
    worst, nearest = max(float(one["difference"]) for one in results), min(float(one["cosine"]) for one in results)
    cases = sum(int(one["cases"]) for one in results)
    engines = sorted({str(one["engine"]) for one in results})
    return (
        f"{cases:,} batches, {len(results)} pairs of engine and family ({', '.join(engines)}): "
        f"largest difference {worst:.1e}, smallest cosine {nearest:.7f}"
    )


def compared(name: str, family: str) -> Result:
    """New cases in every run."""
    encoder = FAMILIES[family]
    net = network(encoder)
    ENGINES[name].require(encoder, "fp32")
    engine = ENGINES[name](net, Setup(name, workers=1, threads=2))
    found = {"difference": 0.0, "cosine": 1.0, "cases": 0.0}
    most = min(encoder.longest or 512, 512)

    @settings(max_examples=CASES, deadline=None, database=None)
    @given(lengths=st.lists(st.integers(1, most), min_size=1, max_size=4))
    def compare(lengths: list[int]) -> None:
        rows = examples(*lengths, segments=encoder.embed.segments)
        difference, cosine = near(computed(engine, rows), expected(net, rows))
        assert difference <= LARGEST, (lengths, difference)
        assert cosine >= NEAREST, (lengths, cosine)
        found["difference"] = max(found["difference"], difference)
        found["cosine"] = min(found["cosine"], cosine)
        found["cases"] += 1

    compare()
    return {"engine": name, "family": family, **found}


def near(made: Tensor, true: Tensor) -> tuple[float, float]:
    """The largest difference of two batches, and the smallest cosine of two tokens."""
    tokens = true.abs().sum(-1) > 0
    cosines = torch.nn.functional.cosine_similarity(made.double(), true.double(), dim=-1)[tokens]
    return float((made - true).abs().max()), float(cosines.min())
