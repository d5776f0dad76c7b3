"""What a model reads of items is what transformers' tokenizer gives for them, on real texts."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import transformers

from bertkit.tasks.answering import QuestionAnswering
from bertkit.tasks.choosing import MultipleChoice
from bertkit.tasks.classification import Classification
from bertkit.tasks.item import Item, Options, Question, Texts, Words
from bertkit.tasks.known import KNOWN
from bertkit.tasks.layout import QuestionsLayout, WordsLayout
from bertkit.tasks.tagging import Tagging
from bertkit.tasks.task import Lesson, Reader, Task
from bertkit.text import Tokenizer
from bertkit.text.truncate import Chunk

YES = Classification(("0", "1"))


class Both:
    """One vocabulary, read by us and by transformers."""

    def __init__(self, vocabulary: Path, home: Path, lower: bool) -> None:
        (home / "vocab.txt").write_bytes(vocabulary.read_bytes())
        config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lower}
        (home / "tokenizer_config.json").write_text(json.dumps(config))
        self.ours = Tokenizer.load(home)
        self.theirs: Any = transformers.AutoTokenizer.from_pretrained(home)

    def lessons(self, task: Task, items: list[Item], limit: int) -> list[Lesson]:
        return list(task.lessons(items, Reader(self.ours, limit, task.policy)))


def both(shared: Path, home: Path, name: str, lower: bool) -> Both:
    vocabulary = shared / "data" / "vocabs" / name / "vocab.txt"
    if not vocabulary.is_file():
        pytest.skip(f"needs ../shared/data/vocabs/{name}; not found")
    return Both(vocabulary, home, lower)


@pytest.fixture(scope="module")
def uncased(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return both(shared, tmp_path_factory.mktemp("uncased"), "bert-base-uncased", lower=True)


@pytest.fixture(scope="module")
def cased(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return both(shared, tmp_path_factory.mktemp("cased"), "bert-base-cased", lower=False)


@pytest.fixture(scope="module")
def mrpc(shared: Path) -> list[Texts]:
    return [item for item in found(shared, "mrpc", "dev", 400) if isinstance(item, Texts)]


@pytest.fixture(scope="module")
def questions(shared: Path) -> list[Question]:
    path = shared / "data" / "SQuAD1.1" / "dev-v1.1.json.gz"
    if not path.is_file():
        pytest.skip("needs ../shared/data/SQuAD1.1; not found")
    items = [item for item in QuestionsLayout().items(path) if isinstance(item, Question)]
    return sorted(items, key=lambda item: -len(item.context))[:60] + items[::300]


def found(shared: Path, name: str, split: str, count: int) -> list[Item]:
    path = KNOWN[name].file(shared / "data" / "GLUE", split)
    if path is None:
        pytest.skip(f"needs ../shared/data/GLUE/{KNOWN[name].title}; not found")
    return list(islice(KNOWN[name].layout.items(path), count))


def read(lesson: Lesson) -> tuple[list[int], list[int]]:
    (one,) = lesson
    return one.tokens["ids"].tolist(), one.tokens["segments"].tolist()


@pytest.mark.parametrize(("limit", "cut", "odd"), [(17, 400, 0), (40, 329, 149), (64, 80, 31), (128, 0, 0)])
def test_pairs_are_cut_as_longest_first_does(uncased: Both, mrpc: list[Texts], limit: int, cut: int, odd: int) -> None:
    """As Google's script and transformers' longest_first; where these two differ, by one token, as Google's."""
    ours = [read(lesson) for lesson in uncased.lessons(YES, list(mrpc), limit)]
    counts = [0, 0]
    for found, item in zip(ours, mrpc, strict=True):
        fields = [uncased.theirs(field, add_special_tokens=False)["input_ids"] for field in item.fields]
        counts[0] += sum(map(len, fields)) > limit - 3
        first, second = popped(*fields, limit - 3)
        assert found == (
            [101, *first, 102, *second, 102],
            [0] * (len(first) + 2) + [1] * (len(second) + 1),
        ), item.where
        theirs = uncased.theirs(*item.fields, truncation="longest_first", max_length=limit)
        if found != (theirs["input_ids"], theirs["token_type_ids"]):
            # both are cut, and a token is over: their fast tokenizer gives it to the text that was longer
            counts[1] += 1
            assert len(first) == len(second) + 1
            assert theirs["token_type_ids"].count(0) - 2 == len(first) - 1
            assert len(fields[1]) >= len(fields[0]) > len(first) - 1
    assert counts == [cut, odd]


def popped(first: list[int], second: list[int], room: int) -> tuple[list[int], list[int]]:
    """What `_truncate_seq_pair` of Google's run_classifier.py leaves."""
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return first, second


