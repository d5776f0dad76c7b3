"""Google's directories in and out: every variable of a real checkpoint has its place, and its numbers are Google's."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bertkit
from bertkit.batch import collate
from bertkit.convert import convert
from bertkit.errors import BertkitError
from bertkit.family import bert, family_of
from bertkit.parts.attention import Attention
from bertkit.parts.embed import Embed
from bertkit.parts.feed import Feed
from bertkit.parts.heads import (
    Chain,
    Choice,
    Classify,
    Head,
    Mlm,
    MultiLabel,
    NextSentence,
    Pooler,
    Regress,
    Span,
    Tag,
)
from bertkit.parts.network import Network, NetworkModule
from bertkit.parts.positions import Learned
from bertkit.runtime.stream import example
from bertkit.text import Tokenizer
from bertkit.weights import bundle, directory, google
from bertkit.weights.bundle import Bundle
from tests.pretrained import SIMBERT, pretrained

Arrays = dict[str, np.ndarray]


def tiny(
    heads: dict[str, Head], activation: str = "gelu_tanh", embed: int = 8, epsilon: float = 1e-12
) -> NetworkModule:
    """Two layers, 16 wide; every parameter different, biases too."""
    torch.manual_seed(0)
    spec = bert.stack(
        2,
        16,
        Embed(30, embed, Learned(12), epsilon=epsilon),
        Attention(2, 8, epsilon=epsilon),
        Feed(24, activation, epsilon=epsilon),
    )
    network = Network(spec, heads).build().eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    return network


def put(network: NetworkModule, path: Path, **extra: np.ndarray) -> Path:
    """A directory as Google's code leaves it, with further variables and without a vocabulary."""
    path.mkdir(exist_ok=True)
    google.write(network, {"model_type": "bert"}, path)
    if extra:
        bundle.write(variables(path) | extra, path / "bert_model.ckpt")
    return path


def variables(path: Path) -> Arrays:
    opened = Bundle(path / "bert_model.ckpt")
    return {name: opened.read(name) for name in opened.names}


def settings(path: Path, **change: Any) -> dict[str, Any]:
    file = path / "bert_config.json"
    said = json.loads(file.read_text()) | change
    file.write_text(json.dumps({key: value for key, value in said.items() if value is not ...}))
    return said


def same(one: NetworkModule, other: NetworkModule) -> bool:
    ours, theirs = dict(one.named_parameters()), dict(other.named_parameters())
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


# The real checkpoint ────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_variable_of_a_real_checkpoint_has_its_place() -> None:
    """78 variables, taken all: as many numbers as the file has, each found again under its name."""
    path = pretrained(SIMBERT)
    model = bertkit.load(path)
    assert str(model.report) == "took encoder, pooler, mlm; left none; made new none"
    stored = variables(path)
    named = directory.foreign(model.network, family_of("bert"))
    ours = {google.to_google(bert.DIALECT.canonical(name)): tensor.numpy() for name, tensor in named.items()}
    assert ours.keys() == stored.keys()
    for name, array in stored.items():
        turned = array.T if name.endswith("kernel") else array
        assert np.array_equal(ours[name], turned.astype(np.float32)), name
    spec = model.network.spec.encoder
    assert (spec.width, spec.embed.width, len(spec.order), spec.feeds[0].activation) == (312, 128, 4, "gelu_tanh")
    assert len(model.tokenizer) == spec.embed.vocabulary == 13_685
    assert model.tokenizer.encode("BERT").tokens == model.tokenizer.encode("bert").tokens


def norm(x: np.ndarray, beta: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12) * gamma + beta


