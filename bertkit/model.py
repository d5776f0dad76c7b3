"""What `bertkit.load` returns: a tokenizer, a network, and the verbs that use them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bertkit import artifact, family
from bertkit.batch import Batch, Packed, collate
from bertkit.errors import BertkitError, about
from bertkit.parts.encoder import EncoderModule
from bertkit.parts.heads import Head
from bertkit.parts.network import Network, NetworkModule
from bertkit.parts.pool import Mean, Pool, named
from bertkit.parts.tape import Tape
from bertkit.parts.tape import record as record_encoder
from bertkit.runtime.engine import torch_engine
from bertkit.runtime.stream import Cut, Rows, example, stream
from bertkit.text import Tokenizer
from bertkit.weights import directory, find, sentence
from bertkit.weights.directory import Report
from bertkit.weights.sentence import Sentence

log = logging.getLogger("bertkit")


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
        self.report = report
        """what loading did with each head; None for a new model"""
        self._config = dict(config or {"model_type": "bert"})
        self._longest = min(tokenizer.limit, network.spec.encoder.embed.positions)
        self._plain = Sentence(Mean(), normalize=False, limit=self._longest)
        """how vectors are made where nobody said how"""
        said = sentence or self._plain
        self._settings = said.settings
        self.pool = said.pool
        self.normalize = said.normalize
        """whether `embed` scales vectors to length 1, unless told otherwise"""
        self.limit = min(said.limit or self._longest, self._longest)

    def __repr__(self) -> str:
        spec = self.network.spec
        heads = ", ".join(spec.heads) or "none"
        return (
            f"Model({self._config['model_type']}, {len(spec.encoder.order)} layers, {spec.encoder.width} wide, "
            f"heads: {heads})"
        )

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
        if not 3 <= limit <= self._longest:
            raise BertkitError(f"limit is {limit}: this model takes from 3 to {self._longest} tokens")
        self._limit = limit

    @property
    def encoder(self) -> EncoderModule:
        """Batch -> hidden states; `encoder.steps(batch)` gives those of every layer."""
        return self.network.encoder

    @property
    def device(self) -> torch.device:
        return self.encoder.embed.tokens.weight.device

    def to(self, device: torch.device | str) -> Model:
        """Move the network, in place."""
        self.network.to(device)
        return self

    def embed(
        self,
        texts: str | Iterable[str],
        pool: str | Pool | None = None,
        normalize: bool | None = None,
        truncate: str = "head",
        progress: Callable[[int], None] | None = None,
    ) -> Rows:
        """One vector per text, float32 [texts, width]; a single string gives one vector [width].

        `pool` (cls, mean, max, first-last, last-4, or a pool of `bertkit.parts.pool`) and `normalize` default to what
        the model was made with, else to the mean, not normalised. Texts longer than the model reads keep their
        beginning, and that is said; `truncate="error"` refuses them.

        >>> import bertkit
        >>> cat, kitten, tax = bertkit.load("minilm").embed(["a cat", "a kitten", "income tax"])
        >>> float(cat @ kitten) > float(cat @ tax)
        True
        """
        if isinstance(texts, str):
            one: Rows = self.embed([texts], pool, normalize, truncate, progress)[0]
            return one
        given: object = texts
        if given is None or isinstance(given, bytes):
            raise BertkitError(f"texts is {type(given).__name__}: give a str or a list of them")
        cut = Cut(self.limit)
        parts = list(self.embed_stream(texts, pool, normalize, truncate, progress, cut))
        if cut.texts:
            log.warning(cut.among(sum(map(len, parts))))
        return np.concatenate(parts) if parts else np.empty((0, self.network.spec.encoder.width), np.float32)

    def embed_stream(
        self,
        texts: Iterable[str],
        pool: str | Pool | None = None,
        normalize: bool | None = None,
        truncate: str = "head",
        progress: Callable[[int], None] | None = None,
        cut: Cut | None = None,
    ) -> Iterator[Rows]:
        """As `embed`, for texts that do not fit in memory: arrays of some thousand vectors, in order.

        `cut` counts what was truncated.
        """
        pooling = (self.pool if pool is None else named(pool)).build().to(self.device)
        normalize = self.normalize if normalize is None else normalize

        def vectors(batch: Batch) -> Tensor:
            with self.network.evaluating():
                rows: Tensor = pooling(self.encoder, batch)  # [B, W]
            return F.normalize(rows) if normalize else rows

        engine = torch_engine(vectors, self.device)
        return stream(texts, self.tokenizer, engine, cut or Cut(self.limit), truncate, progress)

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
            scores, ids = chances.topk(min(top, chances.shape[1]))
        spans = [encoding.offsets[place] for place in at]
        return [
            [self._guess(text, span, score, id) for score, id in zip(*row, strict=True)]
            for span, *row in zip(spans, scores.tolist(), ids.tolist(), strict=True)
        ]

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
        self, path: str | os.PathLike[str], overwrite: bool = False, shard_bytes: int = directory.SHARD_BYTES
    ) -> Path:
        """Write a directory that `bertkit.load`, transformers and sentence-transformers open; whole or not at all."""
        facts = {"tokenizer": self.tokenizer.fingerprint}
        with artifact.directory(path, "model", overwrite=overwrite, facts=facts) as temporary:
            directory.write(self.network, self._config, temporary, shard_bytes)
            self.tokenizer.save_files(temporary)
            way = Sentence(self.pool, self.normalize, self.limit, self._settings)
            if way != self._plain:
                sentence.write(way, self.network.spec.encoder.width, temporary)
        return Path(path)

    def _guess(self, text: str, span: tuple[int, int], score: float, id: int) -> Guess:
        token = self.tokenizer.token(id)
        return Guess(token, score, id, text[: span[0]] + token.removeprefix("##") + text[span[1] :])


def load(name_or_path: str | os.PathLike[str], heads: Mapping[str, Head] | None = None) -> Model:
    """Open a model: a directory, an alias (`minilm`), or a Hugging Face name, from the local cache first.

    `heads` chooses the heads of the network; without it, all that the files hold are taken.
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
    network, config, report = directory.read(path, heads)
    tokenizer = Tokenizer.load(path)
    with about(path):
        model = Model(network, tokenizer, sentence.read(path), config, report)
    log.log(logging.WARNING if report.left or report.new else logging.INFO, "%s: %s", name, report)
    return model


def create(name: str, tokenizer: Tokenizer, heads: Mapping[str, Head] | None = None, seed: int | None = None) -> Model:
    """A new model of one of the sizes in `list_models()`, its weights drawn at random for this tokenizer."""
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        network = Network(family.encoder(name, len(tokenizer)), heads or {}).build()
    return Model(network.eval(), tokenizer, config={"model_type": name.rpartition("-")[0]})


def list_models(pretrained: bool | None = None) -> list[str]:
    """Names: sizes that `create` makes, and weights that `load` finds here without a network.

    `pretrained=True` lists the second kind alone, `pretrained=False` the first.

    >>> list_models(pretrained=False)
    ['bert-base', 'bert-large', 'bert-medium', 'bert-mini', 'bert-small', 'bert-tiny']
    >>> "minilm" in list_models()
    True
    """
    sizes = [] if pretrained else family.sizes()
    return sizes + ([] if pretrained is False else find.installed())
