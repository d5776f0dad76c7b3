"""WordPiece as Google defined it for BERT, put together from the parts of the Rust `tokenizers` library.

The steps, in Google's order: drop control characters, space out Chinese characters, lower-case and strip accents (if
uncased), cut at spaces and around every punctuation mark, then take the longest known piece from the left, `##`
marking pieces inside a word. A word that cannot be spelled, or is longer than 100 characters, is one [UNK].
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, ClassVar

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece

from bertkit.errors import BertkitError

CONTINUES = "##"
LONGEST_WORD = 100


@dataclass(frozen=True)
class Specials:
    """The names of the five tokens that every BERT needs; most vocabularies use Google's."""

    pad: str = "[PAD]"
    unk: str = "[UNK]"
    cls: str = "[CLS]"
    sep: str = "[SEP]"
    mask: str = "[MASK]"

    def names(self) -> tuple[str, ...]:
        """All five, in the order of Google's vocabularies.

        >>> Specials(mask="<mask>").names()
        ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '<mask>')
        """
        return astuple(self)


@dataclass(frozen=True)
class Rules:
    """How a text is cleaned before it is cut. `strip_accents=None` follows `lowercase`, as Google does."""

    lowercase: bool = True
    strip_accents: bool | None = None
    split_chinese: bool = True
    tokenizer_class: ClassVar[str] = "BertTokenizer"

    def settings(self) -> dict[str, Any]:
        """The same in the words of tokenizer_config.json."""
        return {
            "do_lower_case": self.lowercase,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.split_chinese,
        }


def build(vocabulary: Mapping[str, int], rules: Rules, specials: Specials, added: Sequence[AddedToken]) -> Tokenizer:
    """The Rust tokenizer for a vocabulary; `added` are matched in the raw text and never split."""
    rust = Tokenizer(_model(vocabulary, specials.unk))
    rust.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=rules.split_chinese,
        strip_accents=rules.strip_accents,
        lowercase=rules.lowercase,
    )
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rust.decoder = decoders.WordPiece(prefix=CONTINUES)
    rust.add_tokens(list(added))
    rust.post_processor = _template(rust, specials)
    return rust


def require_specials(specials: Specials, vocabulary: Container[str], added: Container[str], source: str) -> None:
    """Refuse a vocabulary that lacks one of the five tokens, and say how to name or add it."""
    missing = [name for name in specials.names() if name not in vocabulary and name not in added]
    # Spelling falls back on [UNK] inside the vocabulary proper.
    if specials.unk not in vocabulary and specials.unk not in missing:
        missing.append(specials.unk)
    if missing:
        raise BertkitError(
            f"{source} has no {' '.join(missing)}. If it has them under other names, say so in tokenizer_config.json, "
            """for example {"mask_token": "<mask>"}, or with specials=Specials(mask="<mask>"); """
            "if not, this is not a BERT vocabulary"
        )


def _model(vocabulary: Mapping[str, int], unk: str) -> WordPiece:
    return WordPiece(
        dict(vocabulary), unk_token=unk, max_input_chars_per_word=LONGEST_WORD, continuing_subword_prefix=CONTINUES
    )


def _template(rust: Tokenizer, specials: Specials) -> processors.TemplateProcessing:
    cls, sep = specials.cls, specials.sep
    return processors.TemplateProcessing(
        single=[f"{cls}:0", "$A:0", f"{sep}:0"],
        pair=[f"{cls}:0", "$A:0", f"{sep}:0", "$B:1", f"{sep}:1"],
        special_tokens=[(name, rust.token_to_id(name)) for name in (cls, sep)],
    )
