"""One step of fine-tuning is that of transformers: losses and gradients of every head, in every family it has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

from bertkit.batch import Batch, Example, collate
from bertkit.family import families
from bertkit.objectives.choices import ChoiceQuestion
from bertkit.objectives.labels import LabelQuestion, LabelsQuestion, NumberQuestion
from bertkit.objectives.objective import Objective
from bertkit.objectives.spans import SpanQuestion
from bertkit.text import Tokenizer
from tests.objectives.test_variants import drawn_wide
from tests.reference import LAYOUTS, Inputs, gradients, inputs, worst

TOLERANCE = 1e-5
FAMILIES = ("bert", "roberta", "albert", "electra")
QUESTIONS: dict[str, Objective] = {
    "label": LabelQuestion(("no", "maybe", "yes")),
    "labels": LabelsQuestion(("red", "green", "blue")),
    "number": NumberQuestion(),
    "span": SpanQuestion(),
    "choice": ChoiceQuestion(),
}
CLASSES = {"span": "AutoModelForQuestionAnswering", "choice": "AutoModelForMultipleChoice"}
LENGTHS = {"span": [9, 9, 9, 9], "choice": [9, 4, 7, 9, 5, 8]}
"""transformers spreads the chances of a span over padding too, so that its rows are of one length here"""


def labels(question: str) -> list[dict]:
    """What is true of each row, as our batches have it."""
    return {
        "label": [{"label": value} for value in (2, 0, 1, 2)],
        "labels": [{"labels": np.array(row)} for row in ([1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0])],
        "number": [{"number": value} for value in (0.5, 4.75, 2.0, 0.0)],
        "span": [{"start": first, "end": last} for first, last in ((2, 4), (0, 0), (8, 8), (1, 7))],
        "choice": [{"question": row // 3, "option": row % 3, "right": int(row in (1, 5))} for row in range(6)],
    }[question]


def theirs(question: str, given: Inputs) -> dict[str, Tensor]:
    told = given.theirs()
    match question:
        case "span":
            return told | {
                "start_positions": torch.tensor([row["start"] for row in labels("span")]),
                "end_positions": torch.tensor([row["end"] for row in labels("span")]),
            }
        case "choice":
            return {name: x.view(2, 3, -1) for name, x in told.items()} | {"labels": torch.tensor([1, 2])}
        case "labels":
            return told | {"labels": torch.tensor(np.stack([row["labels"] for row in labels("labels")])).float()}
    return told | {"labels": torch.tensor([row[question] for row in labels(question)])}


def mean_loss(objective: Objective, network: torch.nn.Module, batch: Batch) -> Tensor:
    asked, counts = objective.loss(network, network(batch), batch), objective.counts(batch)
    return sum(objective.weights.get(name, 1.0) * one.loss / counts[name] for name, one in asked.items())


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_loss_and_gradients_equal_transformers(
    family: str, question: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    objective = QUESTIONS[question]
    made = drawn_wide(family, tokenizer, objective)
    kind = getattr(transformers, CLASSES.get(question, "AutoModelForSequenceClassification"))
    reference = kind.from_pretrained(made.save(tmp_path / "model")).eval()
    segments = made.network.spec.encoder.embed.segments
    given = inputs(LENGTHS.get(question, [9, 4, 7, 5]), len(tokenizer), segments).without(tokenizer.pad_id)
    expected = reference(**theirs(question, given))
    expected.loss.backward()

    rows = [Example(one.tokens, labels=true) for one, true in zip(given.examples, labels(question), strict=True)]
    made.network.eval()
    for layout in LAYOUTS:
        made.network.zero_grad()
        loss = mean_loss(objective, made.network, collate(rows, layout))
        loss.backward()
        assert worst(loss, expected.loss) < TOLERANCE
        found, dialect = gradients(made.network, family), families()[family].dialect
        for name, gradient in found.items():
            theirs_own = reference.get_parameter(dialect.spell(made.network.spec, name)).grad
            assert worst(gradient, theirs_own) < TOLERANCE, name


def test_questions_may_have_different_numbers_of_options(tokenizer: Tokenizer) -> None:
    """The loss of one step over questions of 2 and of 4 options is the mean of their own."""
    objective = ChoiceQuestion()
    network = drawn_wide("bert", tokenizer, objective).network.eval()
    given = inputs([5, 9, 4, 4, 8, 6], len(tokenizer)).examples

    def asked(rows: list[int], places: list[tuple[int, int, int]]) -> float:
        names = ("question", "option", "right")
        made = [
            Example(given[row].tokens, labels=dict(zip(names, at, strict=True)))
            for row, at in zip(rows, places, strict=True)
        ]
        return float(mean_loss(objective, network, collate(made)).detach())

    small = asked([0, 1], [(0, 0, 0), (0, 1, 1)])
    large = asked([2, 3, 4, 5], [(0, 0, 0), (0, 1, 0), (0, 2, 1), (0, 3, 0)])
    both = asked([0, 1, 2, 3, 4, 5], [(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 0), (1, 2, 1), (1, 3, 0)])
    assert both == pytest.approx((small + large) / 2, abs=1e-6)


def test_a_span_sees_no_padding(tokenizer: Tokenizer) -> None:
    """A row's loss does not depend on the longer rows beside it, unlike in transformers."""
    objective = SpanQuestion()
    network = drawn_wide("bert", tokenizer, objective).network.eval()
    given = inputs([5, 12], len(tokenizer)).examples
    rows = [Example(one.tokens, labels={"start": 1, "end": 3}) for one in given]
    alone = [float(mean_loss(objective, network, collate([row])).detach()) for row in rows]
    for layout in LAYOUTS:
        assert float(mean_loss(objective, network, collate(rows, layout)).detach()) == pytest.approx(
            np.mean(alone), abs=1e-6
        )


def test_right_answers_are_counted(tokenizer: Tokenizer) -> None:
    for question in ("label", "labels", "number", "span", "choice"):
        objective = QUESTIONS[question]
        network = drawn_wide("bert", tokenizer, objective).network.eval()
        given = inputs(LENGTHS.get(question, [9, 4, 7, 5]), len(tokenizer))
        rows = [Example(one.tokens, labels=true) for one, true in zip(given.examples, labels(question), strict=True)]
        batch = collate(rows)
        hidden = network(batch)
        found = {name: int(one.right) for name, one in objective.loss(network, hidden, batch).items()}
        head = {"label": "classify", "labels": "classify", "number": "regress"}.get(question, question)
        logits = network.logits(head, hidden, batch.layout)
        match question:
            case "label":
                expected = {"label": int((batch.restore(logits).argmax(-1) == torch.tensor([2, 0, 1, 2])).sum())}
            case "labels":
                expected = {"labels": int(((logits > 0) == batch.labels["labels"].bool()).sum())}
            case "number":
                expected = {"number": int(((logits[:, 0] - batch.labels["number"]).abs() <= 0.5).sum())}
            case "span":
                best = batch.restore(batch.layout.to_padded(logits)).argmax(1)
                true = torch.tensor([[row["start"], row["end"]] for row in labels("span")])
                expected = dict(zip(("start", "end"), (best == true).sum(0).tolist(), strict=True))
            case "choice":
                best = batch.restore(logits)[:, 0].view(2, 3).argmax(1)
                expected = {"choice": int((best == torch.tensor([1, 2])).sum())}
        assert found == expected


def test_every_family_takes_the_heads(tokenizer: Tokenizer) -> None:
    for name, family in families().items():
        encoder = family.sizes["tiny"](len(tokenizer))
        for objective in QUESTIONS.values():
            family.heads(encoder, objective.heads)
        assert name
