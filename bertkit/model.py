"""What `bertkit.load` returns: a tokenizer, a network, and the verbs that use them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import numpy as np
import torch
from torch import Tensor, nn

from bertkit import artifact, family
from bertkit.batch import Batch, Packed, collate
from bertkit.decode import Answer, Tagged, answers, likeliest, tagged
from bertkit.errors import BertkitError, about, look_up
from bertkit.parts.chain import decode
from bertkit.parts.dense import DenseModule
from bertkit.parts.encoder import Encoder, EncoderModule
from bertkit.parts.heads import ChainModule, Head, Span, Tag
from bertkit.parts.network import Network, NetworkModule
from bertkit.parts.pool import AfterPrompt, Mean, OneLayer, Pool, named
from bertkit.parts.tape import Tape
from bertkit.parts.tape import record as record_encoder
from bertkit.runtime import choose as choosing
from bertkit.runtime import tune as tuning
from bertkit.runtime.choose import AUTO, choose
from bertkit.runtime.engines.engine import FP32, INT8
from bertkit.runtime.finite import require_finite
from bertkit.runtime.passage import Fields, Passage, Text, passages
from bertkit.runtime.passage import texts as read_texts
from bertkit.runtime.runner import Function, Hidden, Runner
from bertkit.runtime.stream import Given, Rows, example, stream
from bertkit.text import Tokenizer, stitch
from bertkit.text import truncate as truncation
from bertkit.text.directory import DEFAULT_LIMIT
from bertkit.text.pieces import inserted
from bertkit.text.prompt import Prompted
from bertkit.text.truncate import Chunk, Cut, Policy
from bertkit.weights import directory, find, folder, google, sentence
from bertkit.weights.digest import digest
from bertkit.weights.directory import Report
from bertkit.weights.int8 import Quantization
from bertkit.weights.sentence import Sentence

ENDLESS = 2**24
"""tokens of a text where a model has no longest"""
SHORTEST = np.float32(1e-12)
"""vectors are taken to be at least as long when they are scaled"""

ELSEWHERE = {"encode": "embed", "encode_query": "embed", "encode_document": "embed", "unmask": "fill"}
"""verbs of other libraries -> ours"""

log = logging.getLogger("bertkit")
Kind = TypeVar("Kind", bound=Head)


@dataclass(frozen=True)
class Guess:
    """A token for a [MASK], how likely it is, and the text with it."""

    token: str
    score: float
    id: int
    text: str


class Model:
    """A BERT and its tokenizer.

    >>> import bertkit
    >>> model = bertkit.load("minilm")
    >>> model
    Model(bert, 6 layers, 384 wide, heads: pooler)
    >>> model.embed("A cat sat on the mat.").shape
    (384,)
    """

    def __init__(
        self,
        network: NetworkModule,
        tokenizer: Tokenizer,
        sentence: Sentence | None = None,
        config: Mapping[str, Any] | None = None,
        report: Report | None = None,
    ) -> None:
        rows = network.spec.encoder.embed.vocabulary
        if len(tokenizer) > rows:
            raise BertkitError(
                f"the tokenizer has {len(tokenizer):,} tokens, but the embedding table only {rows:,} rows: "
                "they are not of the same model"
            )
        self.network = network
        self.tokenizer = tokenizer
        self.name = ""
        """what it was loaded by; empty for a new model"""
        self.report = report
        """what loading did with each head; None for a new model"""
        self.config = dict(config or {"model_type": "bert"})
        bounds = [bound for bound in (tokenizer.limit, network.spec.encoder.longest) if bound]
        longest = min(bounds, default=DEFAULT_LIMIT)
        self.plain = Sentence(Mean(), normalize=False, limit=longest)
        """how vectors are made where nobody said how"""
        said = sentence or self.plain
        self._settings = said.settings
        self.pool = said.pool
        self.normalize = said.normalize
        """whether `embed` scales vectors to length 1, unless told otherwise"""
        self.limit = min(said.limit or longest, network.spec.encoder.longest or ENDLESS)
        self.prompts = dict(said.prompts)
        """name -> what `embed` writes before each text when asked for it"""
        self.default_prompt = said.default_prompt
        """the name of the prompt that is written unless told otherwise"""
        self.include_prompt = said.include_prompt
        """whether the pool sees the prompt"""
        self.dense = nn.Sequential(*said.dense)
        """matrices on pooled vectors, mostly none"""
        self.shorten = said.shorten
        """how many values of each vector are kept; None keeps all"""
        self._runner: Runner | None = None
        self.untuned = False
        """whether the fastest engine is wanted, and nobody measured yet which one that is"""
        self._require_widths(self.pool)

    def __repr__(self) -> str:
        spec = self.network.spec
        heads = ", ".join(spec.heads) or "none"
        return (
            f"Model({self.config['model_type']}, {len(spec.encoder.order)} layers, {spec.encoder.width} wide, "
            f"heads: {heads})"
        )

    if not TYPE_CHECKING:  # whose reader knows what there is

        def __getattr__(self, name: str) -> Any:
            if name in ELSEWHERE:
                raise AttributeError(f"Model has no {name!r}: here it is {ELSEWHERE[name]!r}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def pool(self) -> Pool:
        """How `embed` makes one vector of many, unless told otherwise; may be set by name."""
        return self._pool

    @pool.setter
    def pool(self, pool: str | Pool) -> None:
        self._pool = named(pool)

    @property
    def limit(self) -> int:
        """The most tokens of a text that `embed` reads."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        longest = self.network.spec.encoder.longest
        if not 3 <= limit <= (longest or ENDLESS):
            takes = f"from 3 to {longest}" if longest else "3 or more"
            raise BertkitError(f"limit is {limit}: this model takes {takes} tokens")
        self._limit = limit

    @property
    def width(self) -> int:
        """How many values a vector of `embed` has."""
        return self._width(self.pool)

    @property
    def sentence(self) -> Sentence:
        """How its vectors are made, in the words of sentence-transformers' files."""
        way = Sentence(self.pool, self.normalize, self.limit, self._settings, self.prompts, self.default_prompt)
        dense = cast("tuple[DenseModule, ...]", tuple(self.dense))
        return replace(way, include_prompt=self.include_prompt, dense=dense, shorten=self.shorten)

    @property
    def runner(self) -> Runner:
        """What computes: torch, unless `use` chose another engine."""
        return self._runner or Runner.of_torch(self.network)

    def use(self, engine: str = AUTO, precision: str | None = None, batch_invariant: bool = False) -> Model:
        """Choose what computes for `embed`, `tag`, `answer` and fine-tuned answers; returns the model.

        `engine` is torch, onednn, ctranslate2, onnx or openvino, each as fast as it was measured to be, or auto: what
        `bertkit tune` found to be fastest for such a network on this machine, torch where nothing was measured, until
        there is a list of some hundred thousand characters to read, for which it is measured. `precision` is fp32 or
        int8, if not given the model's own: int8 where `bertkit quantize` made it. With `batch_invariant` the vector of
        a text does not depend on its neighbours, to the bit: each is computed alone.

        >>> import bertkit
        >>> bertkit.load("minilm").use("torch", batch_invariant=True).embed("a cat").shape
        (384,)
        """
        whole = Quantization.of(self.config) or Quantization(engine="")
        runner = choose(self.network, engine, precision or self.precision, whole.kept, whole.engine)
        self._runner = (runner or Runner.of_torch(self.network)).alone() if batch_invariant else runner
        fp32 = (precision or self.precision) == FP32
        self.untuned = engine == AUTO and self._runner is None and fp32 and self.device.type == "cpu"
        return self

    def tune(self) -> Model:
        """Measure every engine that takes its network, in some seconds, remember it for this machine, and use the
        fastest; what `bertkit tune` does."""
        tuning.tune(self.network, self.precision)
        return self.use()

    def _ready(self, texts: Iterable[Given]) -> Runner:
        """What computes for these texts: the fastest is looked for when a list is long enough to be worth it."""
        if self.untuned and isinstance(texts, Sequence) and _characters(texts, self.limit) >= choosing.MUCH:
            log.info("finding the fastest engine for this model here; it will be remembered")
            self.tune()
        return self.runner

    @property
    def precision(self) -> str:
        """Of its products, unless `use` says otherwise: int8 where `bertkit quantize` made it, else fp32."""
        return INT8 if Quantization.of(self.config) else FP32

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What decides its hidden states: weights and tokenizer by their SHA-256, the most tokens, the engine."""
        weights, engine = digest(self.network, self.dense), self.runner.bulk
        return {
            "weights": weights,
            "tokenizer": self.tokenizer.fingerprint,
            "limit": self.limit,
            "engine": f"{engine.engine} {engine.precision}",
        }

    @property
    def encoder(self) -> EncoderModule:
        """Batch -> hidden states; `encoder.steps(batch)` gives those of every layer."""
        return self.network.encoder

    @property
    def device(self) -> torch.device:
        return self.network.device

    def to(self, device: torch.device | str) -> Model:
        """Move the network, in place. Beyond a CPU torch computes."""
        self._runner = None if torch.device(device).type != "cpu" else self._runner
        try:
            self.network.to(device)
        except (AssertionError, RuntimeError) as error:  # as torch says that there is none
            raise BertkitError(f"the model cannot go to {device}: {error}. It is on {self.device}") from error
        self.dense.to(device)
        return self

    def embed(
        self,
        texts: str | Iterable[str],
        pool: str | Pool | None = None,
        normalize: bool | None = None,
        truncate: str | Policy = "head",
        progress: Callable[[int], None] | None = None,
        cut: Cut | None = None,
        prompt: str | None = None,
    ) -> Rows:
        """One vector per text, float32 [texts, width]; a single string gives one vector [width].

        `pool` (cls, mean, max, pooler, first-last, last-4 …, two with a plus between, or a pool of
        `bertkit.parts.pool`) and `normalize` default to what the model was made with, else to the mean, not normalised.

        `truncate` says what happens to texts longer than
        `limit`: head (they keep their beginning), tail, head+tail, error, chunk, or a policy of
        `bertkit.text.truncate`. What was cut is logged, and counted in `cut`. The vector of a text in chunks is the
        mean of theirs, each counted by its tokens (the maximum, where `pool` is max); the rest follows after that.
        `prompt` names one of the model's `prompts`, to be written before each text; "" writes none.

        >>> import bertkit
        >>> cat, kitten, tax = bertkit.load("minilm").embed(["a cat", "a kitten", "income tax"])
        >>> float(cat @ kitten) > float(cat @ tax)
        True
        """
        if isinstance(texts, str):
            one = self._query(texts, pool, normalize, prompt)
            if one is None:
                one = self.embed([texts], pool, normalize, truncate, progress, cut, prompt)
            elif progress:
                progress(1)
            row: Rows = one[0]
            return row
        done = Cut()
        parts = list(self.embed_stream(texts, pool, normalize, truncate, progress, done, prompt))
        self._tell(done, sum(map(len, parts)), cut)
        if not parts:
            return np.empty((0, self._width(self.pool if pool is None else named(pool))), np.float32)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def embed_stream(
        self,
        texts: Iterable[str],
        pool: str | Pool | None = None,
        normalize: bool | None = None,
        truncate: str | Policy = "head",
        progress: Callable[[int], None] | None = None,
        cut: Cut | None = None,
        prompt: str | None = None,
        first: int = 0,
    ) -> Iterator[Rows]:
        """As `embed`, for texts that do not fit in memory: arrays of some thousand vectors, in order.

        `cut` counts what was truncated. Texts are numbered from `first` on in messages.
        """
        _require_many(texts)
        pool = self.pool if pool is None else named(pool)
        before = self._prompt(prompt)
        past = self._past(before, pool)
        vectors, last = self._vectors(past), self._reads_last(past)

        def join(rows: Rows, tokens: Rows) -> Rows:
            joined: Rows = past.join(torch.from_numpy(rows), torch.from_numpy(tokens)).numpy()
            return joined

        cut = cut or Cut()
        cut.limit = self.limit
        runner, policy = self._ready(texts) if last else Runner.of_torch(self.network), truncation.named(truncate)
        if before:
            policy = Prompted(policy, self._tokens(before))
            prompted = (before + text if isinstance(text, str) else text for text in texts)
            texts = list(prompted) if isinstance(texts, Sequence) else prompted
        run = partial(runner.rows, vectors)
        parts = stream(texts, self.tokenizer, run, runner.lanes, join, self.limit, policy, cut, progress, first)
        return (self._finish(rows, normalize) for rows in parts)

    def _query(self, text: str, pool: str | Pool | None, normalize: bool | None, prompt: str | None) -> Rows | None:
        """The vector [1, W] of a text that goes in as it is; None for one that is too long, or wants another path.

        Of MiniLM's answer to a short text, the path for many takes a quarter around the network, this an eighth
        (docs/bench.md, query).
        """
        pool = self.pool if pool is None else named(pool)
        runner = self.runner
        if runner.lanes.alone or self._prompt(prompt) or not isinstance(pool, OneLayer) or not self._reads_last(pool):
            return None
        ids, segments, _ = self.tokenizer.template.filled(self.tokenizer.ids_of_many([text], special_tokens=False))
        if len(ids) > self.limit:
            return None
        self._require_widths(pool)
        return self._finish(pool.of_one(runner.states(example(ids, segments)))[None], normalize)

    def _reads_last(self, pool: Pool) -> bool:
        """Whether it reads the last hidden states alone, which is all that engines tell."""
        return {-1, len(self.encoder.spec.order)}.issuperset(pool.layers)

    def _vectors(self, pool: Pool) -> Function:
        """From a batch to a vector for each text."""
        self._require_widths(pool)
        pooling, states, last = pool.build(self.network).to(self.device), len(pool.layers), self._reads_last(pool)

        def vectors(hidden: Hidden, batch: Batch) -> Tensor:
            return pooling.reduce([hidden(batch)] * states, batch.layout) if last else pooling(batch)  # [B, W]

        return vectors

    def logits(
        self,
        texts: Iterable[Given],
        head: str,
        truncate: str | Policy = "head",
        progress: Callable[[int], None] | None = None,
        cut: Cut | None = None,
    ) -> Iterator[Rows]:
        """What a head that reads whole texts says of each text or pair: arrays [texts, C] of some thousand, in order.

        Of a text in chunks it is the mean of theirs.
        """
        _require_many(texts)
        self._require_head(head)

        def said(hidden: Hidden, batch: Batch) -> Tensor:
            return self.network.logits(head, hidden(batch), batch.layout)  # [B, C]

        def join(rows: Rows, tokens: Rows) -> Rows:
            mean: Rows = rows.mean(0)
            return mean

        cut = cut or Cut()
        cut.limit = self.limit
        runner, policy = self._ready(texts), truncation.named(truncate)
        run = partial(runner.rows, said)
        parts = stream(texts, self.tokenizer, run, runner.lanes, join, self.limit, policy, cut, progress)
        return map(self._finite, parts)

    def fill(self, text: str, top: int = 5) -> list[list[Guess]]:
        """The likeliest tokens for each [MASK] of a text: one list of `top` guesses per mask, best first."""
        if top < 1:
            raise BertkitError(f"top is {top}: ask for at least 1 guess")
        encoding = self.tokenizer.encode(text)
        at = [place for place, id in enumerate(encoding.ids) if id == self.tokenizer.mask_id]
        mask = self.tokenizer.token(self.tokenizer.mask_id)
        if not at:
            raise BertkitError(f"there is no {mask} in {text[:60]!r}: write it where a word is missing")
        batch = collate([example(encoding.ids)]).to(self.device)
        with torch.inference_mode(), self.network.evaluating():
            hidden = self.network(batch)[at]  # [M, W]
            chances = self.network.logits("mlm", hidden, batch.layout).softmax(-1)[:, : len(self.tokenizer)]  # [M, V]
            self._finite(chances.float().cpu().numpy())
            scores, ids = chances.topk(min(top, chances.shape[1]))
        spans = [encoding.offsets[place] for place in at]
        return [
            [self._guess(text, span, score, id) for score, id in zip(*row, strict=True)]
            for span, *row in zip(spans, scores.tolist(), ids.tolist(), strict=True)
        ]

    @overload  # a str is an iterable of str as well; the first that fits is meant
    def tag(  # type: ignore[overload-overlap]
        self, texts: str, truncate: str | Policy | None = None, cut: Cut | None = None
    ) -> list[Tagged]: ...
    @overload
    def tag(
        self, texts: Iterable[str], truncate: str | Policy | None = None, cut: Cut | None = None
    ) -> list[list[Tagged]]: ...
    def tag(
        self, texts: str | Iterable[str], truncate: str | Policy | None = None, cut: Cut | None = None
    ) -> list[Tagged] | list[list[Tagged]]:
        """The words of each text with their labels, by the model's `tag` head; a word has its first token's label.

        Texts may have any length: unless told otherwise they are read in chunks that overlap, and each token is judged
        where it has the most context. A word whose first token a policy cuts off is not in the list.
        """
        if isinstance(texts, str):
            return self.tag([texts], truncate, cut)[0]
        labels = self._head("tag", Tag).labels
        _require_many(texts)
        given = read_texts(([text] for text in texts), self.tokenizer)
        found = self.passages(given, "tag", truncate, cut)
        return [tagged(cast("Text", passage.fields), passage, labels, self.tag_path) for passage in found]

    @property
    def tag_path(self) -> Callable[[Rows], Rows]:
        """From the `tag` head's logits [W, C] to labels [W]: each word alone, or the best path where it has links."""
        head = self.network.heads["tag"]
        if not isinstance(head, ChainModule):
            return likeliest
        links = [link.detach().cpu().numpy() for link in head.links]
        return lambda logits: decode(logits, *links)

    def answer(
        self,
        question: str,
        passage: str,
        top: int = 1,
        longest: int = stitch.LONGEST_ANSWER,
        truncate: str | Policy | None = None,
        cut: Cut | None = None,
    ) -> list[Answer]:
        """The `top` best answers of at most `longest` tokens in a passage, by the model's `span` head, best first.

        The passage may have any length: unless told otherwise it is read in chunks that overlap, each after the whole
        question, and an answer is taken from the chunk in which its first token has the most context.
        """
        if top < 1 or longest < 1:
            raise BertkitError(f"top is {top} and longest is {longest}: ask for at least 1 answer of at least 1 token")
        self._head("span", Span)
        (text,) = read_texts([[question, passage]], self.tokenizer)
        (found,) = self.passages([text], "span", truncate, cut)
        return answers(text, found, top, longest)

    def passages(
        self, inputs: Iterable[Fields], head: str, truncate: str | Policy | None = None, cut: Cut | None = None
    ) -> Iterator[Passage]:
        """What a head that reads tokens says of inputs of any number and length, in order.

        Unless told otherwise the last field of each is read in chunks that overlap.
        """
        # a third, as Google's 128 of 384
        policy = Chunk(stride=max(self.limit // 3, 1)) if truncate is None else truncation.named(truncate)
        done, count = Cut(self.limit), 0

        def logits(hidden: Hidden, batch: Batch) -> Tensor:
            return self.network.logits(head, hidden(batch), batch.layout)  # [..., C]

        runner = self.runner
        run = partial(runner.tokens, logits)
        for passage in passages(inputs, self.tokenizer, run, runner.lanes, self.limit, policy, done):
            for rows in (*passage.rows, *passage.firsts):
                self._finite(rows)
            count += 1
            yield passage
        if cut is None:
            self._tell(done, count, cut)
        else:
            cut.add(done)  # whoever counts says it

    def _head(self, name: str, kind: type[Kind]) -> Kind:
        head = self.network.spec.heads.get(name)
        if not isinstance(head, kind):
            raise self._lacking(name)
        return head

    def _require_head(self, name: str) -> None:
        if name not in self.network.spec.heads:
            raise self._lacking(name)

    def _lacking(self, name: str) -> BertkitError:
        there = ", ".join(self.network.spec.heads) or "none"
        return BertkitError(f"this model has no {name!r} head. Its heads: {there}. Load one that has it")

    def record(self, texts: str | Sequence[str], pairs: str | Sequence[str] | None = None) -> Tape:
        """Hidden states, queries, keys and attention probabilities of every layer for a few texts."""
        first = [texts] if isinstance(texts, str) else list(texts)
        second = [pairs] if isinstance(pairs, str) else pairs
        if not first:
            raise BertkitError("there are no texts to record: give one, or a list of them")
        encodings = self.tokenizer.encode_many(first, second)
        examples = [example(encoding.ids, encoding.segments) for encoding in encodings]
        with torch.no_grad(), self.network.evaluating():
            return record_encoder(self.encoder, collate(examples, Packed).to(self.device))

    def add_special_tokens(self, tokens: Sequence[str]) -> int:
        """Teach the tokenizer tokens such as `[CAT=CULTURE]` and grow the embedding table with it; returns how many."""
        added = self.tokenizer.add_special_tokens(tokens)
        if len(self.tokenizer) > self.network.spec.encoder.embed.vocabulary:
            self.network.grow(len(self.tokenizer))
        return added

    def save(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        shard_bytes: int = directory.SHARD_BYTES,
        beside: Mapping[str, str] | None = None,
    ) -> Path:
        """Write a directory that `bertkit.load`, transformers and sentence-transformers open; whole or not at all.

        A pool that sentence-transformers has no word for stays unwritten, and that is logged. `beside` are further
        files of text, by name.
        """
        way = self.sentence
        unsaid = "" if way.dense else sentence.unsaid(way, self.plain)  # trained matrices are not left behind
        facts = {"tokenizer": self.tokenizer.fingerprint}
        with artifact.directory(path, "model", overwrite=overwrite, facts=facts) as temporary:
            directory.write(self.network, self.config, temporary, shard_bytes)
            self.tokenizer.save_files(temporary)
            if way != self.plain and not unsaid:
                sentence.write(way, self.network.spec.encoder.width, temporary)
            for name, text in (beside or {}).items():
                (temporary / name).write_text(text, encoding="utf-8")
        reason = family.family_of(self.config["model_type"]).unopenable(self.network.spec)
        only = f"only bertkit opens it, for {reason}" if reason else ""
        for told in filter(None, (unsaid, only)):
            log.warning("%s: %s", os.fspath(path), told)
        return Path(path)

    def _width(self, pool: Pool) -> int:
        rows = self.network.spec.encoder.width
        width = self.sentence.dense[-1].spec.after if len(self.dense) else pool.width(rows)
        return min(width, self.shorten or width)

    def _require_widths(self, pool: Pool) -> None:
        """Refuse matrices that do not fit what comes before them."""
        width = pool.width(self.network.spec.encoder.width)
        for module in cast("Iterable[DenseModule]", self.dense):
            if module.spec.before != width:
                raise BertkitError(f"{module.spec} follows vectors {width} wide: they are not of the same model")
            width = module.spec.after

    def _prompt(self, name: str | None) -> str:
        name = self.default_prompt if name is None else name
        return look_up("prompt", name, self.prompts) if name else ""

    def _past(self, prompt: str, pool: Pool) -> Pool:
        """The pool, made blind to a prompt where the model wants that."""
        if self.include_prompt or not prompt:
            return pool
        return AfterPrompt(pool, min(len(self.tokenizer.template.start) + self._tokens(prompt), self.limit - 1))

    def _tokens(self, prompt: str) -> int:
        return len(self.tokenizer.encode(prompt, special_tokens=False))

    def _finish(self, rows: Rows, normalize: bool | None) -> Rows:
        """Multiply, scale, then shorten, as sentence-transformers does; who asks for `normalize` gets length 1 in the
        end."""
        if len(self.dense):
            with torch.inference_mode():
                rows = self.dense(torch.from_numpy(rows).to(self.device)).cpu().numpy()  # [texts, W]
        if normalize is None and self.normalize:
            rows = _scaled(rows)
        rows = rows[:, : self.shorten]
        return self._finite(np.ascontiguousarray(_scaled(rows) if normalize else rows))

    def _finite(self, rows: Rows) -> Rows:
        return require_finite(rows, self.name or repr(self), network=self.network, dense=self.dense)

    def _tell(self, done: Cut, count: int, cut: Cut | None) -> None:
        """Log what was cut, and add it to the caller's own counts."""
        if done.texts or done.chunked:
            log.log(logging.WARNING if done.texts else logging.INFO, done.among(count))
        if cut is not None:
            cut.add(done)

    def _guess(self, text: str, span: tuple[int, int], score: float, id: int) -> Guess:
        token = self.tokenizer.token(id)
        shown = self.tokenizer.pieces.shown(token)
        before = text[: span[0]].rstrip() if self.tokenizer.mask_takes_space else text[: span[0]]
        return Guess(token, score, id, inserted(before, shown) + text[span[1] :])


def _scaled(rows: Rows) -> Rows:
    """Vectors of length 1, [texts, W]; as torch does it, one of zeros stays."""
    scaled: Rows = rows / np.maximum(np.sqrt((rows * rows).sum(1, keepdims=True)), SHORTEST)
    return scaled


def _characters(texts: Iterable[Given], limit: int) -> int:
    """That will be read of all texts, about: a few for each token. What is no text is refused later, by its place."""
    fields = (field for text in texts for field in (text if isinstance(text, tuple) else (text,)))
    return sum(min(len(field), 8 * limit) for field in fields if isinstance(field, str))


def _require_many(texts: object) -> None:
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise BertkitError(
            f"texts is {type(texts).__name__}: give a list of str, or for one text a str to embed or tag"
        )


def load(name_or_path: str | os.PathLike[str], heads: Mapping[str, Head] | None = None, engine: str = AUTO) -> Model:
    """Open a model: a directory, an alias (`minilm`), or a Hugging Face name, from the local cache first.

    `heads` chooses the heads of the network; without it, all that the files hold are taken. `engine` as in `Model.use`.
    """
    if not isinstance(name_or_path, (str, os.PathLike)) or not os.fspath(name_or_path):
        raise BertkitError(f"{name_or_path!r} is no model: give a directory, an alias such as 'minilm', or a name")
    if heads is not None and not (isinstance(heads, Mapping) and all(isinstance(x, Head) for x in heads.values())):
        raise BertkitError(f"heads is {heads!r}: give heads by name, such as {{'pooler': Pooler(), 'mlm': Mlm()}}")
    name = os.fspath(name_or_path)
    if name in family.sizes() and not Path(name).is_dir():
        raise BertkitError(
            f"{name!r} is a size, without weights: bertkit.create({name!r}, tokenizer) makes a new one. "
            f"With weights, here without a network: {', '.join(find.installed()) or 'none'}"
        )
    path = find.find(name_or_path)
    if artifact.read_manifest(path) is not None:
        artifact.verify(path)
    model = open_directory(path, heads)
    model.name, report = name, model.report
    noted = report and (report.left or report.new)
    log.log(logging.WARNING if noted else logging.INFO, "%s: %s", name, report)
    return model.use(engine)


def open_directory(path: Path, heads: Mapping[str, Head] | None = None) -> Model:
    """The model in a directory of any kind, without looking for it, verifying it or saying what was taken."""
    said, home = sentence.read(path), folder.home(path)  # what they refuse is the plainest reason, so they come first
    network, config, report = (google if google.here(home) else directory).read(home, heads)
    tokenizer = folder.read_tokenizer(home)
    with about(path):
        return Model(network, tokenizer, said, config, report)


def create(
    name: str,
    tokenizer: Tokenizer,
    heads: Mapping[str, Head] | None = None,
    seed: int | None = None,
    encoder: Encoder | None = None,
) -> Model:
    """A new model of one of the sizes in `list_models()`, its weights drawn at random for this tokenizer.

    `encoder` takes the place of the size's own, with other dropout for example.
    """
    kind = family.size_of(name)
    made = (encoder or kind.build(len(tokenizer))).after(tokenizer.pad_id)
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        network = Network(made, kind.family.heads(made, heads or {})).build()
    return Model(network.eval(), tokenizer, config={"model_type": kind.family.model_type})


def list_models(pretrained: bool | None = None) -> list[str]:
    """Names: sizes that `create` makes, and weights that `load` finds here without a network.

    `pretrained=True` lists the second kind alone, `pretrained=False` the first.

    >>> [name for name in list_models(pretrained=False) if name.startswith("bert-")]
    ['bert-base', 'bert-large', 'bert-medium', 'bert-mini', 'bert-small', 'bert-tiny']
    >>> "minilm" in list_models()
    True
    """
    sizes = [] if pretrained else list(family.sizes())
    return sizes + ([] if pretrained is False else find.installed())