def test_texts_alone(uncased: Both, mrpc: list[Texts]) -> None:
    alone: list[Item] = [Texts(item.path, item.row, item.fields[:1], item.label) for item in mrpc]
    lessons = uncased.lessons(YES, alone, 24)
    theirs = uncased.theirs([item.fields[0] for item in mrpc], truncation=True, max_length=24)
    assert [read(lesson) for lesson in lessons] == list(zip(theirs["input_ids"], theirs["token_type_ids"], strict=True))
    assert [lesson[0].labels["label"] for lesson in lessons] == [int(item.label or "") for item in mrpc]


def test_options_are_pairs(uncased: Both) -> None:
    item = Options(Path("x"), 1, (("He sat.", "Then he ran."), ("He sat.", "Then he slept in the house.")), right=1)
    (lesson,) = uncased.lessons(MultipleChoice(), [item], 64)
    theirs = uncased.theirs([first for first, _ in item.pairs], [second for _, second in item.pairs])
    assert [one.tokens["ids"].tolist() for one in lesson] == theirs["input_ids"]
    assert [one.tokens["segments"].tolist() for one in lesson] == theirs["token_type_ids"]
    assert [(one.labels["option"], one.labels["right"]) for one in lesson] == [(0, 0), (1, 1)]


def test_windows_of_contexts_are_those_of_run_qa(uncased: Both, questions: list[Question]) -> None:
    """Ids, segments, and where answers begin and end, for windows of SQuAD's usual size and for small ones."""
    for limit, stride, windows in ((384, 128, 231), (96, 32, 1210)):
        task = QuestionAnswering(stride=stride)
        ours = [
            (*read(lesson), (lesson[0].labels["start"], lesson[0].labels["end"]))
            for lesson in uncased.lessons(task, list(questions), limit)
        ]
        theirs = [window for question in questions for window in prepared(uncased.theirs, question, limit, stride)]
        assert len(theirs) == windows
        assert ours == theirs


def prepared(tokenizer: Any, item: Question, limit: int, stride: int) -> list[tuple[list[int], list[int], Any]]:
    """As transformers' run_qa.py prepares training features. Its stride is the overlap; ours, as Google's, the step."""
    room = limit - 3 - len(tokenizer(item.question, add_special_tokens=False)["input_ids"])
    read = tokenizer(
        item.question,
        item.context,
        truncation="only_second",
        max_length=limit,
        stride=room - stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    windows = []
    for place, ids in enumerate(read["input_ids"]):
        offsets, sequences = read["offset_mapping"][place], read.sequence_ids(place)
        (text, begin), *_ = item.answers or ()
        end = begin + len(text)
        first = sequences.index(1)
        last = len(ids) - 1 - sequences[::-1].index(1)
        ends = (0, 0)
        if offsets[first][0] <= begin and offsets[last][1] >= end:
            while first < len(offsets) and offsets[first][0] <= begin:
                first += 1
            while offsets[last][1] >= end:
                last -= 1
            ends = first - 1, last + 1
        windows.append((ids, read["token_type_ids"][place], ends))
    return windows


def test_first_tokens_of_words_carry_the_tags(cased: Both, shared: Path) -> None:
    path = shared / "data" / "CoNLL-2003" / "eng.testb.gz"
    if not path.is_file():
        pytest.skip("needs ../shared/data/CoNLL-2003; not found")
    items = [item for item in islice(WordsLayout().items(path), 600) if isinstance(item, Words)]
    kinds = ("LOC", "MISC", "ORG", "PER")
    task = Tagging(("O", *(f"{part}-{kind}" for kind in kinds for part in "BI")))
    lessons = cased.lessons(task, list(items), 512)
    assert len(lessons) == 600
    split = 0
    for item, lesson in zip(items, lessons, strict=True):
        theirs = cased.theirs(list(item.words), is_split_into_words=True)
        assert read(lesson) == (theirs["input_ids"], theirs["token_type_ids"])
        words = theirs.word_ids()
        firsts = [place for place, word in enumerate(words) if word is not None and words[place - 1] != word]
        at, true = lesson[0].marks["tag"]
        assert at.tolist() == firsts
        assert true.tolist() == task.numbers(item)
        split += len(theirs["input_ids"]) - 2 > len(firsts)
    assert split > 400, "most sentences have words of several tokens"


def test_tags_in_chunks_are_learned_once_for_each_chunk_that_has_the_first_token(cased: Both) -> None:
    words = ("Johanneshofen", "is", "Johanneshofen")
    task = Tagging(("O", "B-LOC", "I-LOC"))
    item = Words(Path("x"), 1, words, ("I-LOC", "O", "I-LOC"))
    pieces = [cased.theirs(word, add_special_tokens=False)["input_ids"] for word in words]
    size = len(pieces[0])
    assert size > 2
    lessons = list(task.lessons([item], Reader(cased.ours, size + 3, Chunk())))  # a word and "is" in the first chunk
    assert [one.marks["tag"][0].tolist() for (one,) in lessons] == [[1, size + 1], [1]]
    assert [one.marks["tag"][1].tolist() for (one,) in lessons] == [[1, 0], [1]]
