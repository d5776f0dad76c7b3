"""Conversion: every way between the three formats, judged by the libraries that own them; nothing kept that is off."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

import bertkit
from bertkit import convert as conversion
from bertkit.convert import QUESTIONS, TARGETS, convert
from bertkit.errors import BertkitError
from bertkit.family import bert
from bertkit.model import open_directory
from bertkit.parts.attention import Attention
from bertkit.parts.dense import Dense
from bertkit.parts.embed import Embed
from bertkit.parts.feed import Feed
from bertkit.parts.heads import Classify, Mlm, NextSentence, Pooler
from bertkit.parts.network import Network
from bertkit.parts.pool import Cls, Mean
from bertkit.parts.positions import Learned
from bertkit.text import Tokenizer
from bertkit.weights import directory
from tests.pretrained import ENGLISH_TINY, pretrained

CHAIN = ("hf", "hf", "tf", "hf", "sentence-transformers", "tf", "sentence-transformers", "hf")
HEADS = {"pooler": Pooler(), "mlm": Mlm(), "next_sentence": NextSentence()}


@pytest.fixture
def source(tokenizer: Tokenizer, tmp_path: Path) -> Path:
    return bertkit.create("bert-tiny", tokenizer, HEADS, seed=0).save(tmp_path / "source")


def same_weights(first: bertkit.Model, second: bertkit.Model) -> bool:
    pairs = zip(first.network.named_parameters(), second.network.named_parameters(), strict=True)
    return all(name == again and torch.equal(x, y) for (name, x), (again, y) in pairs)


def test_every_way_from_format_to_format_keeps_every_weight(source: Path, tmp_path: Path) -> None:
    model, path = bertkit.load(source), source
    for number, to in enumerate(CHAIN[1:]):
        made = convert(path, tmp_path / f"{number}-{to}", to)
        assert made.worst == 0
        assert made.taken == ("encoder", *HEADS)
        vectors = ["vectors"] if to == "sentence-transformers" else []
        assert set(made.parity) == {"hidden states", *HEADS, *vectors, "weights"}
        path = made.path
        again = bertkit.load(path)
        assert again.network.spec == model.network.spec
        assert same_weights(model, again)
        assert again.tokenizer.fingerprint == model.tokenizer.fingerprint
        assert np.array_equal(again.embed(["the cat", "猫"]), model.embed(["the cat", "猫"]))
    assert set(itertools.pairwise(CHAIN)) >= set(itertools.permutations(TARGETS, 2))


def test_the_owners_of_the_formats_read_the_same_numbers(source: Path, tmp_path: Path) -> None:
    tensors = load_file(source / "model.safetensors")
    convert(source, tmp_path / "tf", "tf")
    assert sorted(path.name for path in (tmp_path / "tf").glob("bert*.*")) == [
        *("bert_config.json", "bert_model.ckpt.data-00000-of-00001", "bert_model.ckpt.index", "bertkit-manifest.json")
    ]
    convert(tmp_path / "tf", tmp_path / "hf", "hf")
    theirs, info = transformers.BertForPreTraining.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    state = theirs.state_dict()
    assert all(torch.equal(state[name], x) for name, x in tensors.items())
    convert(tmp_path / "hf", tmp_path / "st", "sentence-transformers", pool="cls+mean", normalize=True)
    texts = ["the cat sat on a mat .", "猫 坐", ""]
    model = bertkit.load(source)
    vectors = model.embed(texts, pool="cls+mean", normalize=True)
    assert np.abs(SentenceTransformer(str(tmp_path / "st"), device="cpu").encode(texts) - vectors).max() <= 1e-6


def test_what_a_plain_encoder_lacks_is_made_new_and_what_files_cannot_hold_is_left(
    source: Path, tmp_path: Path
) -> None:
    made = convert(source, tmp_path / "st", "sentence-transformers")
    assert (made.left, made.new) == ((), ("pooling mean",))
    assert (tmp_path / "st" / "modules.json").is_file()
    assert bertkit.load(tmp_path / "st").pool == Mean()
    model = bertkit.load(tmp_path / "st")
    model.pool, model.normalize, model.limit, model.shorten = Cls(), True, 9, 5
    model.dense.append(Dense(128, 8).build())
    model.prompts = {"query": "the dog", "document": ""}
    model.save(tmp_path / "rich")
    for to in ("hf", "tf"):
        made = convert(tmp_path / "rich", tmp_path / to, to)
        lost = ("pooling cls", "dense 128 to 8", "normalize", "prompts query", "shortening to 5 values")
        assert made.left == (*lost, "limit of 9 tokens")
        assert same_weights(bertkit.load(tmp_path / to), model)
        assert not (tmp_path / to / "modules.json").exists()
    kept = convert(tmp_path / "rich", tmp_path / "again", "sentence-transformers")
    assert (kept.left, kept.new) == ((), ())
    assert np.array_equal(bertkit.load(tmp_path / "again").embed("the cat"), model.embed("the cat"))


def test_converting_twice_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    for to in TARGETS:
        first, second = (convert(source, tmp_path / f"{to}{n}", to).path for n in (1, 2))
        listed = [json.loads((path / "bertkit-manifest.json").read_text())["files"] for path in (first, second)]
        assert listed[0] == listed[1]


def test_real_weights(tmp_path: Path) -> None:
    path = pretrained(ENGLISH_TINY)
    made = convert(path, tmp_path / "tf", "tf")
    assert made.worst == 0
    assert np.array_equal(bertkit.load(tmp_path / "tf").embed(QUESTIONS), bertkit.load(path).embed(QUESTIONS))


def test_a_writer_that_is_off_leaves_nothing_behind(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert(source, tmp_path / "out", "hf")
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (tmp_path / "out").iterdir())
    write = directory.write

    def wrong(network: torch.nn.Module, *rest: object) -> None:
        weight = network.encoder.feeds[0].up.weight
        weight.data[0, 0] += 0.01
        write(network, *rest)
        weight.data[0, 0] -= 0.01

    monkeypatch.setattr(directory, "write", wrong)
    with pytest.raises(
        BertkitError, match=r"differs from .*source by hidden states \d.\de-0\d, .* 1e-05 is let through"
    ):
        convert(source, tmp_path / "out", "hf", overwrite=True)
    with pytest.raises(BertkitError, match="was not written"):
        convert(source, tmp_path / "other", "sentence-transformers")
    assert sorted((path.name, path.stat().st_mtime_ns) for path in (tmp_path / "out").iterdir()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]


def far_positions(model: bertkit.Model) -> None:
    model.network.encoder.embed.positions.weight.data[400:, 0] += 1


def second_segment(model: bertkit.Model) -> None:
    model.network.encoder.embed.segments.weight.data[1, 0] += 1


def rare_token(model: bertkit.Model) -> None:
    model.network.encoder.embed.tokens.weight.data[model.tokenizer.id("[MASK]")] += 1


def prompt(model: bertkit.Model) -> None:
    model.prompts["query"] += "!"


def dense(model: bertkit.Model) -> None:
    model.dense[0].linear.bias.data += 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (far_positions, r"by hidden states \d.*, weights"),
        (second_segment, r"by hidden states \d.*, weights"),
        (rare_token, r"by (mlm \d.\de[-+]\d\d, )?weights"),
        (prompt, "makes vectors in another way than its source"),
        (dense, r"by vectors \d.*, weights"),
    ],
)
def test_damage_anywhere_is_seen(
    damage: Callable[[bertkit.Model], None],
    message: str,
    tokenizer: Tokenizer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where no short text looks: places beyond the four hundredth, the second segment, a token that no text has."""
    model = bertkit.create("bert-tiny", tokenizer, {"mlm": Mlm()}, seed=0)
    model.prompts = {"query": "the dog"}
    model.dense.append(Dense(128, 8).build())
    model.save(tmp_path / "source")

    def damaged(path: Path) -> bertkit.Model:
        found = open_directory(path)
        damage(found)
        return found

    monkeypatch.setattr(conversion, "open_directory", damaged)
    with pytest.raises(BertkitError, match=message):
        convert(tmp_path / "source", tmp_path / "out", "sentence-transformers")
    assert not (tmp_path / "out").exists()