def by_hand(v: Arrays, ids: list[int], layers: int, heads: int) -> tuple[np.ndarray, np.ndarray]:
    """Hidden states [L, W] and the pooled vector [W], from Google's variables by the paper's formulas, in float64."""

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ v[f"{name}/kernel"].astype(np.float64) + v[f"{name}/bias"]

    def normed(x: np.ndarray, name: str) -> np.ndarray:
        return norm(x, v[f"{name}/LayerNorm/beta"], v[f"{name}/LayerNorm/gamma"])

    tables = "bert/embeddings/"
    x = v[tables + "word_embeddings"][ids].astype(np.float64) + v[tables + "token_type_embeddings"][0]
    x = normed(x + v[tables + "position_embeddings"][: len(ids)], "bert/embeddings")
    x = dense(x, "bert/encoder/embedding_hidden_mapping_in")
    for layer in range(layers):
        at = f"bert/encoder/layer_{layer}"
        parts = (dense(x, f"{at}/attention/self/{part}") for part in ("query", "key", "value"))
        q, k, value = (part.reshape(len(ids), heads, -1).transpose(1, 0, 2) for part in parts)  # [N, L, H]
        scores = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]))  # [N, L, L]
        seen = (scores / scores.sum(-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), -1)
        x = normed(x + dense(seen, f"{at}/attention/output/dense"), f"{at}/attention/output")
        up = dense(x, f"{at}/intermediate/dense")
        up = up * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up**3)))
        x = normed(x + dense(up, f"{at}/output/dense"), f"{at}/output")
    return x, np.tanh(dense(x[0], "bert/pooler/dense"))


SENTENCES = [
    ("手机屏幕碎了怎么修", "手机屏幕摔碎了如何维修"),
    ("孩子发烧了怎么办", "小孩发烧该怎么处理"),
    ("学钢琴要多长时间", "钢琴学多久才能学会"),
]


