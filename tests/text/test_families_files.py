"""Directories of RoBERTa, ALBERT and XLM-R: which rules apply, what is written, and what is refused by name."""

from __future__ import annotations

import copy
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

import bertkit
from bertkit.errors import BertkitError
from bertkit.parts.heads import Mlm
from bertkit.text import Tokenizer, lengths
from bertkit.text.reading import read
from bertkit.text.truncate import Chunk
from tests.text.families import fairseq, told, trained, without
from tests.text.test_tokenizer_files import LINES, damage, write

TEXT = "The cat  <mask> on [MASK] «mat». 猫 </s>"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bpe, unigram and fairseq."""
    place = tmp_path_factory.mktemp("files")
    trained(place / "bpe", "bpe")
    trained(place / "unigram", "unigram")
    fairseq(place / "fairseq")
    albert = without(place / "unigram", place / "albert", "*.json")
    told(albert, {"config": {"model_type": "albert"}, "tokenizer_config": {"do_lower_case": False}})
    return place


WRITTEN = {
    "bpe": ("RobertaTokenizer", {"vocab.json", "merges.txt"}),
    "unigram": ("PreTrainedTokenizerFast", {"spiece.model"}),
    "albert": ("AlbertTokenizer", {"spiece.model"}),
    "fairseq": ("XLMRobertaTokenizer", {"sentencepiece.bpe.model"}),
}
ALWAYS = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_we_write_opens_in_both_with_equal_ids(home: Path, tmp_path: Path, name: str) -> None:
    ours, (kind, files) = Tokenizer.load(home / name), WRITTEN[name]
    assert ours.add_special_tokens(["[CAT=CULTURE]"]) == 1
    ours.save_files(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == ALWAYS | files
    assert json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8"))["tokenizer_class"] == kind
    for model in (name for name in files if name.endswith(".model")):
        assert (tmp_path / model).read_bytes() == (home / name / model).read_bytes()
    again, theirs = Tokenizer.load(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert again.fingerprint == ours.fingerprint
    assert again.vocabulary == ours.vocabulary
    for pair in ((TEXT, None), (f"[CAT=CULTURE]{TEXT}", "a b")):
        expected = theirs(*pair, return_offsets_mapping=True, return_token_type_ids=True)
        for found in (ours.encode(*pair), again.encode(*pair)):
            assert found.ids == expected["input_ids"]
            assert found.offsets == expected["offset_mapping"]
            assert found.segments == expected["token_type_ids"]


@pytest.mark.parametrize("name", WRITTEN)
def test_one_text_holds_all_of_it(home: Path, tmp_path: Path, name: str) -> None:
    ours = Tokenizer.load(home / name)
    copied = Tokenizer.from_json(ours.to_json())
    assert copied.fingerprint == ours.fingerprint
    assert (copied._opened.rules, copied._opened.files) == (ours._opened.rules, ours._opened.files)
    assert (copied.template, copied.specials, copied.limit) == (ours.template, ours.specials, ours.limit)


def test_templates(home: Path) -> None:
    bpe, albert = Tokenizer.load(home / "bpe"), Tokenizer.load(home / "albert")
    s, end = bpe.id("<s>"), bpe.id("</s>")
    assert bpe.template == Tokenizer.load(home / "bpe").template
    assert (bpe.template.start, bpe.template.between, bpe.template.end) == ((s,), (end, end), (end,))
    assert bpe.template.segments == (0,)
    cls, sep = albert.id("[CLS]"), albert.id("[SEP]")
    assert (albert.template.start, albert.template.between, albert.template.end) == ((cls,), (sep,), (sep,))
    assert albert.template.segments == (0, 1)


@pytest.mark.parametrize("name", WRITTEN)
def test_windows_and_lengths_are_those_of_the_template(home: Path, name: str) -> None:
    tokenizer = Tokenizer.load(home / name)
    texts = ["The cat sat on the mat", "and the dogs didn't play in the house"]
    fields = tokenizer.ids_of_many(texts, special_tokens=False)
    (whole,) = read(fields, tokenizer, 500, Chunk())
    found = tokenizer.encode(*texts)
    assert (whole.ids, whole.segments) == (found.ids, found.segments)
    assert [whole.ids[whole.of(field)] for field in (0, 1)] == fields
    limit = len(found) - 3
    windows = read(fields, tokenizer, limit, Chunk())
    assert len(windows) > 1
    assert max(len(window.ids) for window in windows) == limit
    with lengths.count([texts], tokenizer) as counted:
        assert (counted.longest, counted.own_tokens) == (len(found), sum(map(len, fields)))


def test_a_guess_is_written_as_people_write(home: Path) -> None:
    tokenizer = Tokenizer.load(home / "bpe")
    model = bertkit.create("bert-tiny", tokenizer, {"mlm": Mlm()}, seed=1)
    guesses = model.fill("The <mask> sat.", top=len(tokenizer))[0]
    texts = {guess.token: guess.text for guess in guesses}
    assert texts["Ġcat"] == "The cat sat."
    assert texts["at"] == "Theat sat."
    assert model.embed(["The cat", "sat " * 700], truncate="chunk").shape == (2, 128)
    first = {guess.token: guess.text for guess in model.fill("<mask> sat.", top=len(tokenizer))[0]}
    assert first["Ġcat"] == "cat sat."


BERTS = {
    "a Chinese ALBERT": {"config.json": {"model_type": "albert"}},
    "one that names its class": {"tokenizer_config.json": {"tokenizer_class": "AlbertTokenizer"}},
    "a Chinese RoBERTa": {"config.json": {"model_type": "roberta"}},
    "ELECTRA": {"config.json": {"model_type": "electra"}},
}


@pytest.mark.parametrize("name", BERTS)
def test_vocab_txt_alone_means_berts_rules(tmp_path: Path, name: str) -> None:
    ours = Tokenizer.load(write(tmp_path, {"vocab.txt": LINES, **BERTS[name]}))
    assert ours.encode("Hellos").tokens == ["[CLS]", "hello", "##s", "[SEP]"]
    assert ours.template.segments == (0, 1)


@pytest.mark.parametrize(
    ("name", "said", "message"),
    [
        ("unigram", {"config": {"model_type": "xlnet"}}, "model_type 'xlnet', whose rules spiece.model alone"),
        ("unigram", {"tokenizer_config": {"tokenizer_class": "T5Tokenizer"}}, "tokenizer_class is 'T5Tokenizer'"),
        (
            "unigram",
            {"tokenizer_config": {"tokenizer_class": "AlbertTokenizer", "keep_accents": 1}},
            "keep_accents is 1",
        ),
        ("unigram", {"tokenizer_config": {"mask_token": "<hole>"}}, "spiece.model has no <hole>"),
        ("bpe", {"config": {"model_type": "bart"}}, "model_type 'bart', whose rules vocab.json and merges.txt alone"),
        ("bpe", {"tokenizer_config": {"add_prefix_space": "yes"}}, "add_prefix_space is 'yes'; write one of"),
        ("bpe", {"vocab": {"a": 0}}, "vocab.json has no <pad>"),
        ("bpe", {"vocab": {"a": "0"}}, "the id of 'a' is '0'"),
    ],
)
def test_other_rules_are_refused(home: Path, tmp_path: Path, name: str, said: Any, message: str) -> None:
    directory = without(home / name, tmp_path / "broken", "tokenizer*.json")
    with pytest.raises(BertkitError, match=message):
        Tokenizer.load(told(directory, said))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("merges.txt", b"#version: 0.2\nh e\nl\n", r"merges.txt: \['l'\] is no merge of two pieces"),
        ("merges.txt", b"#version: 0.2\nqqqq zzzz\n", "vocab.json cannot be used"),
        ("merges.txt", b"\xff", "merges.txt is not UTF-8"),
        ("vocab.json", b"{", "vocab.json is not valid JSON"),
    ],
)
def test_broken_files_of_roberta(home: Path, tmp_path: Path, file: str, content: bytes, message: str) -> None:
    directory = without(home / "bpe", tmp_path / "broken", "tokenizer.json")
    (directory / file).write_bytes(content)
    with pytest.raises(BertkitError, match=message):
        Tokenizer.load(directory)


def test_a_vocab_json_must_agree_with_its_tokenizer_json(home: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(home / "bpe", tmp_path / "broken"))
    ids = json.loads((directory / "vocab.json").read_text("utf-8"))
    swapped = {"Ġcat": ids["Ġthe"], "Ġthe": ids["Ġcat"]}
    (directory / "vocab.json").write_text(json.dumps(ids | swapped), "utf-8")
    with pytest.raises(BertkitError, match="disagree, first at id"):
        Tokenizer.load(directory)
    (directory / "tokenizer.json").unlink()
    (directory / "merges.txt").unlink()
    with pytest.raises(BertkitError, match=r"has neither tokenizer.json .* or vocab.json with merges.txt"):
        Tokenizer.load(directory)


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"hello", b"\n\x05\n\xffa"])
def test_what_is_no_model_of_sentencepiece_is_refused(home: Path, tmp_path: Path, content: bytes) -> None:
    directory = Path(shutil.copytree(home / "fairseq", tmp_path / "broken"))
    (directory / "sentencepiece.bpe.model").write_bytes(content)
    with pytest.raises(BertkitError, match=r"sentencepiece.bpe.model"):
        Tokenizer.load(directory)


def test_a_damaged_model_of_sentencepiece_opens_or_is_refused_but_never_crashes(home: Path, tmp_path: Path) -> None:
    rng, refused = random.Random(0), list[str]()
    directory = Path(shutil.copytree(home / "albert", tmp_path / "broken"))
    whole = (directory / "spiece.model").read_bytes()
    strange = TEXT + "".join(chr(rng.randrange(0x20, 0xD7FF)) for _ in range(300))
    for _ in range(120):
        content = bytearray(whole)
        for _ in range(rng.choice([1, 30, 300])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        (directory / "spiece.model").write_bytes(content[: rng.choice([len(content), rng.randrange(len(content))])])
        try:
            Tokenizer.load(directory).encode(strange)
        except BertkitError as error:
            refused.append(str(error))
    assert 60 < len(refused) < 120
    assert [message for message in refused if str(directory) not in message] == []


@pytest.mark.parametrize("name", ["bpe", "unigram"])
@pytest.mark.parametrize("generic", [True, False])
def test_a_damaged_tokenizer_json_opens_or_is_refused_but_never_crashes(
    home: Path, tmp_path: Path, name: str, generic: bool
) -> None:
    rng, refused = random.Random(1), list[str]()
    directory = without(home / name, tmp_path / "broken", "vocab.json", "merges.txt", "spiece.model")
    family = "RobertaTokenizer" if name == "bpe" else "AlbertTokenizer"
    told(directory, {"tokenizer_config": {"tokenizer_class": "PreTrainedTokenizerFast" if generic else family}})
    whole = json.loads((directory / "tokenizer.json").read_text("utf-8"))
    for _ in range(100):
        broken = copy.deepcopy(whole)
        for _ in range(2):
            key = rng.choice(list(broken))
            broken[key] = damage(broken[key], rng)
        (directory / "tokenizer.json").write_text(json.dumps(broken), "utf-8")
        try:
            Tokenizer.load(directory).encode(TEXT)
        except BertkitError as error:
            refused.append(str(error))
    assert 10 < len(refused) < 100
    assert [message for message in refused if str(directory) not in message] == []
