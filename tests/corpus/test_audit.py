"""The audit: what is planted is found, what is counted is what a direct count gives, and memory has a bound."""

from __future__ import annotations

import json
import random
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bertkit.corpus import audit as audits
from bertkit.corpus import block as blocks
from bertkit.corpus import census, damage, duplicates, scripts
from bertkit.corpus.audit import Audit, audit
from bertkit.corpus.audit_page import page
from bertkit.corpus.block import Block
from bertkit.corpus.findings import LINES, WIDTH, findings, summary
from bertkit.corpus.source import embedded, files
from bertkit.errors import BertkitError
from bertkit.text import Tokenizer
from bertkit.text.sentences import Rules

WORDS = [f"{a}{b}{c}" for a in "bdfghklmnprstvz" for b in "aeiou" for c in ("n", "r", "st", "lo", "mi", "ke")]
MIXED = "Ålesund, Ωμέγα! Москва № 7; 東京タワーと 大阪城 — 서울 ١٢٣ العربية हिन्दी ภาษาไทย e\u0301 €5 😀\u200b\x07 naïve"


def prose(seed: int, words: int = 120) -> list[str]:
    """Words at random, no two texts alike."""
    return random.Random(seed).choices(WORDS, k=words)


def document(seed: int, words: int = 120) -> str:
    """The same as sentences, some on a line."""
    found = prose(seed, words)
    return "\n".join(" ".join(found[at : at + 12]).capitalize() + "." for at in range(0, words, 12))


def run(*documents: str, tokenizer: Tokenizer | None = None) -> Audit:
    return audit([embedded("planted", "\n\n".join(documents).encode())], tokenizer)


def edited(seed: int, share: float) -> str:
    """A text with a share of its words replaced."""
    found = prose(seed)
    for place in random.Random(seed).sample(range(len(found)), round(share * len(found))):
        found[place] = "altered"
    return " ".join(found)


def test_exact_copies() -> None:
    texts = [document(seed) for seed in range(30)]
    found = run(*texts, texts[3], *texts[5:8], texts[3])
    assert (found.documents, found.repeated_documents.texts) == (35, 35)
    assert found.repeated_documents.copies == 5
    assert found.repeated_documents.copied_characters == sum(len(texts[i]) for i in (3, 5, 6, 7, 3))
    assert {(example.times) for example in found.repeated_documents.examples} == {2, 3}
    assert found.repeated_documents.examples[0].text[:40] == " ".join(texts[3].split())[:40]
    assert found.near_documents.copies == 0, "an exact copy is not counted again"
    assert found.repeated_lines.copies == 0, "nor are its lines"


def test_repeated_lines_of_different_documents() -> None:
    line = "This very line is found twice."
    found = run(f"{line}\n{document(1)}", f"{document(2)}\n  {line} ", document(3))
    assert found.repeated_lines.copies == 1
    assert found.repeated_lines.copied_characters == len(line)
    assert found.repeated_documents.copies == 0
    assert found.boilerplate.lines == 0


@pytest.mark.parametrize("layout", ["flat", "SHOUTED, with commas"])
def test_near_copies(layout: str) -> None:
    texts = [" ".join(prose(seed)) for seed in range(200)]
    changed = [edited(seed, 0.05) for seed in range(0, 200, 4)]
    if layout != "flat":
        changed = [text.upper().replace(" ", ", ") for text in changed]
    found = run(*texts, *changed)
    assert found.repeated_documents.copies == 0
    assert found.near_documents.copies == found.near_documents.groups == len(changed)
    assert found.near_documents.largest == 2
    assert all(pair.alike >= duplicates.ALIKE for pair in found.near_documents.examples)


def test_unrelated_texts_are_not_near_copies() -> None:
    found = run(*(document(seed) for seed in range(400)))
    assert found.near_documents.documents == 400
    assert found.near_documents.copies == 0


def test_minhash_estimates_jaccard() -> None:
    """The mean of many estimates is the share of runs that both have, counted with sets."""
    estimates, exact = [], []
    for seed in range(60):
        texts = [" ".join(prose(seed)), edited(seed, seed / 200)]
        near = duplicates.Near(10)
        near.add(Block("\n\n".join(texts)), np.ones(2, bool))
        (kept,) = near._parts
        estimates.append((kept.signatures[0] == kept.signatures[1]).mean())
        runs = [set(zip(words, words[1:], words[2:], strict=False)) for words in map(str.split, texts)]
        exact.append(len(runs[0] & runs[1]) / len(runs[0] | runs[1]))
    assert np.mean(estimates) == pytest.approx(np.mean(exact), abs=0.02)
    assert np.corrcoef(estimates, exact)[0, 1] > 0.9


