"""`bertkit embed`: texts to vectors, any number of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertkit.cli import keeping
from bertkit.cli.arguments import Input, Json, ModelName, Texts, texts_from
from bertkit.cli.engines import BatchInvariant, Engine, use
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import one_line
from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.model import Model
    from bertkit.runtime.ledger import Ledger
    from bertkit.runtime.stream import Rows
    from bertkit.text.truncate import Cut, Policy

    Embed = Callable[..., Iterator[Rows]]
    """texts, in any number -> arrays of rows, in order; `progress` hears how many are done"""

EXAMPLE = "bertkit embed minilm --input texts.txt --output vectors.npy"
VECTORS = "vectors"
PREVIEW = 10
"""texts of a file that are shown where nothing is kept"""


class Truncate(StrEnum):
    """What happens to a text that is too long for the model."""

    HEAD = "head"
    TAIL = "tail"
    HEAD_TAIL = "head+tail"
    CHUNK = "chunk"
    ERROR = "error"


def run(
    model: ModelName,
    texts: Texts = None,
    source: Input = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.npy", help="Write a NumPy file, a row per text.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help=keeping.OVERWRITE)] = False,
    pool: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="cls, mean, max, pooler, first-last, last-4 …, or two: cls+mean; if not given, the model's own.",
        ),
    ] = None,
    normalize: Annotated[
        bool | None, typer.Option(help="Scale vectors to length 1, or not; if not given, as the model does.")
    ] = None,
    truncate: Annotated[
        Truncate,
        typer.Option(
            metavar="POLICY",
            help="Texts too long for the model: head, tail or head+tail keep these parts, chunk reads them whole "
            "and takes the mean, error refuses them.",
        ),
    ] = Truncate.HEAD,
    stride: Annotated[
        int | None,
        typer.Option(metavar="TOKENS", help="With --truncate chunk: how far apart chunks begin; else side by side."),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="One of the model's prompts, such as query; if not given, its default."),
    ] = None,
    engine: Engine = "auto",
    batch_invariant: BatchInvariant = False,
    as_json: Json = False,
) -> None:
    """Turn texts into vectors, one row per text and line, in bounded memory.

    With --output they go to a NumPy file, which appears when it is whole. Interrupted or killed, the same command goes
    on: until the file is whole, its rows are kept in FILE.npy.part.

    With --json alone, one line per text with its vector is printed.

    With neither, a preview: all texts on the command line, or the first 10 lines of a file.
    """
    if output is not None:
        keeping.require_output(output, ".npy", "numpy.load opens", overwrite)
    found = texts_from(texts, source, EXAMPLE)
    policy = _policy(truncate, stride)
    with keeping.told_when_stopped(output, VECTORS, overwrite):
        opened = _opened(model, pool)
        use(opened, engine, batch_invariant, source)
        _run(opened, found, source, output, overwrite, normalize, policy, prompt, as_json)


def _opened(name: str, pool: str | None) -> Model:
    import bertkit
    from bertkit.parts.pool import named

    pooling = None if pool is None else named(pool)  # refuse a wrong name before the model is read
    opened = bertkit.load(name, engine="torch")
    opened.pool = opened.pool if pooling is None else pooling
    return opened


def _run(
    opened: Model,
    found: Iterator[str],
    source: str | None,
    output: Path | None,
    overwrite: bool,
    normalize: bool | None,
    policy: Policy,
    prompt: str | None,
    as_json: bool,
) -> None:
    from bertkit.cli.progress import counting
    from bertkit.runtime.ledger import growing
    from bertkit.text.truncate import Cut

    width = opened.width
    cut = Cut()
    embed = partial(opened.embed_stream, normalize=normalize, truncate=policy, cut=cut, prompt=prompt)
    if output is None and not as_json:
        _preview(embed, found, None if source is None else PREVIEW, width, cut)
        return
    count = 0
    with counting("embedding", source, prints=output is None) as (watched, advance):
        embed = partial(embed, progress=advance)
        if output is not None:
            facts = _facts(opened, normalize, policy, prompt)
            with growing(output, facts, VECTORS, overwrite=overwrite) as ledger:
                keeping.say_where_it_goes_on(ledger, VECTORS)
                cut.add(keeping.cut_before(ledger, opened.limit))
                advance(ledger.kept.items)
                count = _write(embed, watched(found), ledger, width, cut)
        else:
            for count, line in enumerate(json_lines(embed, watched(found), cut), start=1):  # noqa: B007 - read below
                typer.echo(line)
    keeping.tell_cut(count, cut)
    if not count:
        typer.echo(f"bertkit: {source} holds no texts", err=True)
    if output is not None and as_json:
        cuts = {"cut_texts": cut.texts, "cut_tokens": cut.tokens, "chunked_texts": cut.chunked, "chunks": cut.chunks}
        typer.echo(to_json({"texts": count, "width": width, "output": str(output)} | cuts))
    elif output is not None:
        typer.echo(f"{_vectors(count, width)} in {output}. Next: numpy.load({str(output)!r})", err=True)


def json_lines(embed: Embed, texts: Iterable[str], cut: Cut) -> Iterator[str]:
    """One JSON object per text. Texts wait for their vectors, at most a window of them."""
    waiting: deque[str] = deque()

    def passing() -> Iterator[str]:
        for text in texts:
            waiting.append(text)
            yield text

    done = 0
    for rows in embed(passing()):
        for place, row in enumerate(rows):
            tokens, chunks = cut.latest.get(done + place, (0, 1))
            yield to_json({"text": waiting.popleft(), "vector": row.tolist(), "cut_tokens": tokens, "chunks": chunks})
        done += len(rows)


def _policy(truncate: Truncate, stride: int | None) -> Policy:
    from bertkit.text.truncate import Chunk, named

    if stride is None:
        return named(truncate.value)
    if truncate is not Truncate.CHUNK:
        raise BertkitError(f"--stride belongs to --truncate chunk, not to {truncate.value}")
    return Chunk(stride)


def _facts(model: Model, normalize: bool | None, policy: Policy, prompt: str | None) -> dict[str, Any]:
    """What decides the rows, but for the texts."""
    import bertkit
    from bertkit.spec import to_json

    name = model.default_prompt if prompt is None else prompt
    return {
        **model.fingerprint,
        "pool": to_json(model.pool),
        "normalize": f"as the model: {model.normalize}" if normalize is None else normalize,
        "shorten": model.shorten,
        "truncate": to_json(policy),
        "prompt": model.prompts.get(name, "") if name else "",
        "include_prompt": model.include_prompt,
        "bertkit": bertkit.__version__,
    }


def _write(embed: Embed, texts: Iterator[str], ledger: Ledger, width: int, cut: Cut) -> int:
    from bertkit.runtime.npy import NpyWriter

    writer = NpyWriter(ledger.file, width, ledger.kept.items)
    for window in ledger.windows(texts):
        for rows in embed(window, first=ledger.kept.items):
            writer.write(rows)
        ledger.keep(cut=keeping.counts(cut))
    return writer.finish()


def _preview(embed: Embed, texts: Iterator[str], most: int | None, width: int, cut: Cut) -> None:
    """Show some vectors and stop: who forgot --output must not wait for a million."""
    some = list(islice(texts, most))
    for text, row in zip(some, (row for rows in embed(some) for row in rows), strict=True):
        typer.echo(f"[{' '.join(f'{value:+.3f}' for value in row[:6])} …]  {one_line(text, 60)}")
    more = next(texts, None) is not None
    keeping.tell_cut(len(some), cut)
    shown = f"Only the first {len(some)} texts were read" if more else _vectors(len(some), width)
    typer.echo(f"{shown}. To have {'all' if more else 'them whole'}: --output vectors.npy, or --json", err=True)


def _vectors(count: int, width: int) -> str:
    return f"{count:,} {'vector' if count == 1 else 'vectors'} of width {width}"
