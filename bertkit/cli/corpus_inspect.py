"""`bertkit corpus inspect`: what a corpus of shards holds, and its examples as the model will see them."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import textwrap
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertkit.cli.arguments import Json
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import facts as to_text
from bertkit.cli.printing import one_line
from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.corpus.corpus import Corpus
    from bertkit.corpus.inputs import Inputs
    from bertkit.objectives.choose import Choose

EXAMPLE = "bertkit corpus inspect shards --inputs segment-pairs --mask words"
JOINT = "+"
"""between the tokens of a word that is masked as a whole"""
_ASCII = {ord("→"): "->", ord("·"): "-"}


class InputKind(StrEnum):
    """How sentences become examples."""

    FULL_SENTENCES = "full-sentences"
    DOC_SENTENCES = "doc-sentences"
    SEGMENT_PAIRS = "segment-pairs"
    SENTENCE_PAIRS = "sentence-pairs"
    ORDER_PAIRS = "order-pairs"


class Masked(StrEnum):
    """What is masked."""

    PIECES = "pieces"
    WORDS = "words"
    NGRAMS = "ngrams"
    SPANS = "spans"
    PHRASES = "phrases"


_MASKED = {
    Masked.PIECES: "any tokens",
    Masked.WORDS: "whole words",
    Masked.NGRAMS: "runs of words",
    Masked.SPANS: "spans of words",
    Masked.PHRASES: "whole words and phrases",
}


def run(
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help="A directory that bertkit corpus build wrote.")],
    inputs: Annotated[
        InputKind,
        typer.Option(
            metavar="NAME",
            help="full-sentences (in a row, across documents), doc-sentences (within one), segment-pairs (BERT's), "
            "sentence-pairs, order-pairs (ALBERT's).",
        ),
    ] = InputKind.FULL_SENTENCES,
    length: Annotated[
        int, typer.Option(metavar="TOKENS", min=8, help="Of an example at most, with [CLS] and [SEP].")
    ] = 128,
    mask: Annotated[
        Masked,
        typer.Option(
            metavar="NAME",
            help="pieces (any tokens), words (whole ones), ngrams (ALBERT's), spans (SpanBERT's), phrases (ERNIE's: "
            "whole ones of --lexicon).",
        ),
    ] = Masked.PIECES,
    lexicon: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of --mask phrases; needed where the corpus has several.")
    ] = None,
    count: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Examples to show.")] = 3,
    first: Annotated[int, typer.Option(metavar="N", min=0, help="The first of them.")] = 0,
    epoch: Annotated[int, typer.Option(metavar="N", min=0, help="Each cuts, pairs, orders and masks anew.")] = 0,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Where chance begins.")] = 0,
    verify: Annotated[
        bool, typer.Option("--verify", help="First compare every file with its SHA-256, which finds any damage.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what a corpus holds, and some of its examples as the model will see them.

    Number N is the same for everyone who reads this corpus with the same --inputs, --length, --seed and --epoch.
    """
    path = Path(corpus)
    _require_corpus(path)

    from bertkit import artifact
    from bertkit.corpus.corpus import Corpus
    from bertkit.corpus.examples import Examples
    from bertkit.corpus.inspect import rendered, shown
    from bertkit.objectives.mask import Mask, Vocabulary

    if verify:
        artifact.verify(path)
    opened = Corpus(path)
    choose = _choose(mask, lexicon, opened)
    examples = Examples(opened, _inputs(inputs, length, opened), seed, choose.lexicons)
    total = examples.count(epoch)
    if first >= total:
        raise BertkitError(
            f"--first {first}: epoch {epoch} has the examples 0 to {total - 1} with --inputs {inputs.value} --length "
            f"{length}. Give one of these"
        )
    wanted = range(first, min(first + count, total))
    flat = Mask(choose).corrupt(examples.read(epoch, wanted), Vocabulary.of(opened.tokenizer))
    found = shown(flat, opened.tokenizer, wanted)
    if as_json:
        asked = {"inputs": inputs.value, "length": length, "mask": mask.value, "seed": seed, "epoch": epoch}
        typer.echo(to_json({**_facts(opened), **asked, "count": total, "examples": found}))
        return
    place = f"Example {first:,}" if len(wanted) == 1 else f"Examples {first:,} to {wanted[-1]:,}"
    title = (
        f"{place} of {total:,} in epoch {epoch}, seed {seed}: {inputs.value} of up to "
        f"{length} tokens, {_MASKED[mask]} masked. {_legend(mask)}"
    )
    width, joint = max(shutil.get_terminal_size().columns, 40), " " if mask is Masked.PIECES else JOINT
    paint = _highlighted if _coloured() else None
    drawn = [rendered(one, width, joint, paint) for one in found]
    _echo("\n\n".join([to_text(_said(opened)), textwrap.fill(title, width), *drawn]))


