"""What Google's definition of WordPiece says, with a vocabulary small enough to read."""

import pickle

import pytest

from bertkit.errors import BertkitError
from bertkit.text import Specials, Tokenizer

SPELLED = """[PAD] [UNK] [CLS] [SEP] [MASK] un ##aff ##able want ##want ##ed runn ##ing , low ##er ##est hello cafe
caf ##e é e 字 国 a ##a b ! ? ' don t i s σ ς οδο ##σ ##ς 😀 Hello Café straße # 가 ᄀ ##ᅡ"""
VOCABULARY = SPELLED.split()


@pytest.fixture
def uncased():
    return Tokenizer.from_vocabulary(VOCABULARY)


@pytest.fixture
def cased():
    return Tokenizer.from_vocabulary(VOCABULARY, lowercase=False)


def pieces(tokenizer, text):
    return tokenizer.encode(text, special_tokens=False).tokens


def test_longest_piece_first_as_in_the_papers_example(uncased):
    assert pieces(uncased, "UNwant\u00e9d,running") == ["un", "##want", "##ed", ",", "runn", "##ing"]
    assert pieces(uncased, "unaffable lowest") == ["un", "##aff", "##able", "low", "##est"]


def test_a_word_that_cannot_be_spelled_is_one_unk(uncased):
    assert pieces(uncased, "unwantedX running") == ["[UNK]", "runn", "##ing"]


@pytest.mark.parametrize(("length", "expected"), [(100, ["a"] + ["##a"] * 99), (101, ["[UNK]"])])
def test_words_longer_than_100_characters_are_unk(uncased, length, expected):
    assert pieces(uncased, "a" * length) == expected


def test_the_100_characters_are_counted_after_accents_are_stripped(uncased, cased):
    assert pieces(uncased, "a\u0301" * 100) == ["a"] + ["##a"] * 99
    assert pieces(cased, "a\u0301" * 100) == ["[UNK]"]


def test_uncased_lowers_and_strips_accents_cased_keeps_both(uncased, cased):
    assert pieces(uncased, "HELLO Café") == ["hello", "cafe"]
    assert pieces(cased, "Hello Café é") == ["Hello", "Café", "é"]


def test_accents_can_be_kept_while_lowering():
    tokenizer = Tokenizer.from_vocabulary(VOCABULARY, strip_accents=False)
    assert pieces(tokenizer, "É e\u0301") == ["é", "[UNK]"]


def test_control_characters_and_replacement_characters_vanish(uncased):
    assert pieces(uncased, "he\x00l\u200dl\ufffdo\x7f") == ["hello"]


def test_every_kind_of_space_separates(uncased):
    assert pieces(uncased, "a\tb\na\rb\u00a0a\u3000b\u2028a") == list("abababa")


def test_chinese_characters_stand_alone_unless_told_otherwise(uncased):
    assert pieces(uncased, "a字国b") == ["a", "字", "国", "b"]
    together = Tokenizer.from_vocabulary(VOCABULARY, split_chinese=False)
    assert pieces(together, "a字国b") == ["[UNK]"]


def test_hangul_is_taken_apart_when_accents_are_stripped(uncased, cased):
    assert pieces(uncased, "가") == ["ᄀ", "##ᅡ"]
    assert pieces(cased, "가") == ["가"]


def test_punctuation_stands_alone(uncased):
    assert pieces(uncased, "don't!?") == ["don", "'", "t", "!", "?"]
    assert pieces(uncased, "##a") == ["#", "#", "a"]


def test_special_names_are_never_split_and_need_no_spaces(uncased):
    assert pieces(uncased, "a[MASK]b") == ["a", "[MASK]", "b"]
    assert "[MASK]" not in pieces(uncased, "a [mask] b")


@pytest.mark.parametrize(
    ("text", "slices"),
    [
        ("Cafe\u0301 a", ["Cafe", "a"]),  # the mark belongs to no token
        ("😀 é字!", ["😀", "é", "字", "!"]),
        ("  hello  ", ["hello"]),
        ("un\u200daffable", ["un", "aff", "able"]),
        ("İ i", ["İ", "i"]),
    ],
)
def test_offsets_point_into_the_original_text(uncased, text, slices):
    found = uncased.encode(text, special_tokens=False)
    assert [text[start:end] for start, end in found.offsets] == slices


