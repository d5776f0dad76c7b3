"""`bertkit tokenize`: texts as the model sees them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from bertkit.cli.arguments import Input, Json, ModelName, Texts, texts_from

if TYPE_CHECKING:
    from bertkit.text import Encoding

EXAMPLE = "bertkit tokenize minilm 'Unaffable cafés in 北京'"


def run(
    model: ModelName,
    texts: Texts = None,
    source: Input = None,
    pair: Annotated[str | None, typer.Option(help="A second text: [CLS] A [SEP] B [SEP].")] = None,
    special_tokens: Annotated[bool, typer.Option(help="Add [CLS] and [SEP].")] = True,
    as_json: Json = False,
) -> None:
    """Show the tokens, ids, segments and places in the text; reads no weights."""
    from bertkit.text import Tokenizer
    from bertkit.weights.find import find

    tokenizer = Tokenizer.load(find(model))
    for text in texts_from(texts, source, EXAMPLE):
        encoding = tokenizer.encode(text, pair, special_tokens)
        if as_json:
            names = ("tokens", "ids", "segments", "words", "offsets")
            columns = {name: getattr(encoding, name) for name in names}
            typer.echo(json.dumps({"text": text, "pair": pair, **columns}, ensure_ascii=False))
        else:
            _print(encoding, text, pair)


def _print(encoding: Encoding, text: str, pair: str | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(text if pair is None else f"{text} | {pair}"), title_justify="left", box=None)
    for name in ("token", "id", "segment", "word", "offset", "in the text"):
        table.add_column(name, justify="left" if name in ("token", "in the text") else "right")
    columns = (encoding.tokens, encoding.ids, encoding.segments, encoding.words, encoding.offsets)
    for token, id, segment, word, (start, end) in zip(*columns, strict=True):
        side = pair if segment and pair is not None else text
        place = ("", "", "") if word is None else (f"{word}", f"{start}:{end}", escape(side[start:end]))
        table.add_row(escape(token), f"{id}", f"{segment}", *place)
    Console(highlight=False).print(table)