def _require_corpus(path: Path) -> None:
    """Refuse what is something else, with what to type for it."""
    from bertkit import artifact
    from bertkit.corpus.build import INDEX

    shown, typed = one_line(str(path), 200), shlex.quote(one_line(str(path)))
    if path.name.endswith(".partial") and (path / "settings.json").is_file():
        raise BertkitError(f"{shown} is a corpus that is not finished: repeat the command that builds it")
    if path.suffix == ".safetensors" and (path.parent / INDEX).is_file():
        home = shlex.quote(str(path.parent))
        raise BertkitError(f"{shown} is one shard; give its corpus: bertkit corpus inspect {home}")
    if not artifact.recover(path) and not path.exists() and not path.with_name(f"{path.name}.partial").is_dir():
        raise BertkitError(f"there is no directory {shown}. To make a corpus: bertkit corpus build --help")
    if path.is_file() or (path.is_dir() and not (path / INDEX).is_file()):
        what = "a file" if path.is_file() else f"a directory without {INDEX}"
        raise BertkitError(
            f"{shown} is {what}, not a corpus. To make one of raw text: bertkit corpus build {typed} --tokenizer "
            f"minilm --output shards. To look at raw text: bertkit corpus audit {typed}"
        )


def _inputs(kind: InputKind, length: int, corpus: Corpus) -> Inputs:
    from bertkit.corpus import inputs

    kinds: dict[InputKind, type[Inputs]] = {
        InputKind.FULL_SENTENCES: inputs.FullSentences,
        InputKind.DOC_SENTENCES: inputs.DocSentences,
        InputKind.SEGMENT_PAIRS: inputs.SegmentPairs,
        InputKind.SENTENCE_PAIRS: inputs.SentencePairs,
        InputKind.ORDER_PAIRS: inputs.OrderPairs,
    }
    if kinds[kind].takes_others and corpus.documents.sum() < 2:
        raise BertkitError(
            f"--inputs {kind.value} takes text from another document, and {corpus.path} holds only one: give --inputs "
            "order-pairs or full-sentences, or build it of texts with an empty line between documents"
        )
    return kinds[kind](length)


def _choose(mask: Masked, lexicon: str | None, corpus: Corpus) -> Choose:
    from bertkit.objectives import choose

    kinds = {
        Masked.PIECES: choose.Pieces,
        Masked.WORDS: choose.WholeWords,
        Masked.NGRAMS: choose.NGrams,
        Masked.SPANS: choose.Spans,
    }
    if mask is not Masked.PHRASES:
        return kinds[mask]()
    known = corpus.shard(0).lexicons
    if lexicon is None and len(known) > 1:
        raise BertkitError(f"--mask phrases: give one of --lexicon {', --lexicon '.join(known)}")
    return choose.Phrases(lexicon or "".join(known) or "phrases")


def _facts(corpus: Corpus) -> dict[str, Any]:
    """What the shards hold, from counts that were checked when the index was read."""
    tokens, documents = int(corpus.tokens.sum()), int(corpus.documents.sum())
    return {
        "documents": documents,
        "sentences": int(corpus.sentences.sum()),
        "words": int(corpus.words.sum()),
        "tokens": tokens,
        "tokens_per_document": round(tokens / documents, 1),
        "shards": len(corpus),
        "vocabulary": corpus.index["vocabulary"],
        "tokenizer": corpus.index["tokenizer"],
    }


def _said(corpus: Corpus) -> dict[str, Any]:
    """The same for a reader, with how it was built."""
    facts, index = _facts(corpus), corpus.index
    facts["tokens_per_document"] = f"{facts['tokens_per_document']:,} on average"
    facts["tokenizer"] = f"{facts.pop('vocabulary'):,} tokens, fingerprint {facts['tokenizer'][:12]}"
    options = index["options"]
    facts["sentences_by"], facts["chinese_words_by"] = options.get("sentences"), options.get("words")
    if isinstance(options.get("lexicons"), dict) and options["lexicons"]:
        facts["lexicons"] = ", ".join(options["lexicons"])
    if isinstance(index.get("skipped"), int) and index["skipped"]:
        facts["left_out"] = f"{index['skipped']:,} lines that could not be read"
    return facts


def _legend(mask: Masked) -> str:
    said = "[MASK→cat] hides a cat, [dog→cat] stands for it, [=cat] stays; the model names the cat in each."
    return said if mask is Masked.PIECES else f"{said} {JOINT} joins the tokens of a word."


def _coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _highlighted(text: str) -> str:
    return typer.style(text, fg="yellow", bold=True)


def _echo(text: str) -> None:
    from bertkit.cli import drawing

    typer.echo(text.translate(_ASCII) if drawing.is_plain() else text)
