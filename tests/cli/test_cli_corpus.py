"""`bertkit corpus`: what is built, shown and found, what a program gets, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from rich.cells import cell_len

from bertkit.cli import app
from bertkit.corpus.audit import audit
from bertkit.corpus.corpus import Corpus
from bertkit.corpus.examples import Examples
from bertkit.corpus.findings import findings
from bertkit.corpus.inputs import DocSentences, FullSentences, Inputs, OrderPairs, SegmentPairs, SentencePairs
from bertkit.corpus.inspect import rendered
from bertkit.corpus.source import files
from bertkit.text import Tokenizer
from tests.cli.running import Bertkit, Ran

SENTENCES = ("The cat sat on the mat.", "A dog runs fast.", "The red dog played.", "Cat 1 sat playing on dog 23.")
KINDS: dict[str, type[Inputs]] = {
    "full-sentences": FullSentences,
    "doc-sentences": DocSentences,
    "segment-pairs": SegmentPairs,
    "sentence-pairs": SentencePairs,
    "order-pairs": OrderPairs,
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 documents of one to six sentences."""
    draw = np.random.default_rng(0)
    documents = ["\n".join(draw.choice(SENTENCES, draw.integers(1, 7))) for _ in range(30)]
    path = tmp_path_factory.mktemp("raw") / "texts.txt"
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def shards(run: Bertkit, texts: Path, tiny: Path) -> Path:
    """The same as a corpus."""
    path = texts.with_name("shards")
    if not path.is_dir():
        assert run("corpus", "build", texts, "-t", tiny, "-o", path).code == 0
    return path


@pytest.fixture
def copied(shards: Path, tmp_path: Path) -> Path:
    """A corpus to be damaged."""
    return Path(shutil.copytree(shards, tmp_path / "copied"))


def looked(ran: Ran) -> dict[str, Any]:
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, Any] = json.loads(ran.out)
    return found


def restored(example: dict[str, Any]) -> list[str]:
    """The tokens before some were masked."""
    tokens = list(example["tokens"])
    for mark in example["masked"]:
        assert tokens[mark["position"]] == mark["shown"]
        tokens[mark["position"]] = mark["true"]
    return tokens


def test_build_says_what_is_next(run: Bertkit, texts: Path, tiny: Path, tmp_path: Path) -> None:
    ran = run("corpus", "build", texts, "-t", tiny, "-o", tmp_path / "c", "--json")
    found, text = json.loads(ran.out), texts.read_text(encoding="utf-8")
    assert (found["documents"], found["sentences"]) == (30, sum(map(text.count, SENTENCES)))
    assert ran.err == f"bertkit: wrote {tmp_path / 'c'}. Next: bertkit corpus inspect {tmp_path / 'c'}\n"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", ["pieces", "words"])
def test_shown_is_what_training_reads(run: Bertkit, shards: Path, kind: str, mask: str) -> None:
    asked = ("--inputs", kind, "--length", 32, "--mask", mask, "--seed", 5, "--epoch", 2, "--count", 8)
    found = looked(run("corpus", "inspect", shards, *asked, "--json"))
    corpus = Corpus(shards)
    examples = Examples(corpus, KINDS[kind](32), seed=5)
    assert found["count"] == examples.count(2)
    flat = examples.read(2, range(8))
    for row, one in enumerate(found["examples"]):
        ids = flat.ids[flat.starts[row] : flat.starts[row + 1]].tolist()
        assert restored(one) == [corpus.tokenizer.token(each) for each in ids]
        assert one["labels"] == {name: int(values[row]) for name, values in flat.labels.items()}
        assert one["segments"] == flat.segments[flat.starts[row] : flat.starts[row + 1]].tolist()
        free = sum(token not in ("[CLS]", "[SEP]") for token in restored(one))
        assert 1 <= len(one["masked"]) <= max(1, round(0.15 * free))
        if mask == "pieces":
            assert len(one["masked"]) == max(1, round(0.15 * free))
        else:
            word = np.cumsum(one["words"])
            places = [mark["position"] for mark in one["masked"]]
            assert set(np.flatnonzero(np.isin(word, word[places])).tolist()) == set(places)


