"""A tokenizer's directory: the files Hugging Face and Google use, read so that ids agree with transformers.

Which file wins, as in transformers 5's AutoTokenizer:
- whose rules apply: `tokenizer_class`, else config.json's `model_type`. BERT, RoBERTa, ALBERT and XLM-R have rules that
  bertkit knows; otherwise what tokenizer.json itself says.
- tokens and ids: tokenizer.json, else vocab.txt (BERT), vocab.json and merges.txt (RoBERTa), spiece.model (ALBERT) or
  sentencepiece.bpe.model (XLM-R). Where tokenizer.json and a vocabulary are both there they must agree,
  but for a model of sentencepiece, which is not read then.
- lower-casing, accents, Chinese, prefix spaces: tokenizer_config.json when the directory belongs to one of the four.
- a vocab.txt without a model of sentencepiece means BERT's rules, whatever `model_type` says: so are the ALBERTs of
  Chinese and Korean.
- Google's directories (bert_config.json, no config.json) do not say whether they are cased. Where no file says it, a
  vocabulary with capital letters is: in an uncased one no text could reach those tokens.
- padding and truncation stored in tokenizer.json: never applied; cutting text is the caller's decision.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer
from tokenizers.normalizers import BertNormalizer

from bertkit.errors import BertkitError
from bertkit.text import bytelevel, files, unigram, vocabulary
from bertkit.text.added import Declared, declared
from bertkit.text.bytelevel import Roberta
from bertkit.text.opened import Opened, listing, sentencepiece_files
from bertkit.text.template import Template
from bertkit.text.unigram import Albert, XlmRoberta
from bertkit.text.wordpiece import Rules, Specials, build, require_specials

DEFAULT_LIMIT = 512
LARGEST_LIMIT = 1_000_000  # transformers writes 1e30 for "nobody said"

CLASSES: dict[str, type[Rules | Roberta | Albert | XlmRoberta]] = {
    **dict.fromkeys(("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer"), Rules),
    "RobertaTokenizer": Roberta,
    "AlbertTokenizer": Albert,
    "XLMRobertaTokenizer": XlmRoberta,
}
TYPES: dict[str, type[Rules | Roberta | Albert | XlmRoberta]] = {
    **dict.fromkeys(("bert", "distilbert", "electra", "mobilebert"), Rules),
    "roberta": Roberta,
    "albert": Albert,
    "xlm-roberta": XlmRoberta,
}
ANY_CLASS = {None, "PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"}

FILES: dict[type[Rules | Roberta | Albert | XlmRoberta], tuple[str, ...]] = {
    Rules: ("vocab.txt",),
    Roberta: (bytelevel.VOCABULARY, bytelevel.MERGES),
    XlmRoberta: (XlmRoberta.file,),
    Albert: (Albert.file,),
}
"""what holds a vocabulary where there is no tokenizer.json"""
MODELS = {Rules: "WordPiece", Roberta: "BPE", Albert: "Unigram", XlmRoberta: "Unigram"}
NAMES = {"WordPiece": (Specials(),), "BPE": (bytelevel.SPECIALS, Specials())}
NAMES["Unigram"] = (Albert.specials, XlmRoberta.specials)
"""how the five tokens are called where no file says it, by the kind of the model"""

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


@dataclass(frozen=True)
class Said:
    """The small files of a directory; one that is absent is empty."""

    directory: Path
    tokenizer: dict[str, Any]
    config: dict[str, Any]
    special_map: dict[str, Any]
    added: dict[str, Any]
    model: dict[str, Any]

    @classmethod
    def of(cls, directory: Path) -> Said:
        names = ("tokenizer", "tokenizer_config", "special_tokens_map", "added_tokens", "config")
        return cls(directory, *(files.read_object(directory / f"{name}.json") for name in names))

    @property
    def json(self) -> Path:
        """Where tokenizer.json is, or would be."""
        return self.directory / "tokenizer.json"

    @property
    def settings(self) -> Path:
        """Where tokenizer_config.json is, or would be."""
        return self.directory / "tokenizer_config.json"

    def has(self, *names: str) -> bool:
        """Whether all of these files are there."""
        return all((self.directory / name).is_file() for name in names)

    def declared(self, defaults: Specials, symbols: Sequence[AddedToken] = ()) -> Declared:
        """What the files say about added tokens."""
        told = (self.config, self.special_map, self.added, self.tokenizer)
        return declared(*told, str(self.directory), defaults, symbols)


def read(directory: Path) -> Opened:
    """Open a directory with a tokenizer of any kind."""
    _require_files(directory)
    said = Said.of(directory)
    given = said.declared(Specials())  # before anything else, for these are the plainest errors
    rules = _rules_of(said)
    if rules is Rules:
        opened = _wordpiece(said, given)
    elif rules is Roberta:
        opened = _bytelevel(said)
    elif rules is Albert or rules is XlmRoberta:
        opened = _unigram(said, rules)
    else:
        opened = _from_json(said)
    _require_rows(opened.rust, str(directory))
    _require_agreement(said, opened.rust)
    opened.rust.no_padding()
    opened.rust.no_truncation()
    opened.limit = _limit(said.config.get("model_max_length"))
    opened.settings = {key: value for key, value in said.config.items() if key not in NOT_KEPT}
    opened.files = sentencepiece_files(directory)
    return opened


# Whose rules ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _require_files(directory: Path) -> None:
    if any(all((directory / name).is_file() for name in names) for names in (("tokenizer.json",), *FILES.values())):
        return
    if not directory.is_dir():
        raise BertkitError(f"{directory} is not a directory; give the one that holds tokenizer.json or vocab.txt")
    names = ", ".join(sorted(path.name for path in directory.iterdir())[:12]) or "nothing"
    raise BertkitError(
        f"{directory} has neither tokenizer.json nor vocab.txt (it holds {names}); copy one there, or vocab.json with "
        "merges.txt, spiece.model or sentencepiece.bpe.model"
    )


def _rules_of(said: Said) -> type[Rules | Roberta | Albert | XlmRoberta] | None:
    """The family whose rules apply; None for what tokenizer.json itself says."""
    name = said.config.get("tokenizer_class") or said.model.get("tokenizer_class")
    kind = name.removesuffix("Fast") if isinstance(name, str) else None
    model_type = said.model.get("model_type")
    wanted = TYPES.get(str(model_type)) if kind is None else CLASSES.get(kind)
    if wanted is Rules:
        return Rules
    if said.json.is_file():
        model = said.tokenizer.get("model")
        return wanted if wanted and isinstance(model, dict) and model.get("type") == MODELS[wanted] else None
    if wanted and said.has(*FILES[wanted]):
        return wanted
    there = next(found for found, names in FILES.items() if said.has(*names))
    # a model_type that says nothing of vocab.txt is no news; one that nobody knows says nothing good of other files
    if wanted is Albert or (kind in ANY_CLASS and (there is Rules or model_type is None)):
        return there
    raise BertkitError(
        f"{said.directory}: tokenizer_class is {name!r}"
        + ("" if name else f" and model_type {model_type!r}")
        + f", whose rules {' and '.join(FILES[there])} alone does not hold. bertkit reads it for "
        f"{', '.join(sorted(name for name in CLASSES if CLASSES[name] is there))}; save the tokenizer as "
        "tokenizer.json with transformers"
    )


# Each kind ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _wordpiece(said: Said, given: Declared) -> Opened:
    """Google's WordPiece over the directory's vocabulary, with the settings of tokenizer_config.json."""
    source = said.json
    if source.is_file():
        ids = vocabulary.from_ids(_model_of(said, "WordPiece")["vocab"], str(source))
    else:
        source = said.directory / "vocab.txt"
        ids = vocabulary.from_lines(files.read_lines(source), str(source))
    require_specials(given.specials, ids, given.numbered_names(), str(source))
    rules = _rules(said.config, said.settings, not (_is_google(said.directory) and _is_cased(ids)))
    return _checked(Opened(build(ids, rules, given.specials, given.tokens()), rules, given.specials), given, said)


def _bytelevel(said: Said) -> Opened:
    """RoBERTa's BPE, with the settings of tokenizer_config.json."""
    given, rules = said.declared(bytelevel.SPECIALS), Roberta.of(said.config, said.settings)
    if said.json.is_file():
        source = said.json
        model = _model_of(said, "BPE")
        ids, merges = vocabulary.from_ids(model["vocab"], str(source)), bytelevel.merges_of(model, source)
    else:
        source = said.directory / bytelevel.VOCABULARY
        ids, merges = bytelevel.read_files(said.directory)
    _require_names(given, ids, source)
    try:
        rust = bytelevel.build(ids, merges, rules, given.specials, given.tokens())
    except Exception as error:  # the Rust side raises nothing narrower
        raise _unusable(source, error) from error
    return _checked(Opened(rust, rules, given.specials), given, said)


