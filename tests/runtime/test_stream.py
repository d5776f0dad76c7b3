"""The streaming path: right answers in the right order, a window at a time."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest

from bertkit.batch import Batch, Example, collate
from bertkit.errors import BertkitError
from bertkit.runtime import stream as streaming
from bertkit.runtime.lanes import Lanes
from bertkit.runtime.npy import NpyWriter
from bertkit.runtime.stream import Rows, stream
from bertkit.text import Tokenizer, window
from bertkit.text.truncate import Chunk, Cut, KeepEnds, KeepHead, Policy, Refuse


def counts(batch: Batch) -> np.ndarray:
    """An engine that answers with the number of tokens and the second id of each text."""
    padded = batch.restore(batch.layout.to_padded(batch.tokens["ids"][:, None])[..., 0])
    return np.stack([(padded > 0).sum(1).numpy(), padded[:, 1].numpy()], 1)


def streamed(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    engine: Callable[[Batch], Rows],
    limit: int = 512,
    policy: Policy = KeepHead(),  # noqa: B008 - frozen
    cut: Cut | None = None,
    join: streaming.Join = lambda rows, tokens: np.average(rows, axis=0, weights=tokens),
    progress: Callable[[int], None] | None = None,
) -> Iterator[Rows]:
    def run(groups: Iterable[list[Example]], count: int) -> Iterator[Rows]:
        return map(engine, map(collate, groups))

    return stream(texts, tokenizer, run, Lanes(), join, limit, policy, cut or Cut(), progress)


def test_results_come_in_the_order_of_the_texts(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "MOST", 7)
    random = np.random.default_rng(0)
    words = ["cat", "dog", "mat", "house"]
    texts = [" ".join(random.choice(words, size=random.integers(1, 9))) for _ in range(50)]
    done: list[int] = []
    parts = list(streamed(iter(texts), tokenizer, counts, progress=done.append))
    assert [len(part) for part in parts] == [7] * 7 + [1]
    rows = np.concatenate(parts)
    assert rows[:, 0].tolist() == [len(text.split()) + 2 for text in texts]
    assert rows[:, 1].tolist() == [tokenizer.id(text.split()[0]) for text in texts]
    assert sum(done) == 50


def test_no_more_than_a_window_is_read_ahead(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "MOST", 5)
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "cat"

    rows = streamed(endless(), tokenizer, counts)
    assert taken == 0
    for count in range(1, 4):
        next(rows)
        assert taken == 5 * count


def test_a_list_is_sorted_as_a_whole(tokenizer: Tokenizer) -> None:
    """Texts that are all there wait for nothing: the first results of an iterator come sooner."""
    texts = ["cat"] * 600
    assert [len(rows) for rows in streamed(texts, tokenizer, counts)] == [600]
    assert [len(rows) for rows in streamed(iter(texts), tokenizer, counts)] == [256, 344]


def test_windows_are_bounded_in_characters_too() -> None:
    assert [len(texts) for texts in window.windows(["x" * 1_500_000] * 5, len)] == [3, 2]


def test_truncation_keeps_the_beginning_and_is_counted(tokenizer: Tokenizer) -> None:
    seen = []

    def engine(batch: Batch) -> np.ndarray:
        seen.extend(batch.restore(batch.layout.to_padded(batch.tokens["ids"][:, None])[..., 0]).tolist())
        return np.zeros((batch.layout.rows, 1))

    cut = Cut()
    list(streamed(["cat dog mat", "cat dog mat sat", "cat dog mat sat on a"], tokenizer, engine, 5, cut=cut))
    start = [tokenizer.cls_id, *map(tokenizer.id, ["cat", "dog", "mat"]), tokenizer.sep_id]
    assert seen == [start] * 3
    assert (cut.texts, cut.tokens) == (2, 1 + 3)
    assert cut.latest == {1: (1, 1), 2: (3, 1)}
    with pytest.raises(BertkitError, match=r"texts\[1\] \(line 2\): it has 4 tokens, and there is room for 3: shorten"):
        list(streamed(["cat", "cat dog mat sat"], tokenizer, engine, 5, Refuse()))


def test_every_policy_reaches_the_engine(tokenizer: Tokenizer) -> None:
    seen: list[list[str]] = []

    def engine(batch: Batch) -> np.ndarray:
        padded = batch.restore(batch.layout.to_padded(batch.tokens["ids"][:, None])[..., 0]).tolist()
        seen.extend([tokenizer.token(id) for id in row if id] for row in padded)
        return np.ones((batch.layout.rows, 1))

    words = ["cat", "dog", "mat", "sat", "on"]
    list(streamed([" ".join(words)], tokenizer, engine, 6, KeepEnds(head=0.5)))
    assert seen.pop() == ["[CLS]", "cat", "dog", "sat", "on", "[SEP]"]
    done: list[int] = []
    list(streamed([" ".join(words), "cat"], tokenizer, engine, 5, Chunk(2), progress=done.append))
    chunks = [["[CLS]", *part, "[SEP]"] for part in (words[:3], words[2:5], ["cat"])]
    assert sorted(seen) == sorted(chunks)
    assert sum(done) == 2, "a text counts once, however many chunks it has"


def test_rows_of_chunks_are_joined_text_by_text(tokenizer: Tokenizer) -> None:
    def engine(batch: Batch) -> np.ndarray:
        padded = batch.restore(batch.layout.to_padded(batch.tokens["ids"][:, None])[..., 0]).numpy().astype(np.float32)
        return padded.sum(1, keepdims=True) / (padded > 0).sum(1, keepdims=True)

    texts = ["cat", "cat dog mat sat on a cat", "dog " * 30, "mat"]
    cut = Cut()
    rows = np.concatenate(list(streamed(texts, tokenizer, engine, 5, Chunk(), cut)))
    for text, row in zip(texts, rows, strict=True):
        ids = tokenizer.encode(text, special_tokens=False).ids
        around = [tokenizer.cls_id, tokenizer.sep_id]
        read = [id for start in range(0, len(ids), 3) for id in (ids[start : start + 3] + around)]
        assert row == pytest.approx([np.mean(read)], rel=1e-6)
    assert (cut.texts, cut.tokens, cut.chunked, cut.chunks) == (0, 0, 2, 3 + 10)
    assert cut.latest == {1: (0, 3), 2: (0, 10)}


def test_bad_texts_are_named_by_their_place(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "MOST", 2)
    with pytest.raises(BertkitError, match=r"text 3 is None \(NoneType\), not a str"):
        list(streamed(["a", "b", "c", None], tokenizer, counts))  # type: ignore[list-item]
    with pytest.raises(BertkitError, match=r"texts from number 2 on: texts\[1\] has a lone surrogate"):
        list(streamed(["a", "b", "c", "\ud800"], tokenizer, counts))


def test_npy_header_has_room_for_any_count() -> None:
    file = io.BytesIO()
    writer = NpyWriter(file, 3)
    for _ in range(11):
        writer.write(np.full((100, 3), 7.0))
    assert writer.finish() == 1100
    file.seek(0)
    assert np.array_equal(np.load(file), np.full((1100, 3), 7.0, np.float32))