def test_template_of_one_text_and_of_a_pair(uncased):
    assert uncased.encode("hello a").tokens == ["[CLS]", "hello", "a", "[SEP]"]
    pair = uncased.encode("hello!", "lower a")
    assert pair.tokens == ["[CLS]", "hello", "!", "[SEP]", "low", "##er", "a", "[SEP]"]
    assert pair.segments == [0, 0, 0, 0, 1, 1, 1, 1]
    assert pair.words == [None, 0, 1, None, 0, 0, 1, None]
    assert pair.offsets == [(0, 0), (0, 5), (5, 6), (0, 0), (0, 3), (3, 5), (6, 7), (0, 0)]
    assert len(pair) == 8


@pytest.mark.parametrize("text", ["", " ", "\x00", "\u0301"])
def test_nothing_gives_only_the_template(uncased, text):
    assert uncased.encode(text).tokens == ["[CLS]", "[SEP]"]
    assert uncased.encode(text, special_tokens=False).ids == []
    assert uncased.encode(text, "").tokens == ["[CLS]", "[SEP]", "[SEP]"]


def test_nothing_is_cut_off(uncased):
    assert len(uncased.encode("a " * 5000)) == 5002


def test_many_texts_equal_one_by_one_and_keep_their_order(uncased):
    texts = ["hello", "", "unaffable running", "字"] * 50
    pairs = texts[::-1]
    assert [e.ids for e in uncased.encode_many(texts)] == [uncased.encode(t).ids for t in texts]
    assert uncased.ids_of_many(texts) == [uncased.encode(t).ids for t in texts]
    assert uncased.ids_of_many(texts, pairs) == [uncased.encode(t, p).ids for t, p in zip(texts, pairs, strict=True)]
    assert uncased.encode_many([]) == []
    plain = [uncased.encode(t, special_tokens=False).ids for t in texts]
    assert uncased.ids_of_many(texts, special_tokens=False) == plain
    assert uncased.ids_of_many([], []) == []


def test_decode_joins_pieces_and_can_show_the_special_tokens(uncased):
    ids = uncased.encode("Unaffable, hello!").ids
    assert uncased.decode(ids) == "unaffable, hello!"
    assert uncased.decode(ids, skip_special=False) == "[CLS] unaffable, hello! [SEP]"


def test_names_ids_and_length(uncased, cased):
    assert (uncased.pad_id, uncased.unk_id, uncased.cls_id, uncased.sep_id, uncased.mask_id) == (0, 1, 2, 3, 4)
    assert uncased.vocabulary == VOCABULARY
    assert len(uncased) == len(VOCABULARY)
    assert (uncased.lowercase, cased.lowercase, uncased.limit) == (True, False, 512)
    assert all(uncased.id(uncased.token(i)) == i for i in range(len(uncased)))


