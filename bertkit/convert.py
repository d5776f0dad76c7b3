"""From one format to another: Hugging Face, Google's TensorFlow 1, sentence-transformers.

What was written is opened again before it is kept: its weights must be those of its source, and its answers to the same
questions, in English and Chinese, alone, as a pair and over hundreds of tokens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertkit import artifact
from bertkit.batch import collate
from bertkit.errors import BertkitError, look_up
from bertkit.family import family_of
from bertkit.model import Model, load, open_directory
from bertkit.parts.pool import Pool, name_of, named
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
LONG = 512
"""tokens of the longest question"""


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
    artifact.require_apart(found, path)
    noted: dict[str, Any] = {}
    with artifact.directory(path, "model", overwrite=overwrite, facts=noted) as temporary:
        model = load(source)
        noted["tokenizer"] = model.tokenizer.fingerprint
        model.pool = model.pool if pool is None else named(pool)
        model.normalize = model.normalize if normalize is None else normalize
        reason = family_of(model.config["model_type"]).unopenable(model.network.spec)
        if reason and to != "tf":
            raise BertkitError(
                f"{os.fspath(source)} cannot be converted to {to}: {reason}. bertkit.load(…).save(…) writes it for "
                "bertkit alone"
            )
        vectors = to == "sentence-transformers"
        if vectors:
            sentence.words_for(model.pool)
        answers = _answers(model, vectors)  # before anything is written: a model that cannot answer says so itself
        left = write(model, temporary)
        model.tokenizer.save_files(temporary)
        parity = _compare(model, open_directory(temporary), answers, vectors)
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
    said = {
        f"pooling {name_of(way.pool)}": True,
        **{f"dense {module.spec.before} to {module.spec.after}": True for module in way.dense},
        "normalize": way.normalize,
        f"prompts {', '.join(name for name, text in way.prompts.items() if text)}": any(way.prompts.values()),
        f"shortening to {way.shorten} values": way.shorten is not None,
        f"limit of {way.limit} tokens": way.limit != model.plain.limit,
    }
    return tuple(words for words, there in said.items() if there)


def _compare(source: Model, result: Model, answers: Mapping[str, Tensor], vectors: bool) -> dict[str, float]:
    """How far the result is from its source; what is not there at all is an error."""
    if set(result.network.spec.heads) != set(source.network.spec.heads):
        there = ", ".join(result.network.spec.heads) or "none"
        raise BertkitError(f"of the heads {', '.join(source.network.spec.heads)} only these came through: {there}")
    if result.tokenizer.ids_of_many(QUESTIONS) != source.tokenizer.ids_of_many(QUESTIONS):
        raise BertkitError("what was written splits texts into other tokens than its source")
    ways = [replace(model.sentence, dense=(), settings={}) for model in (source, result)]
    if vectors and ways[0] != ways[1]:
        raise BertkitError(f"what was written makes vectors in another way than its source: {ways[1]}, not {ways[0]}")
    mine, theirs = _weights(source, vectors), _weights(result, vectors)
    if {name: x.shape for name, x in mine.items()} != {name: x.shape for name, x in theirs.items()}:
        raise BertkitError("what was written has other weights than its source")
    again = _answers(result, vectors)
    parity = {what: _furthest(answers[what], again[what]) for what in answers}
    return parity | {"weights": float(np.max([_furthest(mine[name], theirs[name]) for name in mine]))}


def _weights(model: Model, vectors: bool) -> Mapping[str, Tensor]:
    return dict(model.network.named_parameters()) | (dict(model.dense.named_parameters()) if vectors else {})


def _furthest(a: Tensor, b: Tensor) -> float:
    return float((a.detach() - b.detach()).abs().max())


def _answers(model: Model, vectors: bool) -> dict[str, Tensor]:
    """Hidden states and what each head makes of them; vectors where files say how they are made."""
    encoder = model.network.spec.encoder
    longest, last = min(encoder.longest or LONG, LONG), encoder.embed.segments - 1
    pair = model.tokenizer.encode(QUESTIONS[1], QUESTIONS[3])
    found = [*model.tokenizer.encode_many(QUESTIONS), pair]
    rows = [example(x.ids[:longest], [min(segment, last) for segment in x.segments[:longest]]) for x in found]
    ids = [id for x in found for id in x.ids]
    far = (ids * (longest // len(ids) + 1))[:longest]
    batch = collate(rows)
    with torch.inference_mode(), model.network.evaluating():
        hidden = model.network(batch)  # [T, W]
        heads = {name: model.network.logits(name, hidden, batch.layout) for name in model.network.heads}
        states = torch.cat([hidden.flatten(), model.network(collate([example(far)])).flatten()])
    made = {"vectors": torch.from_numpy(model.embed(QUESTIONS))} if vectors else {}
    return {"hidden states": states, **heads, **made}


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
