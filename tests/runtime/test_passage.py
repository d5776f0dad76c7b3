"""Labels and answers of texts of any length point into the text; transformers and Google's rule judge them."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

import bertkit
from bertkit.batch import collate
from bertkit.errors import BertkitError
from bertkit.parts.heads import Span, Tag
from bertkit.runtime.stream import example
from bertkit.text import Tokenizer
from bertkit.text.truncate import Chunk, Cut, KeepHead

LABELS = ("O", "B-PER", "I-PER", "B-LOC")
TEXT = "The cat sat on the mat; a house, a dog and 猫狗 were on it. Unhouses!"


def harsh(model: bertkit.Model) -> bertkit.Model:
    """Weights far apart, so that labels differ and no two scores are close."""
    torch.manual_seed(1)
    for parameter in model.network.heads.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    torch.nn.init.normal_(model.encoder.embed.tokens.weight, std=1.0)
    torch.nn.init.normal_(model.encoder.embed.positions.weight, std=0.3)
    return model


@pytest.fixture
def tagger(tokenizer: Tokenizer) -> bertkit.Model:
    return harsh(bertkit.create("bert-tiny", tokenizer, {"tag": Tag(LABELS)}, seed=0))


@pytest.fixture
def answerer(tokenizer: Tokenizer) -> bertkit.Model:
    return harsh(bertkit.create("bert-tiny", tokenizer, {"span": Span()}, seed=0))


def test_labels_are_those_of_transformers(tagger: bertkit.Model, tmp_path: Path) -> None:
    tagger.save(tmp_path / "tagger")
    judge = pipeline(
        "token-classification",
        model=AutoModelForTokenClassification.from_pretrained(tmp_path / "tagger"),
        tokenizer=AutoTokenizer.from_pretrained(tmp_path / "tagger"),
        aggregation_strategy="first",
        ignore_labels=[],
    )
    words = tagger.tag(TEXT)
    assert [TEXT[word.start : word.end] for word in words] == [word.word for word in words]
    # the pipeline joins neighbours of one kind; taken apart again, every character has its label
    theirs = ["" for _ in TEXT]
    for group in judge(TEXT):
        theirs[group["start"] : group["end"]] = [group["entity_group"]] * (group["end"] - group["start"])
    assert len({word.label for word in words}) > 1
    for word in words:
        assert set(theirs[word.start : word.end]) == {word.label.rpartition("-")[2]}
    first = judge.model(**judge.tokenizer(TEXT, return_tensors="pt")).logits[0].softmax(-1).detach().numpy()
    firsts = [at for at, _ in _first_tokens(tagger.tokenizer, TEXT)]
    assert np.allclose([word.score for word in words], [first[1 + at].max() for at in firsts], atol=1e-5)


def _first_tokens(tokenizer: Tokenizer, text: str) -> list[tuple[int, int]]:
    found = tokenizer.encode(text, special_tokens=False)
    return [(at, found.offsets[at][0]) for at in range(len(found)) if at == 0 or found.words[at] != found.words[at - 1]]


def logits(model: bertkit.Model, head: str, ids: list[int], segments: list[int] | None = None) -> np.ndarray:
    batch = collate([example(ids, segments)])
    with torch.no_grad():
        made: np.ndarray = model.network.logits(head, model.network.eval()(batch), batch.layout).numpy()
    return made


def test_long_texts_are_tagged_chunk_by_chunk(tagger: bertkit.Model) -> None:
    text = " ".join([TEXT] * 12)
    tagger.limit = 40
    ids = tagger.tokenizer.encode(text, special_tokens=False).ids
    room, stride = 38, 13
    starts = [start for start in range(0, len(ids), stride) if start == 0 or start - stride + room < len(ids)]
    best: dict[int, tuple[float, np.ndarray]] = {}
    for start in starts:
        chunk = ids[start : start + room]
        rows = logits(tagger, "tag", [tagger.tokenizer.cls_id, *chunk, tagger.tokenizer.sep_id])[1:-1]
        for place, row in enumerate(rows):
            score = min(place, len(chunk) - 1 - place) + 0.01 * len(chunk)
            if start + place not in best or score > best[start + place][0]:
                best[start + place] = score, row
    cut = Cut()
    words = tagger.tag([text, "cat"], cut=cut)[0]
    tagger.limit = 512
    wanted = [(begin, LABELS[int(best[at][1].argmax())]) for at, begin in _first_tokens(tagger.tokenizer, text)]
    assert [(word.start, word.label) for word in words] == wanted
    assert all(text[word.start : word.end] == word.word for word in words)
    assert (cut.texts, cut.tokens, cut.chunked, cut.chunks) == (0, 0, 1, len(starts))


def test_words_that_are_cut_off_are_counted(tagger: bertkit.Model, caplog: pytest.LogCaptureFixture) -> None:
    text = "cat " * 600
    with caplog.at_level(logging.WARNING):
        words = tagger.tag(text, truncate=KeepHead())
    assert len(words) == 510
    assert caplog.messages == ["1 of 1 text cut to 512 tokens (90 tokens lost)"]
    assert tagger.tag("") == []
    assert tagger.tag([]) == []
    with pytest.raises(BertkitError, match=r"texts\[1\]: it has 600 tokens, and there is room for 510"):
        tagger.tag(["cat", text], truncate="error")


@pytest.mark.parametrize(("limit", "stride"), [(512, None), (30, None), (30, 5), (64, 20)])
def test_answers_are_googles(answerer: bertkit.Model, limit: int, stride: int | None) -> None:
    question, passage = "a dog on the mat", " ".join([TEXT] * 6)
    tokenizer = answerer.tokenizer
    asked = tokenizer.encode(question, special_tokens=False).ids
    found = tokenizer.encode(passage, special_tokens=False)
    room = limit - len(asked) - 3
    step = stride or max(limit // 3, 1)
    spans = [(start, min(start + room, len(found))) for start in range(0, len(found), step)]
    spans = spans[: 1 + next(index for index, (_, stop) in enumerate(spans) if stop == len(found))]

    def context(span: tuple[int, int], token: int) -> float:
        start, stop = span
        inside = start <= token < stop
        return min(token - start, stop - 1 - token) + 0.01 * (stop - start) if inside else -1.0

    wanted = []
    for span in spans:
        ids = [tokenizer.cls_id, *asked, tokenizer.sep_id, *found.ids[slice(*span)], tokenizer.sep_id]
        segments = [0] * (len(asked) + 2) + [1] * (span[1] - span[0] + 1)
        rows = logits(answerer, "span", ids, segments)[len(asked) + 2 : -1]
        for first in range(*span):
            if max(spans, key=lambda other, first=first: context(other, first)) != span:
                continue
            for last in range(first, min(first + 30, span[1])):
                score = float(rows[first - span[0], 0] + rows[last - span[0], 1])
                wanted.append((score, found.offsets[first][0], found.offsets[last][1]))
    wanted.sort(reverse=True)
    answerer.limit = limit
    answers = answerer.answer(question, passage, top=5, truncate=None if stride is None else Chunk(stride))
    answerer.limit = 512
    assert [(answer.start, answer.end) for answer in answers] == [place[1:] for place in wanted[:5]]
    assert np.allclose([answer.score for answer in answers], [place[0] for place in wanted[:5]], rtol=0, atol=1e-5)
    assert all(passage[answer.start : answer.end] == answer.text for answer in answers)


def test_answers_at_the_edges(answerer: bertkit.Model) -> None:
    assert answerer.answer("a dog", "") == []
    (one,) = answerer.answer("a dog", "cat")
    assert (one.text, one.start, one.end) == ("cat", 0, 3)
    assert all(len(found.text.split()) <= 2 for found in answerer.answer("dog", "cat dog mat house on", 9, longest=2))
    (long,) = answerer.answer("dog " * 2000, "cat house")  # the question keeps its beginning
    assert long.text in ("cat", "house", "cat house")


def test_heads_that_are_not_there(tagger: bertkit.Model, answerer: bertkit.Model) -> None:
    with pytest.raises(BertkitError, match=r"no 'span' head. Its heads: tag"):
        tagger.answer("a", "b")
    with pytest.raises(BertkitError, match=r"no 'tag' head. Its heads: span"):
        answerer.tag("a")


def test_accents_stay_with_their_word(tagger: bertkit.Model, answerer: bertkit.Model) -> None:
    text = "cat\u0301\u0301 dog, mat\u0301"
    assert [word.word for word in tagger.tag(text)] == ["cat\u0301\u0301", "dog", ",", "mat\u0301"]
    assert {answer.end for answer in answerer.answer("dog", text, top=20) if answer.start == 11} == {15}


def test_what_cannot_be_asked(tagger: bertkit.Model, answerer: bertkit.Model) -> None:
    for top, longest in ((0, 30), (-1, 30), (1, 0)):
        with pytest.raises(BertkitError, match=f"top is {top} and longest is {longest}: ask for at least 1 answer"):
            answerer.answer("a", "b", top, longest)
    with pytest.raises(BertkitError, match=r"texts\[2\] is None \(NoneType\), not a str"):
        tagger.tag(["a", "b", None])  # type: ignore[list-item]
    with pytest.raises(BertkitError, match="texts is NoneType: give a list of str"):
        tagger.tag(None)  # type: ignore[call-overload]


def test_counts_of_several_calls(tagger: bertkit.Model, caplog: pytest.LogCaptureFixture) -> None:
    cut = Cut()
    tagger.tag(["cat " * 600] * 2, truncate="head", cut=cut)
    caplog.clear()
    tagger.tag(["cat"], cut=cut)
    assert caplog.messages == [], "nothing was cut this time"
    assert (cut.texts, cut.tokens, cut.latest) == (2, 180, {})