def test_a_real_checkpoint_computes_what_google_computes() -> None:
    """Hidden states and pooled vectors against NumPy; paraphrases are near in the pooled vectors, others are not."""
    path = pretrained(SIMBERT)
    model, stored = bertkit.load(path), variables(path)
    pooled = []
    for text in (text for pair in SENTENCES for text in pair):
        ids = model.tokenizer.encode(text).ids
        hidden, first = by_hand(stored, list(ids), layers=4, heads=12)
        batch = collate([example(ids)])
        with torch.no_grad():
            ours = model.network(batch)
            vector = model.network.heads["pooler"](batch.layout.first(ours))[0]
        assert np.abs(ours.numpy().reshape(hidden.shape) - hidden).max() < 2e-5
        assert np.abs(vector.numpy() - first).max() < 2e-5
        pooled.append(first / np.linalg.norm(first))
    near = np.array(pooled) @ np.array(pooled).T
    pairs = [near[2 * i, 2 * i + 1] for i in range(3)]
    others = [near[i, j] for i in range(6) for j in range(i) if i // 2 != j // 2]
    assert min(pairs) > 0.5 > 0.3 > max(others)


def test_exact_gelu_would_give_other_numbers() -> None:
    """The difference that reading Google's `gelu` as Hugging Face's makes: small, and there."""
    path = pretrained(SIMBERT)
    model = bertkit.load(path)
    text = SENTENCES[0][0]
    hidden, _ = by_hand(variables(path), list(model.tokenizer.encode(text).ids), layers=4, heads=12)
    for feed in model.network.encoder.feeds:
        feed.bend = torch.nn.functional.gelu
    with torch.no_grad():
        exact = model.network(collate([example(model.tokenizer.encode(text).ids)]))
    assert 1e-4 < np.abs(exact.numpy().reshape(hidden.shape) - hidden).max() < 1e-1


# There and back ─────────────────────────────────────────────────────────────────────────────────────────────────────

HEADS: dict[str, dict[str, Head]] = {
    "none": {},
    "pre-training": {"pooler": Pooler(), "mlm": Mlm("gelu_tanh"), "next_sentence": NextSentence()},
    "classify": {"pooler": Pooler(), "classify": Classify(("坏", "good", "so-so"), 0.2)},
    "many": {"pooler": Pooler(), "classify": MultiLabel(("red", "round"))},
    "regress": {"pooler": Pooler(), "regress": Regress()},
    "tag": {"tag": Tag(("O", "B-PER", "I-PER"))},
    "chain": {"tag": Chain(("O", "B-PER", "I-PER"))},
    "choice": {"pooler": Pooler(), "choice": Choice()},
    "span": {"span": Span()},
}


@pytest.mark.parametrize("kind", HEADS)
def test_networks_come_back_bit_for_bit(kind: str, tmp_path: Path) -> None:
    network = tiny(HEADS[kind])
    again, config, report = google.read(put(network, tmp_path / "model"))
    assert again.spec == network.spec
    assert same(again, network)
    assert (report.taken, report.left, report.new) == (tuple(network.spec.heads), (), ())
    directory.write(again, config, tmp_path)
    assert same(directory.read(tmp_path)[0], network)


def test_the_names_are_googles(tmp_path: Path) -> None:
    """Names and shapes as modeling.py, run_pretraining.py, run_classifier.py and run_squad.py make them."""
    heads = {**HEADS["pre-training"], "span": Span(), "classify": Classify(("a", "b", "c"))}
    path = put(tiny(heads, embed=16), tmp_path / "x")
    at = "bert/encoder/layer_1"
    expected = {
        "bert/embeddings/word_embeddings": (30, 16),
        "bert/embeddings/position_embeddings": (12, 16),
        "bert/embeddings/token_type_embeddings": (2, 16),
        "bert/embeddings/LayerNorm/gamma": (16,),
        "bert/embeddings/LayerNorm/beta": (16,),
        f"{at}/attention/self/query/kernel": (16, 16),
        f"{at}/attention/self/key/bias": (16,),
        f"{at}/attention/output/dense/kernel": (16, 16),
        f"{at}/attention/output/LayerNorm/gamma": (16,),
        f"{at}/intermediate/dense/kernel": (16, 24),
        f"{at}/output/dense/kernel": (24, 16),
        f"{at}/output/LayerNorm/beta": (16,),
        "bert/pooler/dense/kernel": (16, 16),
        "cls/predictions/transform/dense/kernel": (16, 16),
        "cls/predictions/transform/LayerNorm/gamma": (16,),
        "cls/predictions/output_bias": (30,),
        "cls/seq_relationship/output_weights": (2, 16),
        "cls/seq_relationship/output_bias": (2,),
        "output_weights": (3, 16),
        "output_bias": (3,),
        "cls/squad/output_weights": (2, 16),
        "cls/squad/output_bias": (2,),
    }
    there = Bundle(path / "bert_model.ckpt")
    assert {name: there.shape(name) for name in expected} == expected
    assert len(there.names) == 5 + 2 * 16 + 2 + 5 + 2 + 2 + 2
    assert {there.dtype(name) for name in there.names} == {"float32"}


def test_a_sentence_encoder_comes_back_with_equal_vectors(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """MiniLM has the exact GELU, which Google's files have no word for: it is kept, and said."""
    model = bertkit.load("minilm")
    google.write(model.network, {"model_type": "bert"}, tmp_path)
    model.tokenizer.save_files(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    assert "hidden_act is 'gelu_python'" in caplog.text
    again = bertkit.load(tmp_path)
    assert same(again.network, model.network)
    assert again.network.spec == model.network.spec
    texts = ["A cat sat on the mat.", "Zürich, naïve café: 12,50 €"]
    assert np.array_equal(again.embed(texts, normalize=True), model.embed(texts))


# Settings ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "meant"), [("gelu", "gelu_tanh"), (..., "gelu_tanh"), ("gelu_python", "gelu"), ("relu", "relu")]
)
def test_activations(said: Any, meant: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "bertkit")
    path = put(tiny({}), tmp_path / "x")
    settings(path, hidden_act=said)
    network, config, _ = google.read(path)
    assert network.spec.encoder.feeds[0].activation == meant
    assert bert.activation(config) == meant  # what is saved for transformers says the same
    written = settings(put(network, tmp_path / "y"))["hidden_act"]
    assert written == ("gelu" if said is ... else said)
    assert ("for equal numbers write 'gelu_python'" in caplog.text) == (meant == "gelu_tanh")


def test_another_epsilon_is_kept_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    network = tiny({}, epsilon=1e-5)
    path = put(network, tmp_path / "x")
    assert "layer_norm_eps is 1e-05, but Google's code always takes 1e-12" in caplog.text
    assert google.read(path)[0].spec == network.spec


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": ["gelu"]}, "unknown hidden_act"),
        ({"hidden_act": "swish"}, "unknown hidden_act 'swish'"),
        ({"hidden_size": ...}, "hidden_size is missing"),
        ({"num_hidden_layers": 3}, "it says 3 layers, but the weights beside it have 2"),
        (
            {"intermediate_size": 32},
            r"intermediate/dense/kernel is \[24, 16\], but .*bert_config.json makes it \[32, 16\]",
        ),
        ({"vocab_size": 31}, r"word_embeddings is \[30, 8\]"),
        ({"embedding_size": ...}, "embedding_hidden_mapping_in"),
        ({"model_type": "albert"}, "bert_config.json: model_type is 'albert', but Google's checkpoints are"),
    ],
)
def test_settings_that_disagree(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = put(tiny({}), tmp_path / "x")
    settings(path, **change)
    with pytest.raises(BertkitError, match=message):
        google.read(path)


def test_capitals_in_the_vocabulary_decide_where_no_file_does(tmp_path: Path) -> None:
    path = put(tiny({}), tmp_path / "x")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "paris", "##s"]
    (path / "vocab.txt").write_text("\n".join(words))
    assert bertkit.load(path).tokenizer.encode("PARIS").tokens == ["[CLS]", "paris", "[SEP]"]
    (path / "vocab.txt").write_text("\n".join([*words, "Paris"]))
    cased = bertkit.load(path).tokenizer
    assert cased.encode("Paris paris PARIS").tokens == ["[CLS]", "Paris", "paris", "[UNK]", "[SEP]"]
    (path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert bertkit.load(path).tokenizer.encode("Paris").tokens == ["[CLS]", "paris", "[SEP]"]


@pytest.mark.parametrize(
    ("name", "cased"),
    [
        ("bert-base-uncased", False),
        ("bert-base-chinese", False),
        ("bert-base-cased", True),
        ("bert-base-multilingual-cased", True),
    ],
)
def test_googles_own_vocabularies(name: str, cased: bool, shared: Path, tmp_path: Path) -> None:
    (tmp_path / "bert_config.json").write_text("{}")
    (tmp_path / "vocab.txt").write_bytes((shared / "data" / "vocabs" / name / "vocab.txt").read_bytes())
    tokenizer = Tokenizer.load(tmp_path)
    assert (tokenizer.encode("The").ids == tokenizer.encode("the").ids) is not cased


# Which files, and what else they hold ───────────────────────────────────────────────────────────────────────────────


def test_optimizer_slots_and_counters_are_left_by_name(tmp_path: Path) -> None:
    network = tiny({"pooler": Pooler()})
    plain = variables(put(network, tmp_path / "x"))
    slots = {f"{name}/{slot}": array * 0 for name, array in plain.items() for slot in ("adam_m", "adam_v")}
    counters = {"global_step": np.int64(1000), "loss_scale": np.float32(2**15)}
    path = put(network, tmp_path / "x", **slots, **counters)
    again, _, report = google.read(path)
    assert same(again, network)
    assert (report.taken, report.left) == (("pooler",), ("adam_m", "adam_v", "global_step", "loss_scale"))


def test_classifiers_and_readers_that_google_fine_tuned(tmp_path: Path) -> None:
    """run_classifier.py stores no labels: they are counted."""
    found = tiny({"pooler": Pooler(), "classify": Classify(("a", "b", "c")), "span": Span()})
    path = put(found, tmp_path / "x")
    settings(
        path, **dict.fromkeys(("architectures", "id2label", "label2id", "problem_type", "classifier_dropout"), ...)
    )
    network, _, report = google.read(path)
    assert report.taken == ("pooler", "span", "classify")
    assert network.spec.heads["classify"] == Classify(("LABEL_0", "LABEL_1", "LABEL_2"))
    assert torch.equal(network.heads["classify"].dense.weight, found.heads["classify"].dense.weight)
    assert torch.equal(network.heads["span"].dense.weight, found.heads["span"].dense.weight)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (
            {"bert/encoder/layer_0/gate/kernel": np.zeros((2, 2))},
            r"no part of bert is called bert\.encoder\.layer\.0\.gate",
        ),
        ({"bert/encoder/layer_00/output/dense/bias": np.zeros(16)}, "no part of bert is called"),
        ({"bert/pooler/dense/kernel": np.zeros((16, 16), np.int32)}, "holds torch.int32 numbers, not weights"),
        ({"bert/pooler/dense/kernel": np.zeros(())}, r"kernel is \[\], but"),
        ({"bert/pooler/dense/kernel": np.zeros((16, 2, 8))}, r"kernel is \[8, 2, 16\], but"),
        ({"output_weights": np.zeros(()), "output_bias": np.zeros(())}, r"output_bias is \[\]|output_weights is \[\]"),
        ({"bert/pooler/dense.weight": np.zeros((16, 16))}, "only one can be right"),
        ({"_CHECKPOINTABLE_OBJECT_GRAPH": np.zeros(1)}, "a checkpoint of Keras objects"),
    ],
)
def test_variables_that_are_not_berts(extra: Arrays, message: str, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=message):
        google.read(put(tiny({"pooler": Pooler()}), tmp_path / "x", **extra))


