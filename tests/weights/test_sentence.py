"""sentence-transformers' directories: what that library writes we open with equal vectors, and the other way round."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense as TheirDense
from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from typer.testing import CliRunner

import bertkit
from bertkit.cli import app
from bertkit.errors import BertkitError
from bertkit.family import bert
from bertkit.parts.attention import Attention
from bertkit.parts.dense import Dense
from bertkit.parts.embed import Embed
from bertkit.parts.feed import Feed
from bertkit.parts.heads import Pooler
from bertkit.parts.network import Network
from bertkit.parts.pool import Concat, LastToken, Mean, WeightedMean
from bertkit.parts.positions import Learned
from bertkit.text import Tokenizer
from bertkit.weights import sentence
from bertkit.weights.folder import limit_of
from tests.pretrained import CHINESE_SENTENCE, pretrained

WORDS = "the cat dog sat on a mat play ##ing ##ed Dog Big B ##ig query : passage fast slow house . , ! 猫 狗 坐"
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = ["the cat sat on a mat .", "A Dog Sat , Playing", "", "猫坐!", "[MASK] Big house " * 9, ": slow"]
PROMPTS = {"query": "query: the Dog", "passage": "passage: ", "none": "", "blank": " "}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bert-tiny whose vectors differ from text to text; Dog is not dog."""
    tokenizer = Tokenizer.from_vocabulary([*SPECIALS, *WORDS.split()], lowercase=False)
    model = bertkit.create("bert-tiny", tokenizer, {"pooler": Pooler()}, seed=0)
    torch.nn.init.normal_(model.encoder.embed.tokens.weight)
    return model.save(tmp_path_factory.mktemp("sentence") / "plain")


def dense(before: int, after: int, bend: torch.nn.Module | None = None, **settings: Any) -> TheirDense:
    torch.manual_seed(before + after)
    return TheirDense(before, after, activation_function=bend or torch.nn.Tanh(), **settings)


def theirs(plain: Path, *modules: Any, lower: bool = False, limit: int = 20, **settings: Any) -> SentenceTransformer:
    first = Transformer(str(plain), max_seq_length=limit, do_lower_case=lower)
    return SentenceTransformer(modules=[first, *modules], device="cpu", **settings)


def furthest(a: Any, b: Any) -> float:
    assert a.shape == b.shape, (a.shape, b.shape)
    return float(np.abs(a - b).max())


def agree(reference: SentenceTransformer, path: Path, prompts: tuple[str, ...] = ()) -> bertkit.Model:
    """`path` gives the reference's vectors when we open it, and so does what we write, opened by anyone."""
    model = bertkit.load(path)
    model.save(path.parent / "ours")
    again = SentenceTransformer(str(path.parent / "ours"), device="cpu")
    ours = bertkit.load(path.parent / "ours")
    for prompt in (None, *prompts):
        wanted = reference.encode(TEXTS, prompt_name=prompt)
        assert prompt or furthest(wanted[0], wanted[1]) > 1e-2, "vectors that are all the same would prove nothing"
        # sums that are not normalised reach beyond 1, and float32 rounds in proportion
        made, near = model.embed(TEXTS, prompt=prompt), 1e-6 * max(1, np.abs(wanted).max())
        assert furthest(made, wanted) <= near
        assert furthest(again.encode(TEXTS, prompt_name=prompt), wanted) <= near
        assert np.array_equal(ours.embed(TEXTS, prompt=prompt), made)
    assert model.width == made.shape[1]
    return model


CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "cls": ([Pooling(128, "cls")], {}),
    "max": ([Pooling(128, "max"), Normalize()], {}),
    "mean_sqrt": ([Pooling(128, "mean_sqrt_len_tokens")], {}),
    "weightedmean": ([Pooling(128, "weightedmean")], {"prompts": PROMPTS}),
    "lasttoken": ([Pooling(128, "lasttoken")], {}),
    "all, old order": ([Pooling(128, Pooling.POOLING_MODES), Normalize()], {}),
    "two, new order": ([Pooling(128, ("lasttoken", "mean", "cls"))], {}),
    "dense": ([Pooling(128, "cls"), dense(128, 32)], {}),
    "dense, normalize": ([Pooling(128), dense(128, 40, torch.nn.GELU(), bias=False), Normalize()], {}),
    "three dense": (
        [
            Pooling(128, ("mean", "cls")),
            dense(256, 64, torch.nn.Identity()),
            dense(64, 64, torch.nn.LeakyReLU(), use_residual=True),
            dense(64, 16, torch.nn.SiLU(), use_residual=True, bias=False),
            Normalize(),
        ],
        {},
    ),
    "prompts": ([Pooling(128, "mean"), Normalize()], {"prompts": PROMPTS, "default_prompt_name": "passage"}),
    "prompts unseen by mean": ([Pooling(128, "mean", include_prompt=False), Normalize()], {"prompts": PROMPTS}),
    "prompts unseen by all": (
        [Pooling(128, ("cls", "max", "mean_sqrt_len_tokens", "lasttoken"), include_prompt=False)],
        {"prompts": PROMPTS, "default_prompt_name": "query"},
    ),
    "prompts longer than the limit": ([Pooling(128, "max", include_prompt=False)], {"prompts": PROMPTS, "limit": 4}),
    "shortened": ([Pooling(128, "mean"), Normalize()], {"truncate_dim": 24}),
    "shortened more than there is": ([Pooling(128, "mean"), dense(128, 8)], {"truncate_dim": 24}),
    "lower-cased": ([Pooling(128, "mean")], {"lower": True, "prompts": PROMPTS}),
    "everything": (
        [Pooling(128, ("cls", "mean"), include_prompt=False), dense(256, 32), Normalize()],
        {"prompts": PROMPTS, "default_prompt_name": "query", "truncate_dim": 20, "lower": True},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_vectors_equal_sentence_transformers(case: str, plain: Path, tmp_path: Path) -> None:
    modules, settings = CASES[case]
    reference = theirs(plain, *modules, **settings)
    reference.save(str(tmp_path / "theirs"))
    if settings.get("lower"):  # that version forgets to write what it was told
        said = tmp_path / "theirs" / "sentence_bert_config.json"
        said.write_text(json.dumps(json.loads(said.read_text()) | {"do_lower_case": True}))
    model = agree(reference, tmp_path / "theirs", tuple(settings.get("prompts", ())))
    same = model.tokenizer.encode("Dog").ids == model.tokenizer.encode("dog").ids
    assert same == settings.get("lower", False)


@pytest.mark.parametrize("kind", ["old names", "pickles", "0_Transformer"])
def test_the_ways_of_older_versions(kind: str, plain: Path, tmp_path: Path) -> None:
    reference = theirs(plain, Pooling(128, ("cls", "mean")), dense(256, 32), Normalize())
    path = tmp_path / "theirs"
    reference.save(str(path))
    modules = json.loads((path / "modules.json").read_text())
    if kind == "old names":
        for module in modules:
            module["type"] = "sentence_transformers.models." + module["type"].rsplit(".", 1)[-1]
        flags = {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": False, "pooling_mode_mean_tokens": True}
        (path / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 128, **flags}))
        shutil.rmtree(path / "3_Normalize")
    if kind == "pickles":
        torch.save(load_file(path / "2_Dense" / "model.safetensors"), path / "2_Dense" / "pytorch_model.bin")
        (path / "2_Dense" / "model.safetensors").unlink()
    if kind == "0_Transformer":
        (path / "0_Transformer").mkdir()
        for file in [*path.glob("*.json"), *path.glob("*.safetensors")]:
            if file.name not in ("modules.json", "config_sentence_transformers.json"):
                file.rename(path / "0_Transformer" / file.name)
        modules[0]["path"] = "0_Transformer"
    (path / "modules.json").write_text(json.dumps(modules))
    assert furthest(SentenceTransformer(str(path), device="cpu").encode(TEXTS), reference.encode(TEXTS)) == 0
    agree(reference, path)


MODULES = json.dumps(
    [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
)


def as_sentence(plain: Path, path: Path, pooling: str = '{"pooling_mode_mean_tokens": true}') -> Path:
    """A copy of a plain model with the files of sentence-transformers' modules."""
    shutil.copytree(plain, path, ignore=shutil.ignore_patterns("bertkit-manifest.json"))
    (path / "modules.json").write_text(MODULES)
    (path / "1_Pooling").mkdir()
    (path / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 128} | json.loads(pooling)))
    return path