def test_facts(run: Bertkit, shards: Path) -> None:
    index = json.loads((shards / "corpus.json").read_text(encoding="utf-8"))
    found = looked(run("corpus", "inspect", shards, "--json"))
    for name in ("documents", "sentences", "words", "tokens", "vocabulary", "tokenizer"):
        assert found[name] == index[name]
    assert found["tokens_per_document"] == round(index["tokens"] / 30, 1)
    lines = run("corpus", "inspect", shards).out.splitlines()
    assert lines[0] == "documents            30"
    assert lines[4] == f"tokens per document  {index['tokens'] / 30:,.1f} on average"
    assert lines[6] == f"tokenizer            {index['vocabulary']} tokens, fingerprint {index['tokenizer'][:12]}"


def test_drawn(run: Bertkit, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = tmp_path / "a.txt"
    text.write_text("The cat sat.\n\nA dog played.\n", encoding="utf-8")
    assert run("corpus", "build", text, "-t", tiny, "-o", tmp_path / "c").code == 0
    heads, bodies = set(), set()
    for epoch in range(8):
        ran = run("corpus", "inspect", tmp_path / "c", "--mask", "words", "--epoch", epoch)
        assert (ran.code, ran.err) == (0, "")
        legend, head, *body = ran.out.split("\n\n", 1)[1].splitlines()[2:]
        assert legend.endswith("+ joins the tokens of a word.")
        assert head == ""
        heads.add(body[0])
        bodies.add(body[1].replace("[=", "[").replace("[MASK→", "["))
    assert heads == {"example 0 · 12 tokens, 1 masked"}
    words = ["the", "cat", "sat", ".", "a", "dog", "play+##ed", "."]
    whole = "[CLS] {} {} {} {} [SEP] {} {} {} {} [SEP]"
    single = {
        whole.format(*(f"[{word}]" if place == at else word for place, word in enumerate(words)))
        for at in range(8)
        if at != 6
    }
    kept = {body for body in bodies if "→" not in body}
    assert kept <= single, "only one token of nine is masked, so never the word of two"
    assert len(kept) > 2


def test_pairs_are_named(run: Bertkit, shards: Path) -> None:
    drawn = run("corpus", "inspect", shards, "--inputs", "segment-pairs", "--length", 32, "--count", 20).out
    assert "· B follows A\nA: [CLS] " in drawn
    assert "· B is from another document\nA: [CLS] " in drawn
    assert drawn.count("\nB: ") == 20
    drawn = run("corpus", "inspect", shards, "--inputs", "order-pairs", "--length", 32, "--count", 20).out
    assert "· A comes before B in the text\n" in drawn
    assert "· swapped: B comes before A in the text\n" in drawn


def test_numbers_of_examples(run: Bertkit, shards: Path) -> None:
    several = looked(run("corpus", "inspect", shards, "--length", 32, "--json"))
    assert [one["index"] for one in several["examples"]] == [0, 1, 2]
    alone = looked(run("corpus", "inspect", shards, "--length", 32, "--first", 2, "--count", 1, "--json"))
    assert alone["examples"] == several["examples"][2:]
    last = several["count"] - 1
    end = looked(run("corpus", "inspect", shards, "--length", 32, "--first", last, "--json"))
    assert [one["index"] for one in end["examples"]] == [last]
    ran = run("corpus", "inspect", shards, "--length", 32, "--first", last + 1)
    assert (ran.code, ran.out) == (1, "")
    assert f"epoch 0 has the examples 0 to {last} with --inputs full-sentences --length 32" in ran.err
    for option in ("--seed", "--epoch"):
        other = looked(run("corpus", "inspect", shards, "--length", 32, option, 1, "--json"))
        assert other["examples"] != several["examples"]


def test_chinese_words(run: Bertkit, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = tmp_path / "zh.txt"
    text.write_text("猫狗 猫 狗猫狗\n" * 12, encoding="utf-8")
    assert run("corpus", "build", text, "-t", tiny, "-o", tmp_path / "zh", "--words", "spaces").code == 0
    drawn = run("corpus", "inspect", tmp_path / "zh", "--mask", "words").out
    assert "猫+狗 猫 狗+猫+狗" in drawn
    assert max(map(cell_len, drawn.splitlines())) <= 40
    assert max(map(cell_len, run("corpus", "inspect", tmp_path / "zh").out.splitlines())) > 30


def test_runs_and_phrases(run: Bertkit, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text, pets, places = (tmp_path / name for name in ("a.txt", "pets", "places"))
    text.write_text("The red cat sat on a mat.\n" * 40, encoding="utf-8")
    pets.write_text("red cat\n", encoding="utf-8")
    places.write_text("on a mat\n", encoding="utf-8")
    build = ("corpus", "build", text, "-t", tiny, "--lexicon", f"pets={pets}")
    assert run(*build, "-o", tmp_path / "one").code == 0
    assert run(*build, "-o", tmp_path / "two", "--lexicon", f"places={places}").code == 0

    assert "spans of words masked." in run("corpus", "inspect", tmp_path / "one", "--mask", "spans").out
    assert "runs of words masked." in run("corpus", "inspect", tmp_path / "one", "--mask", "ngrams").out
    asked = ("--mask", "phrases", "--length", 32, "--count", 10, "--json")
    whole = run("corpus", "inspect", tmp_path / "one", *asked)
    assert whole == run("corpus", "inspect", tmp_path / "two", *asked, "--lexicon", "pets")
    found = 0
    for one in looked(whole)["examples"]:
        tokens, places_ = restored(one), {mark["position"] for mark in one["masked"]}
        for place in range(len(tokens) - 1):
            if tokens[place : place + 2] == ["red", "cat"]:
                assert (place in places_) == (place + 1 in places_)
                found += place in places_
    assert found > 0
    ran = run("corpus", "inspect", tmp_path / "two", "--mask", "phrases")
    assert "--mask phrases: give one of --lexicon pets, --lexicon places" in ran.err
    ran = run("corpus", "inspect", tmp_path / "two", "--mask", "phrases", "--lexicon", "pts")
    assert "has no lexicon 'pts', it has: pets, places." in ran.err


def example(tokens: list[str], words: list[bool], masked: dict[int, str]) -> dict[str, Any]:
    marks = [{"position": place, "shown": tokens[place], "true": true} for place, true in masked.items()]
    return {
        "index": 0,
        "tokens": tokens,
        "segments": [0] * len(tokens),
        "words": words,
        "masked": marks,
        "labels": {},
    }


def test_a_long_word_breaks_at_its_joints() -> None:
    one = example(["cat", "aaaa", "##bbbb", "##cccc", "dog"], [True, True, False, False, True], {})
    assert rendered(one, 12, "+").splitlines()[1:] == ["cat aaaa+", "##bbbb+", "##cccc dog"]
    assert rendered(one, 20, "+").splitlines()[1:] == ["cat", "aaaa+##bbbb+##cccc", "dog"]
    assert rendered(one, 12).splitlines()[1:] == ["cat aaaa", "##bbbb", "##cccc dog"]


def test_paint_does_not_count_as_width() -> None:
    one = example(["cat", "[MASK]", "##s", "dog"], [True, True, False, True], {1: "mat"})
    assert rendered(one, 18, "+", lambda text: f"<{text}>") == (
        "example 0 · 4 tokens, 1 masked\ncat <[MASK→mat]>+##s\ndog"
    )


def test_tokens_cannot_move_the_cursor() -> None:
    one = example(["a\x1b[2J", "b\u202e", "\x9b"], [True] * 3, {2: "\r"})
    assert rendered(one).splitlines()[1] == "a·[2J b· [·→·]"


@pytest.mark.parametrize(("setting", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colour_only_on_a_terminal(
    run: Bertkit, shards: Path, monkeypatch: pytest.MonkeyPatch, setting: dict[str, str], coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    plain = run("corpus", "inspect", shards).out
    assert "\x1b" not in plain
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    drawn = run("corpus", "inspect", shards).out
    assert ("\x1b[33m\x1b[1m[MASK→" in drawn) == coloured
    assert re.sub("\x1b\\[[0-9]+m", "", drawn) == plain


def test_plain_terminal(run: Bertkit, shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.cli.drawing.is_plain", lambda: True)
    drawn = run("corpus", "inspect", shards).out
    assert drawn.isascii()
    assert "[MASK->" in drawn


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "there is no directory nowhere. To make a corpus: bertkit corpus build --help"),
        (["raw.txt"], "raw.txt is a file, not a corpus. To make one of raw text: bertkit corpus build raw.txt"),
        (["a folder"], "To look at raw text: bertkit corpus audit 'a folder'"),
        (["growing"], "is not finished (growing.partial is). Repeat the command that builds it"),
        (["growing.partial"], "growing.partial is a corpus that is not finished: repeat the command"),
        (["one/shard-00000.safetensors"], "is one shard; give its corpus: bertkit corpus inspect one"),
        (["one", "--inputs", "segment-pairs"], "holds only one: give --inputs order-pairs or full-sentences"),
        (["one", "--inputs", "sentence-pairs"], "--inputs sentence-pairs takes text from another document"),
        (["one", "--first", "1"], "--first 1: epoch 0 has the examples 0 to 0"),
        (["one", "--length", "100000"], "length is 100000"),
        (["one", "--mask", "phrases"], "has no lexicon 'phrases', it has: none. Build it with the phrases"),
    ],
)
def test_inspect_refuses(
    run: Bertkit, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("raw.txt").write_text("The cat sat. A dog runs.\n", encoding="utf-8")
    Path("a folder").mkdir()
    Path("growing.partial").mkdir()
    Path("growing.partial", "settings.json").write_text("{}", encoding="utf-8")
    if arguments[0].startswith("one"):
        assert run("corpus", "build", "raw.txt", "-t", tiny, "-o", "one").code == 0
    ran = run("corpus", "inspect", *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("bertkit: error: ")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_damage_is_told(run: Bertkit, copied: Path) -> None:
    shard = copied / "shard-00000.safetensors"
    whole = shard.read_bytes()
    flipped = bytearray(whole)
    ids = Corpus(copied).shard(0).ids
    place = whole.index(ids.tobytes())
    flipped[place : place + 2] = np.array([ids[0] ^ 1], ids.dtype).tobytes()
    shard.write_bytes(flipped)
    assert run("corpus", "inspect", copied).code == 0, "another token, as likely as any"
    ran = run("corpus", "inspect", copied, "--verify")
    assert (ran.code, ran.out) == (1, "")
    assert "'shard-00000.safetensors' has SHA-256" in ran.err
    shard.write_bytes(whole[: len(whole) // 2])
    assert "shard-00000.safetensors is no shard" in run("corpus", "inspect", copied).err
    shard.unlink()
    assert "1 of 1 shards are missing: shard-00000.safetensors" in run("corpus", "inspect", copied).err
    (copied / "corpus.json").write_text('{"version": 1, "shards": 7}', encoding="utf-8")
    ran = run("corpus", "inspect", copied)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (1, "", 1)
    assert "it names no tokenizer or no shards" in ran.err


def test_another_tokenizer_is_told(run: Bertkit, copied: Path) -> None:
    shutil.rmtree(copied / "tokenizer")
    (copied / "tokenizer").mkdir()
    other = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat"])
    other.save_files(copied / "tokenizer")
    ran = run("corpus", "inspect", copied)
    assert (ran.code, ran.out) == (1, "")
    assert "copied/tokenizer is not the tokenizer that made these shards. Copy the corpus again" in ran.err


# The audit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def ruined(tmp_path: Path) -> Path:
    """Texts with all that an audit looks for."""
    draw = np.random.default_rng(0)
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "st", "lo", "ke")]
    documents = [" ".join(draw.choice(words, 60)) + ".\nAll rights reserved by us." for _ in range(40)]
    documents += [*documents[:10], documents[12].replace("a", "o", 3), "word " * 4000, *["Too short."] * 40]
    documents += ["CafÃ© \ufffd\x07\u00ad\ue000 <b>&nbsp;</b> 猫猫猫 Москва\n" * 20]
    path = tmp_path / "ruined.txt"
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_audit_is_one_screen(
    run: Bertkit, tiny: Path, ruined: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = run("corpus", "audit", ruined, "--tokenizer", tiny)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert len(lines) <= 22
    assert max(map(cell_len, lines)) <= min(columns, 100)
    labels = [line.split()[0] for line in lines[lines.index("") + 1 :] if line[:1].strip()]
    assert labels == sorted(labels, key=["Problem", "Look", "Note", "Good"].index)
    assert labels[0] == "Problem"
    assert "[UNK]: the tokenizer cannot spell them." in " ".join(ran.out.split())
    told = findings(audit(files([str(ruined)]), Tokenizer.load(tiny)))
    bad = [finding for finding in told if finding.rank != "good"]
    left = re.search(r"(\d+) smaller ones are left out here", ran.out)
    assert len([label for label in labels if label != "Good"]) + int(left[1] if left else 0) == len(bad)


def test_audit_for_a_program(run: Bertkit, tiny: Path, ruined: Path) -> None:
    found = looked(run("corpus", "audit", ruined, "--json"))
    assert found == json.loads(json.dumps(audit(files([str(ruined)])).as_dict()))
    assert found["repeated_documents"]["copies"] == 10 + 39
    assert found["boilerplate"]["lines"] == 1
    assert found["unknown"] is None
    told = looked(run("corpus", "audit", ruined, "--json", "--tokenizer", tiny))
    assert told["unknown"]["total"]["unknown"] > 1000


def test_audit_page(run: Bertkit, texts: Path, tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    ran = run("corpus", "audit", texts, "--html", page)
    assert ran.code == 0
    assert ran.err == f"bertkit: wrote {page}. Next: open it in a browser\n"
    before = page.read_text(encoding="utf-8")
    assert "<title>Audit of " in before
    ran = run("corpus", "audit", texts, "--html", page)
    assert (ran.code, ran.out) == (1, "")
    assert "exists. Give another name, or add --overwrite" in ran.err
    assert run("corpus", "audit", texts, "--html", page, "--overwrite").code == 0
    assert page.read_text(encoding="utf-8") == before


def test_audit_skips_and_lists(run: Bertkit, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"body": "The cat sat."}\n' + "no JSON\n" * 25, encoding="utf-8")
    ran = run("corpus", "audit", file, "--field", "body")
    assert (ran.code, ran.out) == (1, "")
    assert "a.jsonl, line 2: is not JSON" in ran.err
    ran = run("corpus", "audit", file, "--field", "body", "--on-error", "skip", "--json")
    assert json.loads(ran.out)["skipped"] == 25
    said = ran.err.splitlines()
    assert len(said) == 21
    assert said[0].startswith(f"bertkit: left out: {file}, line 2: is not JSON")
    assert said[-1] == "bertkit: left out: 5 more"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give files, folders or patterns, or --source python-docs. Example: bertkit corpus audit"),
        (["raw.txt", "--source", "python-docs"], "give raw.txt or --source python-docs, not both"),
        (["--source", "python-docs", "--field", "body"], "is plain text: leave out --format and --field"),
        (["--source", "python-docs", "--format", "wiki"], "is plain text: leave out --format and --field"),
        (["raw.txt", "--field", "body"], "--field body is for jsonl and parquet, and raw.txt is txt: leave it out"),
        (["raw.txt", "--overwrite"], "--overwrite is for the page: add --html audit.html"),
        (["raw.txt", "--html", "page.txt"], "must end in .html, which browsers open: --html page.html"),
        (["shards"], "shards holds shards of tokens, not raw text"),
        (["shards/shard-00000.safetensors"], "To look at shards: bertkit corpus inspect shards"),
        (["empty.txt"], "the corpus is empty"),
        (["nowhere.txt"], "there is no such file"),
    ],
)
def test_audit_refuses(
    run: Bertkit, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("raw.txt").write_text("The cat sat.\n", encoding="utf-8")
    Path("empty.txt").touch()
    Path("shards").symlink_to(shards)
    ran = run("corpus", "audit", *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_building_of_shards_is_refused_too(run: Bertkit, shards: Path, tiny: Path, tmp_path: Path) -> None:
    for command in (("corpus", "build", shards, "-t", tiny), ("vocab", "train", shards)):
        ran = run(*command, "-o", tmp_path / "out")
        assert (ran.code, ran.out) == (1, "")
        assert "holds shards of tokens, not raw text" in ran.err


def test_every_option_is_explained() -> None:
    groups = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for group in ("corpus", "vocab"):
        for name, command in groups[group].commands.items():
            assert command.epilog.startswith(f"Example: bertkit {group} {name} "), name
            for parameter in command.params:
                assert parameter.name == "help" or parameter.help, (name, parameter.name)
