"""A vocabulary: every id from 0 to the last has one token, so that its length is the embedding table's height."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bertkit.errors import BertkitError


def from_lines(tokens: Sequence[str], source: str) -> dict[str, int]:
    """Number the lines of a vocab.txt.

    Files with repeated lines exist; transformers lets the last line win and every other line keep its number, and a
    model's embedding table has one row per line. So we do the same and name the row that nothing can reach.

    >>> from_lines(["a", "b", "a"], "vocab.txt")
    {'[empty 0]': 0, 'b': 1, 'a': 2}
    """
    if not tokens:
        raise BertkitError(f"{source} is empty: it needs one token per line, among them [PAD] [UNK] [CLS] [SEP] [MASK]")
    return from_ids({token: i for i, token in enumerate(_checked(tokens, source))}, source, rows=len(tokens))


def from_ids(ids: Mapping[str, int], source: str, rows: int = 0) -> dict[str, int]:
    """Order a token-to-id table by id and name the holes that a repeated line leaves behind.

    >>> from_ids({"b": 2, "a": 0}, "tokenizer.json")
    {'a': 0, '[empty 1]': 1, 'b': 2}
    """
    _checked(ids, source)
    tokens = _by_id(ids, source)
    rows = max(rows, max(tokens, default=-1) + 1)
    # A hole per repeated line is normal; ids far beyond the tokens would make a huge table out of a small file.
    if rows > 2 * len(tokens):
        raise BertkitError(
            f"{source}: ids are not contiguous: {len(tokens)} tokens but the largest id is {rows - 1}. "
            "Number the tokens 0, 1, 2, ... or use the vocab.txt this file was made from"
        )
    return {tokens.get(i, empty(i)): i for i in range(rows)}


def empty(row: int) -> str:
    """The name of a row no text can reach: words never contain a space."""
    return f"[empty {row}]"


def require_equal(listed: Sequence[str], known: Sequence[str], base: int, files: tuple[str, str]) -> None:
    """Refuse a vocab.txt that contradicts its tokenizer.json; it may or may not list the added tokens (from `base`).

    >>> require_equal(["a", "b"], ["a", "b", "[NEW]"], 2, ("vocab.txt", "tokenizer.json"))
    """
    for i in range(max(len(listed), base)):
        line, entry = (names[i] if i < len(names) else None for names in (listed, known))
        if line != entry:
            raise BertkitError(
                f"{files[0]} and {files[1]} disagree, first at id {i}: {_shown(line)} and {_shown(entry)}. "
                f"Keep the one the model was trained with: delete {files[1]} to use {files[0]}, or the other way round"
            )


def _checked(tokens: Sequence[str] | Mapping[str, int], source: str) -> Sequence[str] | Mapping[str, int]:
    for i, token in enumerate(tokens):
        if not isinstance(token, str):
            raise BertkitError(f"{source}: token {i} is {token!r} ({type(token).__name__}); tokens are str")
        if "\n" in token or "\r" in token or not is_unicode(token):
            raise BertkitError(f"{source}: token {token!a} has a line break or a lone surrogate; remove it")
    return tokens


def _by_id(ids: Mapping[str, int], source: str) -> dict[int, str]:
    tokens: dict[int, str] = {}
    for token, i in ids.items():
        if type(i) is not int or i < 0:
            raise BertkitError(f"{source}: the id of {token!r} is {i!r}; ids are the integers 0, 1, 2, ...")
        if i in tokens:
            raise BertkitError(f"{source}: {tokens[i]!r} and {token!r} both have id {i}; give each token its own")
        tokens[i] = token
    return tokens


def is_unicode(token: str) -> bool:
    """Whether there is no lone surrogate in a token, which is half a character."""
    return token.isascii() or not any("\ud800" <= char <= "\udfff" for char in token)


def _shown(token: str | None) -> str:
    return "no token" if token is None else repr(token)
