"""Directories in and out: what bertkit writes opens in transformers with no key missing or unexpected, and back."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import bertkit
from bertkit.errors import BertkitError
from bertkit.family import bert
from bertkit.parts.heads import Choice, Classify, Mlm, MultiLabel, NextSentence, Pooler, Regress, Span, Tag
from bertkit.parts.network import Network
from bertkit.text import Tokenizer
from bertkit.weights import directory
from tests.pretrained import ENGLISH_TINY, pretrained
from tests.reference import Inputs, in_order, inputs, save, worst

NETWORKS = {
    "AutoModel": {"pooler": Pooler()},
    "AutoModelForPreTraining": {"pooler": Pooler(), "mlm": Mlm(), "next_sentence": NextSentence()},
    "AutoModelForMaskedLM": {"mlm": Mlm()},
    "AutoModelForNextSentencePrediction": {"pooler": Pooler(), "next_sentence": NextSentence()},
    "AutoModelForSequenceClassification": {"pooler": Pooler(), "classify": Classify(("坏", "so-so", "good"))},
    "AutoModelForSequenceClassification many": {"pooler": Pooler(), "classify": MultiLabel(("red", "round"))},
    "AutoModelForSequenceClassification one": {"pooler": Pooler(), "classify": MultiLabel(("alone",))},
    "AutoModelForSequenceClassification number": {"pooler": Pooler(), "regress": Regress()},
    "AutoModelForSequenceClassification numbers": {"pooler": Pooler(), "regress": Regress(("width", "height"), 0.3)},
    "AutoModelForTokenClassification": {"tag": Tag(("O", "B-PER", "I-PER"))},
    "AutoModelForQuestionAnswering": {"span": Span()},
    "AutoModelForMultipleChoice": {"pooler": Pooler(), "choice": Choice()},
}


def tiny(tokenizer: Tokenizer, heads: dict, seed: int = 0) -> bertkit.Model:
    return bertkit.create("bert-tiny", tokenizer, heads, seed=seed)


def reopened(kind: str, path: Path) -> tuple[transformers.PreTrainedModel, dict]:
    auto = getattr(transformers, kind.split()[0])
    model, info = auto.from_pretrained(path, output_loading_info=True)
    return model.eval(), info


@pytest.mark.parametrize("kind", NETWORKS)
def test_transformers_opens_what_we_write(kind: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    heads = NETWORKS[kind]
    model = tiny(tokenizer, heads)
    model.save(tmp_path / "model")
    theirs, info = reopened(kind, tmp_path / "model")
    assert {key: list(found) for key, found in info.items() if key != "error_msgs" and found} == {}
    last = list(heads)[-1]
    data = inputs([6, 6, 6], len(tokenizer))
    batch = data.ours(bertkit.batch.Packed)
    logits = model.network.logits(last, model.network(batch), batch.layout)
    mine = in_order(batch, logits) if last in ("mlm", "tag", "span") else batch.restore(logits)
    assert worst(mine, their_logits(theirs, data, last)) <= 1e-5
    labels = getattr(heads[last], "labels", None)
    if labels:
        assert theirs.config.id2label == dict(enumerate(labels))


def their_logits(model: transformers.PreTrainedModel, data: Inputs, head: str) -> torch.Tensor:
    arguments = {name: x[None] if head == "choice" else x for name, x in data.theirs().items()}
    with torch.no_grad():
        out = model(**arguments)
    if head == "span":
        return torch.stack([out.start_logits, out.end_logits], -1)
    if head == "next_sentence":
        return out.get("seq_relationship_logits", out.get("logits"))
    logits = out.pooler_output if head == "pooler" else out.logits
    return logits.T if head == "choice" else logits


@pytest.mark.parametrize("kind", NETWORKS)
def test_what_transformers_saves_again_is_the_same(kind: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """ours -> theirs -> ours: every weight bit for bit, every setting of the spec."""
    model = tiny(tokenizer, NETWORKS[kind])
    model.save(tmp_path / "a")
    theirs, _ = reopened(kind, tmp_path / "a")
    theirs.save_pretrained(tmp_path / "b")
    network, _, report = directory.read(tmp_path / "b")
    assert network.spec == model.network.spec
    assert (report.left, report.new) == ((), ())
    for (name, x), (again, y) in zip(model.network.named_parameters(), network.named_parameters(), strict=True):
        assert name == again
        assert torch.equal(x, y)


def test_a_loaded_directory_is_written_with_the_same_keys_and_values(tmp_path: Path) -> None:
    model = bertkit.load("minilm")
    model.save(tmp_path / "minilm")
    original = load_file(bertkit.weights.find.find("minilm") / "model.safetensors")
    written = load_file(tmp_path / "minilm" / "model.safetensors")
    del original["embeddings.position_ids"]  # a counter, not a weight
    assert written.keys() == original.keys()
    assert all(torch.equal(written[name], original[name]) for name in original)
    config = json.loads((tmp_path / "minilm" / "config.json").read_text())
    assert config["_name_or_path"] == "nreimers/MiniLM-L6-H384-uncased", "foreign settings survive"


@pytest.mark.parametrize(
    "layout", ["sharded", "pickle", "sharded pickle", "prefix", "module prefix", "gamma and beta", "half"]
)
def test_all_the_ways_weights_lie_on_disk(layout: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    heads = {"pooler": Pooler(), "mlm": Mlm()}
    model = tiny(tokenizer, heads)
    path = tmp_path / "model"
    model.save(path, shard_bytes=200_000 if "sharded" in layout else 10**9)
    (path / "bertkit-manifest.json").unlink()  # the files are about to change hands
    shards = sorted(path.glob("*.safetensors"))
    assert (len(shards) > 1) == ("sharded" in layout)
    if "pickle" in layout:
        for shard in shards:
            torch.save(
                load_file(shard), path / shard.name.replace("model", "pytorch_model").replace("safetensors", "bin")
            )
            shard.unlink()
        index = path / "model.safetensors.index.json"
        if index.exists():
            text = index.read_text().replace('"model-', '"pytorch_model-').replace(".safetensors", ".bin")
            (path / "pytorch_model.bin.index.json").write_text(text)
            index.unlink()
    elif layout in ("prefix", "module prefix", "gamma and beta", "half"):
        change = {
            "prefix": lambda name: name.removeprefix("bert."),
            "module prefix": lambda name: f"module.{name}",
            "gamma and beta": lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ),
            "half": lambda name: name,
        }[layout]
        tensors = {change(name): x.half() if layout == "half" else x for name, x in load_file(shards[0]).items()}
        save_file(tensors, shards[0])
    again = bertkit.load(path)
    assert again.report.taken == ("pooler", "mlm")
    for (name, x), (_, y) in zip(model.network.named_parameters(), again.network.named_parameters(), strict=True):
        assert torch.equal(x.half().float() if layout == "half" else x, y), name
        assert y.dtype == torch.float32


def test_shards_open_in_transformers(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tiny(tokenizer, {"pooler": Pooler()}).save(tmp_path / "model", shard_bytes=300_000)
    assert len(list((tmp_path / "model").glob("model-*-of-*.safetensors"))) > 1
    _, info = reopened("AutoModel", tmp_path / "model")
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]


def test_loading_says_which_heads_were_taken_left_and_made_new(
    tokenizer: Tokenizer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tiny(tokenizer, {"pooler": Pooler(), "mlm": Mlm(), "next_sentence": NextSentence()}).save(tmp_path / "model")
    wanted = {"pooler": Pooler(), "classify": Classify(("no", "yes"))}
    model = bertkit.load(tmp_path / "model", heads=wanted)
    assert str(model.report) == "took encoder, pooler; left mlm, next_sentence; made new classify"
    assert caplog.messages[-1].endswith(str(model.report))
    new = model.network.heads["classify"].dense
    assert new.weight.shape == (2, 128)
    assert 0.01 < new.weight.std() < 0.03
    assert not new.bias.any()
    caplog.clear()
    with caplog.at_level("INFO", "bertkit"):
        everything = bertkit.load(tmp_path / "model")
    assert str(everything.report) == "took encoder, pooler, mlm, next_sentence; left none; made new none"
    assert len(caplog.messages) == 1


def test_somebody_elses_head_is_left_and_named(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tiny(tokenizer, {"pooler": Pooler()}).save(tmp_path / "model")
    file = tmp_path / "model" / "model.safetensors"
    save_file(load_file(file) | {"crf.transitions": torch.zeros(3, 3), "classifier.weight": torch.zeros(2, 128)}, file)
    (tmp_path / "model" / "bertkit-manifest.json").unlink()
    assert bertkit.load(tmp_path / "model").report.left == ("classifier", "crf")


def test_old_names_of_a_real_checkpoint(tmp_path: Path) -> None:
    """English bert-tiny says gamma and beta; the known answer of its masked-language head comes out."""
    model = bertkit.load(pretrained(ENGLISH_TINY))
    assert model.report.taken == ("mlm",)
    fill = transformers.pipeline("fill-mask", str(pretrained(ENGLISH_TINY)))
    text = "people live in [MASK]."
    expected = fill(text, top_k=4)
    (guesses,) = model.fill(text, top=4)
    assert [guess.token for guess in guesses] == [answer["token_str"] for answer in expected]
    assert [guess.score for guess in guesses] == pytest.approx([answer["score"] for answer in expected], abs=1e-6)


def test_factorised_embeddings_round_trip(tmp_path: Path) -> None:
    base = bert.encoder("tiny", 40)
    narrow = bert.stack(2, 128, bert.Embed(40, 32), base.attentions[0], base.feeds[0])
    network = Network(narrow, {"mlm": Mlm()}).build()
    assert network.encoder.embed.widen.weight.shape == (128, 32)
    assert network.heads["mlm"].transform.weight.shape == (32, 128)
    directory.write(network, {"model_type": "bert"}, tmp_path)
    again, config, _ = directory.read(tmp_path)
    assert config["embedding_size"] == 32
    batch = inputs([5, 3], 40).ours(bertkit.batch.Packed)
    assert torch.equal(again.eval()(batch), network.eval()(batch))
    assert again.logits("mlm", again(batch), batch.layout).shape == (8, 40)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"is_decoder": True}, "is_decoder is True"),
        ({"hidden_act": "swish"}, "unknown hidden_act 'swish'"),
        ({"hidden_size": "128"}, "hidden_size is '128': it must be a whole number from 1 to 16777215"),
        ({"hidden_size": 0}, "hidden_size is 0"),
        ({"num_attention_heads": 3}, "hidden_size 128 cannot be shared among num_attention_heads 3"),
        ({"num_hidden_layers": 10**6}, "it says 1000000 layers, but the weights beside it have 2"),
        ({"num_hidden_layers": 1}, "it says 1 layers, but the weights beside it have 2"),
        ({"vocab_size": 31}, r"word_embeddings.weight is \[27, 128\], but .*config.json makes it \[31, 128\]"),
        ({"vocab_size": 2**23, "hidden_size": 2**23, "num_attention_heads": 1}, "config.json makes it"),
        ({"vocab_size": 2**30, "hidden_size": 2**23, "num_attention_heads": 1}, "vocab_size is 1073741824"),
        ({"hidden_dropout_prob": 1.5}, "dropout is 1.5: it must be below 1"),
        ({"layer_norm_eps": "small"}, "epsilon is 'small'"),
        ({"model_type": "gpt2"}, "config.json: model_type 'gpt2' is not supported; supported: albert, bert, "),
        ({"model_type": None}, "model_type None is not supported"),
        ({"id2label": {"0": "a", "2": "b"}}, "id2label must name every id from 0 on"),
    ],
)
def test_configs_that_disagree(change: dict, message: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    tiny(tokenizer, {"tag": Tag(("a", "b"))}).save(tmp_path / "model")
    (tmp_path / "model" / "bertkit-manifest.json").unlink()
    file = tmp_path / "model" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(BertkitError, match=message) as caught:
        bertkit.load(tmp_path / "model")
    assert str(tmp_path / "model") in str(caught.value), "the file is named"


def test_an_encoder_that_hugging_face_cannot_say_is_refused(tmp_path: Path) -> None:
    tiny = bert.encoder("tiny", 40)
    shared = bert.Encoder(128, tiny.embed, tiny.attentions[:1], tiny.feeds, ((0, 0), (0, 1)))
    with pytest.raises(BertkitError, match=r"encoder\.attentions counts 1, not 2, which is how it would be read again"):
        directory.write(Network(shared).build(), {"model_type": "bert"}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_their_tiny_config_defaults(tmp_path: Path) -> None:
    """transformers may leave out what equals its own defaults."""
    model = transformers.BertModel(transformers.BertConfig(vocab_size=50, num_hidden_layers=1))
    network, _, _ = directory.read(save(model, tmp_path))
    assert network.spec.encoder.width == 768


def test_heads_of_one_place_cannot_be_written_together(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = tiny(tokenizer, {"pooler": Pooler(), "classify": Classify(("a", "b")), "tag": Tag(("x", "y"))})
    with pytest.raises(BertkitError, match="one place for classify and tag: keep one of them"):
        model.save(tmp_path / "model")
    with pytest.raises(BertkitError, match="unknown head 'sentiment'"):
        tiny(tokenizer, {"sentiment": Span()}).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("head", [{"classify": Classify(("a", "b"))}, {"choice": Choice()}, {"tag": Tag(("a", "b"))}])
def test_a_trained_head_beside_the_pretraining_heads_comes_back(
    head: dict, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    heads = {"pooler": Pooler(), "mlm": Mlm(), "next_sentence": NextSentence(), **head}
    model = tiny(tokenizer, heads)
    model.save(tmp_path / "model")
    again = bertkit.load(tmp_path / "model")
    assert set(again.report.taken) == set(heads)
    assert again.report.left == ()
    for name, parameter in again.network.named_parameters():
        assert torch.equal(parameter, model.network.get_parameter(name))


def test_a_head_is_taken_by_its_kind_and_labels_not_by_its_dropout(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tiny(tokenizer, {"pooler": Pooler(), "classify": Classify(("a", "b"), dropout=0.3)}).save(tmp_path / "model")
    asked = {"pooler": Pooler(), "classify": Classify(("a", "b"), dropout=0.5)}
    same = bertkit.load(tmp_path / "model", heads=asked)
    assert (same.report.taken, same.report.new) == (("pooler", "classify"), ())
    assert same.network.heads["classify"].dropout.p == 0.5
    other = bertkit.load(tmp_path / "model", heads={"pooler": Pooler(), "classify": Classify(("b", "a"))})
    assert (other.report.left, other.report.new) == (("classify",), ("classify",))


def test_the_masked_head_of_a_file_keeps_its_own_activation(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=30,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        hidden_act="gelu_new",
    )
    network, _, report = directory.read(save(transformers.BertForMaskedLM(config), tmp_path), {"mlm": Mlm()})
    assert report.taken == ("mlm",)
    assert network.spec.heads["mlm"] == Mlm("gelu_tanh", 1e-12)


def test_settings_of_a_head_that_is_gone_do_not_stay(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tiny(tokenizer, {"pooler": Pooler(), "regress": Regress(("score",))}).save(tmp_path / "old")
    heads = {"pooler": Pooler(), "classify": Classify(("a", "b", "c"))}
    bertkit.load(tmp_path / "old", heads=heads).save(tmp_path / "new")
    model, info = reopened("AutoModelForSequenceClassification", tmp_path / "new")
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    assert model.config.problem_type == "single_label_classification"
    assert bertkit.load(tmp_path / "new").report.taken == ("pooler", "classify")


def test_an_untied_output_is_refused_and_a_tied_copy_is_not(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tiny(tokenizer, {"mlm": Mlm()}).save(tmp_path / "model")
    (tmp_path / "model" / "bertkit-manifest.json").unlink()
    file = tmp_path / "model" / "model.safetensors"
    tensors = load_file(file)
    twin = tensors["bert.embeddings.word_embeddings.weight"].clone()
    bias = tensors.pop("cls.predictions.bias")
    save_file(tensors | {"cls.predictions.decoder.weight": twin, "cls.predictions.decoder.bias": bias}, file)
    assert bertkit.load(tmp_path / "model").report.taken == ("mlm",)
    save_file(tensors | {"cls.predictions.decoder.weight": twin + 1, "cls.predictions.bias": bias}, file)
    with pytest.raises(
        BertkitError, match=r"decoder.weight is not bert.embeddings.word_embeddings.weight.*untied head"
    ):
        bertkit.load(tmp_path / "model")


def test_untied_tables_matter_to_masked_language_models_only(tmp_path: Path) -> None:
    sizes = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(**sizes, intermediate_size=8, tie_word_embeddings=False)
    save(transformers.BertModel(config), tmp_path / "encoder")
    assert directory.read(tmp_path / "encoder")[2].taken == ("pooler",)
    masked = transformers.BertForMaskedLM(config)
    save(masked, tmp_path / "untied")
    masked.cls.predictions.decoder.weight.data = masked.bert.embeddings.word_embeddings.weight.data.clone()
    save(masked, tmp_path / "equal")
    for name, message in {"untied": "an untied head is not read", "equal": "tie_word_embeddings is False"}.items():
        with pytest.raises(BertkitError, match=f"{message}.* To use the encoder alone: transformers.AutoModel"):
            directory.read(tmp_path / name)
        transformers.AutoModel.from_pretrained(tmp_path / name).save_pretrained(tmp_path / f"{name} alone")
        directory.read(tmp_path / f"{name} alone")


def test_one_tensor_under_two_names_is_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tiny(tokenizer, {"mlm": Mlm()}).save(tmp_path / "model")
    (tmp_path / "model" / "bertkit-manifest.json").unlink()
    file = tmp_path / "model" / "model.safetensors"
    tensors = load_file(file)
    again = tensors["bert.embeddings.LayerNorm.weight"] + 1
    save_file(tensors | {"embeddings.LayerNorm.gamma": again}, file)
    with pytest.raises(BertkitError, match=r"are both bert.embeddings.LayerNorm.weight: only one can be right"):
        bertkit.load(tmp_path / "model")


def test_the_tie_survives_what_torch_does_to_modules(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = tiny(tokenizer, {"mlm": Mlm()})
    for changed in (copy.deepcopy(model.network), pickle.loads(pickle.dumps(model.network)), model.network.double()):
        assert changed.heads["mlm"].table is changed.encoder.embed.tokens.weight
    assert "heads.mlm.table" not in model.network.state_dict()
    state = {name: x + 1 for name, x in model.network.state_dict().items()}
    model.network.load_state_dict(state, assign=True)
    assert model.network.heads["mlm"].table is model.network.encoder.embed.tokens.weight
    model.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "config.json").read_text())["dtype"] == "float64"


def test_heads_that_need_a_pooler_say_so() -> None:
    with pytest.raises(BertkitError, match=r"the head 'classify' reads the pooled vector: add 'pooler': Pooler\(\)"):
        Network(bert.encoder("tiny", 30), {"classify": Classify(("a", "b"))})


def test_an_encoder_alone_lacks_only_the_pooler_that_their_class_always_has(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """BertModel cannot be written without a pooler: transformers makes a new one, and takes everything else."""
    tiny(tokenizer, {}).save(tmp_path / "model")
    _, info = reopened("AutoModel", tmp_path / "model")
    assert set(info["missing_keys"]) == {"pooler.dense.weight", "pooler.dense.bias"}
    assert not info["unexpected_keys"]
    _, info = transformers.BertModel.from_pretrained(
        tmp_path / "model", add_pooling_layer=False, output_loading_info=True
    )
    assert not info["missing_keys"]


def test_whoever_reads_the_config_reads_the_weights(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = bertkit.create("bert-tiny", tokenizer, seed=0).save(tmp_path / "tiny")
    assert (path / "model.safetensors").stat().st_mode == (path / "config.json").stat().st_mode