def test_a_model_of_one_segment_and_few_positions(tokenizer: Tokenizer, tmp_path: Path) -> None:
    spec = bert.stack(1, 16, Embed(len(tokenizer), 16, Learned(12), segments=1), Attention(2, 8), Feed(16))
    model = bertkit.Model(Network(spec).build().eval(), tokenizer)
    model.save(tmp_path / "source")
    for to in TARGETS:
        assert convert(tmp_path / "source", tmp_path / to, to).worst == 0


def test_what_cannot_fit_is_said_without_the_place_where_it_grew(source: Path, tmp_path: Path) -> None:
    model = bertkit.load(source)
    model.dense.append(Dense(128, 8).build())
    model.save(tmp_path / "dense")
    with pytest.raises(BertkitError, match="follows vectors 256 wide") as caught:
        convert(tmp_path / "dense", tmp_path / "out", "sentence-transformers", pool="cls+mean")
    assert str(tmp_path) not in str(caught.value)


def test_destinations_that_are_no_paths(source: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for place in ("a\0b", tmp_path / "loop" / "x", "x" * 5000):
        with pytest.raises(BertkitError, match="is no usable path"):
            convert(source, place)


def test_numbers_that_are_none_are_not_let_through(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = bertkit.create("bert-tiny", tokenizer, {"pooler": Pooler(), "classify": Classify(("a", "b"))}, seed=0)
    model.network.heads["classify"].dense.weight.data[0, 0] = float("nan")
    model.save(tmp_path / "source")
    with pytest.raises(BertkitError, match="by classify nan"):
        convert(tmp_path / "source", tmp_path / "out", "tf")
    assert not (tmp_path / "out").exists()


def test_refused_before_any_work(source: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    for arguments, message in {
        (source, tmp_path / "out", "onnx"): "unknown target 'onnx':.* Known: hf, sentence-transformers, tf",
        (source, source, "tf"): "is the source itself",
        (source, source / "tf", "tf"): "lies inside the source",
        (source, tmp_path / "full", "tf"): "exists and is not empty",
        (tmp_path / "none/", tmp_path / "out", "tf"): "there is no directory",
        (source, tmp_path / "out", "hf", "mean"): "say how vectors are made; hf files cannot",
        (source, tmp_path / "out", "sentence-transformers", "men"): "unknown pool 'men'",
        (
            source,
            tmp_path / "out",
            "sentence-transformers",
            "last-4",
        ): r"the pool last-4\. .* knows \(cls, .*, sqrt-mean",
    }.items():
        with pytest.raises(BertkitError, match=message):
            convert(*arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "source"]
    assert not (source / "tf").exists()