def _unigram(said: Said, family: type[Albert | XlmRoberta]) -> Opened:
    """ALBERT's or XLM-R's Unigram, with the settings of tokenizer_config.json."""
    rules, given = family.of(said.config, said.settings), said.declared(family.specials)
    if said.json.is_file():
        source = said.json
        found = unigram.read_model(_model_of(said, "Unigram"), said.tokenizer.get("normalizer"), source)
    else:
        source = said.directory / family.file
        found = unigram.read_file(source, rules, given.specials)
        given = said.declared(family.specials, found.symbols)
    names = found.names()
    _require_names(given, names, source)
    if given.specials.unk not in names:
        raise BertkitError(f"{source} has no {given.specials.unk}, which stands for what cannot be spelled")
    try:
        rust = unigram.build(found, rules, given.specials, given.tokens())
    except Exception as error:  # the Rust side raises nothing narrower
        raise _unusable(source, error) from error
    known = names.index(given.specials.unk) == family.unknown  # transformers' class knows no other row
    return _checked(Opened(rust, rules if known else None, given.specials), given, said)


def _from_json(said: Said) -> Opened:
    """The tokenizer exactly as tokenizer.json describes it."""
    source, kind = said.json, _kind(said)
    model = _model_of(said, kind)
    if kind == "Unigram":
        model["vocab"] = [list(piece) for piece in unigram.read_model(model, None, source).pieces]
    else:
        model["vocab"] = vocabulary.from_ids(model["vocab"], str(source))
    list(unigram.tables(said.tokenizer.get("normalizer"), source))  # a damaged one would end the program later
    try:
        rust = unigram.from_text(json.dumps(said.tokenizer))
    except Exception as error:  # the Rust side raises nothing narrower
        raise _unusable(source, error) from error
    if type(rust.model).__name__ != kind or (kind == "BPE" and not _is_bytelevel(said.tokenizer.get("pre_tokenizer"))):
        raise _other_kind(source, type(rust.model).__name__)
    known = rust.get_vocab()
    given = next(
        (given for given in map(said.declared, NAMES[kind]) if all(name in known for name in given.specials.names())),
        said.declared(NAMES[kind][0]),
    )
    if kind == "WordPiece":
        require_specials(given.specials, model["vocab"], known.keys() | given.numbered_names(), str(source))
    else:
        _require_names(given, known, source)
    present = {token.content for token in rust.get_added_tokens_decoder().values()}
    rust.add_tokens([token for token in given.tokens() if token.content not in present])
    rust.no_padding()
    rust.no_truncation()
    rules = _rules_if_google(rust, said.tokenizer, given.specials)
    return _checked(Opened(rust, rules, given.specials), given, said)


