"""`bertkit embed`: texts to vectors, any number of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertkit.cli.arguments import Input, Json, ModelName, Texts, texts_from
from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.runtime.stream import Cut, Rows

EXAMPLE = "bertkit embed minilm --input texts.txt --output vectors.npy"


def run(
    model: ModelName,
    texts: Texts = None,
    source: Input = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write a NumPy .npy file here.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the output if it exists.")] = False,
    pool: Annotated[
        str | None, typer.Option(help="cls, mean, max, first-last or last-4. [default: the model's own]")
    ] = None,
    normalize: Annotated[
        bool | None, typer.Option(help="Scale vectors to length 1. [default: the model's own]")
    ] = None,
    truncate: Annotated[
        str, typer.Option(help="Texts too long for the model: head keeps the beginning, error refuses.")
    ] = "head",
    as_json: Json = False,
) -> None:
    """Turn texts into vectors, one row per text and line, in bounded memory.

    With --output the rows go to a NumPy file that appears when it is whole. Without it, --json prints one line per text
    with its vector, and otherwise a preview is shown.
    """
    if output is not None and output.suffix != ".npy":
        raise BertkitError(f"--output {output} must end in .npy, which numpy.load opens")
    found = texts_from(texts, source, EXAMPLE)

    import bertkit
    from bertkit.cli.progress import counting
    from bertkit.runtime.stream import Cut

    opened = bertkit.load(model)
    cut = Cut(opened.limit)
    width = opened.network.spec.encoder.width
    with counting("embedding", source) as (watched, advance):
        kept: list[str] = []
        rows = opened.embed_stream(
            watched(found, kept if output is None else None), pool, normalize, truncate, advance, cut
        )
        if output is not None:
            count = _write(rows, output, width, overwrite)
        elif as_json:
            count = _print_json(rows, kept)
        else:
            count = _print_preview(rows, kept)
    _close(count, width, output, cut, as_json)


def _write(rows: Iterator[Rows], output: Path, width: int, overwrite: bool) -> int:
    from bertkit import artifact
    from bertkit.runtime.npy import NpyWriter

    with artifact.file(output, overwrite=overwrite) as file:
        writer = NpyWriter(file, width)
        for part in rows:
            writer.write(part)
        return writer.finish()


def _print_json(rows: Iterator[Rows], kept: list[str]) -> int:
    count = 0
    for part in rows:
        for row in part:
            typer.echo(json.dumps({"text": kept.pop(0), "vector": row.tolist()}, ensure_ascii=False))
        count += len(part)
    return count


def _print_preview(rows: Iterator[Rows], kept: list[str]) -> int:
    count = 0
    for part in rows:
        for row in part:
            text = kept.pop(0)
            if count < 10:
                typer.echo(f"[{' '.join(f'{value:+.3f}' for value in row[:6])} …]  {text[:60]}")
            count += 1
    return count


def _close(count: int, width: int, output: Path | None, cut: Cut, as_json: bool) -> None:
    """Say what was done: to a program on standard output where the vectors are not there, else to the reader."""
    if cut.texts:
        typer.echo(f"bertkit: of {count:,} texts {cut}", err=True)
    facts: dict[str, Any] = {"texts": count, "width": width, "output": str(output) if output else None}
    facts |= {"cut_texts": cut.texts, "cut_tokens": cut.tokens}
    if as_json and output:
        typer.echo(json.dumps(facts))
    elif output:
        typer.echo(f"{count:,} vectors of width {width} in {output}. Next: numpy.load({str(output)!r})", err=True)
    elif not as_json:
        typer.echo(f"{count:,} vectors of width {width}. To keep them: --output vectors.npy, or --json", err=True)
