"""Added tokens: matched in the raw text before anything else, never split, with ids after the vocabulary's.

A directory can declare them in four files. Which of them count, and in which order they are numbered, follows
transformers, because a model's embedding rows were numbered by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tokenizers import AddedToken, Tokenizer

from bertkit.errors import BertkitError
from bertkit.text.wordpiece import Specials

Json = dict[str, Any]
T = TypeVar("T", dict[Any, Any], list[Any])
NAMES = {dict: "JSON object", list: "JSON list"}


@dataclass(frozen=True)
class Declared:
    """What a directory's files say about added tokens: `numbered` by id, then `named` without one; and the five."""

    numbered: dict[int, AddedToken]
    named: tuple[AddedToken, ...]
    specials: Specials

    def tokens(self) -> list[AddedToken]:
        """Every added token once, in the order in which they are numbered."""
        once: dict[str, AddedToken] = {}
        for token in (*(self.numbered[i] for i in sorted(self.numbered)), *self.named):
            once.setdefault(token.content, token)
        return list(once.values())

    def numbered_names(self) -> set[str]:
        """Tokens a file gives a row to, in or after the vocabulary."""
        return {token.content for token in self.numbered.values()}

    def require_ids(self, rust: Tokenizer, source: str) -> None:
        """Refuse ids that leave a gap: the tokenizer would number the token differently from its file."""
        base = rust.get_vocab(with_added_tokens=False)
        for i, token in self.numbered.items():
            found = rust.token_to_id(token.content)
            if found != i and token.content not in base:
                raise BertkitError(
                    f"{source}: added token {token.content!r} has id {i}, but ids go on at {found}. "
                    "Ids must be contiguous: correct the id or restore the vocabulary's missing rows"
                )


def declared(
    config: Json,
    special_map: Json,
    added_file: Json,
    tokenizer_file: Json,
    source: str,
    defaults: Specials = Specials(),  # noqa: B008 - frozen
    symbols: Sequence[AddedToken] = (),
) -> Declared:
    """Collect the tokens from tokenizer_config.json and, if that has no `added_tokens_decoder`, the older files.

    `defaults` are the names of the five that no file names; `symbols` those of a sentencepiece model, which count
    where no file lists further tokens.
    """
    if "added_tokens_decoder" in config:
        rows = _typed(config["added_tokens_decoder"], dict, "added_tokens_decoder", source)
        numbered = {_row(i, source): _token(value, source) for i, value in rows.items()}
    else:
        config = {**config, **special_map}
        names = {token.content for token in _named(config, source, defaults, symbols)}
        numbered = {_row(i, source): _plain(name, name in names, source) for name, i in added_file.items()}
        for value in _typed(tokenizer_file.get("added_tokens", []), list, "added_tokens", source):
            entry = _typed(value, dict, "an entry of added_tokens", source)
            numbered[_row(entry.get("id"), source)] = _token(entry, source)
    named = tuple(_named(config, source, defaults, symbols))
    return Declared(numbered, named, _specials(config, source, defaults))


def special(name: str, source: str) -> AddedToken:
    """A token that means something to the model rather than to the reader, such as [MASK]."""
    return _plain(name, True, source)


def _named(config: Json, source: str, defaults: Specials, symbols: Sequence[AddedToken]) -> Iterator[AddedToken]:
    """Tokens under a key of their own (`mask_token`), the five by default, and the lists of further ones."""
    keys = [key for key in config if key.endswith("_token") and config[key]]
    for key in sorted(keys, key=lambda key: key not in ("bos_token", "eos_token")):
        yield _as_special(config[key], source)
    for name in _specials(config, source, defaults).names():
        yield special(name, source)
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    if not extra:
        yield from symbols
    values = list(extra.values()) if isinstance(extra, dict) else extra
    for value in _typed(values, list, "additional_special_tokens", source):
        yield _as_special(value, source)


def _specials(config: Json, source: str, defaults: Specials) -> Specials:
    given = {part: config.get(f"{part}_token") for part in Specials.__dataclass_fields__}
    found = {part: _token(value, source).content for part, value in given.items() if value is not None}
    return replace(defaults, **found)


def _token(value: object, source: str) -> AddedToken:
    if isinstance(value, str):
        return special(value, source)
    entry = _typed(value, dict, "a special token", source)
    known = ("single_word", "lstrip", "rstrip", "normalized", "special")
    flags = {key: bool(entry[key]) for key in known if entry.get(key) is not None}
    return AddedToken(_content(entry.get("content"), source), **flags)


def _as_special(value: object, source: str) -> AddedToken:
    return _token({**value, "special": True} if isinstance(value, dict) else value, source)


def _plain(name: object, is_special: bool, source: str) -> AddedToken:
    return AddedToken(_content(name, source), normalized=not is_special, special=is_special)


def _content(name: object, source: str) -> str:
    if not isinstance(name, str) or not name.strip() or any("\ud800" <= c <= "\udfff" or c in "\r\n" for c in name):
        raise BertkitError(
            f"{source}: {name!a} cannot be an added token: give a non-empty str without line breaks or lone surrogates"
        )
    return name


def _row(given: object, source: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int | str) or not re.fullmatch(r"\d{1,10}", str(given)):
        raise BertkitError(f"{source}: {given!r} is not the id of an added token; ids are 0, 1, 2, ...")
    return int(given)


def _typed(value: object, kind: type[T], what: str, source: str) -> T:
    if not isinstance(value, kind):
        raise BertkitError(f"{source}: {what} is {value!a}, not a {NAMES[kind]}; correct or remove it")
    return value
