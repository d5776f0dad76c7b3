"""`bertkit lengths`: how long texts are in tokens, and what truncation would cut."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertkit.cli.arguments import Json, lines, require_page
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import columns as in_columns
from bertkit.cli.printing import facts as to_text
from bertkit.cli.printing import one_line
from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.text import Tokenizer
    from bertkit.text.summary import Summary

EXAMPLE = "bertkit lengths texts.txt --html lengths.html"
ROWS = 20
"""of the histogram in a terminal"""


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A UTF-8 file, one text per line; - is stdin.")],
    model: Annotated[
        str,
        typer.Option("--model", "-m", metavar="MODEL", help="Whose tokenizer and limit: a directory, alias or name."),
    ] = "minilm",
    tsv: Annotated[
        bool, typer.Option("--tsv", help="Columns between tabs are the fields of one input, such as title and body.")
    ] = False,
    fields: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Only these columns, from 1: 2,3. Means --tsv.")
    ] = None,
    header: Annotated[bool, typer.Option("--header", help="The first line names the columns: leave it out.")] = False,
    limit: Annotated[
        int | None, typer.Option(metavar="TOKENS", min=3, help="Judge by this limit instead of the model's.")
    ] = None,
    keep: Annotated[
        float, typer.Option(metavar="PERCENT", help="How many texts shall fit whole into the proposed length.")
    ] = 95,
    budgets: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Also ask for the most of each field: 50,200,200.")
    ] = None,
    stride: Annotated[
        int | None, typer.Option(metavar="TOKENS", min=1, help="How far apart chunks begin; else side by side.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PAGE.html", help="Also write a page for a browser.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the page if it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Draw how long texts are in tokens, and propose a sequence length.

    The proposal is the smallest multiple of 8 into which 95 % of the texts fit whole, at most the model's limit.

    For it and for the limit, what each truncation policy would cut is shown. Memory does not grow with the lines.
    """
    if not 1 < keep <= 100:
        meant = f": did you mean --keep {keep * 100:g}?" if 0 < keep <= 1 else ": give per cents above 1, up to 100"
        raise BertkitError(f"--keep {keep:g} is no share of the texts in per cents{meant}")
    wanted = None if fields is None else _numbers("--fields", fields, "2,3")
    allowed = None if budgets is None else _numbers("--budgets", budgets, "50,200,200")
    _require_readable(file)
    if html is not None:
        require_page(html, overwrite)

    from bertkit.cli.progress import counting
    from bertkit.text.lengths import count, policies
    from bertkit.text.prompt import Prompted
    from bertkit.text.summary import Summary

    tokenizer, own, prompt = _open(model)
    with counting("counting", None if file == "-" else file) as (watched, advance):
        found = watched(lines(file))
        if header:
            next(found, None)
        whole = not tsv and wanted is None  # a line is a text
        inputs = ([prompt + text] for text in _hinting(found)) if whole else _cells(found, wanted)
        lengths = count(inputs, tokenizer, advance, None if allowed is None else len(allowed))
    with lengths:
        asked = policies(lengths.fields if lengths.texts else 1, allowed if lengths.texts else None, stride)
        if whole and prompt:
            tokens = len(tokenizer.encode(prompt, special_tokens=False))
            asked = {name: Prompted(policy, tokens) for name, policy in asked.items()}
        name = "standard input" if file == "-" else file
        said = prompt if whole else ""
        summary = Summary.of(lengths, asked, limit or own, keep / 100, name, model, said)
    if html is not None:
        summary.page().write(html, overwrite)
    typer.echo(to_json(summary.json()) if as_json else _drawn(summary, own))
    if html is not None:
        typer.echo(f"bertkit: wrote {html}. Next: open it in a browser", err=True)


def _open(model: str) -> tuple[Tokenizer, int, str]:
    """The tokenizer of a model, the tokens it takes, and its default prompt; no weights are read."""
    from bertkit.weights import find, folder

    try:
        path = find.find(model)
    except BertkitError as error:
        raise BertkitError(
            f"{error}. To count with another tokenizer: --model DIR, one with vocab.txt will do"
        ) from None
    home = folder.home(path)
    tokenizer = folder.read_tokenizer(home)
    return tokenizer, folder.limit_of(path, home, tokenizer), folder.default_prompt(path)


def _numbers(option: str, given: str, example: str) -> tuple[int, ...]:
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < len(part) < 8 and int(part) for part in parts):
        raise BertkitError(
            f"{option} {given!r} is not a row of whole numbers from 1 on: write it like {option} {example}"
        )
    return tuple(map(int, parts))


