"""Proof: bertkit's tokenizer equals transformers' on every line of real text here and on 100,000 strange strings.

Two references. `BertTokenizer` (Rust): ids and offsets must be equal, without exception. `BertTokenizerLegacy` (the
Python that descends from Google's): ids must be equal, or differ for a cause in `CAUSES`. A cause is accepted only
when taking it out of the text makes both agree, so a difference that merely stands near a listed one still fails.
"""

from __future__ import annotations

import functools
import gzip
import random
import re
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from transformers import BertTokenizer
from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer, BertTokenizerLegacy

from bertkit.errors import BertkitError
from bertkit.text import Tokenizer

CLAIM = "Token ids and offsets equal transformers' BertTokenizer; ids equal its pure-Python one but for listed causes."
_DECIDING = ("tokenizer", "wordpiece", "encoding", "directory", "vocabulary", "added", "files")
COVERS = tuple(f"bertkit/text/{name}.py" for name in _DECIDING)

SHARED = Path(__file__).resolve().parents[2] / "shared"
STRINGS, STRINGS_PER_PART = 100_000, 10_000
CHARACTERS_PER_CALL = 1_000_000  # bounds memory: a batch's encodings take some hundred times its text

Ids = Callable[[str], list[int]]
Result = dict[str, int | float | str]


# What may differ from the pure-Python tokenizer, and why.


@dataclass(frozen=True)
class Cause:
    """A listed reason to differ. `without` takes it out of a text; a text it leaves unchanged does not have it."""

    name: str
    why: str
    without: Callable[[str, bool], str]  # (text, lowercase) -> text


def _without_sigma(text: str, lowercase: bool) -> str:
    return text.replace("Σ", "σ") if lowercase else text


def _without_unassigned(text: str, lowercase: bool) -> str:
    return "".join(char for char in text if unicodedata.category(char) != "Cn")


def _without_extension_e(text: str, lowercase: bool) -> str:
    return re.sub("([\U0002b820-\U0002b91f])", r" \1 ", text)


def _without_new_characters(text: str, lowercase: bool) -> str:
    return text if text.isascii() else "".join(char for char in text if char not in newer_than_rust())


def _without_decomposed(text: str, lowercase: bool) -> str:
    return text if lowercase or text.isascii() else unicodedata.normalize("NFC", _cleaned(text))


def _without_hidden_names(text: str, lowercase: bool) -> str:
    cleaned = unicodedata.normalize("NFC", _cleaned(text))
    names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    return cleaned if any(cleaned.count(name) > text.count(name) for name in names) else text


def _cleaned(text: str) -> str:
    return "".join(c for c in text if c in "\t\n\r" or (c != "\ufffd" and unicodedata.category(c)[0] != "C"))


CAUSES = (
    Cause("final sigma", "Python lower-cases a Σ that ends a word to ς, Rust each Σ to σ", _without_sigma),
    Cause("unassigned", "code points without a character: Python drops them, Rust keeps them", _without_unassigned),
    Cause("extension E", "Rust does not count U+2B820 to U+2B91F as Chinese, Google does", _without_extension_e),
    Cause("newer character", "marks and punctuation unknown to Rust's Unicode tables", _without_new_characters),
    Cause("not NFC", "when accents stay, the Python one composes first (Google's did not)", _without_decomposed),
    Cause("hidden name", "Python finds [MASK] and the like after cleaning, Rust only before", _without_hidden_names),
)


def cause(text: str, ours: Ids, legacy: Ids, lowercase: bool) -> str | None:
    """Why two tokenizers differ on a text: a listed cause, several joined by +, or None if none of them explains it."""
    present = [cause for cause in CAUSES if cause.without(text, lowercase) != text]
    for found in present:
        plain = found.without(text, lowercase)
        if ours(plain) == legacy(plain):
            return found.name
    plain = text
    for found in present:
        plain = found.without(plain, lowercase)
    return " + ".join(found.name for found in present) if present and ours(plain) == legacy(plain) else None


@functools.cache
def newer_than_rust() -> frozenset[str]:
    """Assigned characters that Python's Unicode tables and Rust's older ones class or decompose differently."""
    steps, splits, legacy = BertNormalizer(lowercase=True), BertPreTokenizer(), BasicTokenizer(do_lower_case=True)
    different = set()
    for char in map(chr, range(0x80, 0x110000)):
        # Letters without case are never asked about, and leaving them out saves most of the time.
        if unicodedata.category(char) in ("Cn", "Co", "Cs", "Lo"):
            continue
        text = f"a{char}b"
        pieces = [piece for piece, _ in splits.pre_tokenize_str(steps.normalize_str(text))]
        if pieces != legacy.tokenize(text):
            different.add(char)
    return frozenset(different)


# The comparison.