def test_half_and_double_precision_are_read(tmp_path: Path) -> None:
    network = tiny({})
    path = put(network, tmp_path / "x")
    stored = variables(path)
    bundle.write({name: array.astype(np.float64) for name, array in stored.items()}, path / "bert_model.ckpt")
    assert same(google.read(path)[0], network)
    bundle.write({name: array.astype(np.float16) for name, array in stored.items()}, path / "bert_model.ckpt")
    bias = google.read(path)[0].encoder.embed.norm.bias
    assert torch.equal(bias, network.encoder.embed.norm.bias.half().float())


def test_the_checkpoint_is_the_only_one_or_the_one_that_is_named(tmp_path: Path) -> None:
    path = put(tiny({}), tmp_path / "x")
    for name in ("index", "data-00000-of-00001"):
        (path / f"bert_model.ckpt.{name}").rename(path / f"model.ckpt-500.{name}")
    assert google.find(path) == path / "model.ckpt-500"
    stored = Bundle(path / "model.ckpt-500")
    bundle.write({name: stored.read(name) * 2 for name in stored.names}, path / "model.ckpt-1000")
    with pytest.raises(BertkitError, match=r"several checkpoints \(model.ckpt-1000, model.ckpt-500\): write which"):
        google.read(path)
    (path / "checkpoint").write_text('model_checkpoint_path: "C:\\\\gone\\\\model.ckpt-9"\n')
    with pytest.raises(BertkitError, match="several checkpoints"):
        google.read(path)
    (path / "checkpoint").write_text(
        'model_checkpoint_path: "/home/somebody/model.ckpt-1000"\nall_model_checkpoint_paths: "model.ckpt-500"\n'
    )
    assert torch.equal(google.read(path)[0].encoder.embed.norm.bias, 2 * tiny({}).encoder.embed.norm.bias)


