"""Pre-training losses of variants are those of transformers' own classes, and so are their gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from bertkit.family import families
from bertkit.model import Model
from bertkit.objectives.choose import NGrams
from bertkit.objectives.mask import Mask, Vocabulary
from bertkit.objectives.masked_lm import MaskedLm
from bertkit.objectives.objective import Objective
from bertkit.objectives.pairs import Sop
from bertkit.parts.encoder import with_dropout
from bertkit.parts.network import Network
from bertkit.text import Tokenizer
from tests.objectives.test_objectives import batch_of, pairs, theirs
from tests.reference import LAYOUTS, gradients, worst

TOLERANCE = 1e-5
CASES = {
    "roberta": (transformers.RobertaForMaskedLM, MaskedLm(), []),
    "xlm-roberta": (transformers.XLMRobertaForMaskedLM, MaskedLm(), []),
    "albert": (transformers.AlbertForPreTraining, Sop() + MaskedLm(Mask(NGrams())), ["order"]),
}
"""transformers' class, what is learned, and which labels of pairs there are; ELECTRA has a file of its own"""


def drawn_wide(name: str, tokenizer: Tokenizer, objective: Objective) -> Model:
    """The smallest network without dropout, its weights drawn wide, so that an error anywhere shows."""
    family = families()[name]
    encoder = with_dropout(family.sizes["tiny"](len(tokenizer)), 0.0).after(tokenizer.pad_id)
    network = Network(encoder, family.heads(encoder, objective.heads)).build()
    torch.manual_seed(0)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, mean=0.3 if parameter.dim() == 1 else 0.0, std=0.08)
    return Model(network, tokenizer, config={"model_type": name})


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients_equal_transformers(name: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    kind, objective, labels = CASES[name]
    made = drawn_wide(name, tokenizer, objective)
    reference = kind.from_pretrained(made.save(tmp_path / "model")).eval()
    flat = objective.corrupt(pairs(tokenizer, "order"), Vocabulary.of(tokenizer))
    given = theirs(flat, "order")
    order = given.pop("next_sentence_label")
    given |= {"sentence_order_label": order} if labels else {}
    given["token_type_ids"] = given["token_type_ids"] % made.network.spec.encoder.embed.segments
    expected = reference(**given)
    expected.loss.backward()

    dialect = families()[name].dialect
    for layout in LAYOUTS:
        batch = batch_of(flat, layout)
        made.network.zero_grad()
        asked, counts = objective.loss(made.network, made.network(batch), batch), objective.counts(batch)
        loss = sum(asked[question].loss / counts[question] for question in asked)
        assert set(asked) == {"mlm", *labels}
        assert abs(float((loss - expected.loss).detach())) <= TOLERANCE
        loss.backward()
        mine = gradients(made.network, name)
        for theirs_is, parameter in reference.named_parameters():
            if parameter.grad is not None:
                spelled = dialect.canonical(theirs_is, kind.__name__)
                assert worst(mine[dialect.tied.get(spelled, spelled)], parameter.grad) <= TOLERANCE, theirs_is
