"""A tokenizer's directory: the files Hugging Face and Google use, read and written so that ids agree with transformers.

Which file wins, as in transformers 5's AutoTokenizer:
- tokens and ids: tokenizer.json, else vocab.txt; if both are there they must agree.
- lower-casing, accents, Chinese: tokenizer_config.json (lower-casing on if it is silent) when the directory belongs to
  BERT, by `tokenizer_class` or by config.json's `model_type`; otherwise what tokenizer.json itself says.
- Google's directories (bert_config.json, no config.json) do not say whether they are cased. Where no file says it, a
  vocabulary with capital letters is: in an uncased one no text could reach those tokens.
- padding and truncation stored in tokenizer.json: never applied; cutting text is the caller's decision.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer

from bertkit.errors import BertkitError
from bertkit.text import files, vocabulary
from bertkit.text.added import Declared, declared
from bertkit.text.wordpiece import Rules, Specials, build, require_specials

DEFAULT_LIMIT = 512
LARGEST_LIMIT = 1_000_000  # transformers writes 1e30 for "nobody said"

BERT_CLASSES = {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer"}
BERT_TYPES = {"bert", "distilbert", "electra", "mobilebert"}
ANY_CLASS = {None, "PreTrainedTokenizer", "TokenizersBackend"}

# What would name a path or code of the machine a tokenizer came from, or repeat what we write ourselves.
NOT_KEPT = {
    "added_tokens_decoder",
    "additional_special_tokens",
    "auto_map",
    "extra_special_tokens",
    "init_inputs",
    "is_local",
    "local_files_only",
    "model_max_length",
    "model_specific_special_tokens",
    "name_or_path",
    "special_tokens_map_file",
    "tokenizer_class",
    "tokenizer_file",
    "vocab_file",
}


@dataclass
class Opened:
    """A working tokenizer with what its files say about it. `rules` is None when it cleans text in a way of its own."""

    rust: Tokenizer
    rules: Rules | None
    specials: Specials
    limit: int | None = None
    """tokens per input; None where nobody said"""
    settings: dict[str, Any] = field(default_factory=dict)


def read(directory: Path) -> Opened:
    """Open a directory with tokenizer.json or vocab.txt."""
    _require_files(directory)
    data = files.read_object(directory / "tokenizer.json")
    config = files.read_object(directory / "tokenizer_config.json")
    special_map = files.read_object(directory / "special_tokens_map.json")
    added_file = files.read_object(directory / "added_tokens.json")
    given = declared(config, special_map, added_file, data, str(directory))
    bert = _belongs_to_bert(directory, config)
    opened = _from_rules(directory, data, config, given) if bert else _from_json(directory, data, given)
    given.require_ids(opened.rust, str(directory))
    _require_rows(opened.rust, str(directory))
    _require_agreement(directory, opened.rust)
    opened.rust.no_padding()
    opened.rust.no_truncation()
    opened.limit = _limit(config.get("model_max_length"))
    opened.settings = {key: value for key, value in config.items() if key not in NOT_KEPT}
    return opened


def write(opened: Opened, directory: Path) -> None:
    """Write the four files into an existing directory; transformers' AutoTokenizer gives the same ids from them."""
    rust = opened.rust
    text = "".join(f"{token}\n" for token in listing(rust))
    (directory / "vocab.txt").write_text(text, encoding="utf-8", newline="\n")
    (directory / "tokenizer.json").write_text(rust.to_str(), encoding="utf-8", newline="\n")
    files.write_object(directory / "tokenizer_config.json", _config(opened))
    files.write_object(directory / "special_tokens_map.json", _special_map(opened))


def listing(rust: Tokenizer) -> list[str]:
    """Every token in id order, added ones included."""
    ids = rust.get_vocab(with_added_tokens=True)
    return sorted(ids, key=ids.__getitem__)