def test_only_whole_checkpoints_count(tmp_path: Path) -> None:
    path = put(tiny({}), tmp_path / "x")
    (path / "docs.index").write_bytes(b"of another program")
    (path / "._bert_model.ckpt.index").write_bytes(b"a file system's")
    (path / "._bert_model.ckpt.data-00000-of-00001").write_bytes(b"a file system's")
    assert google.find(path) == path / "bert_model.ckpt"
    (path / "bert_model.ckpt.data-00000-of-00001").unlink()
    (path / "docs.index").unlink()
    with pytest.raises(BertkitError, match=r"data file bert_model.ckpt.data-00000-of-00001 is not beside it"):
        google.read(path)


def test_a_checkpoint_that_is_named_and_gone_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = put(tiny({}), tmp_path / "x")
    (path / "checkpoint").write_text('model_checkpoint_path: "/gone/model.ckpt-900"\n')
    assert google.find(path) == path / "bert_model.ckpt"
    assert "checkpoint names model.ckpt-900, which is not there; bert_model.ckpt is read" in caplog.text
    caplog.clear()
    (path / "checkpoint").write_text('model_checkpoint_path: "bert_model.ckpt"\n')
    assert google.find(path) == path / "bert_model.ckpt"
    assert caplog.text == ""


def test_a_checkpoint_without_its_settings_says_where_they_are(tmp_path: Path) -> None:
    """What run_classifier.py leaves in its output_dir."""
    path = put(tiny({}), tmp_path / "x")
    (path / "bert_config.json").rename(path / "config.json")
    with pytest.raises(BertkitError, match=r"config.json names no model_type.*: rename it, or copy bert_config.json"):
        bertkit.load(path)
    (path / "config.json").unlink()
    with pytest.raises(BertkitError, match=r"checkpoint bert_model.ckpt, but no bert_config.json.* and vocab.txt of"):
        bertkit.load(path)


