"""RoBERTa, XLM-R, ALBERT and ELECTRA here are those of transformers: every head, outputs and gradients, both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor

import bertkit
from bertkit.batch import Padded, collate
from bertkit.family import family_of
from bertkit.parts.heads import Classify, Mlm, Pooler
from bertkit.runtime.stream import example
from bertkit.text import Tokenizer
from bertkit.text.wordpiece import Specials
from bertkit.weights import directory
from tests.reference import (
    LAYOUTS,
    gradients,
    inputs,
    loss,
    our_outputs,
    ours,
    save,
    their_outputs,
    worst,
)

TOLERANCE = 1e-5
TASKS = {
    "Model": {},
    "ForMaskedLM": {"mlm": "logits"},
    "ForSequenceClassification": {"classify": "logits"},
    "ForTokenClassification": {"tag": "logits"},
    "ForQuestionAnswering": {"span": "span"},
    "ForMultipleChoice": {"choice": "logits"},
}


class Variant(NamedTuple):
    """A family in transformers."""

    name: str
    config: dict[str, object]
    """what every test sets"""
    tasks: dict[str, dict[str, str]]


VARIANTS = {
    "roberta": Variant("Roberta", {"pad_token_id": 1, "max_position_embeddings": 42}, TASKS),
    "xlm-roberta": Variant("XLMRoberta", {"pad_token_id": 1, "max_position_embeddings": 42}, TASKS),
    "albert": Variant(
        "Albert",
        {"embedding_size": 6, "max_position_embeddings": 40},
        {**TASKS, "ForPreTraining": {"mlm": "prediction_logits", "next_sentence": "sop_logits"}},
    ),
    "electra": Variant(
        "Electra",
        {"embedding_size": 6, "max_position_embeddings": 40},
        {**TASKS, "ForPreTraining": {"replaced": "logits"}},
    ),
}
CASES = [(model_type, task) for model_type, variant in VARIANTS.items() for task in variant.tasks]

configs = st.fixed_dictionaries(
    {
        "num_hidden_layers": st.integers(1, 3),
        "num_attention_heads": st.sampled_from([1, 2, 3]),
        "head": st.sampled_from([4, 8]),
        "intermediate_size": st.sampled_from([8, 20]),
        "vocab_size": st.sampled_from([17, 60]),
        "type_vocab_size": st.sampled_from([1, 2]),
        "hidden_act": st.sampled_from(["gelu", "gelu_new", "relu"]),
        "layer_norm_eps": st.sampled_from([1e-12, 1e-5]),
        "num_labels": st.integers(2, 4),
    }
)
lengths = st.lists(st.integers(1, 12), min_size=1, max_size=6)


SMALL = {"num_hidden_layers": 2, "num_attention_heads": 2, "head": 4, "intermediate_size": 20, "vocab_size": 60}
SMALL |= {"type_vocab_size": 1, "num_labels": 2}
"""settings of a small network"""


def theirs(model_type: str, task: str, seed: int, head: int, **settings: object) -> transformers.PreTrainedModel:
    """A random reference without dropout. Weights are drawn wide, so that an error anywhere shows."""
    variant = VARIANTS[model_type]
    for key in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob", "classifier_dropout"):
        settings[key] = 0.0
    width = head * settings["num_attention_heads"]
    config = getattr(transformers, f"{variant.name}Config")(
        hidden_size=width, summary_last_dropout=0.0, **variant.config | settings
    )
    if model_type == "albert":
        config.num_hidden_groups = 1 + seed % settings["num_hidden_layers"]
    torch.manual_seed(seed)
    model = getattr(transformers, f"{variant.name}{task}")(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    return model.eval()


def differences(
    model_type: str, task: str, config: Mapping[str, Any], lengths: list[int], seed: int
) -> tuple[float, float]:
    """The largest in outputs and in gradients, of both layouts."""
    labels = {"ForQuestionAnswering": 2, "ForPreTraining": 2}  # what these heads are by definition
    model = theirs(model_type, task, seed, **{**config, "num_labels": labels.get(task, config["num_labels"])})
    heads, dialect = VARIANTS[model_type].tasks[task], family_of(model_type).dialect
    data = inputs(lengths, config["vocab_size"], config["type_vocab_size"], seed)
    data = data.without(1) if "roberta" in model_type else data  # transformers counts positions by what is not <pad>
    network = ours(model).train()

    expected = their_outputs(model, data, heads)
    loss(expected).backward()
    outputs, slopes = [], []
    for layout in LAYOUTS:
        network.zero_grad()
        got = our_outputs(network, data, heads, layout)
        outputs += [worst(got[name], expected[name]) for name in got]
        loss(got).backward()
        found = gradients(network, model_type, missing=True)
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                spelled = dialect.canonical(name, type(model).__name__)
                slopes.append(worst(found[dialect.tied.get(spelled, spelled)], parameter.grad))
    return max(outputs), max(slopes)


@pytest.mark.parametrize(("model_type", "task"), CASES)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(config=configs, lengths=lengths, seed=st.integers(0, 99))
def test_every_head_equals_transformers(model_type: str, task: str, config: dict, lengths: list, seed: int) -> None:
    assert max(differences(model_type, task, config, lengths, seed)) <= TOLERANCE


@pytest.mark.parametrize(("model_type", "task"), CASES)
def test_what_we_write_gives_the_same_numbers_in_transformers(model_type: str, task: str, tmp_path: Path) -> None:
    model = theirs(model_type, task, 3, **SMALL)
    network = ours(model)
    directory.write(network, {"model_type": model_type}, tmp_path)
    again, told = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    heads = VARIANTS[model_type].tasks[task]
    data = inputs([5, 12, 1], 60, 1)
    data = data.without(1) if "roberta" in model_type else data
    expected, got = their_outputs(model, data, heads), their_outputs(again.eval(), data, heads)
    assert max(worst(got[name], expected[name]) for name in got) == 0


HEADS = {"pooler": Pooler(), "classify": Classify(("no", "yes"))}
WORDS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b", "猫"]


def tokenizer_of(pad: int) -> Tokenizer:
    """Whose padding has this id."""
    names = [name for name in WORDS[:5] if name != "<pad>"]
    specials = Specials(pad="<pad>", unk="<unk>", cls="<s>", sep="</s>", mask="<mask>")
    return Tokenizer.from_vocabulary([*names[:pad], "<pad>", *names[pad:], *WORDS[5:]], specials=specials)


@pytest.mark.parametrize("model_type", VARIANTS)
@pytest.mark.parametrize("pad", [0, 1, 3])
def test_new_models_give_the_same_numbers_in_transformers(model_type: str, pad: int, tmp_path: Path) -> None:
    """With the heads of the guide, which leave open what families have of their own, and any id of padding."""
    tokenizer = tokenizer_of(pad)
    for heads in (HEADS, {"mlm": Mlm()}, {}):
        made = bertkit.create(f"{model_type}-tiny", tokenizer, heads, seed=1)
        place = made.save(tmp_path / ("-".join(heads) or "none"))
        kind = {"pooler": "ForSequenceClassification", "mlm": "ForMaskedLM"}.get(next(iter(heads), ""), "Model")
        model = getattr(transformers, f"{VARIANTS[model_type].name}{kind}").from_pretrained(place).eval()
        texts = ["a b 猫 b", "猫", "a zzz b"]  # zzz is unknown: an id that is padding elsewhere
        encoded = [tokenizer.encode(text).ids for text in texts]
        for ids in encoded:
            batch = collate([example(ids)], Padded)
            with torch.no_grad():
                hidden = made.network(batch)
                ours_are = made.network.logits(list(heads)[-1], hidden, batch.layout) if heads else hidden
                given = torch.tensor([ids])
                out = model(given, token_type_ids=torch.zeros_like(given), attention_mask=torch.ones_like(given))
            assert worst(ours_are, out[0]) <= TOLERANCE


def saved_with(model: transformers.PreTrainedModel, place: Path, more: Callable[[dict[str, Tensor]], dict]) -> dict:
    """The tensors of a model as transformers writes them, and what `more` makes of them beside them in the file."""
    file = save(model, place) / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, **more(tensors)}, file, {"format": "pt"})
    return tensors


def test_a_classifier_beside_a_pooler_that_nothing_reads(tmp_path: Path) -> None:
    """As transformers of 2020 saved RoBERTa's."""
    model = theirs("roberta", "ForSequenceClassification", 3, **SMALL)
    kinds = ("weight", "bias")
    saved_with(model, tmp_path, lambda x: {f"roberta.pooler.dense.{k}": x[f"classifier.dense.{k}"] + 1 for k in kinds})
    network, _, report = directory.read(tmp_path)
    assert (set(report.taken), report.left) == ({"pooler", "classify"}, ("pooler",))
    data = inputs([5, 9], 60, 1).without(1)
    expected = their_outputs(model, data, {"classify": "logits"})
    assert (
        worst(our_outputs(network, data, {"classify": ""}, LAYOUTS[0])["classify"], expected["classify"]) <= TOLERANCE
    )


def test_of_two_biases_the_head_s_own_counts(tmp_path: Path) -> None:
    """As old files of ALBERT have them."""
    model = theirs("albert", "ForMaskedLM", 3, **SMALL)
    tensors = saved_with(model, tmp_path, lambda x: {"predictions.decoder.bias": x["predictions.bias"] + 1})
    network, _, report = directory.read(tmp_path)
    assert (report.taken, report.left) == (("mlm",), ())
    assert torch.equal(network.heads["mlm"].bias, tensors["predictions.bias"])
    again = transformers.AlbertForMaskedLM.from_pretrained(tmp_path)
    assert torch.equal(again.predictions.bias, tensors["predictions.bias"])
