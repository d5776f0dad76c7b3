"""transformers as the judge: the same random network on both sides, the same batch in three layouts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import transformers
from torch import Tensor

from bertkit.batch import Batch, Example, Packed, Padded, collate
from bertkit.family import family_of
from bertkit.parts.network import NetworkModule

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

LAYOUTS = (Padded, Packed)


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
