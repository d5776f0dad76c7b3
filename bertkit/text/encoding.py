"""What a text became: ids, and how each id points back into the text."""

from __future__ import annotations

import tokenizers


class Encoding:
    """One text (or pair) as tokens. Lists are made on access, so ask once and only for what you need.

    >>> from bertkit.text import Tokenizer
    >>> tokenizer = Tokenizer.from_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "caf", "##e", "!"])
    >>> found = tokenizer.encode("Café!")
    >>> found.tokens
    ['[CLS]', 'caf', '##e', '!', '[SEP]']
    >>> found.offsets
    [(0, 0), (0, 3), (3, 4), (4, 5), (0, 0)]
    >>> found.words
    [None, 0, 0, 1, None]
    """

    __slots__ = ("_rust",)

    def __init__(self, rust: tokenizers.Encoding) -> None:
        self._rust = rust

    def __len__(self) -> int:
        return len(self._rust)

    def __repr__(self) -> str:
        return f"Encoding({' '.join(self.tokens)})"

    @property
    def ids(self) -> list[int]:
        """Rows of the embedding table."""
        return self._rust.ids

    @property
    def tokens(self) -> list[str]:
        """The vocabulary's spelling of each id."""
        return self._rust.tokens

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Per token the slice of the original str it came from; (0, 0) where the template put it.

        In a pair, `segments` says which of the two texts a slice belongs to.
        """
        return self._rust.offsets

    @property
    def words(self) -> list[int | None]:
        """Per token the index of its word (what lies between spaces and punctuation), None at the template's tokens.

        The count starts again at 0 in the second text of a pair.
        """
        return self._rust.word_ids

    @property
    def segments(self) -> list[int]:
        """BERT: 0 in the first text and its [CLS] and [SEP], 1 in the second and its [SEP]. RoBERTa: 0."""
        return self._rust.type_ids
