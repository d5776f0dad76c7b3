"""BERT here is BERT there: every head, padded and packed, outputs and gradients, against transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertkit.parts.pool import Mean
from bertkit.weights import directory
from tests.pretrained import CHINESE_SENTENCE, ENGLISH_TINY, pretrained
from tests.reference import (
    LAYOUTS,
    Inputs,
    gradients,
    in_order,
    inputs,
    loss,
    our_outputs,
    ours,
    their_outputs,
    worst,
)

TOLERANCE = 1e-5

HEADS = {
    "BertModel": {"pooler": "pooler_output"},
    "BertForPreTraining": {"mlm": "prediction_logits", "next_sentence": "seq_relationship_logits"},
    "BertForMaskedLM": {"mlm": "logits"},
    "BertForNextSentencePrediction": {"next_sentence": "logits"},
    "BertForSequenceClassification": {"classify": "logits"},
    "regression": {"regress": "logits"},
    "BertForTokenClassification": {"tag": "logits"},
    "BertForQuestionAnswering": {"span": "span"},
    "BertForMultipleChoice": {"choice": "logits"},
}

configs = st.fixed_dictionaries(
    {
        "num_hidden_layers": st.integers(1, 3),
        "num_attention_heads": st.sampled_from([1, 2, 3]),
        "head": st.sampled_from([4, 8]),
        "intermediate_size": st.sampled_from([8, 20]),
        "vocab_size": st.sampled_from([17, 60]),
        "max_position_embeddings": st.sampled_from([12, 40]),
        "type_vocab_size": st.sampled_from([1, 2]),
        "hidden_act": st.sampled_from(["gelu", "gelu_new", "relu"]),
        "layer_norm_eps": st.sampled_from([1e-12, 1e-5]),
        "num_labels": st.integers(2, 4),
        "dropout": st.sampled_from([0.0, 0.0, 0.1]),
    }
)
lengths = st.lists(st.integers(1, 12), min_size=1, max_size=6)


def theirs(architecture: str, seed: int, head: int, dropout: float, **settings: object) -> transformers.PreTrainedModel:
    """A random reference. Weights are drawn wide, so that an error anywhere shows."""
    settings |= {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    if architecture == "regression":
        architecture = "BertForSequenceClassification"
    config = transformers.BertConfig(hidden_size=head * settings["num_attention_heads"], **settings)
    torch.manual_seed(seed)
    model = getattr(transformers, architecture)(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    return model.eval()


@pytest.mark.parametrize("architecture", HEADS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(config=configs, lengths=lengths, seed=st.integers(0, 99))
def test_every_head_equals_transformers(architecture: str, config: dict, lengths: list[int], seed: int) -> None:
    labels = {"regression": 1, "BertForQuestionAnswering": 2}  # what these heads are by definition
    heads = HEADS[architecture]
    model = theirs(architecture, seed, **config | {"num_labels": labels.get(architecture, config["num_labels"])})
    data = inputs(lengths, config["vocab_size"], config["type_vocab_size"], seed)
    network = ours(model)

    expected = their_outputs(model, data, heads)
    loss(expected).backward()
    for layout in LAYOUTS:
        for training in (False, True) if config["dropout"] == 0 else (False,):
            network.train(training)
            network.zero_grad()
            got = our_outputs(network, data, heads, layout)
            loss(got).backward()
            assert max(worst(got[name], expected[name]) for name in heads) <= TOLERANCE
            found = gradients(network)
            for name, parameter in model.named_parameters():
                mine = found[name if name in found else f"bert.{name}"]
                assert worst(mine, parameter.grad) <= TOLERANCE, (layout, name)


SIZES = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512), "medium": (8, 512)}


@pytest.mark.parametrize("size", SIZES)
def test_google_sizes_equal_transformers(size: str) -> None:
    layers, width = SIZES[size]
    config = {"num_hidden_layers": layers, "num_attention_heads": width // 64, "intermediate_size": 4 * width}
    torch.manual_seed(0)
    model = transformers.BertForPreTraining(
        transformers.BertConfig(hidden_size=width, vocab_size=1000, **config)
    ).eval()
    network = ours(model)
    data = inputs([60, 7, 128, 31], 1000)
    heads = HEADS["BertForPreTraining"]
    expected = their_outputs(model, data, heads)
    for layout in LAYOUTS:
        got = our_outputs(network, data, heads, layout)
        assert max(worst(got[name], expected[name]) for name in heads) <= TOLERANCE


def real_inputs(texts: list[str], path: Path) -> Inputs:
    from bertkit.runtime.stream import example
    from bertkit.text import Tokenizer

    encodings = Tokenizer.load(path).encode_many(texts[:-1], texts[1:])
    examples = [example(encoding.ids, encoding.segments) for encoding in encodings]
    data = inputs([len(example) for example in examples], 100)
    padded = transformers.AutoTokenizer.from_pretrained(path)(texts[:-1], texts[1:], padding=True, return_tensors="pt")
    return Inputs(examples, padded["input_ids"], padded["token_type_ids"], data.mask)


ENGLISH = [
    "The river froze overnight, and by morning the children were skating.",
    "Who left the gate open?",
    "A quarterly report lists revenue, costs and the number of people employed.",
    "Naïve café owners rarely sue.",
]
CHINESE = ["今天的会议改到下午三点。", "她在图书馆读书。", "这家餐厅的面条很好吃，服务也不错。", "火车晚点了 20 分钟"]


@pytest.mark.parametrize(
    ("name", "texts"), [("minilm", ENGLISH), (CHINESE_SENTENCE, CHINESE)], ids=["minilm", "chinese"]
)
def test_real_encoders_equal_transformers(name: str | tuple[str, str], texts: list[str]) -> None:
    from bertkit.weights.find import find

    path = find(name) if isinstance(name, str) else pretrained(name)
    model = transformers.BertModel.from_pretrained(path).eval()
    network, _, report = directory.read(path)
    assert report.taken == ("pooler",)
    data = real_inputs(texts, path)
    expected = model(**data.theirs(), output_hidden_states=True)
    loss({"pooler": expected.pooler_output, "tokens": data.real(expected.last_hidden_state)}).backward()
    for layout in LAYOUTS:
        batch = data.ours(layout)
        with torch.no_grad():
            states = [in_order(batch, x) for x in network.encoder.steps(batch)]
            for mine, reference in zip(states, expected.hidden_states, strict=True):
                assert worst(data.real(mine), data.real(reference)) <= TOLERANCE
            pooled = batch.restore(network.logits("pooler", network(batch), batch.layout))
            assert worst(pooled, expected.pooler_output) <= TOLERANCE
            weights = data.mask[..., None]
            mean = (expected.last_hidden_state * weights).sum(1) / weights.sum(1)
            assert worst(batch.restore(Mean().build(network)(batch)), mean) <= TOLERANCE
        network.zero_grad()
        hidden = network(batch)
        pooled = batch.restore(network.logits("pooler", hidden, batch.layout))
        loss({"pooler": pooled, "tokens": data.real(in_order(batch, hidden))}).backward()
        found = gradients(network)
        assert max(worst(found[f"bert.{name}"], x.grad) for name, x in model.named_parameters()) <= TOLERANCE


def test_real_masked_language_model_equals_transformers() -> None:
    path = pretrained(ENGLISH_TINY)
    model = transformers.BertForMaskedLM.from_pretrained(path).eval()
    network, _, report = directory.read(path)
    assert report.taken == ("mlm",)
    data = real_inputs(ENGLISH, path)
    expected = data.real(model(**data.theirs()).logits)
    loss({"mlm": expected}).backward()
    for layout in LAYOUTS:
        network.zero_grad()
        got = our_outputs(network, data, {"mlm": ""}, layout)
        assert worst(got["mlm"], expected) <= TOLERANCE
        loss(got).backward()
        found = gradients(network)
        assert max(worst(found[name], parameter.grad) for name, parameter in model.named_parameters()) <= TOLERANCE
