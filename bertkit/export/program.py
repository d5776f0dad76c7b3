"""torch.export: the operators of the model itself, without Python, for whoever has torch.

The model is followed once, in the padded layout. What depends on sizes in Python (our matrices multiply a few rows in
another way than many) is replaced before, so that one program fits every number of rows and tokens.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.export import Dim

from bertkit.batch import Array, Batch, Padded
from bertkit.errors import BertkitError
from bertkit.export.ending import Ending, ending_of, inputs_of, modules_of
from bertkit.export.format import Format, Run
from bertkit.model import Model
from bertkit.parts.init import Linear
from bertkit.runtime.engines.products import Product

ROWS, TOKENS = 2, 8
"""of the batch that is followed; one of either would be taken for a number that never changes"""


class Program(Format):
    """Run by torch. Opening a file may run code that is in it."""

    name, file = "torch-export", "model.pt2"
    trusted = True

    def write(self, ending: Ending, product: Product, path: Path) -> None:
        plain = ProgramModule(_plain(ending)).eval().requires_grad_(False)
        longest = ending.model.network.spec.encoder.longest
        rows, tokens = Dim("B", min=1), Dim("L", min=1, max=longest) if longest else Dim("L", min=1)
        given = {name: torch.ones(ROWS, TOKENS, dtype=torch.long) for name in inputs_of(ending.model)}
        shapes = {name: {0: rows, 1: tokens} for name in given}
        try:
            with torch.no_grad():
                made = torch.export.export(plain, (), given, dynamic_shapes=shapes, strict=False)
        except Exception as error:  # of many kinds, for every model that Python decides something about
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise BertkitError(f"torch.export cannot follow this model: {reason}. Export to onnx instead") from error
        torch.export.save(made, path)

    def open(self, path: Path, inputs: tuple[str, ...]) -> Run:
        program = torch.export.load(path).module()

        def run(given: Mapping[str, Array]) -> Mapping[str, Array]:
            with torch.inference_mode():
                said = program(**{name: torch.from_numpy(given[name]) for name in inputs})
            return {name: values.numpy() for name, values in said.items()}

        return run


class ProgramModule(nn.Module):
    """[B, L] of whole numbers -> the ending's outputs by name."""

    def __init__(self, ending: Ending) -> None:
        super().__init__()
        self.parts = modules_of(ending)
        self._ending = ending

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> dict[str, Tensor]:
        layout = Padded(input_ids.shape[0], input_ids.shape[1], attention_mask.bool())
        tokens = {"ids": input_ids} | ({} if token_type_ids is None else {"segments": token_type_ids})
        batch = Batch(tokens, layout, torch.empty(0))
        states = dict(enumerate(self._ending.model.encoder.steps(batch)))
        return self._ending.said(states, layout)


def _plain(ending: Ending) -> Ending:
    """The same, with torch's own matrices."""
    model = ending.model
    network, way = copy.deepcopy(model.network).cpu(), copy.deepcopy(model.sentence)
    for part in network.modules():
        if isinstance(part, Linear):
            part.__class__ = nn.Linear  # type: ignore[assignment] # the same weights, another forward
    return ending_of(Model(network, model.tokenizer, way, model.config), ending.name)