class Trio:
    """One vocabulary in bertkit and in both references."""

    def __init__(self, folder: Path, lowercase: bool) -> None:
        self.name, self.lowercase = folder.name, lowercase
        self.ours = Tokenizer.from_vocabulary(_lines_of(folder / "vocab.txt"), lowercase=lowercase)
        self.rust = BertTokenizer.from_pretrained(folder, do_lower_case=lowercase)
        self.python = BertTokenizerLegacy(str(folder / "vocab.txt"), do_lower_case=lowercase)

    def equal_rust(self, texts: list[str]) -> int:
        """Ids and offsets of every text equal BertTokenizer's; returns how many texts were compared."""
        expected = self.rust(texts, return_offsets_mapping=True)
        rows = zip(texts, self.ours.encode_many(texts), expected["input_ids"], expected["offset_mapping"], strict=True)
        for text, found, ids, offsets in rows:
            assert found.ids == ids, f"{self.name}: ids differ from BertTokenizer on {text[:200]!a}"
            assert found.offsets == offsets, f"{self.name}: offsets differ from BertTokenizer on {text[:200]!a}"
        return len(texts)

    def equal_python(self, texts: list[str]) -> Counter[str]:
        """Ids of every text equal BertTokenizerLegacy's; returns the differences by listed cause."""
        causes: Counter[str] = Counter()
        for text, found in zip(texts, self.ours.ids_of_many(texts), strict=True):
            if found[1:-1] != self._python_ids(text):
                why = cause(text, self._our_ids, self._python_ids, self.lowercase)
                assert why, f"{self.name}: ids differ from BertTokenizerLegacy for no listed cause on {text[:200]!a}"
                causes[why] += 1
        return causes

    def _our_ids(self, text: str) -> list[int]:
        return self.ours.encode(text, special_tokens=False).ids

    def _python_ids(self, text: str) -> list[int]:
        return self.python.convert_tokens_to_ids(self.python.tokenize(text))


@functools.cache
def trio(name: str) -> Trio:
    """The vocabulary of a published BERT; cached, because building the references takes a second."""
    return Trio(SHARED / "data" / "vocabs" / name, lowercase=name.endswith("uncased"))


def compare(lines: list[str]) -> Result:
    """All references on these lines: uncased and multilingual on each, cased on those without Chinese, Chinese on the
    others. The slow Python reference reads every line once, and again under the other casing where that matters."""
    chinese = [line for line in lines if _has_chinese(line)]
    other = [line for line in lines if not _has_chinese(line)]
    marked = [line for line in other if not line.isascii()]
    lettered = [line for line in chinese if unicodedata.normalize("NFD", line.lower()) != line]
    rust = (("uncased", lines), ("multilingual-cased", lines), ("cased", other), ("chinese", chinese))
    python = (("uncased", other + lettered), ("multilingual-cased", marked), ("chinese", chinese))
    counts: Counter[str] = Counter(lines=len(lines), bytes=sum(len(line.encode()) for line in lines))
    for name, texts in rust:
        for batch in _batches(texts):
            counts["compared with BertTokenizer"] += trio(f"bert-base-{name}").equal_rust(batch)
    for name, texts in python:
        counts["compared with BertTokenizerLegacy"] += len(texts)
        for batch in _batches(texts):
            counts.update({f"because {why}": n for why, n in trio(f"bert-base-{name}").equal_python(batch).items()})
    return dict(counts)


def _has_chinese(text: str) -> bool:
    return re.search("[\u3400-\u9fff]", text) is not None


def _batches(texts: list[str]) -> Iterator[list[str]]:
    batch, size = [], 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= CHARACTERS_PER_CALL:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


# The texts.


def real_lines(dataset: Path) -> tuple[list[str], int]:
    """The distinct lines of every file under a dataset, and how many files were read as Latin-1, not being UTF-8."""
    lines: dict[str, None] = {}
    latin = 0
    for raw in _files(dataset):
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            text = raw.decode("latin-1")  # any bytes are: old texts, and models, whose lines are strange but lines
            latin += 1
        lines.update(dict.fromkeys(text.split("\n")))
    return list(lines), latin


def _files(dataset: Path) -> Iterator[bytes]:
    for path in sorted(dataset.rglob("*")) if dataset.is_dir() else [dataset]:
        if path.suffix == ".gz":
            yield gzip.decompress(path.read_bytes())
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                yield from (archive.read(item) for item in archive.infolist() if not item.is_dir())
        elif path.is_file():
            yield path.read_bytes()


def _lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