def test_boilerplate() -> None:
    notice = "All rights reserved by the owner of this page."
    texts = [f"{document(seed)}\n{notice}" if seed < 25 else document(seed) for seed in range(40)]
    texts.append(f"{document(90)}\n" + "\n".join(["Said only here, often."] * 30))
    found = run(*texts)
    assert (found.boilerplate.lines, found.boilerplate.times) == (1, 25)
    assert found.boilerplate.share == pytest.approx(25 * len(notice) / sum(len(t.replace("\n", "")) for t in texts))
    example = next(example for example in found.repeated_lines.examples if example.documents == 25)
    assert (example.text, example.times) == (notice, 25)


@pytest.mark.parametrize("charset", ["cp1252", "latin-1"])
@pytest.mark.parametrize("text", ["café", "naïve façade", "it’s “so”", "Москва", "中国", "Ελλάδα", "😀"])
def test_mojibake(text: str, charset: str) -> None:
    broken = "".join(_decoded(byte, charset) for byte in text.encode())
    assert run(f"{document(1)} {broken} {document(2)}").damage["mojibake"].count >= 1
    assert run(f"{document(1)} {text} {document(2)}").damage["mojibake"].count == 0


def _decoded(byte: int, charset: str) -> str:
    try:
        return bytes([byte]).decode(charset)
    except UnicodeDecodeError:
        return chr(byte)  # what browsers do


@pytest.mark.parametrize(
    "text",
    ["„Spaß“ und „Größe“", "CAFÉ» là\u00a0» où\u00a0?", "AMANHÃ, IRMÃ.", "Đường phố Hà Nội", "£5 – ½ ß", "São João"],
)
def test_real_letters_are_not_mojibake(text: str) -> None:
    assert run(text).damage["mojibake"].count == 0


def test_damage_is_counted_with_its_surroundings() -> None:
    found = run("one\x00two \ufffd\ufffd three\u00adfour \ue000 <p class='x'>AT&amp;T</p> a < b & c > d").damage
    counts = {kind: found[kind].count for kind in damage.KINDS}
    assert counts == {"mojibake": 0, "replacement": 2, "control": 1, "unassigned": 1, "invisible": 1, "markup": 3}
    assert "three" in found["replacement"].examples[0]


def test_scripts_by_unicode_names() -> None:
    """A direct count: categories, and the first word of each letter's name."""
    names = {"CJK": "Han", "KATAKANA-HIRAGANA": "Katakana"}
    expected: Counter[str] = Counter()
    for letter in MIXED:
        category = unicodedata.category(letter)
        if letter == "\u0301":
            expected["combining marks"] += 1
        elif category[0] in "LM":
            first = unicodedata.name(letter).split()[0]
            expected[names.get(first, first.capitalize())] += 1
        else:
            kinds = {
                "N": "digits",
                "P": "punctuation",
                "S": "symbols",
                "Z": "spaces",
                "Cf": "invisible",
                "Cc": "control",
            }
            expected[kinds.get(category) or kinds[category[0]]] += 1
    assert run(MIXED).scripts == dict(expected)
    assert list(run(MIXED).scripts.values()) == sorted(expected.values(), reverse=True)


def test_every_letter_of_a_script_has_its_name() -> None:
    """Over all of Unicode's letters that carry the name of one of our scripts."""
    wrong = []
    for code in range(0x10000):
        letter = chr(code)
        if unicodedata.category(letter) in ("Lu", "Ll", "Lo"):
            first = unicodedata.name(letter, "-").split()[0].capitalize()
            kind = scripts.NAMES[int(scripts.kinds(np.array([code]))[0])]
            if first in scripts.NAMES and first != kind:
                wrong.append(f"{code:04X} {unicodedata.name(letter)}: {kind}")
    assert len(wrong) < 40, wrong  # phonetic signs of Greek and Cyrillic inside Latin blocks
    assert all("Latin" in line for line in wrong), wrong


def vocabulary() -> Tokenizer:
    pieces = [*WORDS[::2], "the", "nai", "##ve", ",", ".", "!", "京", *(str(digit) for digit in range(10))]
    return Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces])


