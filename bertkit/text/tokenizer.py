"""The tokenizer: strings to ids and back."""

from __future__ import annotations

import base64
import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer

from bertkit.errors import BertkitError
from bertkit.text import added, directory, unigram, vocabulary
from bertkit.text.directory import DEFAULT_LIMIT
from bertkit.text.encoding import Encoding
from bertkit.text.opened import RULES, Opened, listing
from bertkit.text.pieces import Pieces, pieces_of
from bertkit.text.template import Template
from bertkit.text.wordpiece import Rules, Specials, build, require_specials


class Tokenizer:
    """WordPiece, byte-level BPE or Unigram, with the template of its family: [CLS] text [SEP], <s> text </s>.

    >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able"])
    >>> tokenizer.encode("Unaffable?").ids
    [2, 5, 6, 7, 1, 3]
    >>> tokenizer.decode([2, 5, 6, 7, 3])
    'unaffable'
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._rust = opened.rust
        self._refresh()

    @classmethod
    def from_vocabulary(
        cls,
        tokens: Sequence[str] | Mapping[str, int],
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        limit: int = DEFAULT_LIMIT,
        specials: Specials = Specials(),  # noqa: B008 - frozen
    ) -> Tokenizer:
        """Google's WordPiece over tokens in id order (or a table of ids). `strip_accents=None` follows `lowercase`.

        >>> len(Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], lowercase=False))
        5
        """
        if isinstance(tokens, str):
            raise BertkitError(f"a vocabulary is a list of tokens, not the str {tokens[:20]!r}; to read files: .load")
        source = "the vocabulary"
        if isinstance(tokens, Mapping):
            ids = vocabulary.from_ids(tokens, source)
        else:
            ids = vocabulary.from_lines(tokens, source)
        require_specials(specials, ids, (), source)
        rules = Rules(lowercase, strip_accents, split_chinese)
        never_split = [added.special(name, source) for name in specials.names()]
        rust = build(ids, rules, specials, never_split)
        return cls(Opened(rust, rules, specials, limit))

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """Read a directory with tokenizer.json, vocab.txt, vocab.json and merges.txt, or a model of sentencepiece.

        Ids equal those of transformers' AutoTokenizer.
        `bertkit.text.directory` says which file wins where several speak.
        """
        return cls(directory.read(Path(path)))

    @classmethod
    def from_json(cls, text: str) -> Tokenizer:
        """What `to_json` made, as it was; the text is trusted.

        >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hi"], limit=9)
        >>> Tokenizer.from_json(tokenizer.to_json())
        Tokenizer(6 tokens, lower-cased, limit 9)
        """
        told = json.loads(text)
        rules = RULES[told["class"]](**told["rules"]) if told["class"] else None
        kept = {name: base64.b64decode(content) for name, content in told["files"].items()}
        rust, specials = unigram.from_text(told["rust"]), Specials(**told["specials"])
        return cls(Opened(rust, rules, specials, told["limit"], told["settings"], kept))

    def to_json(self) -> str:
        """All of it as one text, to hand it to another process; `save_files` is for keeping."""
        opened, rules = self._opened, self._opened.rules
        return json.dumps(
            {
                "rust": self._rust.to_str(),
                "class": rules and rules.tokenizer_class,
                "rules": rules and asdict(rules),
                "specials": asdict(opened.specials),
                "limit": opened.limit,
                "settings": opened.settings,
                "files": {name: base64.b64encode(content).decode() for name, content in opened.files.items()},
            }
        )

    def save_files(self, path: Path | str) -> None:
        """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json into a directory, and what older
        programs read: vocab.txt, or vocab.json and merges.txt, or the model of sentencepiece that it came with.

        >>> import tempfile
        >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hi"])
        >>> with tempfile.TemporaryDirectory() as place:
        ...     tokenizer.save_files(place)
        ...     Tokenizer.load(place).fingerprint == tokenizer.fingerprint
        True
        """
        self._opened.write(Path(path))

    def encode(self, text: str, pair: str | None = None, special_tokens: bool = True) -> Encoding:
        """One text, or a text and its pair, as tokens. Nothing is ever cut off: compare `len` with `limit`.

        >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])
        >>> tokenizer.encode("a b", "b").segments
        [0, 0, 0, 0, 1, 1]
        """
        return self.encode_many([text], None if pair is None else [pair], special_tokens)[0]

    def encode_many(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, special_tokens: bool = True
    ) -> list[Encoding]:
        """Many texts (and their pairs) at once, on all cores.

        >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])
        >>> [found.ids for found in tokenizer.encode_many(["a", "b b"])]
        [[2, 5, 3], [2, 6, 6, 3]]
        """
        inputs = _inputs(texts, pairs)
        try:
            found = self._rust.encode_batch(inputs, add_special_tokens=special_tokens)
        except (TypeError, UnicodeEncodeError):
            _refuse_surrogates(texts, pairs or ())
            raise
        return [Encoding(rust) for rust in found]

    def ids_of_many(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, special_tokens: bool = True
    ) -> list[list[int]]:
        """Only the ids, without working out offsets: the quickest way from texts to a model.

        >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])
        >>> tokenizer.ids_of_many(["a", "b b"])
        [[2, 5, 3], [2, 6, 6, 3]]
        """
        inputs = _inputs(texts, pairs)
        try:
            found = self._rust.encode_batch_fast(inputs, add_special_tokens=special_tokens)
        except (TypeError, UnicodeEncodeError):
            _refuse_surrogates(texts, pairs or ())
            raise
        return [rust.ids for rust in found]

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        """Readable text for ids. What cleaning removed (case, accents, spacing) does not come back.

        >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "##ing"])
        >>> tokenizer.decode([2, 5, 6, 4, 3], skip_special=False)
        '[CLS] playing [MASK] [SEP]'
        """
        for i in ids:
            self.token(i)
        return self._rust.decode([int(i) for i in ids], skip_special_tokens=skip_special)

    def token(self, row: int) -> str:
        """The token of an id.

        >>> Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]).token(4)
        '[MASK]'
        """
        if not 0 <= row < len(self):
            raise BertkitError(f"there is no token with id {row}: ids go from 0 to {len(self) - 1}")
        return self._vocabulary[row]

    def id(self, token: str) -> int:
        """The id of a token.

        >>> Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]).id("[MAKS]")
        Traceback (most recent call last):
        bertkit.errors.BertkitError: '[MAKS]' is not in the vocabulary of 5 tokens; nearest: '[MASK]'
        """
        found = self._ids.get(token)
        if found is None:
            raise BertkitError(f"{token!r} is not in the vocabulary of {len(self)} tokens{self._nearest(str(token))}")
        return found

    def add_special_tokens(self, tokens: Sequence[str]) -> int:
        """Append tokens that are matched in raw text and never split; returns how many rows the embedding must grow.

        >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
        >>> tokenizer.add_special_tokens(["[CAT=CULTURE]", "[MASK]"])
        1
        >>> tokenizer.encode("a[CAT=CULTURE]a").ids
        [2, 5, 6, 5, 3]
        """
        if isinstance(tokens, str):
            raise BertkitError(f"add_special_tokens takes a list; write [{tokens!r}]")
        before = len(self)
        self._rust.add_tokens([added.special(token, "add_special_tokens") for token in tokens])
        self._refresh()
        return len(self) - before

    def __len__(self) -> int:
        """Rows the embedding table needs: the last id plus one, added tokens included."""
        return len(self._vocabulary)

    def __repr__(self) -> str:
        case = "lower-cased" if self.lowercase else "cased"
        return f"Tokenizer({len(self)} tokens, {case}, {f'limit {self.limit}' if self.limit else 'no limit said'})"

    @property
    def vocabulary(self) -> list[str]:
        """All tokens in id order, added ones included."""
        return list(self._vocabulary)

    @property
    def rust(self) -> RustTokenizer:
        """The same as an object of the `tokenizers` library."""
        return self._rust

    @property
    def specials(self) -> Specials:
        """The names of the five tokens that every BERT needs."""
        return self._opened.specials

    @cached_property
    def template(self) -> Template:
        """Which special tokens stand around one text or several, and which segments they have."""
        found = Template.of(self._rust)
        assert found is not None, "a directory whose tokenizer has no template is refused"
        return found

    @cached_property
    def pieces(self) -> Pieces:
        """How the vocabulary spells where words begin."""
        return pieces_of(self._rust)

    @property
    def limit(self) -> int | None:
        """Tokens per input that the files promise; None when they do not say (or say 1e30).

        The model's position table is the hard bound: take the smaller of both.
        """
        return self._opened.limit

    @property
    def lowercase(self) -> bool:
        """Whether upper and lower case come out the same."""
        normalizer = self._rust.normalizer
        return normalizer is not None and normalizer.normalize_str("A") == "a"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that decides ids; the same before and after saving."""
        return hashlib.sha256(self._rust.to_str().encode()).hexdigest()

    @property
    def pad_id(self) -> int:
        """Fills a batch up to its longest row."""
        return self._ids[self.specials.pad]

    @property
    def unk_id(self) -> int:
        """Stands for a word that cannot be spelled."""
        return self._ids[self.specials.unk]

    @property
    def cls_id(self) -> int:
        """Begins every input."""
        return self._ids[self.specials.cls]

    @property
    def sep_id(self) -> int:
        """Ends every text."""
        return self._ids[self.specials.sep]

    @property
    def mask_id(self) -> int:
        """Hides a token the model shall predict."""
        return self._ids[self.specials.mask]

    @property
    def mask_takes_space(self) -> bool:
        """Whether the space before a mask is part of it, since tokens of this kind have the space before them."""
        return any(
            token.lstrip and token.content == self.specials.mask
            for token in self._rust.get_added_tokens_decoder().values()
        )

    def _refresh(self) -> None:
        self._vocabulary = listing(self._rust)
        self._ids = {token: i for i, token in enumerate(self._vocabulary)}

    def _nearest(self, token: str) -> str:
        # Only tokens of about the same length can be near, and comparing 100,000 would take a second.
        similar = [name for name in self._vocabulary if abs(len(name) - len(token)) <= 1]
        near = difflib.get_close_matches(token, similar, n=3)
        return f"; nearest: {', '.join(map(repr, near))}" if near else ""


def _inputs(texts: Sequence[str], pairs: Sequence[str] | None) -> list[str] | list[tuple[str, str]]:
    """What the Rust side takes. It would read a tuple among the texts as a pair, so types are checked here."""
    _require_texts("texts", texts)
    if pairs is None:
        return list(texts)
    _require_texts("pairs", pairs)
    if len(texts) != len(pairs):
        raise BertkitError(f"{len(texts)} texts but {len(pairs)} pairs; give one pair per text")
    return list(zip(texts, pairs, strict=True))


def _require_texts(what: str, texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise BertkitError(f"{what} must be a list of str, not one str; write [{texts[:20]!r}]")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise BertkitError(f"{what}[{i}] is {text!r} ({type(text).__name__}), not a str; drop it or convert it")


def _refuse_surrogates(*columns: Sequence[str]) -> None:
    """Say where a lone surrogate is: half a character, usually a JSON escape cut in two."""
    for what, texts in zip(("texts", "pairs"), columns, strict=False):
        for i, text in enumerate(texts):
            at = next((at for at, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)
            if at is not None:
                raise BertkitError(
                    f"{what}[{i}] has a lone surrogate {text[at]!a} at character {at}, which is not a character. "
                    "Replace it first: text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')"
                )