STRANGE: tuple[tuple[int, int], ...] = (
    (0x20, 0x7E),  # ASCII, also as the ground the others stand on
    (0x00, 0x1F),  # control
    (0x7F, 0xFF),  # Latin-1
    (0x100, 0x24F),  # Latin with accents, Turkish İ and ı
    (0x300, 0x36F),  # combining marks
    (0x370, 0x3FF),  # Greek, with its three sigmas
    (0x400, 0x52F),  # Cyrillic
    (0x590, 0x77F),  # Hebrew, Arabic, Syriac: right to left
    (0x900, 0xDFF),  # scripts of India, with marks that spell
    (0xE00, 0xFFF),  # Thai, Lao, Tibetan
    (0x1100, 0x11FF),  # Hangul jamo
    (0x1E00, 0x1FFF),  # Vietnamese and old Greek accents
    (0x2000, 0x206F),  # spaces, joiners, direction marks
    (0x2100, 0x214F),  # letter-like: the Kelvin sign lower-cases to k
    (0x2E00, 0x2E7F),  # rare punctuation
    (0x3000, 0x30FF),  # Chinese punctuation, kana
    (0x3400, 0x4DBF),  # Chinese extension A
    (0x4E00, 0x9FFF),  # Chinese
    (0xAC00, 0xD7A3),  # Hangul syllables
    (0xE000, 0xE0FF),  # private use
    (0xF900, 0xFAFF),  # compatibility ideographs, some unassigned
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFF00, 0xFFEF),  # full width
    (0xFFF0, 0xFFFF),  # specials, with the replacement character
    (0x10000, 0x1FFFF),  # the rest of the first planes, much of it unassigned
    (0x1F300, 0x1FAFF),  # emoji
    (0x20000, 0x2FA1F),  # Chinese extensions B to F
    (0x30000, 0x323AF),  # Chinese extensions G and H, which nobody splits
    (0xE0000, 0xE01FF),  # tags
    (0x0, 0x10FFFF),  # anything
)
CHUNKS = (
    "[MASK]", "[CLS]", "[mask]", "[UNK]", "##ing", "the", "playing", "ΟΔΟΣ", "İstanbul", "straße", "e\u0301", "가각",
    "\u1112\u1161\u11ab", "👩‍👩‍👧‍👦", "🇫🇷", "1️⃣", "字", "字e\u0301字", "\u202eabc", "a\u200db", "[MA\u0000SK]",
    "x" * 100, "x" * 101, "e\u0301" * 100, "é" * 101, " ", "\u3000", "\n", "\t", "\u2028", "...", "—", "don't",
)  # fmt: skip


def strange(rng: random.Random) -> str:
    """A short string weighted towards what tokenizers get wrong."""
    parts = []
    for _ in range(rng.randint(1, 12)):
        first, last = rng.choice(STRANGE)
        kind = rng.random()
        if kind < 0.25:
            parts.append(rng.choice(CHUNKS))
        elif kind < 0.35:
            parts.append(" ")
        else:
            parts.extend(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 5)))
    return "".join(char for char in "".join(parts) if not "\ud800" <= char <= "\udfff")


def parts() -> Iterator[tuple[str, Callable[[], Result]]]:
    """One part per dataset, then the strange strings in tens of thousands."""
    if not SHARED.is_dir():
        raise BertkitError("needs ../shared (real datasets beside the project); not found")
    for dataset in sorted((SHARED / "data").iterdir()):
        yield f"lines of {dataset.name}", functools.partial(_dataset_part, dataset)
    for seed in range(STRINGS // STRINGS_PER_PART):
        yield f"strange strings {seed}", functools.partial(_strange_part, seed)


def _dataset_part(dataset: Path) -> Result:
    lines, latin = real_lines(dataset)
    return {**compare(lines), "latin": latin}


def _strange_part(seed: int) -> Result:
    rng = random.Random(seed)
    found = compare([strange(rng) for _ in range(STRINGS_PER_PART)])
    return {**found, "lines": 0, "bytes": 0, "strings": STRINGS_PER_PART}


def summary(results: list[dict[str, Any]]) -> str:
    """Lines, megabytes and strings compared, and the differences by cause."""
    total: Counter[str] = Counter()
    for result in results:
        total.update({key: value for key, value in result.items() if not isinstance(value, str)})
    causes: Counter[str] = Counter()
    for key, count in total.items():
        if key.startswith("because "):
            causes["several of these" if " + " in key else key.removeprefix("because ")] += count
    listed = ", ".join(f"{name} {count:,}" for name, count in causes.most_common())
    return (
        f"{total['lines']:,} distinct lines ({total['bytes'] / 1e6:.0f} MB) and {total['strings']:,} strange strings: "
        f"{total['compared with BertTokenizer']:,} comparisons with BertTokenizer (ids and offsets), 0 differences; "
        f"{total['compared with BertTokenizerLegacy']:,} with BertTokenizerLegacy (ids), differences: "
        f"{listed or 'none'}; {total['latin']} files that are not UTF-8 were read as Latin-1"
    )