def _require_files(directory: Path) -> None:
    if any((directory / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
        return
    if not directory.is_dir():
        raise BertkitError(f"{directory} is not a directory; give the one that holds tokenizer.json or vocab.txt")
    names = ", ".join(sorted(path.name for path in directory.iterdir())[:12]) or "nothing"
    raise BertkitError(f"{directory} has neither tokenizer.json nor vocab.txt (it holds {names}); copy one there")


def _belongs_to_bert(directory: Path, config: dict[str, Any]) -> bool:
    model = files.read_object(directory / "config.json")
    name = config.get("tokenizer_class") or model.get("tokenizer_class")
    kind = name.removesuffix("Fast") if isinstance(name, str) else None
    if kind in BERT_CLASSES or (kind is None and str(model.get("model_type")) in BERT_TYPES):
        return True
    if (directory / "tokenizer.json").is_file():
        return False
    if kind not in ANY_CLASS:
        raise BertkitError(
            f"{directory}: tokenizer_class is {name!r}, whose rules vocab.txt alone does not hold. bertkit reads "
            f"vocab.txt for {', '.join(sorted(BERT_CLASSES))}; save the tokenizer as tokenizer.json with transformers"
        )
    return True


def _from_rules(directory: Path, data: dict[str, Any], config: dict[str, Any], given: Declared) -> Opened:
    """Google's WordPiece over the directory's vocabulary, with the settings of tokenizer_config.json."""
    source = directory / "tokenizer.json"
    if source.is_file():
        ids = vocabulary.from_ids(_model_of(data, source)["vocab"], str(source))
    else:
        source = directory / "vocab.txt"
        ids = vocabulary.from_lines(files.read_lines(source), str(source))
    require_specials(given.specials, ids, given.numbered_names(), str(source))
    rules = _rules(config, directory / "tokenizer_config.json", not (_is_google(directory) and _is_cased(ids)))
    return Opened(build(ids, rules, given.specials, given.tokens()), rules, given.specials)


def _from_json(directory: Path, data: dict[str, Any], given: Declared) -> Opened:
    """The tokenizer exactly as tokenizer.json describes it."""
    source = directory / "tokenizer.json"
    model = _model_of(data, source)
    model["vocab"] = vocabulary.from_ids(model["vocab"], str(source))
    try:
        rust = Tokenizer.from_str(json.dumps(data))
    except Exception as error:  # the Rust side raises nothing narrower
        raise BertkitError(f"{source} cannot be used: {error}. Copy or download it again") from error
    if not isinstance(rust.model, WordPiece):
        raise _other_kind(source, type(rust.model).__name__)
    require_specials(given.specials, model["vocab"], rust.get_vocab().keys() | given.numbered_names(), str(source))
    present = {token.content for token in rust.get_added_tokens_decoder().values()}
    rust.add_tokens([token for token in given.tokens() if token.content not in present])
    rust.no_padding()
    rust.no_truncation()
    _require_template(rust, given.specials, source)
    return Opened(rust, _rules_if_google(rust, data, given.specials), given.specials)


def _model_of(data: dict[str, Any], source: Path) -> dict[str, Any]:
    model = data.get("model")
    if not isinstance(model, dict):
        raise BertkitError(f"{source} has no model: it is not a tokenizer's file")
    # Old files do not name the kind; only WordPiece has this key.
    kind = model.get("type") or ("WordPiece" if "max_input_chars_per_word" in model else "unnamed")
    if kind != "WordPiece" or not isinstance(model.get("vocab"), dict):
        raise _other_kind(source, str(kind))
    return model


def _other_kind(source: Path, kind: str) -> BertkitError:
    return BertkitError(
        f"{source} holds a {kind} tokenizer; bertkit reads WordPiece (BERT, DistilBERT, ELECTRA, MiniLM). "
        "Use a model of one of these families"
    )


def _require_template(rust: Tokenizer, specials: Specials, source: Path) -> None:
    expected = [specials.cls, specials.sep]
    if rust.encode("").tokens != expected:
        raise BertkitError(
            f"{source} does not put {' and '.join(expected)} around a text (its post_processor is "
            f"{type(rust.post_processor).__name__}). If it belongs to a BERT, write "
            '{"tokenizer_class": "BertTokenizer", "do_lower_case": true or false} to tokenizer_config.json beside it'
        )


def _rules_if_google(rust: Tokenizer, data: dict[str, Any], specials: Specials) -> Rules | None:
    """The rules under which `build` would make this very tokenizer, or None if it would not."""
    if not isinstance(rust.normalizer, BertNormalizer):
        return None
    normalizer = rust.normalizer
    rules = Rules(normalizer.lowercase, normalizer.strip_accents, normalizer.handle_chinese_chars)
    added = [token for _, token in sorted(rust.get_added_tokens_decoder().items())]
    same = build(data["model"]["vocab"], rules, specials, added)
    return rules if same.to_str() == rust.to_str() else None


def _require_rows(rust: Tokenizer, source: str) -> None:
    ids = rust.get_vocab(with_added_tokens=True).values()
    if sorted(ids) != list(range(len(ids))):
        raise BertkitError(f"{source}: ids of added tokens are not contiguous with the vocabulary's; correct them")


def _require_agreement(directory: Path, rust: Tokenizer) -> None:
    listed, known = directory / "vocab.txt", directory / "tokenizer.json"
    if listed.is_file() and known.is_file():
        lines = vocabulary.from_lines(files.read_lines(listed), str(listed))
        base = rust.get_vocab_size(with_added_tokens=False)
        vocabulary.require_equal(list(lines), listing(rust), base, (str(listed), str(known)))


def _is_google(directory: Path) -> bool:
    return (directory / "bert_config.json").is_file() and not (directory / "config.json").exists()


def _is_cased(tokens: Collection[str]) -> bool:
    """Google's uncased vocabularies have next to no capitals (<S> in the Chinese one), the cased ones a sixth or more.

    >>> _is_cased(["[CLS]", "[SEP]", "the", "##s"]), _is_cased(["[CLS]", "the", "The", "##S"])
    (False, True)
    """
    capitals = sum(token != token.lower() for token in tokens if not token.startswith("["))
    return capitals * 100 > len(tokens)


def _rules(config: dict[str, Any], source: Path, lowercase: bool) -> Rules:
    wanted = {"do_lower_case": (True, False), "strip_accents": (True, False, None)}
    wanted["tokenize_chinese_chars"] = (True, False)
    for key, values in wanted.items():
        if key in config and not any(config[key] is value for value in values):
            shown = ", ".join(json.dumps(value) for value in values)
            raise BertkitError(f"{source}: {key} is {config[key]!r}; write one of {shown}")
    lowercase = config.get("do_lower_case", lowercase)
    return Rules(lowercase, config.get("strip_accents"), config.get("tokenize_chinese_chars", True))


def _limit(given: object) -> int | None:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 1 <= given <= LARGEST_LIMIT:
        return None
    return int(given)


def _config(opened: Opened) -> dict[str, Any]:
    rules = opened.rules
    cleaning: dict[str, Any] = {}
    if rules is not None:
        cleaning = {
            "do_lower_case": rules.lowercase,
            "strip_accents": rules.strip_accents,
            "tokenize_chinese_chars": rules.split_chinese,
        }
    return {
        **opened.settings,
        # The generic class makes transformers take everything from tokenizer.json.
        "tokenizer_class": "PreTrainedTokenizerFast" if rules is None else "BertTokenizer",
        **({} if opened.limit is None else {"model_max_length": opened.limit}),
        **cleaning,
        **_special_map(opened),
        "added_tokens_decoder": {str(i): _flags(t) for i, t in opened.rust.get_added_tokens_decoder().items()},
    }


def _special_map(opened: Opened) -> dict[str, Any]:
    names = {f"{part}_token": getattr(opened.specials, part) for part in Specials.__dataclass_fields__}
    added = opened.rust.get_added_tokens_decoder().values()
    other = [token.content for token in added if token.special and token.content not in names.values()]
    return {**names, **({"additional_special_tokens": other} if other else {})}


def _flags(token: Any) -> dict[str, Any]:
    keys = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")
    return {key: getattr(token, key) for key in keys}