def test_unknown_tokens_as_counted_by_encode() -> None:
    tokenizer = vocabulary()
    texts = [document(seed) for seed in range(8)] + [MIXED, "The naïve (unheard-of) 北京, 北京! x[UNK]y"]
    found = run(*texts, tokenizer=tokenizer).unknown
    assert found is not None
    tokens, unknown, words = 0, 0, Counter[str]()
    for line in "\n".join(texts).split("\n"):
        encoded = tokenizer.encode(line, special_tokens=False)
        tokens += len(encoded)
        for row, (start, stop) in zip(encoded.ids, encoded.offsets, strict=True):
            if row == tokenizer.unk_id:
                unknown += 1
                words[line[start:stop]] += 1
    assert (found.total.tokens, found.total.unknown) == (tokens, unknown)
    assert dict(found.words).items() <= words.items()
    assert [count for _, count in found.words] == sorted(words.values(), reverse=True)[: len(found.words)]
    assert sum(count.tokens for count in found.scripts.values()) == tokens
    assert sum(count.unknown for count in found.scripts.values()) == unknown
    assert (found.scripts["Han"].tokens, found.scripts["Han"].unknown) == (9, 6)


def test_lengths_by_a_direct_count() -> None:
    sizes = [5, 17, 19, 20, 44, 130, 131, 977]
    texts = [document(seed, size) for seed, size in enumerate(sizes)]
    found = run(*texts)
    assert found.words == sum(sizes)
    assert found.document_words.mean == pytest.approx(np.mean(sizes))
    assert (found.document_words.shortest, found.document_words.longest) == (5, 977)
    assert found.document_words.percentiles[50] == 20
    assert found.document_words.percentiles[99] == 977
    assert found.document_characters.longest == max(map(len, texts))
    assert found.short_documents == 3 / 8
    edges, counts = found.document_words.edges, found.document_words.counts
    assert counts == [sum(left <= size < right for size in sizes) for left, right in pairwise(edges)]
    sentences = [sentence for text in texts for sentence in Rules().split(text)]
    assert found.sentences == found.sentence_words.count == len(sentences)
    assert found.sentence_words.mean == pytest.approx(np.mean([len(sentence.split()) for sentence in sentences]))


def test_sentences_within_lines() -> None:
    text = "Dr. Smith came. He left at 5 p.m. The end! 天黑了。我们回家。"
    assert run(text).sentences == len(Rules().split(text)) == 5


def test_empty_documents_and_long_lines(tmp_path: Path) -> None:
    rows = ["", "One.", None, " \n ", "Two.", ""]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": row}) for row in rows), encoding="utf-8")
    assert audit(files([str(tmp_path / "a.jsonl")])).empty_documents == 4
    (tmp_path / "b.txt").write_text("One.\n\n \nTwo.\n", encoding="utf-8")
    assert audit(files([str(tmp_path / "b.txt")], format="lines")).empty_documents == 2
    assert audit(files([str(tmp_path / "b.txt")])).empty_documents == 0
    long = "word " * 3000
    found = run(document(1), long).long_lines
    assert (found.lines, found.longest) == (1, len(long.strip()))
    assert found.examples[0][:2] == ("planted", len(long.strip()))


def test_full_tables_count_a_sample_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [document(seed) for seed in range(300)]
    corpus = texts + texts[:150] + texts[:75]
    whole = run(*corpus)
    monkeypatch.setattr(audits, "MOST_DOCUMENTS", 100)
    monkeypatch.setattr(audits, "MOST_LINES", 500)
    monkeypatch.setattr(audits, "MOST_COMPARED", 60)
    found = run(*corpus)
    assert whole.repeated_documents.covered == whole.near_documents.covered == 1
    assert whole.repeated_documents.copies == 225
    repeated = found.repeated_documents
    assert repeated.covered in (1 / 4, 1 / 8)
    keys = Block("\n\n".join(corpus)).line_and_document_hashes()[1]
    held = [key for key in keys.tolist() if key < 2**64 * repeated.covered]
    assert repeated.texts == len(held)
    assert repeated.copies == len(held) - len(set(held))
    assert repeated.share == pytest.approx(whole.repeated_documents.share, abs=0.12)
    assert found.near_documents.covered <= 1 / 4
    assert found.near_documents.documents <= 60
    assert found.repeated_lines.covered < 1
    assert "in a sample of" in summary(found)


def test_near_copies_stay_together_in_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audits, "MOST_COMPARED", 120)
    texts = [" ".join(prose(seed)) for seed in range(200)]
    found = run(*texts, *(edited(seed, 0.02) for seed in range(200))).near_documents
    assert found.covered < 1
    assert found.share > 0.3, "half of all documents could go"