def _require_readable(file: str) -> None:
    """Say at once what would otherwise be said after the tokenizer was loaded."""
    if file == "-":
        return
    if Path(file).is_dir():
        raise BertkitError(f"{file} is a directory: give a text file with one text per line")
    if not Path(file).exists():
        raise BertkitError(
            f"{one_line(file, 80)}: there is no such file. Give one with one text per line, or - for stdin"
        )


def _hinting(found: Iterator[str]) -> Iterator[str]:
    """The lines; a word on the way where the first ones look like columns or JSON, for they are counted as they are."""
    first = list(islice(found, 20))
    if len(first) > 1 and all("\t" in line for line in first):
        typer.echo("bertkit: every line has tabs, which are counted as text. For one column: --fields 1", err=True)
    elif first and first[0][:1] in ("{", "["):
        typer.echo("bertkit: this looks like JSON, whose marks are counted as text. Give a file of texts", err=True)
    yield from chain(first, found)


def _cells(found: Iterator[str], wanted: Sequence[int] | None) -> Iterator[list[str]]:
    """The fields of each line: all columns, or the wanted ones."""
    first = None
    for number, line in enumerate(found, start=1):
        cells = line.split("\t")
        first = len(cells) if first is None else first
        if wanted is None and len(cells) != first:
            raise BertkitError(
                f"line {number} has {len(cells)} columns where line 1 has {first}: correct it, or choose columns that "
                "all lines have with --fields 1,2"
            )
        if wanted is not None and len(cells) < max(wanted):
            raise BertkitError(f"line {number} has {len(cells)} columns, and --fields asks for column {max(wanted)}")
        yield cells if wanted is None else [cells[place - 1] for place in wanted]


def _drawn(summary: Summary, own: int) -> str:
    """Histogram, facts, proposal, and a table for each of the two lengths; `own` is the model's limit."""
    parts = [_histogram(summary), to_text(summary.facts()), _fold(f"Proposed sequence length: {summary.proposed()}")]
    for limit, place in summary.places().items():
        table = f"At {limit} tokens, {place}:\n{_table(summary, limit)}"
        parts.append(table if summary.matters(limit) else _fold(summary.untouched(limit, place)))
    if summary.proposal.length < own and summary.lengths.own_tokens and _loads(summary.model):
        parts.append(f"Next: model = bertkit.load({summary.model!r}); model.limit = {summary.proposal.length}")
    return "\n\n".join(parts)


def _loads(model: str) -> bool:
    """Whether there is more than a tokenizer."""
    from bertkit.weights import find, folder

    home = folder.home(find.find(model))
    return any((home / name).is_file() for name in ("config.json", "bert_config.json"))


def _texts(count: int) -> str:
    return f"{count:,} {'text' if count == 1 else 'texts'}"


def _fold(sentence: str) -> str:
    width = max(shutil.get_terminal_size().columns, 20)
    return textwrap.fill(one_line(sentence), width, break_long_words=False, break_on_hyphens=False)


def _histogram(summary: Summary) -> str:
    from bertkit.cli import drawing

    bins = summary.bins(ROWS - 1)
    labels = [
        f"{left:,}-{right - 1:,}" if right - left > 1 else f"{left:,}"
        for left, right in zip(bins.edges, bins.edges[1:], strict=False)
    ]
    counts = list(bins.counts)
    if bins.beyond:
        labels, counts = [*labels, f"{bins.edges[-1]:,} and more"], [*counts, bins.beyond]
    marks: dict[int, str] = {}
    for length, word in ((summary.proposal.length, "proposed"), (summary.limit, "limit")):
        place = next((place for place, edge in enumerate(bins.edges[1:]) if length < edge), None)
        if place is not None and length >= bins.edges[0]:
            marks[place] = f"{marks[place]}, {word} {length}" if place in marks else f"{word} {length}"
    title = f"Tokens per text in {summary.source}, with [CLS] and [SEP], by {summary.counted_by()}"
    width = shutil.get_terminal_size().columns
    return f"{_fold(title)}\n{drawing.bars(labels, counts, width, marks, drawing.is_plain())}"


def _table(summary: Summary, limit: int) -> str:
    rows = [("policy", "texts cut", "share", "tokens lost", "share", "chunks", "")]
    for found in summary.at(limit):
        texts, tokens = found.cut_texts / summary.lengths.texts, found.cut_tokens / max(summary.lengths.own_tokens, 1)
        cells = (f"{found.cut_texts:,}", f"{texts:.2%}", f"{found.cut_tokens:,}", f"{tokens:.2%}", f"{found.chunks:,}")
        said = ""
        if found.refused_texts:
            said = f"refuses {_texts(found.refused_texts)}"
        elif found.chunked_texts:
            said = f"of {_texts(found.chunked_texts)}" + ", by the last field" * (summary.lengths.fields > 1)
        rows.append((found.policy, *cells, said))
    return in_columns(rows, (False, True, True, True, True, True, False))