def test_other_names_for_the_five():
    specials = Specials("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    tokenizer = Tokenizer.from_vocabulary(["<s>", "<pad>", "</s>", "<unk>", "a", "<mask>"], specials=specials)
    assert tokenizer.encode("a<mask>z").tokens == ["<s>", "a", "<mask>", "<unk>", "</s>"]
    assert (tokenizer.pad_id, tokenizer.mask_id) == (1, 5)


def test_added_tokens_get_the_next_ids_and_are_found_in_raw_text(uncased):
    rows = len(uncased)
    assert uncased.add_special_tokens(["[CAT=CULTURE]", "[CAT=文]", "[CAT=CULTURE]", "[MASK]", "hello"]) == 2
    assert [uncased.id(t) for t in ("[CAT=CULTURE]", "[CAT=文]")] == [rows, rows + 1]
    assert len(uncased) == rows + 2 == len(uncased.vocabulary)
    assert pieces(uncased, "a[CAT=CULTURE]b[CAT=文]") == ["a", "[CAT=CULTURE]", "b", "[CAT=文]"]
    assert "[CAT=CULTURE]" not in pieces(uncased, "[cat=culture]")
    assert uncased.add_special_tokens(["[CAT=CULTURE]"]) == 0
    assert uncased.decode([rows, uncased.id("a")]) == "a"


def test_fingerprint_follows_everything_that_decides_ids(uncased, cased):
    same = Tokenizer.from_vocabulary(VOCABULARY)
    assert uncased.fingerprint == same.fingerprint != cased.fingerprint
    same.add_special_tokens(["[NEW]"])
    assert uncased.fingerprint != same.fingerprint


@pytest.mark.parametrize("way", [lambda t: pickle.loads(pickle.dumps(t)), lambda t: Tokenizer.from_json(t.to_json())])
def test_it_crosses_process_borders(uncased, way):
    uncased.add_special_tokens(["[NEW]"])
    copy = way(uncased)
    assert copy._opened.rules == uncased._opened.rules
    assert copy._opened.settings == uncased._opened.settings
    assert (copy.specials, copy.limit, repr(copy)) == (uncased.specials, uncased.limit, repr(uncased))
    assert copy.fingerprint == uncased.fingerprint
    assert copy.encode("hello [NEW]").ids == uncased.encode("hello [NEW]").ids


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.encode("ok \ud83d no"), r"texts\[0\] has a lone surrogate '\\ud83d' at character 3.*Replace it"),
        (lambda t: t.encode("ok", "\udc00"), r"pairs\[0\] has a lone surrogate"),
        (lambda t: t.ids_of_many(["a", "b\ud800"]), r"texts\[1\] has a lone surrogate"),
        (lambda t: t.encode_many(["a", None]), r"texts\[1\] is None \(NoneType\)"),
        (lambda t: t.encode_many(["a", float("nan")]), r"texts\[1\] is nan \(float\)"),
        (lambda t: t.encode_many(["a"], [3]), r"pairs\[0\] is 3 \(int\)"),
        (lambda t: t.encode_many([("a", "b")]), r"texts\[0\] is \('a', 'b'\) \(tuple\)"),
        (lambda t: t.encode_many("hello"), "must be a list of str, not one str"),
        (lambda t: t.encode_many(["a", "b"], ["c"]), "2 texts but 1 pairs"),
        (lambda t: t.encode(b"bytes"), r"texts\[0\] is b'bytes' \(bytes\)"),
        (lambda t: t.token(10_000), "no token with id 10000: ids go from 0 to"),
        (lambda t: t.token(-1), "no token with id -1"),
        (lambda t: t.decode([5, 999]), "no token with id 999"),
        (lambda t: t.id("helo"), "'helo' is not in the vocabulary of .* nearest: 'hello'"),
        (lambda t: t.add_special_tokens("[NEW]"), r"takes a list; write \['\[NEW\]'\]"),
        (lambda t: t.add_special_tokens([""]), "cannot be an added token"),
        (lambda t: t.add_special_tokens(["\ud800"]), "cannot be an added token"),
    ],
)
def test_bad_input_is_named_with_the_way_out(uncased, call, message):
    with pytest.raises(BertkitError, match=message):
        call(uncased)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "empty"),
        ("abc", "a list of tokens, not the str"),
        (["[PAD]", "[UNK]", "a"], r"has no \[CLS\] \[SEP\] \[MASK\].*tokenizer_config.json"),
        ([*VOCABULARY, 7], r"token \d+ is 7 \(int\)"),
        ([*VOCABULARY, "\ud800"], "lone surrogate"),
        ([*VOCABULARY, "a\nb"], "line break"),
        ({"[PAD]": 0, "[UNK]": 0}, r"'\[PAD\]' and '\[UNK\]' both have id 0"),
        ({"[PAD]": -1}, "the id of"),
        ({"[PAD]": True}, "the id of"),
        ({**{t: i for i, t in enumerate(VOCABULARY)}, "far": 4_000_000_000}, "not contiguous"),
    ],
)
def test_bad_vocabularies_are_refused(tokens, message):
    with pytest.raises(BertkitError, match=message):
        Tokenizer.from_vocabulary(tokens)


def test_a_failed_growth_changes_nothing(uncased):
    before = uncased.fingerprint
    with pytest.raises(BertkitError):
        uncased.add_special_tokens(["[FINE]", ""])
    assert uncased.fingerprint == before
