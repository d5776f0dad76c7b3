"""`bertkit tokenize`: texts as the model sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bertkit.cli.arguments import Input, Json, ModelName, Texts, texts_from
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import columns, one_line

if TYPE_CHECKING:
    from bertkit.text import Encoding

EXAMPLE = "bertkit tokenize minilm 'Unaffable cafés in 北京'"


def run(
    model: ModelName,
    texts: Texts = None,
    source: Input = None,
    pair: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A second text after each: [CLS] A [SEP] B [SEP].")
    ] = None,
    special_tokens: Annotated[bool, typer.Option(help="Add [CLS] and [SEP].")] = True,
    as_json: Json = False,
) -> None:
    """Show the tokens, ids, segments and places in the text; reads no weights.

    With --json one object per line and text.
    """
    found = texts_from(texts, source, EXAMPLE)

    from bertkit.cli.progress import counting
    from bertkit.weights import folder
    from bertkit.weights.find import find

    tokenizer = folder.read_tokenizer(folder.home(find(model)))
    count = 0
    with counting("tokenizing", source, prints=True) as (watched, advance):
        for count, text in enumerate(watched(found), start=1):  # noqa: B007 - read after the loop
            encoding = tokenizer.encode(text, pair, special_tokens)
            typer.echo(_json(encoding, text, pair) if as_json else _table(encoding, text, pair))
            advance(1)
    if not count:
        typer.echo(f"bertkit: {source} holds no texts", err=True)


def _json(encoding: Encoding, text: str, pair: str | None) -> str:
    names = ("tokens", "ids", "segments", "words", "offsets")
    return to_json({"text": text, "pair": pair} | {name: getattr(encoding, name) for name in names})


def _table(encoding: Encoding, text: str, pair: str | None) -> str:
    rows = [("token", "id", "segment", "word", "offset", "in the text")]
    numeric = (False, True, True, True, True, False)
    lists = (encoding.tokens, encoding.ids, encoding.segments, encoding.words, encoding.offsets)
    for token, id, segment, word, (start, end) in zip(*lists, strict=True):
        side = pair if segment and pair is not None else text
        place = ("", "", "") if word is None else (f"{word}", f"{start}:{end}", one_line(side[start:end]))
        rows.append((token, f"{id}", f"{segment}", *place))
    title = one_line(text, 60) if pair is None else f"{one_line(text, 60)} | {one_line(pair, 60)}"
    return f"{title}\n{columns(rows, numeric)}\n"