def _kind(said: Said) -> str:
    """The kind of a tokenizer.json; old files do not name it."""
    model = said.tokenizer.get("model")
    if not isinstance(model, dict):
        raise BertkitError(f"{said.json} has no model: it is not a tokenizer's file")
    telling = {"max_input_chars_per_word": "WordPiece", "merges": "BPE", "unk_id": "Unigram"}
    return str(model.get("type") or next((kind for key, kind in telling.items() if key in model), "unnamed"))


def _model_of(said: Said, wanted: str) -> dict[str, Any]:
    """The model of tokenizer.json, which must be of this kind."""
    kind = _kind(said)
    model: dict[str, Any] = said.tokenizer["model"]
    if kind != wanted or wanted not in NAMES or not isinstance(model.get("vocab"), list if kind == "Unigram" else dict):
        raise _other_kind(said.json, kind)
    return model


def _is_bytelevel(pre_tokenizer: object) -> bool:
    if not isinstance(pre_tokenizer, dict):
        return False
    steps = pre_tokenizer.get("pretokenizers")
    return pre_tokenizer.get("type") == "ByteLevel" or (isinstance(steps, list) and any(map(_is_bytelevel, steps)))


def _other_kind(source: Path, kind: str) -> BertkitError:
    return BertkitError(
        f"{source} holds a {kind} tokenizer; bertkit reads WordPiece (BERT, DistilBERT, ELECTRA, MiniLM), byte-level "
        "BPE (RoBERTa) and Unigram (ALBERT, XLM-R). Use a model of one of these families"
    )


