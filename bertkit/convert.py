"""From one format to another: Hugging Face, Google's TensorFlow 1, sentence-transformers.

What was written is opened again and asked the same questions as its source, in English and Chinese, before it is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertkit import artifact
from bertkit.batch import Batch, collate
from bertkit.errors import BertkitError, look_up
from bertkit.model import Model, load, open_directory
from bertkit.parts.pool import Concat, Pool, named
from bertkit.runtime.stream import example
from bertkit.weights import directory, find, google, sentence
from bertkit.weights.folder import MODULES

TOLERANCE = 1e-5
QUESTIONS = (
    "The cat sat on the mat.",
    "Unaffable cafés, 3.14 and an e-mail address!",
    "",
    "今天天气很好，我们去公园散步。",
    "She said: “BERT reads left and right.” " * 4,
)
"""what source and result are asked"""


@dataclass(frozen=True)
class Conversion:
    """What a conversion did; `parity` has the largest difference to the source in each thing compared."""

    source: str
    path: Path
    to: str
    taken: tuple[str, ...]
    left: tuple[str, ...]
    new: tuple[str, ...]
    parity: Mapping[str, float]

    @property
    def worst(self) -> float:
        return max(self.parity.values())


def convert(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    to: str = "hf",
    pool: str | Pool | None = None,
    normalize: bool | None = None,
    overwrite: bool = False,
) -> Conversion:
    """Write a model that `bertkit.load` opens as a directory of the kind `to`: hf, tf or sentence-transformers.

    `pool` and `normalize` are for sentence-transformers; if not given, they are the source's own, else the mean, not
    normalised. The directory appears only when its numbers are the source's, within 1e-5.
    """
    write = look_up("target", to, TARGETS)
    if to != "sentence-transformers" and (pool is not None or normalize is not None):
        raise BertkitError(f"pool and normalize (--pool, --normalize) say how vectors are made; {to} files cannot")
    found, path = find.find(source), Path(destination)
    if found.resolve() in (path.resolve(), *path.resolve().parents):
        where = "is the source itself" if found.resolve() == path.resolve() else "lies inside the source"
        raise BertkitError(f"{path} {where}: give another directory to write to")
    noted: dict[str, Any] = {}
    with artifact.directory(path, "model", overwrite=overwrite, facts=noted) as temporary:
        model = load(source)
        noted["tokenizer"] = model.tokenizer.fingerprint
        model.pool = model.pool if pool is None else named(pool)
        model.normalize = model.normalize if normalize is None else normalize
        left = write(model, temporary)
        model.tokenizer.save_files(temporary)
        parity = _compare(model, open_directory(temporary), vectors=to == "sentence-transformers")
        beyond = [f"{what} {difference:.1e}" for what, difference in parity.items() if not difference <= TOLERANCE]
        if beyond:
            raise BertkitError(
                f"{path} was not written: read again from its {to} files, the model differs from {os.fspath(source)} "
                f"by {', '.join(beyond)}, and {TOLERANCE:g} is let through. What was there is unchanged"
            )
    report = model.report
    assert report is not None, "what was loaded has a report"
    made = () if to != "sentence-transformers" or (found / MODULES).is_file() else _ways(model)
    taken = ("encoder", *report.taken)
    return Conversion(os.fspath(source), path, to, taken, (*report.left, *left), (*report.new, *made), parity)


def _to_hf(model: Model, path: Path) -> tuple[str, ...]:
    directory.write(model.network, model.config, path)
    return _ways(model) if model.sentence != model.plain else ()


def _to_tf(model: Model, path: Path) -> tuple[str, ...]:
    google.write(model.network, model.config, path)
    return _ways(model) if model.sentence != model.plain else ()


def _to_sentence(model: Model, path: Path) -> tuple[str, ...]:
    directory.write(model.network, model.config, path)
    sentence.write(model.sentence, model.network.spec.encoder.width, path)
    return ()


TARGETS: dict[str, Callable[[Model, Path], tuple[str, ...]]] = {
    "hf": _to_hf,
    "tf": _to_tf,
    "sentence-transformers": _to_sentence,
}
"""each writes a model and says what its files have no place for"""


def _ways(model: Model) -> tuple[str, ...]:
    """The words for how a model's vectors are made."""
    way = model.sentence
    pools = way.pool.pools if isinstance(way.pool, Concat) else (way.pool,)
    said = {
        "pooling " + "+".join(type(pool).__name__.lower() for pool in pools): True,
        **{f"dense {module.spec.before} to {module.spec.after}": True for module in way.dense},
        "normalize": way.normalize,
        f"prompts {', '.join(name for name, text in way.prompts.items() if text)}": any(way.prompts.values()),
        f"shortening to {way.shorten} values": way.shorten is not None,
        f"limit of {way.limit} tokens": way.limit != model.plain.limit,
    }
    return tuple(words for words, there in said.items() if there)


def _compare(source: Model, result: Model, vectors: bool) -> dict[str, float]:
    """How far the result is from its source; what is not there at all is an error."""
    if set(result.network.spec.heads) != set(source.network.spec.heads):
        there = ", ".join(result.network.spec.heads) or "none"
        raise BertkitError(f"of the heads {', '.join(source.network.spec.heads)} only these came through: {there}")
    ids = source.tokenizer.ids_of_many(QUESTIONS)
    if result.tokenizer.ids_of_many(QUESTIONS) != ids:
        raise BertkitError("what was written splits texts into other tokens than its source")
    batch = collate([example(row[: source.limit]) for row in ids])
    mine, theirs = _answers(source, batch), _answers(result, batch)
    if vectors:
        mine["vectors"], theirs["vectors"] = (torch.from_numpy(x.embed(QUESTIONS)) for x in (source, result))
    return {what: float((mine[what] - theirs[what]).abs().max()) for what in mine}


def _answers(model: Model, batch: Batch) -> dict[str, Tensor]:
    """Hidden states and what each head makes of them."""
    with torch.inference_mode(), model.network.evaluating():
        hidden = model.network(batch)  # [T, W]
        heads = {name: model.network.logits(name, hidden, batch.layout) for name in model.network.heads}
    return {"hidden states": hidden, **heads}


def facts(made: Conversion) -> dict[str, Any]:
    """The same as plain values, for a reader or a program."""
    return {
        "source": made.source,
        "destination": str(made.path),
        "to": made.to,
        "took": list(made.taken),
        "left": list(made.left),
        "made_new": list(made.new),
        "largest_difference": made.worst,
        "parity": dict(made.parity),
    }
