"""BERT at its real sizes, and many random small ones: every head against transformers, outputs and gradients."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torch
import transformers

from bertkit.family.bert import SIZES
from bertkit.weights import directory
from tests.family import test_bert_equality as test
from tests.reference import LAYOUTS, gradients, inputs, save, worst

CLAIM = (
    "every head of BERT equals transformers within 1e-5 in fp32, outputs and gradients, padded and packed, in all six "
    "sizes and in 1,000 random small configurations"
)
COVERS = (
    "bertkit/parts",
    "bertkit/family/bert.py",
    "bertkit/batch.py",
    "bertkit/weights/directory.py",
    "bertkit/weights/tensors.py",
    "bertkit/names.py",
)

RANDOM, PIECE = 1000, 50
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for size in SIZES:
        for architecture in test.HEADS:
            yield f"{size} {architecture}", partial(_size, size, architecture)
    for piece in range(RANDOM // PIECE):
        yield f"random {piece * PIECE}-{(piece + 1) * PIECE - 1}", partial(_random, piece)


def summary(results: list[Result]) -> str:
    assert sum(int(result["random"]) for result in results) == RANDOM
    sizes = sum(1 - min(int(result["random"]), 1) for result in results)
    outputs, slopes = (max(float(result[key]) for result in results) for key in ("outputs", "gradients"))
    return (
        f"{sizes} networks of {len(SIZES)} sizes and {len(test.HEADS)} kinds of head, {RANDOM} random ones; largest "
        f"difference {outputs:.1e} in outputs, {slopes:.1e} in gradients (torch {torch.__version__}, "
        f"transformers {transformers.__version__})"
    )


def _size(size: str, architecture: str) -> Result:
    layers, width = SIZES[size]
    labels = {"regression": 1, "BertForQuestionAnswering": 2}
    config = transformers.BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        num_labels=labels.get(architecture, 3),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    torch.manual_seed(0)
    kind = "BertForSequenceClassification" if architecture == "regression" else architecture
    model = getattr(transformers, kind)(config).eval()
    return {"random": 0, **_compare(model, architecture, [48, 5, 96, 31], seed=1)}


def _random(piece: int) -> Result:
    dice = random.Random(piece)
    found = [_small(dice) for _ in range(PIECE)]
    return {"random": PIECE, **{key: max(one[key] for one in found) for key in ("outputs", "gradients")}}


def _small(dice: random.Random) -> dict[str, float]:
    architecture = dice.choice(list(test.HEADS))
    labels = {"regression": 1, "BertForQuestionAnswering": 2}
    model = test.theirs(
        architecture,
        seed=dice.randrange(10**6),
        head=dice.choice([4, 8, 16]),
        dropout=0.0,
        num_attention_heads=dice.randint(1, 4),
        num_hidden_layers=dice.randint(1, 4),
        intermediate_size=dice.choice([8, 20, 64]),
        vocab_size=dice.choice([17, 60, 200]),
        max_position_embeddings=40,
        type_vocab_size=2,
        hidden_act=dice.choice(["gelu", "gelu_new", "relu"]),
        layer_norm_eps=dice.choice([1e-12, 1e-5]),
        num_labels=labels.get(architecture, dice.randint(2, 5)),
    )
    lengths = [dice.randint(1, 40) for _ in range(dice.randint(1, 8))]
    return _compare(model, architecture, lengths, seed=dice.randrange(10**6))


def _compare(model: transformers.PreTrainedModel, architecture: str, lengths: list[int], seed: int) -> dict[str, float]:
    """The largest differences of all layouts, in eval and in train mode (dropout is 0)."""
    heads = test.HEADS[architecture]
    with tempfile.TemporaryDirectory() as folder:
        network, _, _ = directory.read(save(model, Path(folder)))
    data = inputs(lengths, model.config.vocab_size, model.config.type_vocab_size, seed)
    expected = test.their_outputs(model, data, heads)
    test.loss(expected).backward()
    differences = {"outputs": 0.0, "gradients": 0.0}
    for layout in LAYOUTS:
        for training in (False, True):
            network.train(training)
            network.zero_grad()
            got = test.our_outputs(network, data, heads, layout)
            test.loss(got).backward()
            slopes = gradients(network)
            outputs = max(worst(got[name], expected[name]) for name in heads)
            steep = max(
                worst(slopes[name if name in slopes else f"bert.{name}"], parameter.grad)
                for name, parameter in model.named_parameters()
            )
            differences["outputs"] = max(differences["outputs"], outputs)
            differences["gradients"] = max(differences["gradients"], steep)
    assert max(differences.values()) <= test.TOLERANCE, (architecture, model.config, lengths, seed, differences)
    return differences
