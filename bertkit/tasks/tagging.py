"""Which tag has each word? Named entities, parts of speech: CoNLL, MSRA, Weibo.

The first token of a word stands for it. Tags are learned as IOB2, whatever the file has; scores compare entities, which
are the same in all schemes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from bertkit.batch import Example
from bertkit.errors import BertkitError
from bertkit.evaluate.entities import Counts, Entity, entities
from bertkit.objectives.objective import Objective
from bertkit.objectives.tags import ChainQuestion, TagQuestion
from bertkit.runtime.passage import Fields, Text
from bertkit.runtime.stream import Rows, example
from bertkit.tasks.item import Item, Words
from bertkit.tasks.tags import to_iob2
from bertkit.tasks.task import Answer, Asked, Lesson, Reader, Scorer, Scores, Task
from bertkit.tasks.texts import softmax, watched
from bertkit.text import Tokenizer
from bertkit.text.pieces import Bytes
from bertkit.text.reading import Reading
from bertkit.text.truncate import Chunk, Policy

OUTSIDE = "O"


@dataclass(frozen=True)
class Tags(Answer):
    """A tag for each word, how likely it is, and the entities that they say."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    scores: tuple[float, ...]
    spans: tuple[tuple[int, int], ...] = ()
    """where the words stand in the text, if they were cut from one"""

    @property
    def entities(self) -> list[Entity]:
        """Words that belong together."""
        return entities(self.tags)

    def told(self) -> dict[str, Any]:
        found = []
        for one in self.entities:
            told: dict[str, Any] = {"kind": one.kind, "words": list(self.words[one.start : one.stop])}
            told |= {"first_word": one.start, "last_word": one.stop - 1}
            if self.spans:
                told |= {"start": self.spans[one.start][0], "end": self.spans[one.stop - 1][1]}
            found.append(told)
        return {"words": list(self.words), "tags": list(self.tags), "scores": list(self.scores), "entities": found}

    @property
    def short(self) -> str:
        return " ".join(self.tags)


@dataclass(frozen=True)
class Tagged(Fields):
    """A sentence as tokens, and where its words begin among them."""

    firsts: Rows


@dataclass(frozen=True)
class Tagging(Task):
    """One tag for each word."""

    labels: tuple[str, ...]
    """tags, in the order of the network's outputs"""
    chain: bool = False
    """whether tags are learned as paths, with links between them (a CRF)"""

    @property
    def main(self) -> str:
        return "f1" if self.are_entities else "accuracy"

    @property
    def are_entities(self) -> bool:
        """Whether tags say where entities begin; else they are kinds of words."""
        return OUTSIDE in self.labels

    @property
    def policy(self) -> Policy:
        """All of a sentence, in chunks that overlap by a half where it is long."""
        return Chunk(stride=64)

    @property
    def objective(self) -> Objective:
        return ChainQuestion(self.labels) if self.chain else TagQuestion(self.labels)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: place for place, label in enumerate(self.labels)}

    def require(self, item: Item) -> None:
        if not cast(Words, item).words:
            raise BertkitError(f"{item.where}: a sentence without words. Take it out")
        self.numbers(cast(Words, item))

    def numbers(self, item: Words) -> list[int]:
        """The places of a sentence's tags."""
        if item.tags is None:
            raise BertkitError(f"{item.where} has words without tags: give each a tag, in the last column")
        tags = to_iob2(item.tags) if self.are_entities else item.tags
        for tag in tags:
            if tag not in self._places:
                raise BertkitError(
                    f"{item.where} has the tag {tag!r}, which nothing is learned about. The tags are: "
                    f"{', '.join(self.labels[:20])}. Correct it, or add sentences with it to the training set"
                )
        return [self._places[tag] for tag in tags]

    def lessons(self, items: Sequence[Item], reader: Reader) -> Iterator[Lesson]:
        spell = Speller(reader.tokenizer)
        for one in cast(Sequence[Words], items):
            tags, sentence = np.array(self.numbers(one)), spell(one.words)
            for reading in reader.read(sentence.ids, one):
                at, words = _first_tokens(sentence, reading)
                if len(at):
                    tokens = example(reading.ids, reading.segments).tokens
                    yield [Example(tokens, {"tag": (at, tags[words])}, {"words": len(at)})]

    def answers(self, asked: Asked, items: Iterable[Item]) -> Iterator[Tags]:
        waiting: deque[Item] = deque()
        spell, path = Speller(asked.model.tokenizer), asked.model.tag_path
        read = (spell(cast(Words, item).words) for item in watched(items, waiting))
        for passage in asked.model.passages(read, "tag", asked.policy, asked.cut):
            item, firsts = cast(Words, waiting.popleft()), cast(Tagged, passage.fields).firsts
            yield self.tagged(item, passage.tokens()[firsts], passage.held()[firsts], path)
            asked.done()

    def tagged(self, item: Words, logits: Rows, held: Rows, path: Callable[[Rows], Rows]) -> Tags:
        """What logits [W, C] mean; a word that a policy cut off is outside."""
        chances = [softmax(row) for row in logits]
        best = path(logits).tolist()
        outside = self._places.get(OUTSIDE, 0)
        tags = [self.labels[place if there else outside] for place, there in zip(best, held, strict=True)]
        scores = [float(row[place]) for row, place in zip(chances, best, strict=True)]
        return Tags(item.words, tuple(tags), tuple(scores), item.spans)

    def scorer(self) -> Scorer:
        return EntityScorer() if self.are_entities else TagScorer()

    def item(self, given: Mapping[str, Any] | str, number: int, tokenizer: Tokenizer) -> Item:
        """A text, which the tokenizer cuts into words, or words in a list."""
        if isinstance(given, str):
            given = {"text": given}
        words, text = given.get("words", given.get("tokens")), given.get("text")
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return Words(Path("input"), number, tuple(words))
        if isinstance(text, str):
            read = Text.of([text], tokenizer)
            spans = tuple(read.slice(first, after - 1) for first, after in read.words())
            return Words(Path("input"), number, tuple(text[start:end] for start, end in spans), spans=spans)
        raise BertkitError(f"input {number} has neither text nor words: this task wants one of them")