@pytest.mark.parametrize(("modules", "told"), [(False, 8), (True, None), (True, 8), (True, 700), (True, 5000)])
@pytest.mark.parametrize("tokens", [None, 1e30, 6, 2048])
def test_limits_are_theirs(modules: bool, told: int | None, tokens: float | None, long: Path, tmp_path: Path) -> None:
    """Who says how long a text may be: max_seq_length, else the tokenizer, and never more than there are positions."""
    path = as_sentence(long, tmp_path / "x")
    if not modules:
        (path / "modules.json").unlink()
    if told:
        (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": told}))
    said = json.loads((path / "tokenizer_config.json").read_text())
    said.pop("model_max_length")
    (path / "tokenizer_config.json").write_text(json.dumps(said | ({"model_max_length": tokens} if tokens else {})))
    reference, model = SentenceTransformer(str(path), device="cpu"), bertkit.load(path)
    assert model.limit == min(reference.max_seq_length, 1024)
    assert limit_of(path, path, model.tokenizer) == model.limit
    if reference.max_seq_length <= 1024:  # beyond its positions that library ends in an error
        text = "the cat sat on a mat " * 180
        assert furthest(model.embed(text), reference.encode(text)) <= 1e-6
    model.limit = 1024
    again = bertkit.load(model.save(tmp_path / "again"))
    assert again.limit == SentenceTransformer(str(tmp_path / "again"), device="cpu").max_seq_length == 1024


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with 1024 positions."""
    tokenizer = Tokenizer.from_vocabulary([*SPECIALS, *WORDS.split()])
    spec = bert.stack(1, 32, Embed(len(tokenizer), 32, Learned(1024)), Attention(2, 16), Feed(64))
    torch.manual_seed(0)
    network = Network(spec).build().eval()
    torch.nn.init.normal_(network.encoder.embed.positions.weight)
    return bertkit.Model(network, tokenizer).save(tmp_path_factory.mktemp("long") / "model")


def test_the_names_that_their_settings_have_had(plain: Path, tmp_path: Path) -> None:
    path = as_sentence(plain, tmp_path / "x")
    kinds = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
    for limit, kind in enumerate(reversed(kinds), start=5):  # each goes before those that were there
        (path / f"sentence_{kind}_config.json").write_text(json.dumps({"max_seq_length": limit, "do_lower_case": True}))
        model = bertkit.load(path)
        assert model.limit == SentenceTransformer(str(path), device="cpu").max_seq_length == limit
        assert model.tokenizer.encode("Dog").ids == model.tokenizer.encode("dog").ids
    (path / "sentence_bert_config.json").write_text("{}")
    assert bertkit.load(path).limit == SentenceTransformer(str(path), device="cpu").max_seq_length == limit - 1


@pytest.mark.parametrize(
    "flags", ['{"pooling_mode_cls_token": 1, "pooling_mode_mean_tokens": 0}', '{"pooling_mode_max_tokens": "yes"}']
)
def test_flags_that_are_only_as_good_as_true(flags: str, plain: Path, tmp_path: Path) -> None:
    path = as_sentence(plain, tmp_path / "x", flags)
    wanted = SentenceTransformer(str(path), device="cpu").encode(TEXTS)
    assert furthest(bertkit.load(path).embed(TEXTS), wanted) <= 1e-6
    assert furthest(bertkit.load(path).embed(TEXTS, pool="mean"), wanted) > 1e-2


def test_what_they_say_is_refused_before_the_weights_are_looked_for(plain: Path, tmp_path: Path) -> None:
    path = as_sentence(plain, tmp_path / "x")
    (path / "modules.json").write_text(MODULES.replace("models.Transformer", "models.WordEmbeddings"))
    (path / "config.json").unlink()
    with pytest.raises(BertkitError, match=r"wants WordEmbeddings, Pooling; known: Transformer, "):
        bertkit.load(path)


def test_a_model_made_here_opens_there(plain: Path, tmp_path: Path) -> None:
    model = bertkit.load(plain)
    model.pool, model.normalize, model.shorten = Concat((LastToken(), Mean())), True, 30
    model.dense.append(Dense(256, 48, activation="mish", residual=True).build())
    model.prompts, model.default_prompt = {"ask": "query : "}, "ask"
    path = model.save(tmp_path / "made")
    reference = SentenceTransformer(str(path), device="cpu")
    assert furthest(reference.encode(TEXTS), model.embed(TEXTS)) <= 1e-6
    assert furthest(reference.encode(TEXTS, prompt=""), model.embed(TEXTS, prompt="")) <= 1e-6
    assert furthest(model.embed(TEXTS, prompt=""), model.embed(TEXTS)) > 1e-3
    assert model.embed([]).shape == (0, 30)


def test_who_asks_for_length_one_gets_it_after_shortening(plain: Path, tmp_path: Path) -> None:
    reference = theirs(plain, Pooling(128), Normalize(), truncate_dim=24)
    reference.save(str(tmp_path / "theirs"))
    model = bertkit.load(tmp_path / "theirs")
    assert np.linalg.norm(model.embed(TEXTS), axis=1).max() < 0.9, "the model's own way shortens last"
    assert furthest(model.embed(TEXTS, normalize=True), reference.encode(TEXTS, normalize_embeddings=True)) <= 1e-6


def test_a_prompt_stays_in_every_chunk(plain: Path) -> None:
    model = bertkit.load(plain)
    model.limit, model.prompts = 8, {"q": "query :"}
    words = ["the", "cat", "sat", "on", "a", "mat", "fast"]
    whole = model.embed(" ".join(words), prompt="q", truncate="chunk")
    chunks = [words[:4], words[4:]]
    made = model.embed([" ".join(chunk) for chunk in chunks], prompt="q")
    expected = np.average(made, axis=0, weights=[len(chunk) + 4 for chunk in chunks])
    assert furthest(whole, expected) <= 1e-6


def test_the_command_line_knows_prompts_and_widths(plain: Path, tmp_path: Path) -> None:
    model = bertkit.load(plain)
    model.pool, model.prompts, model.shorten = Concat((Mean(), LastToken())), {"q": "query :"}, 200
    path = model.save(tmp_path / "made")
    runner, rows = CliRunner(), {}
    for name, options in {"own": [], "asked": ["--prompt", "q"], "narrow": ["--pool", "mean"]}.items():
        ran = runner.invoke(app, ["embed", str(path), "the cat", "-o", str(tmp_path / f"{name}.npy"), *options])
        assert ran.exit_code == 0, ran.output
        rows[name] = np.load(tmp_path / f"{name}.npy")
    assert np.array_equal(rows["own"], model.embed(["the cat"]))
    assert np.array_equal(rows["asked"], model.embed(["the cat"], prompt="q"))
    assert np.array_equal(rows["narrow"], model.embed(["the cat"], pool="mean"))
    assert [rows[name].shape[1] for name in rows] == [200, 200, 128]


def test_prompts_that_are_not_there(plain: Path) -> None:
    model = bertkit.load(plain)
    model.prompts = {"query": "query: "}
    with pytest.raises(BertkitError, match=r"unknown prompt 'quary': did you mean 'query'\? Known: query"):
        model.embed("the cat", prompt="quary")


def test_vectors_of_another_width_are_refused(plain: Path, tmp_path: Path) -> None:
    model = bertkit.load(plain)
    model.dense.append(Dense(64, 8).build())
    with pytest.raises(BertkitError, match=r"Dense\(before=64.* follows vectors 128 wide"):
        model.embed("the cat")
    theirs(plain, Pooling(128, ("cls", "max")), dense(256, 8)).save(str(tmp_path / "theirs"))
    model = bertkit.load(tmp_path / "theirs")
    with pytest.raises(BertkitError, match=r"Dense\(before=256.* follows vectors 128 wide"):
        model.embed("the cat", pool="mean")
    with pytest.raises(BertkitError, match="sentence-transformers has no word for the pool last-4"):
        sentence.write(sentence.Sentence(bertkit.parts.pool.POOLS["last-4"], False, 9), 128, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_function": "os.system"}, "activation_function is 'os.system': known are torch.nn's"),
        ({"activation_function": "torch.nn.modules.activation.Softmax"}, "unknown activation_function 'Softmax'"),
        ({"in_features": 10**9}, "Dense.before is 1000000000"),
        ({"out_features": None}, "Dense.after is None"),
        ({"bias": "yes"}, "Dense.bias is 'yes'"),
        ({"out_features": 9}, r"linear.weight \[8, 128\].* wants linear.weight \[9, 128\]"),
        ({"bias": False}, "wants linear.weight"),
        ({"use_residual": True}, r"wants .*residual.weight \[8, 128\]"),
        ({"module_input_name": "token_embeddings"}, "module_input_name is 'token_embeddings'"),
    ],
)
def test_a_dense_that_cannot_be_right(change: dict[str, Any], message: str, plain: Path, tmp_path: Path) -> None:
    theirs(plain, Pooling(128), dense(128, 8)).save(str(tmp_path / "theirs"))
    file = tmp_path / "theirs" / "2_Dense" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(BertkitError, match=message) as caught:
        bertkit.load(tmp_path / "theirs")
    assert "2_Dense" in str(caught.value)


def test_other_orders_are_refused(plain: Path, tmp_path: Path) -> None:
    theirs(plain, Pooling(128), Normalize(), dense(128, 8)).save(str(tmp_path / "theirs"))
    with pytest.raises(BertkitError, match=r"wants Transformer, Pooling, Normalize, Dense; known: .* in this order"):
        bertkit.load(tmp_path / "theirs")


def test_a_real_encoder_with_a_dense_and_prompts(tmp_path: Path) -> None:
    """Real weights: a Chinese encoder, given what LaBSE and E5 have."""
    path = pretrained(CHINESE_SENTENCE)
    texts = ["今天天气真好", "天气不错", "股票下跌了"]
    prompts = {"query": "查询："}
    reference = SentenceTransformer(
        modules=[Transformer(str(path)), Pooling(512, "cls", include_prompt=False), dense(512, 128), Normalize()],
        device="cpu",
        prompts=prompts,
    )
    reference.save(str(tmp_path / "theirs"))
    model = bertkit.load(tmp_path / "theirs")
    for prompt in (None, "query"):
        assert furthest(model.embed(texts, prompt=prompt), reference.encode(texts, prompt_name=prompt)) <= 1e-6
    assert model.pool != WeightedMean()