def test_a_directory_of_both_kinds_is_hugging_faces(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = bertkit.create("bert-tiny", tokenizer, seed=0)
    model.save(tmp_path / "x")
    (tmp_path / "x" / "bertkit-manifest.json").unlink()
    put(tiny({}), tmp_path / "x")
    assert same(bertkit.load(tmp_path / "x").network, model.network)


def test_weights_that_are_missing(tmp_path: Path) -> None:
    path = put(tiny({}), tmp_path / "x")
    (path / "bert_model.ckpt.index").unlink()
    with pytest.raises(BertkitError, match=r"but no weights \(bert_model.ckpt.index and its data\)"):
        google.read(path)


def test_any_damage_gives_a_network_or_one_clear_error(tmp_path: Path) -> None:
    """Names and shapes of a checkpoint shuffled and changed, with good checksums."""
    path, dice, found = put(tiny({"pooler": Pooler()}), tmp_path / "x"), random.Random(0), []
    stored, said = variables(path), settings(path)
    for _ in range(50):
        changed = dict(stored)
        name = dice.choice(sorted(stored))
        match dice.randrange(5):
            case 0:
                del changed[name]
            case 1:
                changed[name.replace(dice.choice("/abeiklnort"), dice.choice("/._0ax"), 1)] = changed.pop(name)
            case 2:
                changed[name] = stored[dice.choice(sorted(stored))]
            case 3:
                changed[name] = stored[name].astype(dice.choice(["float64", "int8", "bool", "complex64", "uint16"]))
            case _:
                changed[name] = stored[name].reshape(dice.choice([(-1,), (1, -1), (-1, 2), (-1, 1)]))
        bundle.write(changed, path / "bert_model.ckpt")
        settings(path, **said | {dice.choice(sorted(said)): dice.choice([None, -1, 10**30, [], "x", {}, 1.5, 8, 2])})
        try:
            google.read(path)
            found.append("opened")
        except BertkitError:
            found.append("refused")
        settings(path, **said)
    assert set(found) == {"opened", "refused"}


def test_what_transformers_cannot_open_is_not_called_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Factorised embeddings: refused as a conversion, saved for bertkit with a word, whole as Google's files."""
    path = pretrained(SIMBERT)
    for to in ("hf", "sentence-transformers"):
        with pytest.raises(
            BertkitError, match=f"cannot be converted to {to}: its embeddings are 128 wide in a network of 312"
        ):
            convert(path, tmp_path / "other", to)
    assert list(tmp_path.iterdir()) == []
    model = bertkit.load(path)
    model.save(tmp_path / "saved")
    assert "only bertkit opens it, for its embeddings are 128 wide" in caplog.messages[-1]
    again = bertkit.load(convert(tmp_path / "saved", tmp_path / "google", "tf").path)
    texts = [text for pair in SENTENCES for text in pair]
    assert np.array_equal(again.embed(texts, pool="pooler"), model.embed(texts, pool="pooler"))


def test_known_similarities_of_simbert() -> None:
    """What its authors meant: paraphrases near, others at about 0.1, through the pooler."""
    texts = [
        "怎么学好英语",
        "如何学习英语",
        "如何更换花呗绑定银行卡",
        "花呗更改绑定银行卡",
        "今天天气怎么样",
        "苹果手机多少钱",
    ]
    vectors = bertkit.load(pretrained(SIMBERT)).embed(texts, pool="pooler", normalize=True)
    near = vectors @ vectors.T
    assert near[0, 1] == pytest.approx(0.767, abs=2e-3)
    assert near[2, 3] == pytest.approx(0.898, abs=2e-3)
    assert near[0, 2] == pytest.approx(0.098, abs=2e-3)
    assert near[4, 5] == pytest.approx(0.108, abs=2e-3)


def test_a_checkpoint_by_googles_name_is_pointed_to_its_directory(tmp_path: Path) -> None:
    put(tiny({}), tmp_path / "model")
    with pytest.raises(BertkitError, match=r"bert_model.ckpt is a checkpoint; give the directory it lies in: .*model"):
        bertkit.load(tmp_path / "model" / "bert_model.ckpt")
