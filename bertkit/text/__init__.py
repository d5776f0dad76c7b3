"""Strings to ids and back, without torch."""

from bertkit.text.encoding import Encoding
from bertkit.text.tokenizer import Tokenizer
from bertkit.text.wordpiece import Specials

__all__ = ["Encoding", "Specials", "Tokenizer"]
