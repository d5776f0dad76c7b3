"""Checkpoints: all that a run needs to go on as if nothing had happened, in a directory that is whole or not there.

    RUN/checkpoints/step-00000120/
        weights.safetensors     the network
        optimizer.safetensors   what the optimiser remembers, by the names of parameters
        state.json              the step, the place in the examples, and what is counted on the way

Chance is no state: every step draws from a key of its own.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bertkit import artifact, workspace
from bertkit.errors import BertkitError
from bertkit.text.files import read_object
from bertkit.train import optimizer as optimizers
from bertkit.train.processes import put

log = logging.getLogger("bertkit")

KIND, HOME = "checkpoint", "checkpoints"
_NAME = re.compile(r"step-(\d{8,})")


@dataclass(frozen=True)
class Found:
    """A checkpoint on disk that is whole."""

    path: Path
    step: int
    state: Mapping[str, Any]

    def restore(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Put everything back where it was, bit for bit."""
        weights = load_file(self.path / "weights.safetensors")
        names = {name for name, _ in network.named_parameters()}
        if set(weights) != names:
            odd = ", ".join(sorted(set(weights) ^ names)[:3])
            raise BertkitError(f"{self.path} is of another network: look at {odd}. Give another output, or its recipe")
        for name, parameter in network.named_parameters():
            put(weights[name], parameter)
        optimizers.restore(optimizer, network, load_file(self.path / "optimizer.safetensors"))


def save(
    run: Path, step: int, weights: Mapping[str, Tensor], memory: Mapping[str, Tensor], state: Mapping[str, Any]
) -> Path:
    """Write the checkpoint of a step: weights and what the optimiser remembers, both whole."""
    place = run / HOME / f"step-{step:08d}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with artifact.directory(place, KIND, overwrite=True, facts={"step": step}) as content:
        save_file(dict(weights), content / "weights.safetensors")
        save_file(dict(memory), content / "optimizer.safetensors")
        (content / "state.json").write_text(json.dumps({"step": step, **state}), encoding="utf-8")
    return place


def steps(run: Path) -> list[tuple[int, Path]]:
    """All that are there, whole or not, oldest first."""
    home = run / HOME
    paths = [path for path in home.iterdir() if _NAME.fullmatch(path.name)] if home.is_dir() else []
    return sorted((int(path.name.removeprefix("step-")), path) for path in paths)


def last(run: Path) -> Found | None:
    """The newest one that is whole, with a warning for each newer one that is not; None where there is none."""
    for step, path in reversed(steps(run)):
        try:
            artifact.verify(path)
            return Found(path, step, read_object(path / "state.json"))
        except BertkitError as error:
            log.warning("%s. An older checkpoint is taken", error)
    return None


def forget(run: Path, keep: int) -> None:
    """Delete all but the newest `keep`."""
    for _, path in steps(run)[: -keep or None]:
        shutil.rmtree(path, ignore_errors=True)
    if not keep:
        with suppress(OSError):  # it was never there, or somebody keeps something in it
            (run / HOME).rmdir()


def tidy(run: Path) -> None:
    """Remove what a kill left half-written beside checkpoints and models. The caller is the run's only writer."""
    for home in (run, run / HOME):
        for path in home.glob(".*.tmp"):
            workspace.clean(path.with_name(path.name[1:].rsplit(".", 2)[0]))
