"""transformers as the judge: the same random network on both sides, the same batch in three layouts."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import transformers
from torch import Tensor

from bertkit.batch import Batch, Example, Packed, Padded, collate
from bertkit.family import family_of
from bertkit.parts.network import NetworkModule
from bertkit.weights import directory

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

LAYOUTS = (Padded, Packed)
PER_TOKEN = {"mlm", "tag", "span", "replaced"}
"""heads that answer for every token"""


@dataclass
class Inputs:
    """Sequences of given lengths as examples and as transformers takes them."""

    examples: list[Example]
    ids: Tensor  # [B, L]
    segments: Tensor
    mask: Tensor

    def theirs(self) -> dict[str, Tensor]:
        return {"input_ids": self.ids, "token_type_ids": self.segments, "attention_mask": self.mask}

    def ours(self, layout: type) -> Batch:
        return collate(self.examples, layout)

    def real(self, x: Tensor) -> Tensor:
        """The rows of [B, L, ...] that are tokens: [T, ...]."""
        return x[self.mask.bool()]

    def without(self, id: int) -> Inputs:
        """Another id in the place of this one, and this one under padding."""
        examples = [
            Example({**one.tokens, "ids": np.where(one.tokens["ids"] == id, id + 1, one.tokens["ids"])})
            for one in self.examples
        ]
        ids = torch.where(self.ids == id, id + 1, self.ids)
        return Inputs(examples, torch.where(self.mask.bool(), ids, id), self.segments, self.mask)


def inputs(lengths: list[int], vocabulary: int, segments: int = 2, seed: int = 0) -> Inputs:
    random = np.random.default_rng(seed)
    examples = []
    for length in lengths:
        split = int(random.integers(0, length + 1))
        second = np.arange(length) >= split if segments > 1 else np.zeros(length, dtype=bool)
        ids = random.integers(1, vocabulary, length)  # 0 is [PAD]: no text has it, and transformers does not learn it
        examples.append(Example({"ids": ids, "segments": second.astype(np.int64)}))
    padded = collate(examples, Padded)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return Inputs(examples, padded.tokens["ids"], padded.tokens["segments"], mask.long())


def in_order(batch: Batch, x: Tensor) -> Tensor:
    """Our values per token [...] as [B, L, ...] in the order of the examples."""
    return batch.restore(batch.layout.to_padded(x))


def save(model: transformers.PreTrainedModel, path: Path) -> Path:
    model.save_pretrained(path)
    return path


def gradients(network: NetworkModule, model_type: str = "bert", missing: bool = False) -> dict[str, Tensor]:
    """Our gradients under Hugging Face's names; with `missing`, those of heads that were not asked may not be there."""
    names = family_of(model_type).dialect.names(network.spec)
    out = {}
    for name, parameter in network.named_parameters():
        if parameter.grad is None and missing:
            continue
        assert parameter.grad is not None, f"no gradient reaches {name}"
        theirs = names.foreign(name)
        out |= dict(zip(theirs, parameter.grad.chunk(len(theirs)), strict=True))
    return out


def worst(a: Tensor, b: Tensor) -> float:
    assert a.shape == b.shape, (a.shape, b.shape)
    return float((a - b).detach().abs().max()) if a.numel() else 0.0


def ours(model: transformers.PreTrainedModel) -> NetworkModule:
    """The same network here, all of it taken."""
    with tempfile.TemporaryDirectory() as folder:
        network, _, report = directory.read(save(model, Path(folder)))
    assert not report.left
    assert not report.new
    return network


def their_outputs(model: transformers.PreTrainedModel, data: Inputs, heads: dict[str, str]) -> dict[str, Tensor]:
    """What heads (ours -> their keys) say, or without any the hidden states; values per token as [T, ...]."""
    arguments = data.theirs()
    if "choice" in heads:
        arguments = {name: values[None] for name, values in arguments.items()}  # [1, choices, L]
    out = model(**arguments)
    if not heads:
        return {"hidden": data.real(out.last_hidden_state)}
    if "span" in heads:
        out["span"] = torch.stack([out.start_logits, out.end_logits], -1)
    made = {name: out[key] for name, key in heads.items()}
    if "choice" in heads:
        made["choice"] = made["choice"].T  # [choices, 1]
    return {name: data.real(x) if name in PER_TOKEN else x for name, x in made.items()}


def our_outputs(network: NetworkModule, data: Inputs, heads: dict[str, str], layout: type) -> dict[str, Tensor]:
    """The same of ours, in one layout."""
    batch = data.ours(layout)
    hidden = network(batch)
    if not heads:
        return {"hidden": data.real(in_order(batch, hidden))}
    made = {name: network.logits(name, hidden, batch.layout) for name in heads}
    return {name: data.real(in_order(batch, x)) if name in PER_TOKEN else batch.restore(x) for name, x in made.items()}


def loss(outputs: dict[str, Tensor]) -> Tensor:
    """A fixed random weighing of every output, so that every gradient matters."""
    torch.manual_seed(1)
    return sum((x * torch.randn(x.shape)).mean() for _, x in sorted(outputs.items()))
