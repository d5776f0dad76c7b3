"""The same ids and offsets as transformers, on strange strings with a vocabulary of our own and on real text.

`proofs/tokenizer.py` holds the comparison and the list of what may differ from the pure-Python tokenizer; the full run
over all texts is `make proofs`.
"""

import gzip
import random
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofs.tokenizer import CAUSES, CHUNKS, STRANGE, Trio, cause, newer_than_rust, strange, trio

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def letters():
    """Enough single characters and pieces that strange text is spelled out rather than hidden behind [UNK]."""
    ranges = [(0x21, 0x17F), (0x300, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x65F), (0x900, 0x97F), (0x1100, 0x1200)]
    ranges += [(0x1E00, 0x2070), (0x2100, 0x2150), (0x2E00, 0x2E5E), (0x3000, 0x3100), (0x3400, 0x3420)]
    ranges += [(0x4E00, 0x4F00), (0xAC00, 0xAC40), (0xF900, 0xFB00), (0xFF00, 0xFFF0), (0x1F300, 0x1F700)]
    ranges += [(0x2B810, 0x2B930), (0x11930, 0x11940), (0x378, 0x384), (0x1AC0, 0x1AE0), (0xE000, 0xE010)]
    single = [chr(point) for first, last in ranges for point in range(first, last)]
    return [char for char in single if not char.isspace() and char not in "\x85"]


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def small(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    single = letters()
    words = ["the", "play", "##ing", "οδο", "istanbul", "strasse", "don", "##s", "字字"]
    tokens = dict.fromkeys([*SPECIALS, *single, *(f"##{char}" for char in single), *words])
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), "utf-8")
    return Trio(folder, lowercase=request.param)


def characters(bounds):
    first, last = bounds
    return st.text(st.characters(min_codepoint=first, max_codepoint=last, codec="utf-8"), min_size=1, max_size=6)


piece = st.one_of(
    *map(characters, STRANGE),
    st.sampled_from(CHUNKS),
    st.sampled_from([" ", "\u0301", "\u200d", "Σ", "İ", "ı", "ß", "[SEP]"]),
    st.integers(98, 103).map(lambda n: "y" * n),
)
texts = st.lists(piece, max_size=10).map("".join)
unhurried = settings(
    max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)


@unhurried
@given(text=texts, pair=texts)
def test_generated_pairs_equal_transformers_and_offsets_stay_in_order(small, text, pair):
    small.equal_rust([text])
    # As lists: called with two strings, transformers takes an empty second one for none.
    expected = small.rust([text], [pair], return_offsets_mapping=True)
    found = small.ours.encode(text, pair)
    assert [found.ids] == expected["input_ids"] == small.ours.ids_of_many([text], [pair])
    assert [found.offsets] == expected["offset_mapping"]
    assert [found.segments] == expected["token_type_ids"]
    assert found.words == expected.word_ids(0)
    first = small.ours.encode(text, special_tokens=False)
    assert all(0 <= start <= end <= len(text) for start, end in first.offsets)
    assert first.offsets == sorted(first.offsets)
    assert first.words == sorted(first.words)


@settings(unhurried, max_examples=400)
@given(text=texts)
def test_generated_text_equals_the_python_tokenizer_but_for_listed_causes(small, text):
    small.equal_python([text])


def test_seeded_strange_strings(small):
    rng = random.Random(7)
    strings = [strange(rng) for _ in range(3000)]
    small.equal_rust(strings)
    small.equal_python(strings)


EXAMPLES = {
    True: {
        "final sigma": "ΟΔΟΣ the",
        "unassigned": "pl\u0378ay",
        "extension E": "the\U0002b820play",
        "newer character": "e\u1ac1e",
        "hidden name": "the [MA\x00SK]",
    },
    False: {
        "unassigned": "pl\u0378ay",
        "extension E": "the\U0002b820play",
        "newer character": "e\u2e55e",
        "not NFC": "e\u0301",
        "hidden name": "the [MA\x00SK]",
    },
}


def test_each_listed_cause_has_an_example_that_really_differs(small):
    ours, legacy = small._our_ids, small._python_ids
    for name, text in EXAMPLES[small.lowercase].items():
        assert ours(text) != legacy(text)
        assert cause(text, ours, legacy, small.lowercase) == name


def test_every_listed_cause_has_an_example():
    assert {listed.name for listed in CAUSES} == {*EXAMPLES[True], *EXAMPLES[False]}


def test_a_difference_without_a_listed_cause_fails(small):
    ours, wrong = small._our_ids, (lambda text: [*small._python_ids(text), 99])
    assert cause("the ΟΔΟΣ \u0378 e\u0301", ours, wrong, small.lowercase) is None


def test_newer_characters_are_only_of_the_kinds_wordpiece_asks_about():
    kinds = {unicodedata.category(char) for char in newer_than_rust()}
    assert kinds <= {"Mn", "Mc", "Po", "Ps", "Pe", "Pd", "Cf", "So"}
    if unicodedata.unidata_version == "14.0.0":
        assert len(newer_than_rust()) == 504


def head(path, size):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return lines.read(size).split("\n")


@pytest.fixture(scope="module")
def english(shared):
    files = ("GLUE/QNLI/dev.tsv.gz", "GLUE/MRPC/train.tsv.gz")
    return [line for name in files for line in head(shared / "data" / name, 1_100_000)]


@pytest.fixture(scope="module")
def chinese(shared):
    files = ("ChnSentiCorp/train.tsv.gz", "CMRC2018/cmrc2018_dev.json.gz")
    return [line for name in files for line in head(shared / "data" / name, 340_000)]


@pytest.mark.parametrize("name", ["uncased", "cased", "multilingual-cased"])
def test_two_megabytes_of_english_equal_transformers(english, name):
    trio(f"bert-base-{name}").equal_rust(english)


@pytest.mark.parametrize("name", ["chinese", "multilingual-cased"])
def test_two_megabytes_of_chinese_equal_transformers(chinese, name):
    trio(f"bert-base-{name}").equal_rust(chinese)


@pytest.mark.parametrize("name", ["uncased", "cased"])
def test_english_equals_the_python_tokenizer(english, name):
    trio(f"bert-base-{name}").equal_python(english[:: 5 if name == "uncased" else 9])


@pytest.mark.parametrize("name", ["chinese", "uncased"])
def test_chinese_equals_the_python_tokenizer(chinese, name):
    trio(f"bert-base-{name}").equal_python(chinese[:: 3 if name == "chinese" else 6])