class Speller:
    """Words as tokens, as they are spelled inside a sentence; each word is looked up once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._known = tokenizer, dict[str, list[int]]()
        self._before = " " if isinstance(tokenizer.pieces, Bytes) else ""

    def __call__(self, words: Sequence[str]) -> Tagged:
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        ids = self._tokenizer.ids_of_many([self._before + word for word in new], special_tokens=False)
        self._known |= {word: found or [self._tokenizer.unk_id] for word, found in zip(new, ids, strict=True)}
        rows = [self._known[word] for word in words]
        lengths = np.array([len(row) for row in rows], np.int64)
        return Tagged([[id for row in rows for id in row]], np.cumsum(lengths) - lengths)


def _first_tokens(sentence: Tagged, reading: Reading) -> tuple[Rows, Rows]:
    """Of the words whose first token is in a window: its place there, and the word's number."""
    at, words, begins = [], [], reading.starts[0]
    for start, stop in reading.window[0]:
        first, after = np.searchsorted(sentence.firsts, (start, stop))
        words.append(np.arange(first, after))
        at.append(sentence.firsts[first:after] - start + begins)
        begins += stop - start
    return np.concatenate(at), np.concatenate(words)


class EntityScorer(Scorer):
    """Entities as CoNLL's script counts them."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {"": [0, 0, 0]}

    def add(self, item: Item, answer: Tags) -> None:
        there, said = set(entities(cast(Words, item).tags or ())), set(answer.entities)
        for place, group in enumerate((there & said, said, there)):
            for one in group:
                for kind in ("", one.kind):
                    self._counts.setdefault(kind, [0, 0, 0])[place] += 1

    def scores(self) -> Scores:
        whole, kinds = Counts(*self._counts[""]), sorted(kind for kind in self._counts if kind)
        found = {"f1": whole.f1, "precision": whole.precision, "recall": whole.recall}
        return found | {f"f1 {kind}": Counts(*self._counts[kind]).f1 for kind in kinds}


class TagScorer(Scorer):
    """Words with the right tag."""

    def __init__(self) -> None:
        self._right = self._words = 0

    def add(self, item: Item, answer: Tags) -> None:
        tags = cast(Words, item).tags or ()
        self._right += sum(left == right for left, right in zip(tags, answer.tags, strict=True))
        self._words += len(tags)

    def scores(self) -> Scores:
        return {"accuracy": self._right / max(self._words, 1)}