def _unusable(source: Path, error: Exception) -> BertkitError:
    return BertkitError(f"{source} cannot be used: {error}. Copy or download it again")


def _rules_if_google(rust: Tokenizer, data: dict[str, Any], specials: Specials) -> Rules | None:
    """The rules under which `build` would make this very tokenizer, or None if it would not."""
    if not isinstance(rust.normalizer, BertNormalizer):
        return None
    normalizer = rust.normalizer
    rules = Rules(normalizer.lowercase, normalizer.strip_accents, normalizer.handle_chinese_chars)
    added = [token for _, token in sorted(rust.get_added_tokens_decoder().items())]
    same = build(data["model"]["vocab"], rules, specials, added)
    return rules if same.to_str() == rust.to_str() else None


# What must hold ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _checked(opened: Opened, given: Declared, said: Said) -> Opened:
    given.require_ids(opened.rust, str(said.directory))
    _require_template(opened.rust, given.specials, said.json if said.json.is_file() else said.directory)
    return opened


def _require_names(given: Declared, vocabulary: Collection[str], source: Path) -> None:
    known = {*vocabulary, *given.numbered_names()}
    require_specials(given.specials, known, (), str(source))


def _require_template(rust: Tokenizer, specials: Specials, source: Path) -> None:
    expected = [specials.cls, specials.sep]
    if rust.encode("").tokens != expected or Template.of(rust) is None:
        raise BertkitError(
            f"{source} does not put {' and '.join(expected)} around a text (its post_processor is "
            f"{type(rust.post_processor).__name__}). If it belongs to a BERT, write "
            '{"tokenizer_class": "BertTokenizer", "do_lower_case": true or false} to tokenizer_config.json beside it'
        )


def _require_rows(rust: Tokenizer, source: str) -> None:
    ids = rust.get_vocab(with_added_tokens=True).values()
    if sorted(ids) != list(range(len(ids))):
        raise BertkitError(f"{source}: ids of added tokens are not contiguous with the vocabulary's; correct them")


def _require_agreement(said: Said, rust: Tokenizer) -> None:
    """Refuse a vocab.txt or a vocab.json that contradicts its tokenizer.json."""
    names = {"WordPiece": "vocab.txt", "BPE": bytelevel.VOCABULARY}
    listed = said.directory / names.get(type(rust.model).__name__, "")
    if listed.is_file() and said.json.is_file():
        lines = (
            vocabulary.from_lines(files.read_lines(listed), str(listed))
            if listed.name == "vocab.txt"
            else vocabulary.from_ids(files.read_object(listed), str(listed))
        )
        base = rust.get_vocab_size(with_added_tokens=False)
        vocabulary.require_equal(list(lines), listing(rust), base, (str(listed), str(said.json)))


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