def test_small_tables_of_words_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, tokenizer = [document(seed) for seed in range(40)], vocabulary()
    whole = run(*texts, tokenizer=tokenizer)
    monkeypatch.setattr(census, "MOST_TYPES", 50)
    monkeypatch.setattr(blocks, "CHARACTERS", 2000)
    found = run(*texts, tokenizer=tokenizer)
    assert found == whole


def test_blocks_are_cut_between_documents_and_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "CHARACTERS", 100)
    text = f"{document(1, 30)}\r\n\r\n{document(2, 5)}\n\n" + "x" * 450 + "\n\n" + document(3, 12)
    found = list(blocks.blocks(text))
    assert "".join(block.text for block in found) == text.replace("\r\n", "\n")
    assert max(len(block.text) for block in found) <= 200


def test_hashes_depend_on_content_only() -> None:
    lines = ["One.", "two", "One", "One.", "ab", "ba", "a", "\x00", "\x00\x00", "一二", "二一"]
    block = Block("  ".join(f"{line} \n" for line in lines))
    keys = block.line_hashes().tolist()
    assert len(set(keys)) == len(set(lines))
    assert keys[0] == keys[3]
    assert Block("One.").line_hashes().tolist() == keys[:1]
    words = Block("Élan élan ÉLAN elan").word_hashes().tolist()
    assert words[0] == words[1] == words[2] != words[3]


def test_nothing_to_audit() -> None:
    for text in ("", "\n \n\n\t\n"):
        with pytest.raises(BertkitError, match="the corpus is empty: there is no text in planted"):
            run(text)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "a b " * 250_000,
        "\x00" * 5000,
        "\x00\n\x00\n\n\x01\x02\x03",
        "。" * 3000,
        "x\ufeff",
        "<" * 9999,
    ],
)
def test_hostile_text(text: str) -> None:
    found = run(text, document(1), tokenizer=vocabulary())
    assert found.documents >= 2
    assert json.dumps(found.as_dict())
    assert summary(found)
    assert "<h1>" in page(found).html()


def test_lines_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('"A first text."\nnot JSON\n"A second text."\n', encoding="utf-8")
    with pytest.raises(BertkitError, match=r"a.jsonl, line 2: is not JSON"):
        audit(files([str(tmp_path)]))
    found = audit(files([str(tmp_path)]), skip=True)
    assert (found.documents, found.skipped) == (2, 1)
    assert "line 2" in found.skipped_lines[0]
    assert "could not be read" in summary(found)


def ruined() -> Audit:
    notice = "All rights reserved by the owner of this page, and by 東京タワー as well."
    texts = [f"{document(seed)}\n{notice}" for seed in range(40)]
    texts += (
        texts[:10] + [edited(seed, 0.03) for seed in range(100, 110)] + [" ".join(prose(s)) for s in range(100, 110)]
    )
    texts += ["CafÃ© \ufffd\x00\u00ad\ue000 <b>&nbsp;</b>\n" * 20, "word " * 4000, *["Too short."] * 40, MIXED]
    return run(*texts, tokenizer=vocabulary())


def test_the_summary_is_one_screen_with_the_worst_first() -> None:
    found = ruined()
    lines = summary(found).split("\n")
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= WIDTH
    assert not any(ord(letter) < 32 for line in lines for letter in line)
    ranks = [line.split()[0] for line in lines[lines.index("") + 1 :] if line[:1].strip()]
    order = ["Problem", "Look", "Note", "Good"]
    assert ranks == sorted(ranks, key=order.index)
    assert ranks[0] == "Problem"
    told = {finding.said for finding in findings(found)}
    assert any("are exact copies of others" in said for said in told)
    assert any("nearly copies of others" in said for said in told)
    assert any("[UNK]" in said for said in told)


def test_a_clean_corpus_is_praised() -> None:
    tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "."])
    found = run(*(document(seed) for seed in range(60)), tokenizer=tokenizer)
    assert {finding.rank for finding in findings(found)} == {"good"}
    assert "no document occurs twice" in summary(found)


def test_the_page_shows_everything_and_escapes_it() -> None:
    found = ruined()
    html = page(found).html()
    for title in ("At a glance", "Lengths", "Scripts", "Copies", "Lines in many documents", "Unknown words", "Damaged"):
        assert title in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "\x00" not in html
    assert html == page(ruined()).html(), "the same corpus gives the same page"
